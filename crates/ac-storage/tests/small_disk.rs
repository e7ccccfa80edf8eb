//! A disk that is really full: `AC_SMALL_DISK=/mnt/tiny cargo test -p ac-storage --features sled --test small_disk`, where the folder is a
//! file system of 64 MiB or so (`mount -t tmpfs -o size=64m none /mnt/tiny`). Skipped without it.
#![cfg(feature = "sled")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::path::{Path, PathBuf};

use ac_storage::{Expect, Kv as _, SledOptions, StorageErrorKind, Write};

fn disk(name: &str) -> Option<PathBuf> {
    let Ok(disk) = std::env::var("AC_SMALL_DISK") else {
        println!("skipped: AC_SMALL_DISK names no small file system");
        return None;
    };
    let path = Path::new(&disk).join(name);
    let _old = std::fs::remove_dir_all(&path);
    Some(path)
}

fn row(n: u32, size: usize) -> Write {
    Write { key: n.to_be_bytes().to_vec(), expect: Expect::Any, value: Some(n.to_be_bytes().repeat(size / 4)) }
}

/// Writes until something fails. Returns how many rows were acknowledged, and how it ended.
async fn fill(options: &SledOptions, size: usize) -> (u32, StorageErrorKind) {
    let store = options.clone().open().await.unwrap();
    for n in 0.. {
        if let Err(error) = store.kv().write(vec![row(n, size)]).await {
            println!("after {n} rows of {size} bytes: {error}");
            let again = store.kv().write(vec![row(n, size)]).await.unwrap_err();
            println!("once more: {again}");
            return (n, error.kind());
        }
    }
    unreachable!("a disk has an end")
}

async fn check(options: &SledOptions, count: u32, size: usize) {
    let store = options.clone().open().await.unwrap();
    for n in 0..count {
        let found = store.kv().get(&n.to_be_bytes()).await.unwrap();
        let found = found.unwrap_or_else(|| panic!("row {n} of {count} was acknowledged and is gone"));
        assert_eq!(&*found.value, &row(n, size).value.unwrap()[..]);
    }
    store.kv().write(vec![row(count, size)]).await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn the_reserve_keeps_the_store_working() {
    let Some(path) = disk("reserve") else { return };
    for size in [2000, 100_000] {
        let options = SledOptions::new(&path).keep_free(24 * 1024 * 1024);
        let (count, kind) = fill(&options, size).await;
        assert_eq!(kind, StorageErrorKind::Full);
        assert!(count > 10);
        check(&options.keep_free(4 * 1024 * 1024), count, size).await;
        std::fs::remove_dir_all(&path).unwrap();
    }
}

#[tokio::test]
async fn without_a_reserve_the_store_stops_and_what_was_acknowledged_is_there_when_there_is_room() {
    let Some(path) = disk("no reserve") else { return };
    let ballast = path.with_extension("ballast");
    for size in [2000, 100_000] {
        std::fs::write(&ballast, vec![0; 20 * 1024 * 1024]).unwrap();
        let options = SledOptions::new(&path).keep_free(0);
        let (count, kind) = fill(&options, size).await;
        assert!(matches!(kind, StorageErrorKind::Full | StorageErrorKind::Unknown), "{kind:?}");
        std::fs::remove_file(&ballast).unwrap();
        check(&options, count, size).await;
        std::fs::remove_dir_all(&path).unwrap();
    }
}
