//! What takes many batches is stopped after each of them in turn, as a dying process would. Nothing half done is to be seen, and it can be
//! finished.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use ac_core::{Message, SessionKey, Timestamp};
use ac_storage::{
    Commit, CommitMark, Kv as _, KvStorage, MemoryKv, RunHeader, RunParent, RunPosture, RunRecord, RunStage, Scan, Storage,
    StorageErrorKind, ThreadRecord,
    domain::{MessageQuery, ThreadQuery},
};
use ac_testkit::store::{Fault, Faults, HookedKv, Op};
use serde_json::{json, value::RawValue};

/// So many messages that a copy of them takes three batches, and the index of their ids parts of two.
const MANY: usize = 4090;

type Store = KvStorage<HookedKv<Arc<MemoryKv>, Faults>>;

async fn store(kv: &Arc<MemoryKv>, faults: &Arc<Faults>) -> Store {
    KvStorage::connect(HookedKv::new(Arc::clone(kv), Arc::clone(faults)), "the store").await.unwrap()
}

/// A thread with so many messages, a closed run, state, and the thread of a child of the run; and a thread beside it.
async fn fill(store: &Store, messages: usize) {
    for (id, run, parent, messages) in [("t", "r", None, messages), ("child", "rc", Some("r"), 3), ("beside", "rb", None, 3)] {
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
        fill(&first, 600).await;
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
async fn a_copy_that_was_cut_off_shows_nothing_leaves_nothing_and_can_be_made_again() {
    let copy = ThreadRecord::new("copy".into(), "u".into(), Timestamp::default());
    let mut boundaries = 0;
    loop {
        let (kv, faults) = (Arc::<MemoryKv>::default(), Faults::new());
        let first = store(&kv, &faults).await;
        fill(&first, MANY).await;
        let whole = first.verify().await.unwrap().rows;
        die_at(&faults, boundaries);
        let cut_off = first.messages().copy(&"t".into(), &copy, None).await.is_err();
        faults.clear();
        if cut_off {
            assert_eq!(first.threads().get(&"copy".into()).await.unwrap(), None, "boundary {boundaries}");
            assert_eq!(count(&first, "copy").await, 0, "boundary {boundaries}");
            assert_eq!(listed(&first).await, ["beside", "t"], "boundary {boundaries}");
            assert_eq!(first.verify().await.unwrap().is_sound(), boundaries == 0, "boundary {boundaries}: rows are left behind");
            let blocks = Scan { prefix: b"i/copy".into(), limit: 1, ..Scan::default() };
            assert_eq!(kv.scan(blocks).await.unwrap().len(), usize::from(boundaries == 2), "boundary {boundaries}: a part of the index");
            let next = store(&kv, &faults).await;
            let report = next.verify().await.unwrap();
            assert!(report.is_sound(), "boundary {boundaries}: {report:?}");
            assert_eq!(report.rows, whole, "boundary {boundaries}: rows that are left");
            assert_eq!(next.messages().copy(&"t".into(), &copy, None).await.unwrap(), MANY as u64);
        }
        assert_eq!(listed(&first).await, ["beside", "copy", "t"], "boundary {boundaries}");
        assert_eq!(count(&first, "copy").await, MANY, "boundary {boundaries}");
        assert!(first.verify().await.unwrap().is_sound(), "boundary {boundaries}");
        if !cut_off {
            break;
        }
        boundaries += 1;
    }
    assert_eq!(boundaries, 3);
}

#[tokio::test]
async fn a_deleted_copy_leaves_no_row_behind() {
    let (kv, faults) = (Arc::default(), Faults::new());
    let store = store(&kv, &faults).await;
    fill(&store, 600).await;
    let whole = store.verify().await.unwrap().rows;
    let copy = ThreadRecord::new("copy".into(), "u".into(), Timestamp::default());
    store.messages().copy(&"t".into(), &copy, None).await.unwrap();
    let head = store.runs().head(&"copy".into()).await.unwrap().unwrap();
    store.messages().put(&"copy".into(), &Message::user("new", "later", Timestamp::default()), head.version).await.unwrap();
    store.threads().delete(&"copy".into()).await.unwrap();
    let report = store.verify().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.rows, whole + 1, "only the tombstone is left");
}

/// What a process left of a copy is in nobody's way: not in that of a second try, and not in that of a thread of the same id.
#[tokio::test]
async fn what_is_left_of_a_copy_is_not_taken_for_messages() {
    let (kv, faults) = (Arc::default(), Faults::new());
    let store = store(&kv, &faults).await;
    fill(&store, MANY).await;
    let [again, other] = ["again", "other"].map(|id| ThreadRecord::new(id.into(), "u".into(), Timestamp::default()));
    for copy in [&again, &other] {
        die_at(&faults, 1);
        store.messages().copy(&"t".into(), copy, None).await.unwrap_err();
        faults.clear();
        assert!(!store.verify().await.unwrap().is_sound(), "rows are left behind");
    }
    assert_eq!(store.messages().copy(&"t".into(), &again, None).await.unwrap(), MANY as u64);

    store.threads().create(&other).await.unwrap();
    // With ids that the copy had.
    for (n, id) in ["m1", "new", "m0"].into_iter().enumerate() {
        let head = store.runs().head(&"other".into()).await.unwrap().unwrap();
        let message = Message::user(id, "not a copy", Timestamp::default());
        store.messages().put(&"other".into(), &message, head.version).await.unwrap();
        assert_eq!(count(&store, "other").await, n + 1);
    }
    assert_eq!(store.messages().get(&"other".into(), &"m0".into()).await.unwrap().unwrap().position, 2);
    assert!(store.repair().await.unwrap().is_sound());
    assert_eq!((count(&store, "again").await, count(&store, "other").await), (MANY, 3));
}

/// Whoever opens the store takes a copy under way for one that was left behind. It is begun again, and is whole in the end.
#[tokio::test]
async fn a_copy_under_way_survives_that_the_store_is_opened_by_somebody_else() {
    let (kv, faults) = (Arc::default(), Faults::new());
    let first = store(&kv, &faults).await;
    fill(&first, MANY).await;
    let copy = ThreadRecord::new("copy".into(), "u".into(), Timestamp::default());
    faults.skip(Op::KvWrite);
    faults.next(Op::KvWrite, Fault::Hang);
    let copying = async { first.messages().copy(&"t".into(), &copy, None).await.unwrap() };
    let opening = async {
        let second = store(&kv, &Faults::new()).await;
        assert!(second.verify().await.unwrap().is_sound(), "what was there of the copy is gone");
        faults.release();
    };
    assert_eq!(tokio::join!(copying, opening).0, MANY as u64);
    assert_eq!(faults.hits(), 1, "it hung while the store was opened");
    assert_eq!(count(&first, "copy").await, MANY);
    assert!(first.verify().await.unwrap().is_sound());
}

/// The process ends at the `n`-th write from now: what it would clear up it does not clear up.
fn die_at(faults: &Faults, n: u64) {
    for _ in 0..n {
        faults.skip(Op::KvWrite);
    }
    for _ in 0..3 {
        faults.next(Op::KvWrite, Fault::Fail(StorageErrorKind::Unavailable));
    }
}
