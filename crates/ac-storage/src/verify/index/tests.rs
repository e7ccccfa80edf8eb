use std::sync::Arc;

use ac_core::Timestamp;

use crate::{
    Commit, CommitMark, Expect, MemoryStorage, RunHeader, RunPosture, RunRecord, RunStage, Scan, Storage as _, StorageErrorKind,
    ThreadRecord, blocks::Blocks, row::HeadRow,
};

use super::*;

const MESSAGES: u64 = 100;

fn text(n: u64) -> Message {
    Message::user(format!("m{n}"), n.to_string(), Timestamp::default())
}

/// A thread, its copy, and a message that came to the copy later.
async fn store() -> MemoryStorage {
    let store = MemoryStorage::new();
    let thread = |id: &str| ThreadRecord::new(id.into(), "u".into(), Timestamp::default());
    store.threads().create(&thread("t")).await.unwrap();
    for n in 0..MESSAGES {
        store.messages().put(&"t".into(), &text(n), n + 1).await.unwrap();
    }
    assert_eq!(store.messages().copy(&"t".into(), &thread("copy"), None).await.unwrap(), MESSAGES);
    store.messages().put(&"copy".into(), &text(MESSAGES), 1).await.unwrap();
    assert_eq!(store.verify().await.unwrap().problems, []);
    store
}

fn blocks() -> Blocks {
    Blocks::of(MESSAGES).unwrap()
}

/// The key of the block that a message of the copy falls into.
fn block_of(id: &str) -> Vec<u8> {
    keys::block(&"copy".into(), blocks().of_id(&id.into()))
}

async fn set(store: &MemoryStorage, key: Vec<u8>, value: Option<Vec<u8>>) {
    store.kv().write(vec![Write { key, expect: Expect::Any, value }]).await.unwrap();
}

async fn set_row<R: row::Row + serde::Serialize>(store: &MemoryStorage, key: Vec<u8>, row: &R) {
    set(store, key, Some(row::encode::<R>(row).unwrap())).await;
}

async fn get_row<R: row::Row>(store: &MemoryStorage, key: &[u8]) -> R {
    row::decode("the store", &store.kv().get(key).await.unwrap().unwrap()).unwrap()
}

async fn count(store: &MemoryStorage, prefix: Vec<u8>) -> usize {
    store.kv().scan(Scan { prefix, limit: 999, ..Scan::default() }).await.unwrap().len()
}

