use std::sync::atomic::AtomicU64;

use super::{ledger::Entry, *};
use crate::Expect;

fn write(key: &str, expect: Expect, value: Option<Vec<u8>>) -> Write {
    Write { key: key.into(), expect, value }
}

fn any(key: &str, value: &[u8]) -> Vec<Write> {
    vec![write(key, Expect::Any, Some(value.to_vec()))]
}

fn options(folder: &tempfile::TempDir) -> SledOptions {
    SledOptions::new(folder.path().join("store"))
}

fn open(options: &SledOptions) -> SledKv {
    SledKv::open(options).unwrap()
}

fn files(folder: &tempfile::TempDir, inside: &str) -> usize {
    std::fs::read_dir(folder.path().join("store").join(inside)).map_or(0, Iterator::count)
}

#[tokio::test]
async fn versions_count_and_expectations_hold_the_batch_together() {
    let folder = tempfile::tempdir().unwrap();
    let kv = open(&options(&folder));
    kv.write(any("a", b"1")).await.unwrap();
    kv.write(vec![write("a", Expect::Version(1), Some(b"2".to_vec())), write("b", Expect::Absent, Some(b"x".to_vec()))]).await.unwrap();
    let torn = kv.write(vec![write("b", Expect::Any, Some(b"y".to_vec())), write("a", Expect::Version(1), None)]).await.unwrap_err();
    assert_eq!(torn.kind(), StorageErrorKind::Conflict);
    assert_eq!(kv.get(b"a").await.unwrap().unwrap(), Versioned { version: 2, value: Arc::from(*b"2") });
    assert_eq!(kv.get(b"b").await.unwrap().unwrap(), Versioned { version: 1, value: Arc::from(*b"x") });
    kv.write(vec![write("a", Expect::Version(2), None)]).await.unwrap();
    kv.write(vec![write("a", Expect::Absent, Some(vec![]))]).await.unwrap();
    assert_eq!(kv.get(b"a").await.unwrap().unwrap().version, 1);
}

#[tokio::test]
async fn a_large_value_is_one_file_as_long_as_a_row_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let kv = open(&options(&folder));
    let large = vec![7; INLINE + 1];
    kv.write(any("a", &large)).await.unwrap();
    kv.write(vec![write("b", Expect::Any, Some(large.clone())), write("c", Expect::Any, Some(large.clone()))]).await.unwrap();
    assert_eq!(files(&folder, "blobs"), 1);
    for key in ["a", "b", "c"] {
        assert_eq!(&*kv.get(key.as_bytes()).await.unwrap().unwrap().value, &large[..]);
    }
    let scanned = kv.scan(Scan { limit: 2, ..Scan::default() }).await.unwrap();
    assert!(scanned.iter().all(|(_, found)| found.value[..] == large[..]));
    kv.write(any("a", b"small")).await.unwrap();
    kv.write(vec![write("b", Expect::Any, None)]).await.unwrap();
    assert_eq!(files(&folder, "blobs"), 1);
    kv.write(any("c", &vec![8; INLINE + 1])).await.unwrap();
    assert_eq!(files(&folder, "blobs"), 1, "the file of the old content is gone, the new one is there");
    kv.write(vec![write("c", Expect::Any, None)]).await.unwrap();
    assert_eq!(files(&folder, "blobs"), 0);
}

