//! What a copy of a thread costs: a row for each message and one for some thirty of their ids, in batches of bounded size.
#![allow(clippy::unwrap_used)]

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

use ac_core::{Message, Timestamp};
use ac_storage::{Kv, KvStorage, MemoryKv, Scan, Storage, StorageError, ThreadRecord, Versioned, Write};

/// Remembers the sizes of batches: rows and bytes.
#[derive(Default)]
struct Counted {
    rows: MemoryKv,
    on: AtomicBool,
    batches: Mutex<Vec<(usize, usize)>>,
}

#[async_trait::async_trait]
impl Kv for Counted {
    async fn get(&self, key: &[u8]) -> Result<Option<Versioned>, StorageError> {
        self.rows.get(key).await
    }
    async fn scan(&self, scan: Scan) -> Result<Vec<(Vec<u8>, Versioned)>, StorageError> {
        self.rows.scan(scan).await
    }
    async fn write(&self, batch: Vec<Write>) -> Result<(), StorageError> {
        if self.on.load(Ordering::Relaxed) {
            let bytes = batch.iter().map(|write| write.key.len() + write.value.as_ref().map_or(0, Vec::len)).sum();
            self.batches.lock().unwrap().push((batch.len(), bytes));
        }
        self.rows.write(batch).await
    }
}

type Store = KvStorage<Counted>;

/// A store with a thread of messages `m0`, `m1`, ….
async fn store(messages: u64, words: &str) -> Store {
    let store = KvStorage::connect(Counted::default(), "the store").await.unwrap();
    store.threads().create(&thread("t")).await.unwrap();
    for n in 0..messages {
        put(&store, "t", &format!("m{n}"), words).await;
    }
    store
}

async fn put(store: &Store, thread: &str, id: &str, words: &str) {
    let head = store.runs().head(&thread.into()).await.unwrap().unwrap();
    store.messages().put(&thread.into(), &Message::user(id, words, Timestamp::default()), head.version).await.unwrap();
}

fn thread(id: &str) -> ThreadRecord {
    ThreadRecord::new(id.into(), "u".into(), Timestamp::default())
}

/// The batches of a copy.
async fn copy(store: &Store, from: &str, to: &str, until: Option<&str>) -> Vec<(usize, usize)> {
    store.kv().on.store(true, Ordering::Relaxed);
    store.messages().copy(&from.into(), &thread(to), until.map(Into::into).as_ref()).await.unwrap();
    store.kv().on.store(false, Ordering::Relaxed);
    std::mem::take(&mut store.kv().batches.lock().unwrap())
}

async fn rows(store: &Store, prefix: &str) -> usize {
    store.kv().scan(Scan { prefix: prefix.into(), limit: 99_999, ..Scan::default() }).await.unwrap().len()
}

async fn position(store: &Store, thread: &str, id: &str) -> Option<u64> {
    store.messages().get(&thread.into(), &id.into()).await.unwrap().map(|stored| stored.position)
}

#[tokio::test]
async fn a_copy_of_a_thousand_messages_writes_little_more_than_a_thousand_rows() {
    let store = store(1000, "words").await;
    let batches = copy(&store, "t", "copy", None).await;
    // Thread, head, two entries in the list of the resource.
    assert_eq!(batches.iter().map(|(rows, _)| rows).sum::<usize>(), 1000 + 32 + 4);
    assert_eq!((rows(&store, "m/copy").await, rows(&store, "i/copy").await, rows(&store, "n/copy").await), (1000, 32, 0));
}

#[tokio::test]
async fn a_large_copy_is_made_in_batches_of_bounded_size() {
    let (many, long) = (store(9000, "words").await, store(700, &"words".repeat(3000)).await);
    for (store, messages) in [(many, 9000), (long, 700)] {
        let batches = copy(&store, "t", "copy", None).await;
        assert!(batches.len() >= 3, "{batches:?}");
        // A batch is closed with the row that fills it, and the last one has the thread.
        assert!(batches.iter().all(|(rows, bytes)| *rows <= 2048 + 5 && *bytes < 4 * 1024 * 1024 + 20_000), "{batches:?}");
        for n in [0, 1, messages / 2, messages - 1] {
            assert_eq!(position(&store, "copy", &format!("m{n}")).await, Some(n));
        }
        assert!(store.verify().await.unwrap().is_sound());
    }
}

#[tokio::test]
async fn what_comes_to_a_copy_has_an_entry_of_its_own_and_a_copy_of_that_has_blocks_again() {
    let store = store(70, "words").await;
    copy(&store, "t", "copy", Some("m65")).await;
    for id in ["m65", "new"] {
        put(&store, "copy", id, "later").await;
    }
    assert_eq!((rows(&store, "m/copy").await, rows(&store, "i/copy").await, rows(&store, "n/copy").await), (67, 3, 2));
    assert_eq!([position(&store, "copy", "m64").await, position(&store, "copy", "m65").await], [Some(64), Some(65)]);
    copy(&store, "copy", "again", None).await;
    assert_eq!((rows(&store, "m/again").await, rows(&store, "i/again").await, rows(&store, "n/again").await), (67, 3, 0));
    for (n, id) in (0..66).map(|n| format!("m{n}")).chain(["new".to_owned()]).enumerate() {
        assert_eq!(position(&store, "again", &id).await, Some(n as u64), "{id}");
    }
    assert_eq!(position(&store, "again", "m66").await, None);
    // Up to a message that is in a block, and up to one that is not.
    for (until, count) in [("m3", 3), ("new", 66), ("m0", 0)] {
        copy(&store, "copy", until, Some(until)).await;
        assert_eq!(rows(&store, &format!("m/{until}\0")).await, count);
        assert_eq!(position(&store, until, "m2").await, (count > 2).then_some(2));
    }
    assert!(store.verify().await.unwrap().is_sound());
}

#[tokio::test]
async fn ids_that_share_a_block_are_told_apart() {
    // All are in one block.
    let store = store(32, "words").await;
    put(&store, "t", "", "no id").await;
    copy(&store, "t", "copy", Some("")).await;
    assert_eq!(rows(&store, "i/copy").await, 1);
    for n in 0..32 {
        assert_eq!(position(&store, "copy", &format!("m{n}")).await, Some(n));
    }
    for id in ["", "m", "m32", "m1\0"] {
        assert_eq!(position(&store, "copy", id).await, None, "{id:?}");
    }
}
