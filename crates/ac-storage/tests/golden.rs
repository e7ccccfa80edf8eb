//! Stores that older versions wrote, as exports. They load for ever; a new schema gets a folder of its own beside them.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{path::Path, sync::Arc};

use ac_core::{Message, Part, Role, SessionKey, Timestamp, ToolCallPart, Usage, message::ToolCallState};
use ac_storage::{
    Commit, CommitMark, CommitOutcome, Expect, Kv as _, KvStorage, Lease, MemoryKv, MemoryStorage, RunHeader, RunParent, RunPosture,
    RunRecord, RunStage, SessionId, Storage, ThreadRecord, Write,
    domain::{MessageQuery, OpenRuns, ThreadQuery},
};
use serde_json::{json, value::RawValue};

const fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn record(run: &str, thread: &str, stage: RunStage, n: u64) -> RunRecord {
    let header = RunHeader {
        run: run.into(),
        controller: "main".into(),
        session: SessionKey::scoped("user-1", "tab/1"),
        thread: thread.into(),
        parent: (run == "child").then(|| RunParent { run: "open".into(), call: "call_1".into() }),
        stage,
        posture: if stage == RunStage::Open { RunPosture::Approval } else { RunPosture::Finished },
        pending: if stage == RunStage::Open { vec!["open/1/call_0#1".parse().unwrap()] } else { Vec::new() },
        epoch: 2,
        mark: CommitMark { by: "process-1".into(), epoch: 2, n },
        at: at(1_700_000_000_000 + i64::try_from(n).unwrap()),
    };
    RunRecord { header, body: raw(r#"{"schema":1,"phase":"tools"}"#) }
}

fn message(id: &str) -> Message {
    let mut call = ToolCallPart::new("call_0", "view", json!({"path": "a.txt"}));
    call.state = ToolCallState::OutputDenied { reason: "not now".into() };
    let mut message = Message::new(id, Role::Assistant, vec![Part::text("Let me look."), Part::ToolCall(call)], at(6));
    message.meta.run = Some("open".into());
    message
}

/// With a text that is stored once, and referred to.
fn large() -> Message {
    let mut call = ToolCallPart::new("call_1", "execute_command", json!({"command": "seq"}));
    call.state = ToolCallState::Result { output: ac_core::ToolOutput::text("0123456789abcdef".repeat(1100)), is_error: false };
    Message::new("open/2", Role::Assistant, vec![Part::ToolCall(call)], at(7))
}

/// A record that holds the same text.
fn large_body() -> Box<RawValue> {
    raw(&serde_json::to_string(&json!({"schema": 1, "phase": "tools", "message": large()})).unwrap())
}

/// Something of every kind of row.
async fn fill(store: &MemoryStorage) {
    let mut thread = ThreadRecord::new("thread-1".into(), "user-1".into(), at(1));
    thread.info.title = "A title".into();
    thread.info.metadata.insert("project".into(), json!("/home/me"));
    let mut hidden = ThreadRecord::new("thread\0/2".into(), "user-1".into(), at(2));
    hidden.hidden = true;
    let mut child = ThreadRecord::new("child-thread".into(), "user-1".into(), at(3));
    child.parent = Some(RunParent { run: "open".into(), call: "call_1".into() });
    for thread in [&thread, &hidden, &child, &ThreadRecord::new("deleted".into(), "user-2".into(), at(4))] {
        store.threads().create(thread).await.unwrap();
    }
    let put = [Arc::new(Message::user("m-1", "Hello", at(5))), Arc::new(message("open/1")), Arc::new(large())];
    let mut usage = Usage::new(10, 5);
    usage.reasoning = Some(3);
    for (run, thread, stage, expect, put) in [
        ("open", "thread-1", RunStage::Open, None, &put[..]),
        ("closed", "thread\0/2", RunStage::Open, None, &put[..1]),
        ("closed", "thread\0/2", RunStage::Closed, Some(1), &[]),
        ("child", "child-thread", RunStage::Open, None, &[]),
        ("child", "child-thread", RunStage::Closed, Some(1), &[]),
    ] {
        let mut record = record(run, thread, stage, expect.map_or(1, |version| version + 1));
        if run == "open" {
            record.body = large_body();
        }
        let commit = Commit { expect, record: &record, put, usage: Some(&usage) };
        assert!(matches!(store.runs().commit(commit).await.unwrap(), CommitOutcome::Committed { .. }));
    }
    let mut fork = ThreadRecord::new("fork".into(), "user-1".into(), at(8));
    fork.parent = Some(RunParent { run: "open".into(), call: "call_2".into() });
    store.messages().copy(&"thread-1".into(), &fork, Some(&"open/2".into())).await.unwrap();
    store.threads().delete(&"deleted".into()).await.unwrap();
    let lease = Lease { owner: "process-1".into(), epoch: 2, expires: at(1_700_000_030_000) };
    assert!(store.runs().take_lease(&"open".into(), &lease, at(0)).await.unwrap());
    for key in [SessionKey::new("user-1"), SessionKey::scoped("user-1", "tab/1")] {
        let id = SessionId { controller: "main".into(), key };
        store.sessions().save(&id, None, &raw(r#"{"mode": "plan"}"#)).await.unwrap();
    }
    store.state().put(&"thread-1".into(), "tasks", None, &json!([{"text": "look"}])).await.unwrap();
}

fn golden() -> impl Iterator<Item = (String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    std::fs::read_dir(folder).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(path.join("store.jsonl")).unwrap())
    })
}

#[tokio::test]
async fn a_store_of_any_version_loads() {
    let mut seen = 0;
    for (version, text) in golden() {
        seen += 1;
        let store = KvStorage::connect(MemoryKv::default(), "the golden store").await.unwrap();
        store.import(&mut &text[..]).await.unwrap();
        assert_eq!(store.verify().await.unwrap().problems, [], "{version}");

        let thread = store.threads().get(&"thread-1".into()).await.unwrap().unwrap().value;
        assert_eq!((thread.info.title.as_str(), thread.info.updated_at), ("A title", at(1_700_000_000_001)));
        assert_eq!(thread.info.metadata.get("project"), Some(&json!("/home/me")));
        let listed = store.threads().list(&ThreadQuery { hidden: true, ..ThreadQuery::default() }).await.unwrap().items;
        assert_eq!(listed.iter().map(|thread| thread.info.id.as_str()).collect::<Vec<_>>(), ["thread\0/2", "thread-1"]);
        assert!(store.runs().head(&"deleted".into()).await.unwrap().unwrap().value.deleted);
        let head = store.runs().head(&"thread-1".into()).await.unwrap().unwrap().value;
        // The first version knew no large texts.
        let first = version == "v1";
        let count = if first { 2 } else { 3 };
        assert_eq!((head.active_run, head.next_position, head.usage.total), (Some("open".into()), count, 15));

        let messages = store.messages().page(&"thread-1".into(), &MessageQuery::default()).await.unwrap().items;
        assert_eq!(messages[..2].iter().map(|stored| stored.message.text()).collect::<Vec<_>>(), ["Hello", "Let me look."]);
        assert_eq!(*messages[1].message, message("open/1"));
        assert!(first || *messages[2].message == large());
        // Before the third there was no copy among the rows, and the ids of one had rows like any others.
        let threads = if matches!(version.as_str(), "v1" | "v2") { &["thread-1"][..] } else { &["thread-1", "fork"] };
        for thread in threads {
            for (n, id) in ["m-1", "open/1"].into_iter().enumerate() {
                let found = store.messages().get(&(*thread).into(), &id.into()).await.unwrap().unwrap();
                assert_eq!(found, messages[n], "{version}: {id} of {thread}");
            }
            let none = store.messages().get(&(*thread).into(), &"none".into()).await.unwrap();
            assert_eq!(none, None, "{version}: {thread}");
        }

        for (run, thread, stage, n) in [
            ("open", "thread-1", RunStage::Open, 1),
            ("closed", "thread\0/2", RunStage::Closed, 2),
            ("child", "child-thread", RunStage::Closed, 2),
        ] {
            let mut expected = record(run, thread, stage, n);
            if run == "open" && !first {
                expected.body = large_body();
            }
            assert_eq!(store.runs().load(&run.into()).await.unwrap().unwrap().value, expected, "{version}");
        }
        let session = SessionId { controller: "main".into(), key: SessionKey::scoped("user-1", "tab/1") };
        let of_session = store.runs().open(&OpenRuns { session: Some(session), ..OpenRuns::default() }).await.unwrap().items;
        assert_eq!(of_session.iter().map(|header| header.run.as_str()).collect::<Vec<_>>(), ["open"], "{version}");
        let open = store.runs().open(&OpenRuns::default()).await.unwrap().items;
        assert_eq!(open, [record("open", "thread-1", RunStage::Open, 1).header]);
        assert_eq!(store.runs().lease(&"open".into()).await.unwrap().unwrap().expires, at(1_700_000_030_000));
        let sessions = store.sessions().list(&"main".into(), None, 0).await.unwrap().items;
        assert_eq!(sessions.len(), 2);
        for id in &sessions {
            assert_eq!(store.sessions().load(id).await.unwrap().unwrap().value.get(), r#"{"mode": "plan"}"#);
        }
        let tasks = store.state().get(&"thread-1".into(), "tasks").await.unwrap().unwrap().value;
        assert_eq!(tasks, json!([{"text": "look"}]));
    }
    assert!(seen > 0);
}

/// What this version writes is the newest golden store. If this fails, the form of a row changed: give its kind a new schema and an upgrade
/// step, and add a golden store beside the old ones (`UPDATE_GOLDEN=v3 cargo test -p ac-storage --test golden`).
#[tokio::test]
async fn rows_are_written_as_the_newest_golden_store_has_them() {
    let store = MemoryStorage::new();
    fill(&store).await;
    let mut text = Vec::new();
    store.export(&mut text).await.unwrap();
    if let Ok(version) = std::env::var("UPDATE_GOLDEN") {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(version);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("store.jsonl"), &text).unwrap();
    }
    let (_, newest) = golden().max_by_key(|(version, _)| version.trim_start_matches('v').parse::<u32>().unwrap()).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), String::from_utf8(newest).unwrap());
}

#[tokio::test]
async fn a_store_of_an_older_layout_is_marked_with_this_one_when_it_is_opened() {
    for layout in [1, 2] {
        let kv = Arc::new(MemoryKv::default());
        let row = format!(r#"{{"schema":1,"row":{{"layout":{layout}}}}}"#).into_bytes();
        kv.write(vec![Write { key: b"!layout".to_vec(), expect: Expect::Absent, value: Some(row) }]).await.unwrap();
        KvStorage::connect(Arc::clone(&kv), "the golden store").await.unwrap();
        let stored = kv.get(b"!layout").await.unwrap().unwrap();
        assert_eq!(std::str::from_utf8(&stored.value).unwrap(), r#"{"schema":1,"row":{"layout":3}}"#);
    }
}