#[tokio::test]
async fn a_refused_batch_leaves_no_file_behind_and_takes_none_away() {
    let folder = tempfile::tempdir().unwrap();
    let kv = open(&options(&folder));
    let large = |n: u8| Some(vec![n; INLINE + 1]);
    kv.write(vec![write("a", Expect::Absent, large(1))]).await.unwrap();
    for n in [1, 2] {
        let refused = kv.write(vec![write("b", Expect::Absent, large(n)), write("a", Expect::Absent, large(n))]).await.unwrap_err();
        assert_eq!(refused.kind(), StorageErrorKind::Conflict);
    }
    assert_eq!(files(&folder, "blobs"), 1);
    // One of the same group is done, the other is not; both have the same content.
    let both = futures_join([Expect::Absent, Expect::Absent].map(|expect| kv.write(vec![write("c", expect, large(3))])).into_iter()).await;
    assert_eq!(both.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert_eq!(files(&folder, "blobs"), 2);
    assert_eq!(Some(kv.get(b"c").await.unwrap().unwrap().value.to_vec()), large(3));
}

#[tokio::test]
async fn a_missing_or_changed_file_is_corruption_and_never_an_absent_row() {
    let folder = tempfile::tempdir().unwrap();
    let kv = open(&options(&folder));
    kv.write(any("a", &vec![7; INLINE + 1])).await.unwrap();
    let file = std::fs::read_dir(folder.path().join("store/blobs")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&file, b"else").unwrap();
    assert_eq!(kv.get(b"a").await.unwrap_err().kind(), StorageErrorKind::Corrupt);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(kv.get(b"a").await.unwrap_err().kind(), StorageErrorKind::Corrupt);
    assert_eq!(kv.scan(Scan { limit: 9, ..Scan::default() }).await.unwrap_err().kind(), StorageErrorKind::Corrupt);
}

#[tokio::test]
async fn values_that_stand_in_sled_never_become_files_that_it_does_not_sync() {
    let folder = tempfile::tempdir().unwrap();
    let kv = open(&options(&folder).durability(Durability::Process));
    for round in 0..3_u8 {
        for n in 0..60 {
            kv.write(any(&format!("{n:03}"), &vec![round.wrapping_add(n); INLINE])).await.unwrap();
        }
    }
    assert_eq!(files(&folder, "sled/blobs"), 0);
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_is_no_longer_in_the_way_when_there_is_room() {
    static FREE: AtomicU64 = AtomicU64::new(u64::MAX);
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(&folder).keep_free(1000);
    options.free_space = |_| FREE.load(Ordering::Relaxed);
    let kv = open(&options);
    kv.write(any("a", b"1")).await.unwrap();
    FREE.store(999, Ordering::Relaxed);
    let full = kv.write(any("a", b"2")).await.unwrap_err();
    assert_eq!(full.kind(), StorageErrorKind::Full);
    assert!(full.to_string().contains("make room"), "{full}");
    assert_eq!(&*kv.get(b"a").await.unwrap().unwrap().value, b"1");
    kv.write(vec![write("b", Expect::Absent, None)]).await.unwrap();
    FREE.store(2000, Ordering::Relaxed);
    kv.write(any("a", b"2")).await.unwrap();
    assert_eq!(&*kv.get(b"a").await.unwrap().unwrap().value, b"2");
}

#[tokio::test]
async fn after_a_failed_flush_nothing_is_read_or_written_until_the_store_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let kv = open(&options(&folder));
    kv.write(any("a", b"1")).await.unwrap();
    kv.shared.broken.store(true, Ordering::Release);
    let refused = kv.write(any("a", b"2")).await.unwrap_err();
    assert_eq!(refused.kind(), StorageErrorKind::Unavailable);
    assert!(refused.to_string().contains("open the store again"), "{refused}");
    assert_eq!(kv.get(b"a").await.unwrap_err().kind(), StorageErrorKind::Unavailable);
    drop(kv);
    assert_eq!(&*open(&options(&folder)).get(b"a").await.unwrap().unwrap().value, b"1");
}

#[tokio::test]
async fn what_is_too_large_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let kv = open(&options(&folder));
    let batch = vec![write("a", Expect::Any, Some(vec![1])), write(&"k".repeat(LONGEST_KEY + 1), Expect::Any, Some(vec![1]))];
    assert_eq!(kv.write(batch).await.unwrap_err().kind(), StorageErrorKind::TooLarge);
    assert_eq!(kv.get(b"a").await.unwrap(), None);
}

