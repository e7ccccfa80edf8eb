//! Rules for the three methods of a backend.

use ac_storage::{Expect, Kv, Scan, StorageErrorKind::Conflict, Write};

use super::{
    Verdict, Violation,
    fixture::{ensure, ensure_eq, fails},
};

fn put(key: &[u8], expect: Expect, value: &[u8]) -> Write {
    Write { key: key.to_vec(), expect, value: Some(value.to_vec()) }
}

fn delete(key: &[u8], expect: Expect) -> Write {
    Write { key: key.to_vec(), expect, value: None }
}

async fn read(kv: &dyn Kv, key: &[u8]) -> Result<Option<(u64, Vec<u8>)>, Violation> {
    Ok(kv.get(key).await?.map(|found| (found.version, found.value.to_vec())))
}

async fn keys(kv: &dyn Kv, scan: Scan) -> Result<Vec<Vec<u8>>, Violation> {
    Ok(kv.scan(scan).await?.into_iter().map(|(key, _)| key).collect())
}

const KEYS: [&[u8]; 8] = [b"a", b"a\0", b"a/1", b"a/2", b"a\xff", b"b", b"\xff", b"\xff\xff"];

async fn fill(kv: &dyn Kv) -> Verdict {
    // Not in their order.
    for n in [3, 0, 7, 5, 1, 6, 2, 4] {
        let key = KEYS.get(n).copied().unwrap_or_default();
        kv.write(vec![put(key, Expect::Absent, key)]).await?;
    }
    Ok(())
}

/// What was written is read, until it is deleted.
pub async fn a_value_reads_back(kv: &dyn Kv) -> Verdict {
    ensure_eq!(read(kv, b"a").await?, None, "before the write");
    kv.write(vec![put(b"a", Expect::Any, b"one")]).await?;
    ensure_eq!(read(kv, b"a").await?, Some((1, b"one".to_vec())), "after the write");
    kv.write(vec![put(b"a", Expect::Any, b"two")]).await?;
    ensure_eq!(read(kv, b"a").await?, Some((2, b"two".to_vec())), "after another");
    kv.write(vec![delete(b"a", Expect::Any)]).await?;
    kv.write(vec![delete(b"a", Expect::Any)]).await?;
    ensure_eq!(read(kv, b"a").await?, None, "after the deletion");
    kv.write(Vec::new()).await?;
    Ok(())
}

/// 1 for the first write after the key was absent, one more for each after that.
pub async fn versions_count_the_writes_since_the_key_was_absent(kv: &dyn Kv) -> Verdict {
    for round in 0..2 {
        for version in 1..=3 {
            kv.write(vec![put(b"a", Expect::Any, b"same"), put(b"b", Expect::Any, b"x")]).await?;
            ensure_eq!(read(kv, b"a").await?.map(|found| found.0), Some(version), "in round {round}");
        }
        let scanned = kv.scan(Scan { prefix: b"a".to_vec(), limit: 1, ..Scan::default() }).await?;
        ensure_eq!(scanned.first().map(|(_, found)| found.version), Some(3), "in a scan");
        kv.write(vec![delete(b"a", Expect::Version(3))]).await?;
    }
    ensure_eq!(read(kv, b"b").await?.map(|found| found.0), Some(6), "of a key that stayed");
    Ok(())
}

/// Anything, absent, or this version.
pub async fn a_write_is_done_only_if_its_expectation_holds(kv: &dyn Kv) -> Verdict {
    fails(Conflict, "a version of an absent key", kv.write(vec![put(b"a", Expect::Version(1), b"x")]).await)?;
    kv.write(vec![put(b"a", Expect::Absent, b"one")]).await?;
    fails(Conflict, "absence of a present key", kv.write(vec![put(b"a", Expect::Absent, b"x")]).await)?;
    kv.write(vec![put(b"a", Expect::Version(1), b"two")]).await?;
    fails(Conflict, "an old version", kv.write(vec![put(b"a", Expect::Version(1), b"x")]).await)?;
    fails(Conflict, "a version to come", kv.write(vec![put(b"a", Expect::Version(3), b"x")]).await)?;
    fails(Conflict, "a deletion of an old version", kv.write(vec![delete(b"a", Expect::Version(1))]).await)?;
    ensure_eq!(read(kv, b"a").await?, Some((2, b"two".to_vec())), "after the conflicts");
    kv.write(vec![delete(b"a", Expect::Version(2))]).await?;
    kv.write(vec![delete(b"a", Expect::Absent)]).await?;
    ensure_eq!(read(kv, b"a").await?, None, "after the deletion");
    Ok(())
}

