use std::sync::Arc;

use ac_core::{SessionKey, Timestamp};
use serde_json::value::RawValue;

use super::*;
use crate::{Commit, CommitMark, MemoryStorage, RunParent, RunPosture, RunStore as _, Storage, ThreadStore as _};

fn record(run: &str, thread: &str, stage: RunStage) -> RunRecord {
    let header = RunHeader {
        run: run.into(),
        controller: "c".into(),
        session: SessionKey::new("u"),
        thread: thread.into(),
        parent: None,
        stage,
        posture: RunPosture::Moving,
        pending: Vec::new(),
        epoch: 1,
        mark: CommitMark { by: "p".into(), epoch: 1, n: 1 },
        at: Timestamp::from_millis(9),
    };
    RunRecord { header, body: RawValue::from_string(format!("{{\"text\":\"{}\"}}", long())).unwrap() }
}

/// So long that it stands alone.
fn long() -> String {
    "x".repeat(large::LARGE)
}

/// A store with something of everything.
async fn store() -> MemoryStorage {
    let store = MemoryStorage::new();
    for (id, parent) in [("t", None), ("u", None), ("child", Some(RunParent { run: "r".into(), call: "x".into() }))] {
        let mut row = ThreadRecord::new(id.into(), "u".into(), Timestamp::from_millis(1));
        row.parent = parent;
        store.create(&row).await.unwrap();
    }
    let put = [("a", "a".to_owned()), ("b", long())].map(|(id, text)| Arc::new(Message::user(id, text, Timestamp::from_millis(5))));
    for (run, thread, stage) in [("r", "t", RunStage::Open), ("s", "u", RunStage::Open), ("s", "u", RunStage::Closed)] {
        let expect = (stage == RunStage::Closed).then_some(1);
        store.commit(Commit { expect, record: &record(run, thread, stage), put: &put, usage: None }).await.unwrap();
    }
    let copy = ThreadRecord::new("copy".into(), "u".into(), Timestamp::from_millis(6));
    store.messages().copy(&"t".into(), &copy, None).await.unwrap();
    store.state().put(&"t".into(), "tasks", None, &serde_json::json!([])).await.unwrap();
    store
}

async fn keys_of(store: &MemoryStorage) -> Vec<(Vec<u8>, Vec<u8>)> {
    let rows = store.kv().scan(Scan { limit: 999, ..Scan::default() }).await.unwrap();
    rows.into_iter().map(|(key, stored)| (key, stored.value.to_vec())).collect()
}

async fn set(store: &MemoryStorage, key: &[u8], value: Option<&[u8]>) {
    store.kv().write(vec![Write { key: key.to_vec(), expect: Expect::Any, value: value.map(<[u8]>::to_vec) }]).await.unwrap();
}

#[tokio::test]
async fn a_store_that_only_the_store_wrote_is_sound() {
    let store = store().await;
    let report = store.verify().await.unwrap();
    assert_eq!(report.problems, []);
    assert_eq!(report.rows, keys_of(&store).await.len() as u64);
    store.delete(&"u".into()).await.unwrap();
    assert!(store.verify().await.unwrap().is_sound());
}

#[tokio::test]
async fn a_row_that_does_not_read_is_found_and_left_as_it_is() {
    let sound = store().await;
    for (key, _) in keys_of(&sound).await {
        if key == keys::layout() {
            continue;
        }
        for damage in [&b"secret"[..], br#"{"schema":99,"row":{}}"#] {
            let store = store().await;
            set(&store, &key, Some(damage)).await;
            let report = store.verify().await.unwrap();
            assert!(report.problems.iter().any(|problem| problem.key == escape(&key)), "{}: {report:?}", escape(&key));
            assert!(!format!("{report:?}").contains("secret"), "{report:?}");
            store.repair().await.unwrap();
            let kept = store.kv().get(&key).await.unwrap();
            let derived = matches!(&key[..2], b"o/" | b"n/" | b"i/");
            assert!(derived || kept.is_some_and(|kept| &*kept.value == damage), "{} was overwritten", escape(&key));
        }
    }
}

#[tokio::test]
async fn a_missing_row_is_found_and_what_can_be_derived_is_mended() {
    let sound = store().await;
    let rows = keys_of(&sound).await;
    for (key, _) in &rows {
        let store = store().await;
        set(&store, key, None).await;
        let report = store.verify().await.unwrap();
        let (name, derived) = (escape(key), matches!(&key[..2], b"o/" | b"n/" | b"u/" | b"x/" | b"z/" | b"c/" | b"q/" | b"i/"));
        // Leases, sessions and state stand alone.
        assert_eq!(report.is_sound(), matches!(&key[..2], b"v/"), "{name}: {report:?}");
        let left = store.repair().await.unwrap();
        // Of a closed run that is lost only its entries are left, and go.
        assert_eq!(left.is_sound(), derived || report.is_sound() || name.starts_with("r/s"), "{name}: {left:?}");
        let messages = |rows: &[(Vec<u8>, Vec<u8>)]| rows.iter().filter(|(other, _)| other.starts_with(b"m/") && other != key).count();
        assert_eq!(messages(&keys_of(&store).await), messages(&rows), "{name}: no message goes because another row is lost");
        // The messages of a block that is lost get entries of their own.
        if derived && !name.starts_with("i/") {
            assert_eq!(keys_of(&store).await, rows, "{name}");
        }
    }
}