#[tokio::test]
async fn the_second_opener_is_told_who_has_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let kv = open(&options(&folder));
    let locked = SledKv::open(&options(&folder)).unwrap_err();
    assert_eq!(locked.kind(), StorageErrorKind::Locked);
    assert!(locked.to_string().contains("this process has it open already"), "{locked}");
    let info = folder.path().join("store/lock.json");
    std::fs::write(&info, r#"{"pid":1,"process":"acode"}"#).unwrap();
    assert!(SledKv::open(&options(&folder)).unwrap_err().to_string().contains("the process acode (pid 1) has it open"));
    std::fs::remove_file(&info).unwrap();
    assert!(SledKv::open(&options(&folder)).unwrap_err().to_string().contains("lsof"));
    assert_eq!(set_aside(&folder.path().join("store"), ac_core::Timestamp::from_millis(1)).unwrap_err().kind(), StorageErrorKind::Locked);
    drop(kv);
    drop(open(&options(&folder)));
}

#[tokio::test]
async fn closing_waits_for_what_was_given_and_lets_the_next_one_in_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = options(&folder).open().await.unwrap();
    let kv = store.kv();
    let (one, two) = tokio::join!(kv.write(any("a", b"1")), async { store.close().await });
    two.unwrap();
    assert_eq!(kv.get(b"a").await.unwrap_err().kind(), StorageErrorKind::Unavailable);
    assert_eq!(kv.write(any("a", b"2")).await.unwrap_err().kind(), StorageErrorKind::Unavailable);
    let again = open(&options(&folder));
    assert_eq!(again.get(b"a").await.unwrap().is_some(), one.is_ok());
    assert!(one.is_ok());
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_store_of_a_newer_program_is_refused_at_open() {
    let folder = tempfile::tempdir().unwrap();
    let kv = open(&options(&folder));
    kv.shared
        .read(|db| db.insert(value::FORMAT_KEY, &(FORMAT + 1).to_be_bytes()).map_err(|error| foreign(&kv.shared.path, error)))
        .unwrap();
    drop(kv);
    assert_eq!(SledKv::open(&options(&folder)).unwrap_err().kind(), StorageErrorKind::NewerSchema);
}

#[tokio::test]
async fn a_store_with_newer_keys_is_refused_at_open() {
    let folder = tempfile::tempdir().unwrap();
    let kv = open(&options(&folder));
    kv.write(any("!layout", br#"{"schema":1,"row":{"layout":99}}"#)).await.unwrap();
    drop(kv);
    let refused = options(&folder).open().await.unwrap_err();
    assert_eq!(refused.kind(), StorageErrorKind::NewerSchema);
    assert!(refused.to_string().contains("layout 99"), "{refused}");
}

/// What a store with 100 rows of 500 bytes says after 512 zero bytes were written into one of its files at `at`.
async fn damage(file: &str, part: f64, truncate: bool) -> &'static str {
    let folder = tempfile::tempdir().unwrap();
    let kv = open(&options(&folder));
    let value = |n: u32| n.to_be_bytes().repeat(125);
    for n in 0..100_u32 {
        kv.write(any(&format!("{n:04}"), &value(n))).await.unwrap();
    }
    drop(kv);
    let path = std::fs::read_dir(folder.path().join("store/sled")).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        path.file_name().unwrap().to_str().unwrap().starts_with(file).then_some(path)
    });
    let Some(path) = path else { return "no such file" };
    let mut bytes = std::fs::read(&path).unwrap();
    let at = (bytes.len() as f64 * part) as usize;
    if truncate {
        bytes.truncate(at);
    } else {
        let end = bytes.len().min(at + 512);
        bytes[at..end].fill(0);
    }
    std::fs::write(&path, bytes).unwrap();
    let options = options(&folder);
    let opened = tokio::task::spawn_blocking(move || SledKv::open(&options)).await;
    let kv = match opened {
        Err(_) => return "panicked at open",
        Ok(Err(error)) if error.kind() == StorageErrorKind::Corrupt => return "told at open",
        Ok(Err(error)) => panic!("{error}"),
        Ok(Ok(kv)) => kv,
    };
    let mut found = 0;
    for n in 0..100_u32 {
        match kv.get(format!("{n:04}").as_bytes()).await {
            Err(error) if error.kind() == StorageErrorKind::Corrupt => return "told at a read",
            Err(error) => panic!("{error}"),
            Ok(None) => {}
            Ok(Some(row)) => {
                assert_eq!(&*row.value, &value(n)[..]);
                found += 1;
            }
        }
    }
    if found == 100 { "all there" } else { "LOST" }
}

