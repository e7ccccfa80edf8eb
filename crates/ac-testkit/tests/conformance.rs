//! The rules for stores: sound ones keep them, and each rule finds a defect that was planted.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use ac_storage::{KvStorage, MemoryKv, MemoryStorage, Storage};
use ac_testkit::{
    conformance::{kv_rules, storage_rules},
    store::{
        FileKv, HookedStorage, Recorder,
        broken::{BrokenKv, BrokenStore, Defect, KvDefect},
    },
};

ac_testkit::storage_conformance!(memory, async { MemoryStorage::new() });
ac_testkit::storage_conformance!(hooked, async { HookedStorage::new(MemoryStorage::new(), Recorder::new()) });
ac_testkit::storage_conformance!(file, async { KvStorage::connect(file_kv(), "the file store").await.unwrap() });
ac_testkit::kv_conformance!(memory_kv, async { MemoryKv::default() });
ac_testkit::kv_conformance!(file_kv_alone, async { file_kv() });

fn file_kv() -> FileKv {
    FileKv(tempfile::tempdir().unwrap().keep().join("store.json"))
}

#[tokio::test]
async fn every_rule_for_storages_finds_a_planted_defect_and_every_defect_is_found() {
    let mut idle: BTreeSet<_> = storage_rules().iter().map(|rule| rule.name).collect();
    for defect in Defect::ALL {
        let mut found = Vec::new();
        for rule in storage_rules() {
            let store = BrokenStore::new(defect);
            if (rule.check)(&store as &dyn Storage).await.is_err() {
                found.push(rule.name);
            }
        }
        assert!(!found.is_empty(), "no rule finds {defect:?}");
        found.iter().for_each(|name| {
            idle.remove(name);
        });
    }
    assert!(idle.is_empty(), "rules that find nothing: {idle:#?}");
}

#[tokio::test]
async fn every_rule_for_backends_finds_a_planted_defect_and_every_defect_is_found() {
    let mut idle: BTreeSet<_> = kv_rules().iter().map(|rule| rule.name).collect();
    for defect in KvDefect::ALL {
        let mut found = Vec::new();
        for rule in kv_rules() {
            if (rule.check)(&BrokenKv::new(defect)).await.is_err() {
                found.push(rule.name);
            }
        }
        assert!(!found.is_empty(), "no rule finds {defect:?}");
        found.iter().for_each(|name| {
            idle.remove(name);
        });
    }
    assert!(idle.is_empty(), "rules that find nothing: {idle:#?}");
}

#[test]
fn the_example_of_a_backend_is_short() {
    let source = include_str!("../src/store/file.rs");
    let lines = source.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count();
    assert!(lines <= 60, "{lines} lines");
}

/// As two processes would: each has its own handle on the file and its lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_who_share_a_file_never_both_make_the_same_step() {
    use ac_storage::{Expect, Kv as _, Write};
    let path = tempfile::tempdir().unwrap().keep().join("store.json");
    let workers = ["one", "two"].map(|name| {
        let kv = FileKv(path.clone());
        tokio::spawn(async move {
            let mut made = Vec::new();
            while made.last().is_none_or(|version| *version < 100) {
                let version = kv.get(b"a").await.unwrap().map_or(0, |found| found.version);
                let expect = if version == 0 { Expect::Absent } else { Expect::Version(version) };
                let step = Write { key: b"a".to_vec(), expect, value: Some(name.into()) };
                if kv.write(vec![step]).await.is_ok() {
                    made.push(version + 1);
                }
                tokio::task::yield_now().await;
            }
            made
        })
    });
    let mut steps = Vec::new();
    for worker in workers {
        steps.extend(worker.await.unwrap());
    }
    steps.sort_unstable();
    let last = steps.len() as u64;
    assert_eq!(steps, (1..=last).collect::<Vec<_>>(), "a step was made twice or not at all");
    assert_eq!(FileKv(path).get(b"a").await.unwrap().unwrap().version, last);
}