/// That there are so many problems, of which none is left after a repair, and that each message is found by its id then.
async fn mends(store: &MemoryStorage, problems: usize) {
    let report = store.verify().await.unwrap();
    assert_eq!(report.problems.len(), problems, "{report:?}");
    assert!(report.problems.iter().all(|problem| problem.mendable), "{report:?}");
    let left = store.repair().await.unwrap();
    assert!(left.is_sound(), "{left:?}");
    for n in 0..=MESSAGES {
        let found = store.messages().get(&"copy".into(), &format!("m{n}").into()).await.unwrap().unwrap();
        assert_eq!((found.position, found.message.text()), (n, n.to_string()));
    }
    assert!(store.messages().get(&"copy".into(), &"lost".into()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_message_that_its_block_does_not_list_gets_an_entry_of_its_own() {
    let store = store().await;
    let mut block: Block = get_row(&store, &block_of("m7")).await;
    block.ids.retain(|(id, _)| id.as_str() != "m7");
    set_row(&store, block_of("m7"), &block).await;
    assert!(store.messages().get(&"copy".into(), &"m7".into()).await.unwrap().is_none());
    mends(&store, 1).await;
    assert_eq!(get_row::<Position>(&store, &keys::position(&"copy".into(), &"m7".into())).await.position, 7);
    assert_eq!(get_row::<Block>(&store, &block_of("m7")).await, block, "its neighbours stay where they are");
}

#[tokio::test]
async fn the_messages_of_a_block_that_is_lost_or_does_not_read_get_entries_of_their_own() {
    for damage in [None, Some(b"?".to_vec()), Some(br#"{"schema":1,"row":{"ids":[["m7","seven"]]}}"#.to_vec())] {
        let store = store().await;
        let ids = get_row::<Block>(&store, &block_of("m7")).await.ids.len();
        assert!(ids > 1, "some ids share a block");
        let unread = usize::from(damage.is_some());
        set(&store, block_of("m7"), damage).await;
        mends(&store, ids + unread).await;
        assert_eq!(count(&store, keys::blocks(&"copy".into())).await as u64, blocks().count() - 1);
        assert_eq!(count(&store, keys::positions(&"copy".into())).await, ids + 1);
    }
}

#[tokio::test]
async fn a_block_of_a_newer_program_is_told_and_left_as_it_is() {
    let store = store().await;
    let newer = br#"{"schema":99,"row":{}}"#;
    set(&store, block_of("m7"), Some(newer.to_vec())).await;
    let left = store.repair().await.unwrap();
    assert_eq!(left.problems.len(), 1, "{left:?}");
    assert_eq!(&*store.kv().get(&block_of("m7")).await.unwrap().unwrap().value, newer);
}

#[tokio::test]
async fn a_block_loses_what_is_not_there_and_keeps_the_rest() {
    let id = |number| (0..).map(|n| format!("x{n}")).find(|id| blocks().of_id(&id.as_str().into()) == number).unwrap();
    let number = blocks().of_id(&"m7".into());
    let other = (number + 1) % blocks().count();
    for (id, position) in [
        // At the place of another message, beyond the end, and in a block where nobody looks for it.
        (id(number), 7),
        (id(number), MESSAGES + 9),
        (get_row::<Block>(&store().await, &keys::block(&"copy".into(), other)).await.ids[0].0.to_string(), 0),
    ] {
        let store = store().await;
        let sound: Block = get_row(&store, &block_of("m7")).await;
        let mut block = sound.clone();
        block.ids.insert(1, (id.as_str().into(), position));
        set_row(&store, block_of("m7"), &block).await;
        if id.starts_with('x') {
            assert!(store.messages().get(&"copy".into(), &id.as_str().into()).await.unwrap().is_none(), "{id}");
        }
        mends(&store, 1).await;
        assert_eq!(get_row::<Block>(&store, &block_of("m7")).await, sound, "{id} at {position}");
    }
}

#[tokio::test]
async fn a_block_of_messages_that_are_lost_goes() {
    let store = store().await;
    let ids = get_row::<Block>(&store, &block_of("m7")).await.ids;
    for (_, position) in &ids {
        set(&store, keys::message(&"copy".into(), *position), None).await;
    }
    let report = store.repair().await.unwrap();
    assert_eq!(report.problems.len(), 1, "what the head counts cannot be mended: {report:?}");
    assert!(store.kv().get(&block_of("m7")).await.unwrap().is_none());
    assert_eq!(count(&store, keys::messages(&"copy".into())).await + ids.len(), usize::try_from(MESSAGES + 1).unwrap());
}

#[tokio::test]
async fn a_block_without_thread_head_or_place_in_the_index_goes() {
    let store = store().await;
    let block: Block = get_row(&store, &block_of("m7")).await;
    store.threads().create(&ThreadRecord::new("gone".into(), "u".into(), Timestamp::default())).await.unwrap();
    store.threads().delete(&"gone".into()).await.unwrap();
    let left_over = [("none", 0), ("gone", 0), ("t", 0), ("copy", blocks().count())];
    for (thread, number) in left_over {
        set_row(&store, keys::block(&thread.into(), number), &block).await;
    }
    mends(&store, left_over.len()).await;
    for (thread, number) in left_over {
        assert!(store.kv().get(&keys::block(&thread.into(), number)).await.unwrap().is_none(), "{thread}");
    }
    assert_eq!(count(&store, keys::blocks(&"copy".into())).await as u64, blocks().count());
}

/// A head that does not read may be one of a newer program, and its blocks are all that leads to its messages.
#[tokio::test]
async fn the_blocks_of_a_head_that_does_not_read_stay() {
    let store = store().await;
    let head = store.kv().get(&keys::head(&"copy".into())).await.unwrap().unwrap().value.to_vec();
    set(&store, keys::head(&"copy".into()), Some(br#"{"schema":99,"row":{}}"#.to_vec())).await;
    assert!(!store.repair().await.unwrap().is_sound());
    set(&store, keys::head(&"copy".into()), Some(head)).await;
    mends(&store, 0).await;
}

/// As an older version wrote a copy, and as one leaves it that does not know blocks.
#[tokio::test]
async fn a_copy_whose_head_tells_of_no_blocks_has_an_entry_for_each_message() {
    let store = store().await;
    let head: HeadRow = get_row(&store, &keys::head(&"copy".into())).await;
    assert_eq!(head.blocks, Some(blocks()));
    set_row(&store, keys::head(&"copy".into()), &HeadRow { blocks: None, ..head }).await;
    mends(&store, usize::try_from(blocks().count() + MESSAGES).unwrap()).await;
    assert_eq!(count(&store, keys::blocks(&"copy".into())).await, 0);
    assert_eq!(count(&store, keys::positions(&"copy".into())).await as u64, MESSAGES + 1);
    // Which is all that a second copy has to know.
    store.messages().copy(&"copy".into(), &ThreadRecord::new("again".into(), "u".into(), Timestamp::default()), None).await.unwrap();
    assert_eq!(store.messages().get(&"again".into(), &"m100".into()).await.unwrap().unwrap().position, MESSAGES);
    assert!(store.verify().await.unwrap().is_sound());
}

#[tokio::test]
async fn an_entry_of_its_own_that_is_wrong_does_not_hide_the_block() {
    let store = store().await;
    set_row(&store, keys::position(&"copy".into(), &"m7".into()), &Position { position: 8 }).await;
    assert_eq!(store.messages().get(&"copy".into(), &"m7".into()).await.unwrap().unwrap().position, 7);
    mends(&store, 1).await;
    assert_eq!(count(&store, keys::positions(&"copy".into())).await, 1, "the wrong one went");
    set(&store, keys::position(&"copy".into(), &"m7".into()), Some(b"?".to_vec())).await;
    assert_eq!(store.messages().get(&"copy".into(), &"m7".into()).await.unwrap_err().kind(), StorageErrorKind::Corrupt);
    let report = store.verify().await.unwrap();
    assert_eq!(report.problems.len(), 2, "the message has no entry that reads, and there is one that does not: {report:?}");
    assert!(store.repair().await.unwrap().is_sound());
    assert_eq!(store.messages().get(&"copy".into(), &"m7".into()).await.unwrap().unwrap().position, 7);
}

/// Rows that a commit puts are compared with those of a block.
#[tokio::test]
async fn a_run_in_a_copy_knows_what_was_copied() {
    let store = store().await;
    let answer =
        |words: &str| Arc::new(Message::new("a", ac_core::Role::Assistant, vec![ac_core::Part::text(words)], Timestamp::default()));
    let head = store.runs().head(&"t".into()).await.unwrap().unwrap();
    store.messages().put(&"t".into(), &answer("long ago"), head.version).await.unwrap();
    store.messages().copy(&"t".into(), &ThreadRecord::new("new".into(), "u".into(), Timestamp::default()), None).await.unwrap();
    let record = |n| RunRecord {
        header: RunHeader {
            run: "r".into(),
            controller: "c".into(),
            session: ac_core::SessionKey::new("u"),
            thread: "new".into(),
            parent: None,
            stage: RunStage::Open,
            posture: RunPosture::Moving,
            pending: Vec::new(),
            epoch: 1,
            mark: CommitMark { by: "p".into(), epoch: 1, n },
            at: Timestamp::default(),
        },
        body: serde_json::value::RawValue::from_string("{}".into()).unwrap(),
    };
    let put = [Arc::new(text(3)), answer("now"), Arc::new(text(MESSAGES))];
    store.runs().commit(Commit { expect: None, record: &record(1), put: &put, usage: None }).await.unwrap();
    // One is as it was, one takes the place that it has, one is new.
    assert_eq!(store.runs().head(&"new".into()).await.unwrap().unwrap().value.next_position, MESSAGES + 2);
    let found = store.messages().get(&"new".into(), &"a".into()).await.unwrap().unwrap();
    assert_eq!((found.position, found.message.text()), (MESSAGES, "now".to_owned()));
    let other = [Arc::new(Message::user("m3", "else", Timestamp::default()))];
    let refused = store.runs().commit(Commit { expect: Some(1), record: &record(2), put: &other, usage: None }).await;
    assert_eq!(refused.unwrap_err().kind(), StorageErrorKind::Exists);
    assert!(store.verify().await.unwrap().is_sound());
}
