//! A process that commits as fast as it can is killed at any moment. What it acknowledged is there, and nothing is half there.
//!
//! `AC_KILL_ROUNDS=200 cargo test -p ac-storage --features sled --test kill` takes longer and finds more.
#![cfg(all(feature = "sled", unix))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use ac_core::{Message, Part, Role, SessionKey, Timestamp, Usage};
use ac_storage::{
    Commit, CommitMark, CommitOutcome, Durability, RunHeader, RunPosture, RunRecord, RunStage, SledOptions, SledStorage, Storage,
    StorageErrorKind, ThreadRecord, domain::MessageQuery,
};
use serde_json::value::RawValue;

const WORKERS: usize = 8;

async fn open(path: &Path, durability: Durability) -> SledStorage {
    SledOptions::new(path).durability(durability).open().await.unwrap()
}

/// Step `n` of a run that never ends. Everything it writes says `n`, in bodies whose size goes up and down.
async fn step(store: &SledStorage, worker: usize, expect: Option<u64>, n: u64) -> u64 {
    let size = usize::try_from(n * 7919 % 90_000).unwrap();
    let header = RunHeader {
        run: format!("r{worker}").into(),
        controller: "c".into(),
        session: SessionKey::new("u"),
        thread: format!("t{worker}").into(),
        parent: None,
        stage: RunStage::Open,
        posture: RunPosture::Moving,
        pending: Vec::new(),
        epoch: 1,
        mark: CommitMark { by: "p".into(), epoch: 1, n },
        at: Timestamp::from_millis(i64::try_from(n).unwrap()),
    };
    let body = RawValue::from_string(format!("{{\"n\":{n},\"pad\":\"{}\"}}", "x".repeat(size))).unwrap();
    let record = RunRecord { header, body };
    let put = [
        Arc::new(Message::new("latest", Role::Assistant, vec![Part::text(n.to_string())], Timestamp::default())),
        Arc::new(Message::user(format!("m{n}"), n.to_string(), Timestamp::default())),
    ];
    let commit = Commit { expect, record: &record, put: &put, usage: Some(&Usage::new(1, 0)) };
    match store.runs().commit(commit).await.unwrap() {
        CommitOutcome::Committed { version } => version,
        other => panic!("{other:?}"),
    }
}

/// Where a worker's run stands: version of its record and last step.
async fn place(store: &SledStorage, worker: usize) -> Option<(u64, u64)> {
    let stored = store.runs().load(&format!("r{worker}").into()).await.unwrap()?;
    Some((stored.version, stored.value.header.mark.n))
}

/// The child: does nothing unless it is told where.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Ok(path) = std::env::var("AC_KILL_STORE") else { return };
    let durability =
        if std::env::var("AC_KILL_DURABILITY").is_ok_and(|name| name == "process") { Durability::Process } else { Durability::Power };
    let store = Arc::new(open(&PathBuf::from(path), durability).await);
    let workers: Vec<_> = (0..WORKERS).map(|worker| tokio::spawn(work(Arc::clone(&store), worker))).collect();
    for worker in workers {
        worker.await.unwrap();
    }
}

/// Commits for ever, and says so after each time.
async fn work(store: Arc<SledStorage>, worker: usize) {
    let thread = ThreadRecord::new(format!("t{worker}").into(), "u".into(), Timestamp::default());
    match store.threads().create(&thread).await {
        Err(error) if error.kind() != StorageErrorKind::Exists => panic!("{error}"),
        _ => {}
    }
    let mut place = place(&store, worker).await;
    loop {
        let n = place.map_or(1, |(_, n)| n + 1);
        let version = step(&store, worker, place.map(|(version, _)| version), n).await;
        place = Some((version, n));
        let mut out = std::io::stdout().lock();
        writeln!(out, "ack {worker} {n}").unwrap();
        out.flush().unwrap();
    }
}

async fn check(store: &SledStorage, acked: &BTreeMap<usize, u64>) {
    assert_eq!(store.verify().await.unwrap().problems, []);
    for worker in 0..WORKERS {
        let acked = acked.get(&worker).copied().unwrap_or(0);
        let (_, n) = place(store, worker).await.unwrap_or_default();
        assert!(n >= acked, "worker {worker}: step {acked} was acknowledged, step {n} is stored");
        if n == 0 {
            continue;
        }
        let thread = format!("t{worker}").into();
        let head = store.runs().head(&thread).await.unwrap().unwrap().value;
        assert_eq!((head.next_position, head.usage.input), (n + 1, n), "worker {worker}: head of step {n}");
        let messages = store.messages().page(&thread, &MessageQuery::default()).await.unwrap().items;
        let texts: Vec<_> = messages.iter().map(|stored| stored.message.text()).collect();
        let expected: Vec<_> = std::iter::once(n).chain(1..=n).map(|n| n.to_string()).collect();
        assert_eq!(texts, expected, "worker {worker}: messages of step {n}");
    }
}

async fn kill(rounds: u64, durability: Durability) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let name = if durability == Durability::Process { "process" } else { "power" };
    let mut acked = BTreeMap::new();
    let mut count = 0;
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env("AC_KILL_STORE", &path)
            .env("AC_KILL_DURABILITY", name)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let reader = std::thread::spawn(move || {
            let acks = lines.map_while(Result::ok).filter_map(|line| {
                let mut words = line.strip_prefix("ack ")?.split(' ');
                Some((words.next()?.parse::<usize>().ok()?, words.next()?.parse::<u64>().ok()?))
            });
            acks.collect::<Vec<_>>()
        });
        // From before the store is open to well into the work.
        std::thread::sleep(Duration::from_millis(20 + round * 7919 % 400));
        child.kill().unwrap();
        child.wait().unwrap();
        for (worker, n) in reader.join().unwrap() {
            acked.insert(worker, n);
            count += 1;
        }
        let store = open(&path, durability).await;
        check(&store, &acked).await;
        store.close().await.unwrap();
    }
    println!("{rounds} kills, {count} acknowledged commits, none lost, none torn");
    assert!(count > 0, "no child lived long enough to commit anything");
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_kill() {
    let rounds = std::env::var("AC_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(6);
    kill(rounds, Durability::Power).await;
    kill(rounds / 2, Durability::Process).await;
}