#[tokio::test]
async fn what_is_left_over_is_removed() {
    let store = store().await;
    let rows = keys_of(&store).await;
    let (gone, mark) = ("gone".into(), br#"{"schema":1,"row":{}}"#.as_slice());
    let message = br#"{"schema":1,"row":{"id":"late","role":"user","parts":[],"at":0}}"#;
    for (key, value) in [
        (keys::recency(&"u".into(), Timestamp::default(), &gone, Follows::Row), mark),
        (keys::child(&"r".into(), &gone), mark),
        (keys::run_of(&"t".into(), &"gone".into()), mark),
        (keys::closed_run(Timestamp::default(), &"gone".into()), br#"{"schema":1,"row":{"thread":"t"}}"#),
        (keys::message(&"t".into(), 2), message),
        (keys::position(&"t".into(), &"late".into()), br#"{"schema":1,"row":{"position":2}}"#),
        (keys::position(&"t".into(), &"lost".into()), br#"{"schema":1,"row":{"position":7}}"#),
        (keys::open_run_of(&record("gone", "t", RunStage::Open).header.session_id(), &"gone".into()), mark),
        (keys::large_text(&"t".into(), &large::hash("\"left\"")), br#"{"schema":1,"row":"left"}"#),
    ] {
        set(&store, &key, Some(value)).await;
    }
    assert!(store.verify().await.unwrap().problems.len() >= 8);
    assert!(store.repair().await.unwrap().is_sound());
    assert_eq!(keys_of(&store).await, rows);
    set(&store, b"?/", Some(mark)).await;
    assert_eq!(store.repair().await.unwrap().problems.len(), 1);
}

#[tokio::test]
async fn a_long_text_is_stored_once_and_goes_with_its_thread() {
    let store = store().await;
    let texts = |rows: &[(Vec<u8>, Vec<u8>)]| rows.iter().filter(|(key, _)| key.starts_with(b"b/")).count();
    let long_rows = |rows: &[(Vec<u8>, Vec<u8>)]| rows.iter().filter(|(_, value)| value.len() >= large::LARGE).count();
    // Each of the three threads has its own; message and record of the run refer to it.
    assert_eq!((texts(&keys_of(&store).await), long_rows(&keys_of(&store).await)), (3, 3));
    let run = store.load(&"r".into()).await.unwrap().unwrap().value;
    assert_eq!(run, record("r", "t", RunStage::Open));
    store.delete(&"u".into()).await.unwrap();
    let rows = keys_of(&store).await;
    assert_eq!((texts(&rows), long_rows(&rows)), (2, 2));
    assert!(store.verify().await.unwrap().is_sound());
    assert_eq!(store.load(&"r".into()).await.unwrap().unwrap().value, run);
}

#[tokio::test]
async fn a_long_text_that_is_lost_or_changed_is_corruption_and_never_a_shorter_message() {
    for damage in [None, Some(&br#"{"schema":1,"row":"another"}"#[..])] {
        let store = store().await;
        let key = keys::large_text(&"t".into(), &large::hash(&format!("\"{}\"", long())));
        assert!(store.kv().get(&key).await.unwrap().is_some());
        set(&store, &key, damage).await;
        let report = store.repair().await.unwrap();
        assert!(report.problems.iter().any(|problem| !problem.mendable), "{report:?}");
        if damage.is_none() {
            let kind = |error: StorageError| error.kind();
            assert_eq!(store.messages().get(&"t".into(), &"b".into()).await.map_err(kind), Err(StorageErrorKind::Corrupt));
            assert_eq!(store.load(&"r".into()).await.map_err(kind), Err(StorageErrorKind::Corrupt));
        }
    }
}

#[tokio::test]
async fn a_deletion_that_was_not_finished_is() {
    let store = store().await;
    store.commit(Commit { expect: Some(1), record: &record("r", "t", RunStage::Closed), put: &[], usage: None }).await.unwrap();
    // As a process leaves it that dies after the tombstone.
    let head = keys::head(&"t".into());
    set(
        &store,
        &head,
        Some(br#"{"schema":1,"row":{"head":{"next_position":0,"usage":{"input":0,"output":0,"total":0},"updated_at":0,"deleted":true}}}"#),
    )
    .await;
    set(&store, &keys::deletion(&"t".into()), Some(br#"{"schema":1,"row":{}}"#)).await;
    assert_eq!(store.get_thread("t").await, None);
    assert!(!store.verify().await.unwrap().is_sound());
    assert!(store.repair().await.unwrap().is_sound());
    for id in ["t", "child"] {
        assert_eq!(store.get_thread(id).await, None);
        assert_eq!(store.kv().get(&keys::thread(&id.into())).await.unwrap(), None);
    }
    assert_eq!(store.get_thread("u").await.as_deref(), Some("u"));
}

impl MemoryStorage {
    async fn get_thread(&self, id: &str) -> Option<String> {
        self.threads().get(&id.into()).await.unwrap().map(|stored| stored.value.info.id.to_string())
    }
}
