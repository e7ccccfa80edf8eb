//! The embedded store keeps the rules for stores, also after it was closed, killed and compacted.
#![cfg(feature = "sled")]
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use ac_core::{Message, Part, Role, Timestamp};
use ac_storage::{Durability, KvStorage, SledOptions, SledStorage, Storage, ThreadRecord, domain::MessageQuery};

/// Gone with its folder.
struct Temporary<T> {
    store: T,
    _folder: tempfile::TempDir,
}

impl Storage for Temporary<SledStorage> {
    fn threads(&self) -> &dyn ac_storage::ThreadStore {
        self.store.threads()
    }
    fn messages(&self) -> &dyn ac_storage::MessageStore {
        self.store.messages()
    }
    fn runs(&self) -> &dyn ac_storage::RunStore {
        self.store.runs()
    }
    fn sessions(&self) -> &dyn ac_storage::SessionStore {
        self.store.sessions()
    }
    fn state(&self) -> &dyn ac_storage::StateStore {
        self.store.state()
    }
}

async fn fresh(durability: Durability) -> Temporary<SledStorage> {
    let folder = tempfile::tempdir().unwrap();
    Temporary { store: SledOptions::new(folder.path().join("store")).durability(durability).open().await.unwrap(), _folder: folder }
}

ac_testkit::storage_conformance!(power, async { fresh(Durability::Power).await });
ac_testkit::storage_conformance!(process, async { fresh(Durability::Process).await });

/// The rules for backends need a store without layout row in it.
mod backend {
    use super::*;

    async fn kv() -> Arc<Bare> {
        let fresh = fresh(Durability::Process).await;
        let layout = ac_storage::Write { key: b"!layout".to_vec(), expect: ac_storage::Expect::Any, value: None };
        ac_storage::Kv::write(fresh.store.kv(), vec![layout]).await.unwrap();
        Arc::new(Bare(fresh))
    }

    struct Bare(Temporary<SledStorage>);

    #[async_trait::async_trait]
    impl ac_storage::Kv for Bare {
        async fn get(&self, key: &[u8]) -> Result<Option<ac_storage::Versioned>, ac_storage::StorageError> {
            self.0.store.kv().get(key).await
        }
        async fn scan(&self, scan: ac_storage::Scan) -> Result<Vec<(Vec<u8>, ac_storage::Versioned)>, ac_storage::StorageError> {
            self.0.store.kv().scan(scan).await
        }
        async fn write(&self, batch: Vec<ac_storage::Write>) -> Result<(), ac_storage::StorageError> {
            self.0.store.kv().write(batch).await
        }
    }

    ac_testkit::kv_conformance!(rules, async { kv().await });
}

fn thread(id: &str) -> ThreadRecord {
    ThreadRecord::new(id.into(), "user".into(), Timestamp::from_millis(1))
}

/// Puts messages one by one.
async fn talk<K: ac_storage::Kv>(store: &KvStorage<K>, thread: &str, n: u64, size: usize) {
    for n in 0..n {
        let message = Message::new(format!("m{n}"), Role::User, vec![Part::text("x".repeat(size))], Timestamp::from_millis(2));
        let head = store.runs().head(&thread.into()).await.unwrap().unwrap();
        store.messages().put(&thread.into(), &message, head.version).await.unwrap();
    }
}

#[tokio::test]
async fn a_store_is_the_same_after_it_was_closed_and_compacted() {
    let folder = tempfile::tempdir().unwrap();
    let options = || SledOptions::new(folder.path().join("store"));
    let store = options().open().await.unwrap();
    store.threads().create(&thread("t")).await.unwrap();
    talk(&store, "t", 20, 20_000).await;
    talk(&store, "t", 20, 20_000).await;
    let large = Message::user("large", "y".repeat(200_000), Timestamp::from_millis(3));
    let head = store.runs().head(&"t".into()).await.unwrap().unwrap();
    store.messages().put(&"t".into(), &large, head.version).await.unwrap();
    let all = MessageQuery::default();
    let before = store.messages().page(&"t".into(), &all).await.unwrap();
    assert_eq!(before.items.len(), 21);
    store.close().await.unwrap();

    let store = options().open().await.unwrap();
    assert_eq!(store.messages().page(&"t".into(), &all).await.unwrap(), before);
    assert!(store.verify().await.unwrap().is_sound());
    store.close().await.unwrap();

    options().compact().await.unwrap();
    let store = options().open().await.unwrap();
    assert_eq!(store.messages().page(&"t".into(), &all).await.unwrap(), before);
    assert!(store.verify().await.unwrap().is_sound());

    let mut export = Vec::new();
    store.export(&mut export).await.unwrap();
    let memory = KvStorage::connect(ac_storage::MemoryKv::default(), "a copy in memory").await.unwrap();
    memory.import(&mut &export[..]).await.unwrap();
    assert_eq!(memory.messages().page(&"t".into(), &all).await.unwrap(), before);
}

#[tokio::test]
async fn what_was_deleted_gives_its_room_back_when_the_store_is_compacted() {
    let folder = tempfile::tempdir().unwrap();
    let options = || SledOptions::new(folder.path().join("store")).durability(Durability::Process);
    let store = options().open().await.unwrap();
    for n in 0..4 {
        let id = format!("t{n}");
        store.threads().create(&thread(&id)).await.unwrap();
        talk(&store, &id, 60, 30_000).await;
        let large = Message::user("large", "y".repeat(300_000 + n), Timestamp::from_millis(3));
        let head = store.runs().head(&id.as_str().into()).await.unwrap().unwrap();
        store.messages().put(&id.as_str().into(), &large, head.version).await.unwrap();
        store.threads().delete(&id.as_str().into()).await.unwrap();
    }
    store.close().await.unwrap();
    assert_eq!(std::fs::read_dir(folder.path().join("store/blobs")).unwrap().count(), 0);
    let report = options().compact().await.unwrap();
    assert!(report.after < 100_000, "{report:?}");
    assert!(report.before > 10 * report.after, "{report:?}");
}