#[tokio::test]
async fn damage_is_told_and_no_row_is_lost_in_silence() {
    for (file, part, truncate) in
        [("db", 0.0, false), ("db", 0.5, false), ("db", 0.9, false), ("db", 0.3, true), ("db", 0.95, true), ("conf", 0.5, false)]
    {
        let what = damage(file, part, truncate).await;
        assert!(what.contains("at "), "{file} at {part}, truncated {truncate}: {what}");
    }
}

/// Has the ledger say something else than it did.
fn say(folder: &tempfile::TempDir, entry: Entry) {
    let path = folder.path().join("store");
    Ledger::open(&path, Ledger::look(&path).unwrap(), 0).unwrap().write(entry).unwrap();
}

/// Writes over a file, or empties it.
fn overwrite(path: &Path, empty: bool) {
    let length = std::fs::metadata(path).unwrap().len() as usize;
    std::fs::write(path, if empty { vec![] } else { vec![0; length] }).unwrap();
}

/// B-36: who writes over database and ledger alike leaves no store that looks empty.
#[tokio::test]
async fn a_store_that_was_written_over_as_a_whole_is_damaged_and_not_empty() {
    for empty in [false, true] {
        for durability in [Durability::Power, Durability::Process] {
            for with_ledger in [false, true] {
                let folder = tempfile::tempdir().unwrap();
                let options = || options(&folder).durability(durability);
                let kv = open(&options());
                kv.write(any("a", b"1")).await.unwrap();
                drop(kv);
                overwrite(&folder.path().join("store/sled/db"), empty);
                if with_ledger {
                    overwrite(&folder.path().join("store/groups"), empty);
                }
                let open_again = options();
                let opened = tokio::task::spawn_blocking(move || SledKv::open(&open_again)).await;
                let told =
                    opened.is_err() || opened.is_ok_and(|opened| opened.is_err_and(|error| error.kind() == StorageErrorKind::Corrupt));
                assert!(told, "empty {empty}, {durability:?}, ledger {with_ledger}");
            }
        }
    }
}

/// B-37: a last write that was cut off at any place is told or gone, never half there, and what is written next is whole.
#[tokio::test]
async fn a_torn_last_write_is_told_and_the_next_ones_load() {
    let whole = tempfile::tempdir().unwrap();
    let kv = open(&options(&whole));
    for n in 0..3_u8 {
        kv.write(any(&format!("{n}"), &[n; 300])).await.unwrap();
    }
    drop(kv);
    let db = std::fs::read(whole.path().join("store/sled/db")).unwrap();
    let end = db.iter().rposition(|byte| *byte != 0).unwrap();
    for cut in (end.saturating_sub(400)..=end).step_by(23) {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        for part in ["", "sled", "sled/blobs", "blobs"] {
            std::fs::create_dir_all(store.join(part)).unwrap();
            for entry in std::fs::read_dir(whole.path().join("store").join(part)).into_iter().flatten().map(Result::unwrap) {
                if entry.path().is_file() {
                    std::fs::copy(entry.path(), store.join(part).join(entry.file_name())).unwrap();
                }
            }
        }
        let mut torn = db.clone();
        torn[cut..].fill(0);
        std::fs::write(store.join("sled/db"), &torn).unwrap();
        let told = match SledKv::open(&options(&folder)) {
            Ok(kv) => {
                for n in 0..3_u8 {
                    assert_eq!(&*kv.get(&[b'0' + n]).await.unwrap().unwrap().value, &[n; 300], "cut at {cut}");
                }
                false
            }
            Err(error) => error.kind() == StorageErrorKind::Corrupt,
        };
        let kv = open(&options(&folder).accept_loss(told));
        for n in 3..5_u8 {
            kv.write(any(&format!("{n}"), &[n; 300])).await.unwrap();
        }
        drop(kv);
        let kv = open(&options(&folder));
        for n in 3..5_u8 {
            assert_eq!(&*kv.get(&[b'0' + n]).await.unwrap().unwrap().value, &[n; 300], "cut at {cut}");
        }
    }
}

