//! What the embedded store costs: `cargo bench -p ac-storage --features sled`.
#![allow(clippy::unwrap_used, missing_docs)]

use std::{
    cell::Cell,
    sync::{Arc, LazyLock},
};

use ac_core::{Message, Part, Role, SessionKey, Timestamp, Usage};
use ac_storage::{
    Commit, CommitMark, CommitOutcome, Durability, RunHeader, RunPosture, RunRecord, RunStage, SledOptions, SledStorage, Storage,
    ThreadRecord,
    domain::{MessageQuery, OpenRuns, ThreadQuery},
};
use divan::Bencher;
use serde_json::value::RawValue;
use tokio::runtime::{Builder, Runtime};

fn main() {
    divan::main();
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn record(run: &str, thread: &str, n: u64, body: usize) -> RunRecord {
    let header = RunHeader {
        run: run.into(),
        controller: "c".into(),
        session: SessionKey::new("u"),
        thread: thread.into(),
        parent: None,
        stage: RunStage::Open,
        posture: RunPosture::Parked,
        pending: vec!["r/1/call_0#1".parse().unwrap()],
        epoch: 1,
        mark: CommitMark { by: "p".into(), epoch: 1, n },
        at: Timestamp::from_millis(n.cast_signed()),
    };
    RunRecord { header, body: RawValue::from_string(format!("\"{}\"", "x".repeat(body))).unwrap() }
}

async fn start(store: &SledStorage, n: usize) {
    let (run, thread) = (format!("r{n}"), format!("t{n}"));
    store.threads().create(&ThreadRecord::new(thread.as_str().into(), "u".into(), Timestamp::default())).await.unwrap();
    let record = record(&run, &thread, 1, 2000);
    store.runs().commit(Commit { expect: None, record: &record, put: &[], usage: None }).await.unwrap();
}

/// One commit with record, head and message; nobody else commits.
fn commit(bencher: Bencher, durability: Durability, body: usize) {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let store = runtime.block_on(SledOptions::new(folder.path().join("store")).durability(durability).open()).unwrap();
    runtime.block_on(start(&store, 0));
    let version = Cell::new(1);
    bencher.bench_local(|| {
        let n = version.get() + 1;
        let record = record("r0", "t0", n, body);
        let put = [Arc::new(Message::new(format!("m{n}"), Role::Assistant, vec![Part::text("words ".repeat(50))], Timestamp::default()))];
        let usage = Usage::new(100, 10);
        let commit = Commit { expect: Some(version.get()), record: &record, put: &put, usage: Some(&usage) };
        let outcome = runtime.block_on(store.runs().commit(commit)).unwrap();
        assert_eq!(outcome, CommitOutcome::Committed { version: n });
        version.set(n);
    });
}

#[divan::bench]
fn commit_power(bencher: Bencher) {
    commit(bencher, Durability::Power, 2000);
}

#[divan::bench]
fn commit_process(bencher: Bencher) {
    commit(bencher, Durability::Process, 2000);
}

#[divan::bench(sample_count = 50)]
fn commit_power_100_kb_record(bencher: Bencher) {
    commit(bencher, Durability::Power, 100_000);
}

/// 64 runs commit at a time; the time is that of 64 commits.
#[divan::bench(sample_count = 50)]
fn commit_power_64_runs_at_once(bencher: Bencher) {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let store = Arc::new(runtime.block_on(SledOptions::new(folder.path().join("store")).open()).unwrap());
    for n in 0..64 {
        runtime.block_on(start(&store, n));
    }
    let version = Cell::new(1);
    bencher.bench_local(|| {
        let expect = version.get();
        runtime.block_on(async {
            let commits = (0..64).map(|n| {
                let store = Arc::clone(&store);
                tokio::spawn(async move {
                    let record = record(&format!("r{n}"), &format!("t{n}"), expect + 1, 2000);
                    store.runs().commit(Commit { expect: Some(expect), record: &record, put: &[], usage: None }).await.unwrap()
                })
            });
            for commit in commits.collect::<Vec<_>>() {
                commit.await.unwrap();
            }
        });
        version.set(expect + 1);
    });
}

/// 100,000 messages in 1,000 threads.
static MESSAGES: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), runtime());
    runtime.block_on(async {
        let store = SledOptions::new(folder.path().join("store")).durability(Durability::Process).open().await.unwrap();
        for thread in 0..1000 {
            let id = format!("t{thread}");
            store.threads().create(&ThreadRecord::new(id.as_str().into(), "u".into(), Timestamp::from_millis(thread))).await.unwrap();
            let record = record(&format!("r{thread}"), &id, 1, 2000);
            let put: Vec<_> =
                (0..100).map(|n| Arc::new(Message::user(format!("m{n}"), "words ".repeat(50), Timestamp::default()))).collect();
            store.runs().commit(Commit { expect: None, record: &record, put: &put, usage: None }).await.unwrap();
        }
        store.close().await.unwrap();
    });
    folder
});

#[divan::bench(sample_count = 20)]
fn open_and_close_100_000_messages(bencher: Bencher) {
    let (path, runtime) = (MESSAGES.path().join("store"), runtime());
    bencher.bench_local(|| {
        runtime.block_on(async {
            let store = SledStorage::open(&path).await.unwrap();
            store.close().await.unwrap();
        });
    });
}

#[divan::bench]
fn newest_40_of_100_000_messages(bencher: Bencher) {
    let runtime = runtime();
    let store = runtime.block_on(SledStorage::open(MESSAGES.path().join("store"))).unwrap();
    let query = MessageQuery { newest_first: true, limit: 40, ..MessageQuery::default() };
    bencher.bench_local(|| runtime.block_on(store.messages().page(&"t500".into(), &query)).unwrap());
    runtime.block_on(store.close()).unwrap();
}

#[divan::bench]
fn newest_20_of_1_000_threads(bencher: Bencher) {
    let runtime = runtime();
    let store = runtime.block_on(SledStorage::open(MESSAGES.path().join("store"))).unwrap();
    let query = ThreadQuery { resource: Some("u".into()), limit: 20, ..ThreadQuery::default() };
    bencher.bench_local(|| runtime.block_on(store.threads().list(&query)).unwrap());
    runtime.block_on(store.close()).unwrap();
}

#[divan::bench(sample_count = 20)]
fn list_10_000_open_runs(bencher: Bencher) {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let options = SledOptions::new(folder.path().join("store")).durability(Durability::Process);
    let store = Arc::new(runtime.block_on(options.open()).unwrap());
    runtime.block_on(async {
        let starts: Vec<_> = (0..10_000)
            .map(|n| {
                let store = Arc::clone(&store);
                tokio::spawn(async move { start(&store, n).await })
            })
            .collect();
        for start in starts {
            start.await.unwrap();
        }
    });
    bencher.bench_local(|| {
        let runs = runtime.block_on(store.runs().open(&OpenRuns::default())).unwrap();
        assert_eq!(runs.items.len(), 10_000);
    });
}
