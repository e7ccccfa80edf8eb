use ac_core::Timestamp;
use ac_storage::{Kv, MemoryKv, MemoryStorage, Storage, ThreadRecord};

use super::*;
use crate::store::{HookedKv, HookedStorage};

fn thread(id: &str) -> ThreadRecord {
    ThreadRecord::new(id.into(), "r".into(), Timestamp::default())
}

#[tokio::test]
async fn scripted_faults_hit_the_calls_they_were_planned_for() {
    let faults = Faults::new();
    let store = HookedStorage::new(MemoryStorage::new(), faults.clone());
    faults.next(Op::CreateThread, Fault::Fail(StorageErrorKind::Full));
    faults.skip(Op::CreateThread);
    faults.next(Op::CreateThread, Fault::DoneThenUnknown);
    faults.next(Op::CreateThread, Fault::NotDoneThenUnknown);
    let mut found = Vec::new();
    for id in ["a", "b", "c", "d", "e"] {
        found.push(store.threads().create(&thread(id)).await.err().map(|error| error.kind()));
    }
    let unknown = Some(StorageErrorKind::Unknown);
    assert_eq!(found, [Some(StorageErrorKind::Full), None, unknown, unknown, None]);
    let listed = store.threads().list(&Default::default()).await.unwrap().items;
    assert_eq!(listed.iter().map(|thread| thread.info.id.as_str()).collect::<Vec<_>>(), ["b", "c", "e"]);
    assert_eq!((faults.writes(), faults.hits()), (5, 3));
}

#[tokio::test(start_paused = true)]
async fn a_call_stalls_for_its_time_and_hangs_until_it_is_released() {
    let faults = Faults::new();
    let kv = HookedKv::new(MemoryKv::default(), faults.clone());
    faults.next(Op::KvGet, Fault::Stall(Duration::from_secs(60)));
    let begin = tokio::time::Instant::now();
    kv.get(b"a").await.unwrap();
    assert_eq!(begin.elapsed().as_secs(), 60);
    faults.next(Op::KvGet, Fault::Hang);
    let mut hanging = Box::pin(kv.get(b"a"));
    assert!(tokio::time::timeout(Duration::from_secs(3600), &mut hanging).await.is_err());
    faults.release();
    hanging.await.unwrap();
}

#[tokio::test]
async fn every_boundary_can_be_hit_in_turn() {
    let mut boundaries = 0;
    loop {
        let faults = Faults::new();
        let store = HookedStorage::new(MemoryStorage::new(), faults.clone());
        faults.nth_write(boundaries, Fault::Fail(StorageErrorKind::Unavailable));
        for id in ["a", "b", "c"] {
            let failed = store.threads().create(&thread(id)).await.is_err();
            assert_eq!(failed, faults.hits() > 0 && faults.writes() == boundaries + 1);
        }
        if faults.hits() == 0 {
            break;
        }
        boundaries += 1;
    }
    assert_eq!(boundaries, 3);
}

#[tokio::test]
async fn a_seed_gives_the_same_faults_again() {
    let mut runs = Vec::new();
    for seed in [1, 1, 2] {
        let faults = Faults::new();
        faults.seeded(seed, 300, &[Fault::Conflict, Fault::Fail(StorageErrorKind::Unavailable)]);
        let store = HookedStorage::new(MemoryStorage::new(), faults.clone());
        let mut found = Vec::new();
        for n in 0..200 {
            found.push(store.threads().create(&thread(&n.to_string())).await.err().map(|error| error.kind()));
        }
        assert!((30..90).contains(&faults.hits()), "{}", faults.hits());
        runs.push(found);
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
}