/// B-115: the file of a dead process is in nobody's way; of eight that come at once, one gets in, again and again.
#[tokio::test]
async fn a_lock_of_a_dead_process_holds_nobody_up_and_one_of_eight_gets_in() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(&options(&folder)));
    // As a killed process leaves it; the number is that of a process that lives.
    std::fs::write(folder.path().join("store/lock.json"), br#"{"pid":1,"process":"init"}"#).unwrap();
    for _ in 0..3 {
        let tries: Vec<_> = (0..8)
            .map(|_| {
                let options = options(&folder);
                std::thread::spawn(move || SledKv::open(&options))
            })
            .collect();
        // Those that got in are kept until all have tried.
        let opened: Vec<_> = tries.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(opened.iter().filter(|opened| opened.is_ok()).count(), 1);
        assert!(opened.iter().flat_map(|opened| opened.as_ref().err()).all(|error| error.kind() == StorageErrorKind::Locked));
    }
}

#[tokio::test]
async fn a_store_that_lost_writes_opens_only_when_the_loss_is_accepted_and_is_whole_again_then() {
    let folder = tempfile::tempdir().unwrap();
    let kv = open(&options(&folder));
    kv.write(any("a", b"1")).await.unwrap();
    drop(kv);
    say(&folder, Entry { groups: 9, synced: true });
    let refused = SledKv::open(&options(&folder)).unwrap_err();
    assert_eq!(refused.kind(), StorageErrorKind::Corrupt);
    assert!(refused.to_string().contains("the last 8 of 9 groups"), "{refused}");
    assert_eq!(options(&folder).compact().await.unwrap_err().kind(), StorageErrorKind::Corrupt);
    let kv = open(&options(&folder).accept_loss(true));
    assert_eq!(&*kv.get(b"a").await.unwrap().unwrap().value, b"1");
    drop(kv);
    open(&options(&folder));
}

#[tokio::test]
async fn what_only_process_durability_may_lose_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(&options(&folder)));
    say(&folder, Entry { groups: 9, synced: false });
    open(&options(&folder));
}

#[tokio::test]
async fn compacting_keeps_rows_and_versions_and_drops_what_nothing_refers_to() {
    let folder = tempfile::tempdir().unwrap();
    let kv = open(&options(&folder).durability(Durability::Process));
    let large = vec![9; INLINE + 1];
    for n in 0..40_u8 {
        for _ in 0..20 {
            kv.write(any(&format!("{n}"), &vec![n; 10_000])).await.unwrap();
        }
    }
    kv.write(any("large", &large)).await.unwrap();
    drop(kv);
    std::fs::write(folder.path().join("store/blobs/part-7"), b"left by a dead process").unwrap();
    let report = options(&folder).compact().await.unwrap();
    assert_eq!((report.rows, report.files_removed), (41, 1));
    assert!(report.after < report.before, "{report:?}");
    let kv = open(&options(&folder));
    assert_eq!(kv.get(b"3").await.unwrap().unwrap(), Versioned { version: 20, value: Arc::from(vec![3; 10_000]) });
    assert_eq!(&*kv.get(b"large").await.unwrap().unwrap().value, &large[..]);
    kv.write(vec![write("large", Expect::Version(1), None)]).await.unwrap();
    assert_eq!(files(&folder, "blobs"), 0, "the count of users came along");
}

