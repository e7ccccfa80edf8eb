//! What takes many batches is stopped after each of them in turn, as a dying process would. Nothing half done is to be seen, and it can be
//! finished.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use ac_core::{Message, SessionKey, Timestamp};
use ac_storage::{
    Commit, CommitMark, KvStorage, MemoryKv, RunHeader, RunParent, RunPosture, RunRecord, RunStage, Storage, StorageErrorKind,
    ThreadRecord,
    domain::{MessageQuery, ThreadQuery},
};
use ac_testkit::store::{Fault, Faults, HookedKv};
use serde_json::{json, value::RawValue};

type Store = KvStorage<HookedKv<Arc<MemoryKv>, Faults>>;

async fn store(kv: &Arc<MemoryKv>, faults: &Arc<Faults>) -> Store {
    KvStorage::connect(HookedKv::new(Arc::clone(kv), Arc::clone(faults)), "the store").await.unwrap()
}

/// A thread with 600 messages, a closed run, state, and the thread of a child of the run; and a thread beside it.
async fn fill(store: &Store) {
    for (id, run, parent, messages) in [("t", "r", None, 600), ("child", "rc", Some("r"), 3), ("beside", "rb", None, 3)] {
        let mut thread = ThreadRecord::new(id.into(), "u".into(), Timestamp::default());
        thread.parent = parent.map(|run| RunParent { run: run.into(), call: "call".into() });
        store.threads().create(&thread).await.unwrap();
        let put: Vec<_> = (0..messages).map(|n| Arc::new(Message::user(format!("m{n}"), n.to_string(), Timestamp::default()))).collect();
        for (expect, stage, put) in [(None, RunStage::Open, &put[..]), (Some(1), RunStage::Closed, &[])] {
            let header = RunHeader {
                run: run.into(),
                controller: "c".into(),
                session: SessionKey::new("u"),
                thread: id.into(),
                parent: thread.parent.clone(),
                stage,
                posture: RunPosture::Finished,
                pending: Vec::new(),
                epoch: 1,
                mark: CommitMark { by: "p".into(), epoch: 1, n: 1 },
                at: Timestamp::default(),
            };
            let record = RunRecord { header, body: RawValue::from_string("{}".to_owned()).unwrap() };
            store.runs().commit(Commit { expect, record: &record, put, usage: None }).await.unwrap();
        }
        store.state().put(&id.into(), "tasks", None, &json!([])).await.unwrap();
    }
}

async fn count(store: &Store, thread: &str) -> usize {
    store.messages().page(&thread.into(), &MessageQuery::default()).await.unwrap().items.len()
}

async fn listed(store: &Store) -> Vec<String> {
    let query = ThreadQuery { resource: Some("u".into()), ..ThreadQuery::default() };
    store.threads().list(&query).await.unwrap().items.iter().map(|thread| thread.info.id.to_string()).collect()
}

#[tokio::test]
async fn a_deletion_that_was_cut_off_is_finished_by_who_opens_the_store_next() {
    let mut boundaries = 0;
    loop {
        let (kv, faults) = (Arc::default(), Faults::new());
        let first = store(&kv, &faults).await;
        fill(&first).await;
        faults.nth_write(boundaries, Fault::Fail(StorageErrorKind::Unavailable));
        let cut_off = first.threads().delete(&"t".into()).await.is_err();
        faults.clear();
        let (here, messages) = (first.threads().get(&"t".into()).await.unwrap().is_some(), count(&first, "t").await);
        assert_eq!(here, cut_off && boundaries == 0, "boundary {boundaries}: the thread");
        assert_eq!(messages, if here { 600 } else { 0 }, "boundary {boundaries}: its messages");
        assert_eq!(listed(&first).await, if here { vec!["beside", "t"] } else { vec!["beside"] }, "boundary {boundaries}: the list");

        let next = store(&kv, &faults).await;
        next.threads().delete(&"t".into()).await.unwrap();
        assert!(next.verify().await.unwrap().is_sound(), "boundary {boundaries}");
        for thread in ["t", "child"] {
            assert_eq!(next.threads().get(&thread.into()).await.unwrap(), None);
        }
        assert_eq!(count(&next, "beside").await, 3);
        // Two tombstones, the layout, and what belongs to the thread beside: thread, head, two list entries, three messages with their
        // index entries, run, two entries of it, state.
        assert_eq!(next.verify().await.unwrap().rows, 3 + 4 + 6 + 3 + 1, "boundary {boundaries}: rows that are left");
        if !cut_off {
            break;
        }
        boundaries += 1;
    }
    assert!(boundaries > 8, "only {boundaries} boundaries");
}

#[tokio::test]
async fn a_copy_that_was_cut_off_shows_nothing_and_can_be_made_again() {
    let mut boundaries = 0;
    loop {
        let (kv, faults) = (Arc::default(), Faults::new());
        let store = store(&kv, &faults).await;
        fill(&store).await;
        store.threads().create(&ThreadRecord::new("copy".into(), "u".into(), Timestamp::default())).await.unwrap();
        faults.nth_write(boundaries, Fault::Fail(StorageErrorKind::Unavailable));
        let cut_off = store.messages().copy(&"t".into(), &"copy".into(), None).await.is_err();
        faults.clear();
        if cut_off {
            assert_eq!(count(&store, "copy").await, 0, "boundary {boundaries}");
            assert_eq!(store.messages().get(&"copy".into(), &"m0".into()).await.unwrap(), None);
            // Somebody else writes to the thread instead, with an id that the copy had.
            let other = ThreadRecord::new("other".into(), "u".into(), Timestamp::default());
            store.threads().create(&other).await.unwrap();
            faults.nth_write(boundaries, Fault::Fail(StorageErrorKind::Unavailable));
            store.messages().copy(&"t".into(), &"other".into(), None).await.unwrap_err();
            for (n, id) in ["m1", "new", "m0"].into_iter().enumerate() {
                let head = store.runs().head(&"other".into()).await.unwrap().unwrap();
                let message = Message::user(id, "not a copy", Timestamp::default());
                store.messages().put(&"other".into(), &message, head.version).await.unwrap();
                assert_eq!(count(&store, "other").await, n + 1);
            }
            assert_eq!(store.messages().get(&"other".into(), &"m0".into()).await.unwrap().unwrap().position, 2);
            assert!(store.repair().await.unwrap().is_sound());
            assert_eq!(count(&store, "other").await, 3);
            store.messages().copy(&"t".into(), &"copy".into(), None).await.unwrap();
        }
        assert_eq!(count(&store, "copy").await, 600, "boundary {boundaries}");
        assert!(store.verify().await.unwrap().is_sound());
        if !cut_off {
            break;
        }
        boundaries += 1;
    }
    assert_eq!(boundaries, 3);
}