/// One expectation that does not hold keeps all writes from being done, wherever it stands.
pub async fn a_batch_is_done_as_a_whole_or_not_at_all(kv: &dyn Kv) -> Verdict {
    kv.write(vec![put(b"a", Expect::Absent, b"1"), put(b"b", Expect::Absent, b"1"), put(b"c", Expect::Absent, b"1")]).await?;
    for wrong in 0..3 {
        let expect = |n: usize| if n == wrong { Expect::Version(9) } else { Expect::Version(1) };
        let batch = vec![put(b"a", expect(0), b"2"), delete(b"b", expect(1)), put(b"c", expect(2), b"2"), put(b"d", Expect::Any, b"2")];
        fails(Conflict, "a batch with one wrong expectation", kv.write(batch).await)?;
        for key in [b"a", b"b", b"c"] {
            ensure_eq!(read(kv, key).await?, Some((1, b"1".to_vec())), "{key:?} after a conflict at {wrong}");
        }
        ensure_eq!(read(kv, b"d").await?, None, "the new key after a conflict at {wrong}");
    }
    kv.write(vec![put(b"a", Expect::Version(1), b"2"), delete(b"b", Expect::Version(1)), put(b"d", Expect::Absent, b"2")]).await?;
    ensure_eq!(keys(kv, Scan { limit: 9, ..Scan::default() }).await?, [b"a", b"c", b"d"], "keys after a batch that was done");
    Ok(())
}

/// Also none at all.
pub async fn keys_and_values_may_be_any_bytes(kv: &dyn Kv) -> Verdict {
    let all: Vec<u8> = (0..=255).collect();
    let places: [&[u8]; 9] = [b"", b"\0", b"/", b"..", b"\xff", b"\xfe", b"\xff\xfe", b"k\0\xff", &all];
    for key in places {
        kv.write(vec![put(key, Expect::Absent, key)]).await?;
    }
    for key in places {
        ensure_eq!(read(kv, key).await?, Some((1, key.to_vec())), "key {key:?}");
    }
    Ok(())
}

/// Size is no reason to lose anything.
pub async fn a_large_value_reads_back(kv: &dyn Kv) -> Verdict {
    for size in [65_535, 65_536, 65_537, 3_000_000] {
        let value: Vec<u8> = (0..size).map(|n: usize| (n % 251) as u8).collect();
        kv.write(vec![put(b"a", Expect::Any, &value), put(b"b", Expect::Any, &value)]).await?;
        ensure!(read(kv, b"a").await?.is_some_and(|found| found.1 == value), "a value of {size} bytes is not what was written");
        let scanned = kv.scan(Scan { limit: 2, ..Scan::default() }).await?;
        ensure!(scanned.len() == 2 && scanned.iter().all(|(_, found)| *found.value == value), "nor in a scan");
    }
    kv.write(vec![put(b"a", Expect::Any, b"small")]).await?;
    ensure_eq!(read(kv, b"b").await?.map(|found| found.1.len()), Some(3_000_000), "the same value under another key");
    Ok(())
}