/// sled writes its settings and their checksum one after the other, and refuses what a kill between the two leaves.
#[tokio::test]
async fn a_process_that_dies_while_it_makes_the_store_leaves_one_that_opens() {
    let whole = tempfile::tempdir().unwrap();
    drop(open_sled(whole.path(), 1 << 20).unwrap());
    let settings = std::fs::read(whole.path().join("sled/conf")).unwrap();
    let mut refused = 0;
    for cut in 0..settings.len() {
        let bare = tempfile::tempdir().unwrap();
        std::fs::create_dir(bare.path().join("sled")).unwrap();
        std::fs::write(bare.path().join("sled/conf"), &settings[..cut]).unwrap();
        refused += usize::from(std::panic::catch_unwind(|| open_sled(bare.path(), 1 << 20)).map_or(true, |opened| opened.is_err()));

        let folder = tempfile::tempdir().unwrap();
        let half = compact::workshop(&folder.path().join("store")).join("sled");
        std::fs::create_dir_all(&half).unwrap();
        std::fs::write(half.join("conf"), &settings[..cut]).unwrap();
        let kv = open(&options(&folder).durability(Durability::Process));
        kv.write(any("a", b"1")).await.unwrap();
        drop(kv);
        assert!(open(&options(&folder)).get(b"a").await.unwrap().is_some(), "cut at {cut}");
    }
    assert!(refused > 0, "sled opens whatever is left: building beside is of no use any more");
}

#[tokio::test]
async fn a_database_that_is_gone_while_the_ledger_knows_of_writes_is_a_loss_and_no_new_store() {
    let folder = tempfile::tempdir().unwrap();
    let kv = open(&options(&folder).durability(Durability::Process));
    kv.write(any("a", b"1")).await.unwrap();
    drop(kv);
    std::fs::remove_dir_all(folder.path().join("store/sled")).unwrap();
    for _ in 0..2 {
        assert_eq!(SledKv::open(&options(&folder)).unwrap_err().kind(), StorageErrorKind::Corrupt);
    }
}

#[tokio::test]
async fn a_process_that_dies_while_compacting_leaves_the_old_store_or_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let kv = open(&options(&folder));
    kv.write(any("a", b"1")).await.unwrap();
    drop(kv);
    // Before the new database has its name.
    std::fs::create_dir_all(path.join("compacting/sled")).unwrap();
    std::fs::rename(path.join("sled"), path.join("sled.old")).unwrap();
    let kv = open(&options(&folder));
    assert_eq!(&*kv.get(b"a").await.unwrap().unwrap().value, b"1");
    drop(kv);
    // After.
    std::fs::create_dir_all(path.join("sled.old")).unwrap();
    let kv = open(&options(&folder));
    assert_eq!(&*kv.get(b"a").await.unwrap().unwrap().value, b"1");
    assert!(!path.join("sled.old").exists() && !path.join("compacting").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_and_fifty_six_writers_at_once_all_get_their_answer() {
    let folder = tempfile::tempdir().unwrap();
    let kv = Arc::new(open(&options(&folder)));
    let writers: Vec<_> = (0..256)
        .map(|n| {
            let kv = Arc::clone(&kv);
            tokio::spawn(async move {
                for round in 0..20_u64 {
                    let expect = if round == 0 { Expect::Absent } else { Expect::Version(round) };
                    kv.write(vec![write(&format!("w{n}"), expect, Some(vec![0; 200]))]).await.unwrap();
                }
            })
        })
        .collect();
    let all = async {
        for writer in writers {
            writer.await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(30), all).await.unwrap();
    let rows = kv.scan(Scan { prefix: b"w".to_vec(), limit: 1000, ..Scan::default() }).await.unwrap();
    assert_eq!((rows.len(), rows.iter().all(|(_, row)| row.version == 20)), (256, true));
}

#[tokio::test]
async fn one_of_many_that_want_the_same_row_wins() {
    let folder = tempfile::tempdir().unwrap();
    let kv = open(&options(&folder));
    let wanted = (0..50).map(|n| kv.write(vec![write("a", Expect::Absent, Some(vec![n]))]));
    let outcomes = futures_join(wanted).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert!(outcomes.iter().all(|outcome| outcome.as_ref().err().is_none_or(|error| error.kind() == StorageErrorKind::Conflict)));
}

/// All at once, so that they meet in one group.
async fn futures_join<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(move |cx| {
        for (future, output) in &mut futures {
            if output.is_none()
                && let std::task::Poll::Ready(ready) = future.as_mut().poll(cx)
            {
                *output = Some(ready);
            }
        }
        if futures.iter().all(|(_, output)| output.is_some()) {
            return std::task::Poll::Ready(futures.drain(..).filter_map(|(_, output)| output).collect());
        }
        std::task::Poll::Pending
    })
    .await
}
