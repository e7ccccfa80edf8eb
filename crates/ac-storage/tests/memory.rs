//! A run from start to end on the memory store.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use ac_core::{Message, Part, Role, SessionKey, Timestamp, Usage};
use ac_storage::{
    Commit, CommitMark, CommitOutcome, MemoryStorage, RunHeader, RunPosture, RunRecord, RunStage, Storage, StorageErrorKind, ThreadRecord,
    domain::{MessageQuery, OpenRuns, ThreadQuery},
};
use serde_json::value::RawValue;

fn record(stage: RunStage, n: u64) -> RunRecord {
    let header = RunHeader {
        run: "r".into(),
        controller: "c".into(),
        session: SessionKey::new("u"),
        thread: "t".into(),
        parent: None,
        stage,
        posture: RunPosture::Moving,
        pending: Vec::new(),
        epoch: 1,
        mark: CommitMark { by: "p".into(), epoch: 1, n },
        at: Timestamp::from_millis(1000 + n.cast_signed()),
    };
    RunRecord { header, body: RawValue::from_string(format!("{{\"n\":{n}}}")).unwrap() }
}

#[tokio::test]
async fn a_run_from_start_to_end() {
    let store = MemoryStorage::new();
    store.threads().create(&ThreadRecord::new("t".into(), "u".into(), Timestamp::from_millis(1))).await.unwrap();
    let user = Arc::new(Message::user("m1", "hello", Timestamp::from_millis(2)));
    let answer = |text: &str| Arc::new(Message::new("r/1", Role::Assistant, vec![Part::text(text)], Timestamp::from_millis(3)));

    let mut version = None;
    for (n, stage, put) in [
        (1, RunStage::Open, vec![user.clone()]),
        (2, RunStage::Open, vec![answer("hel")]),
        (3, RunStage::Finished, vec![answer("hello"), user.clone()]),
        (4, RunStage::Closed, vec![]),
    ] {
        let usage = Usage::new(1, 2);
        let commit = Commit { expect: version, record: &record(stage, n), put: &put, usage: Some(&usage) };
        assert_eq!(store.runs().commit(commit.clone()).await.unwrap(), CommitOutcome::Committed { version: n });
        assert_eq!(store.runs().commit(commit).await.unwrap(), CommitOutcome::Conflict);
        version = Some(n);
        let open = store.runs().open(&OpenRuns::default()).await.unwrap().items;
        assert_eq!(open.len(), usize::from(stage != RunStage::Closed));
    }

    let head = store.runs().head(&"t".into()).await.unwrap().unwrap().value;
    assert_eq!((head.active_run, head.next_position, head.usage.total), (None, 2, 12));
    let texts: Vec<_> = store.messages().page(&"t".into(), &MessageQuery::default()).await.unwrap().items;
    assert_eq!(texts.iter().map(|stored| stored.message.text()).collect::<Vec<_>>(), ["hello", "hello"]);
    let listed = store.threads().list(&ThreadQuery { resource: Some("u".into()), ..ThreadQuery::default() }).await.unwrap().items;
    assert_eq!(listed.iter().map(|thread| thread.info.updated_at.as_millis()).collect::<Vec<_>>(), [1004]);

    store.threads().delete(&"t".into()).await.unwrap();
    assert_eq!(format!("{:?}", store.kv()), "MemoryKv { rows: 1 }", "only the tombstone is left");
    let commit = Commit { expect: version, record: &record(RunStage::Closed, 5), put: &[], usage: None };
    assert_eq!(store.runs().commit(commit).await.unwrap_err().kind(), StorageErrorKind::Deleted);
}