/// From the least key to the greatest, or back.
pub async fn a_scan_is_in_the_order_of_bytes(kv: &dyn Kv) -> Verdict {
    fill(kv).await?;
    let mut expected = KEYS.map(<[u8]>::to_vec).to_vec();
    expected.sort();
    ensure_eq!(keys(kv, Scan { limit: 99, ..Scan::default() }).await?, expected, "forwards");
    let found = kv.scan(Scan { limit: 99, ..Scan::default() }).await?;
    ensure!(found.iter().all(|(key, found)| found.value[..] == key[..] && found.version == 1), "values are not those of their keys");
    expected.reverse();
    ensure_eq!(keys(kv, Scan { limit: 99, reverse: true, ..Scan::default() }).await?, expected, "backwards");
    Ok(())
}

/// Only keys that begin with it.
pub async fn a_scan_sees_its_prefix_only(kv: &dyn Kv) -> Verdict {
    fill(kv).await?;
    for prefix in KEYS.into_iter().chain([b"".as_slice(), b"a/", b"c", b"a/11"]) {
        for reverse in [false, true] {
            let mut expected: Vec<_> = KEYS.into_iter().filter(|key| key.starts_with(prefix)).map(<[u8]>::to_vec).collect();
            expected.sort();
            if reverse {
                expected.reverse();
            }
            let found = keys(kv, Scan { prefix: prefix.to_vec(), limit: 99, reverse, after: None }).await?;
            ensure_eq!(found, expected, "keys that begin with {prefix:?}");
        }
    }
    Ok(())
}

/// `after` is exclusive, need not exist, and may lie outside the prefix.
pub async fn a_scan_begins_beyond_a_key(kv: &dyn Kv) -> Verdict {
    fill(kv).await?;
    for prefix in [b"".as_slice(), b"a", b"a/", b"\xff"] {
        for after in KEYS.into_iter().chain([b"".as_slice(), b"a/", b"a/11", b"\xff\xff\xff"]) {
            for reverse in [false, true] {
                let beyond = |key: &&[u8]| if reverse { *key < after } else { *key > after };
                let mut expected: Vec<_> =
                    KEYS.into_iter().filter(|key| key.starts_with(prefix)).filter(beyond).map(<[u8]>::to_vec).collect();
                expected.sort();
                if reverse {
                    expected.reverse();
                }
                let scan = Scan { prefix: prefix.to_vec(), after: Some(after.to_vec()), limit: 99, reverse };
                ensure_eq!(keys(kv, scan.clone()).await?, expected, "{scan:?}");
            }
        }
    }
    Ok(())
}

/// At most so many, the first ones in the order of the scan; 0 is none.
pub async fn a_scan_ends_at_its_limit(kv: &dyn Kv) -> Verdict {
    fill(kv).await?;
    for reverse in [false, true] {
        let all = keys(kv, Scan { limit: 99, reverse, ..Scan::default() }).await?;
        for limit in [0, 1, 5, 8, 9, usize::MAX] {
            let expected: Vec<_> = all.iter().take(limit).cloned().collect();
            ensure_eq!(keys(kv, Scan { limit, reverse, ..Scan::default() }).await?, expected, "a limit of {limit}");
        }
    }
    Ok(())
}

/// At the same time.
pub async fn of_many_writes_on_one_version_one_is_done(kv: &dyn Kv) -> Verdict {
    for round in 0..10_u64 {
        let expect = if round == 0 { Expect::Absent } else { Expect::Version(round) };
        let attempts = (0..16_u8).map(|n| kv.write(vec![put(b"a", expect, &[n]), put(&[b'k', n], Expect::Any, &[n])]));
        let outcomes = futures::future::join_all(attempts).await;
        let winners: Vec<_> = (0..16_u8).zip(outcomes).filter(|(_, outcome)| outcome.is_ok()).map(|(n, _)| n).collect();
        ensure_eq!(winners.len(), 1, "writes that were done in round {round}");
        ensure_eq!(read(kv, b"a").await?, Some((round + 1, winners)), "the value");
    }
    let written = kv.scan(Scan { prefix: b"k".to_vec(), limit: 99, ..Scan::default() }).await?;
    ensure_eq!(written.iter().map(|(_, found)| found.version).sum::<u64>(), 10, "writes beside the winning ones");
    Ok(())
}
