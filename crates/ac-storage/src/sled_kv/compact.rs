//! A new database without the room that the old one never gave back.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use super::{
    SledOptions,
    blobs::Blobs,
    blocking, create, damaged, failed, foreign, ledger, lock,
    lock::FolderLock,
    open_sled,
    value::{self, Row},
};
use crate::StorageError;

/// What compacting did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactReport {
    /// Bytes on disk before.
    pub before: u64,
    /// Bytes on disk after.
    pub after: u64,
    /// Rows that were kept: all of them.
    pub rows: u64,
    /// Files that no row referred to.
    pub files_removed: u64,
}

impl SledOptions {
    /// Rewrites the store into a new database, which gives room back to the disk, and drops files that no row refers to. Nobody may have
    /// the store open. Needs about as much room again as the rows take. A process that dies over it leaves the store as it was, or done.
    ///
    /// # Errors
    /// As [`SledOptions::open`].
    pub async fn compact(self) -> Result<CompactReport, StorageError> {
        let path = self.path.clone();
        blocking(move || compact(&self)).await.unwrap_or_else(|| Err(damaged(&path)))
    }
}

fn compact(options: &SledOptions) -> Result<CompactReport, StorageError> {
    let path = &options.path;
    let io = |error| failed(path, error);
    let from_sled = |error| foreign(path, error);
    lock::create_folder(path).map_err(io)?;
    let _lock = FolderLock::take(path)?;
    create::prepare(path, options.cache_bytes)?;
    let before = size(path).map_err(io)?;
    let old = open_sled(path, options.cache_bytes)?;
    let blobs = Blobs::open(&path.join("blobs")).map_err(io)?;
    super::check_whole(options, &old, &blobs)?;

    // Built inside a folder of its own, so that `open_sled` finds it under the name it always has.
    let workshop = workshop(path);
    lock::create_folder(&workshop).map_err(io)?;
    let new = open_sled(&workshop, options.cache_bytes)?;
    let mut counts: BTreeMap<_, u64> = BTreeMap::new();
    let (mut batch, mut bytes, mut rows) = (sled::Batch::default(), 0, 0);
    for entry in old.scan_prefix(b"k") {
        let (key, stored) = entry.map_err(from_sled)?;
        if let Some(blob) = Row::decode(&stored).ok_or_else(|| damaged(path))?.blob() {
            *counts.entry(blob).or_default() += 1;
        }
        rows += 1;
        bytes += key.len() + stored.len();
        batch.insert(key, stored);
        if bytes > 1024 * 1024 {
            new.apply_batch(std::mem::take(&mut batch)).map_err(from_sled)?;
            bytes = 0;
        }
    }
    for (blob, count) in &counts {
        batch.insert(value::count_key(blob), &count.to_be_bytes());
    }
    batch.insert(value::GROUPS_KEY, &ledger::groups_in(&old).map_err(from_sled)?.to_be_bytes());
    new.apply_batch(batch).map_err(from_sled)?;
    super::mark_format(path, &new)?;
    new.flush().map_err(from_sled)?;
    drop((old, new));
    sync_all(&workshop.join("sled")).map_err(io)?;

    let (current, aside) = (path.join("sled"), path.join("sled.old"));
    std::fs::rename(&current, &aside).map_err(io)?;
    std::fs::rename(workshop.join("sled"), &current).map_err(io)?;
    lock::sync_folder(path).map_err(io)?;
    finish_or_undo(path).map_err(io)?;
    let names: std::collections::BTreeSet<_> = counts.keys().map(value::BlobRef::file_name).collect();
    let files_removed = blobs.retain(|name| names.contains(name)).map_err(io)?;
    Ok(CompactReport { before, after: size(path).map_err(io)?, rows, files_removed })
}

/// Where a database is built before it gets its name.
pub(super) fn workshop(path: &Path) -> PathBuf {
    path.join("compacting")
}

/// Clears up after a process that died while it compacted, or made the first database: the old database counts until the new one has its name.
pub(super) fn finish_or_undo(path: &Path) -> io::Result<()> {
    let (current, aside, workshop) = (path.join("sled"), path.join("sled.old"), workshop(path));
    if aside.exists() {
        if current.exists() { std::fs::remove_dir_all(&aside)? } else { std::fs::rename(&aside, &current)? }
    }
    if workshop.exists() {
        std::fs::remove_dir_all(&workshop)?;
    }
    Ok(())
}

pub(super) fn sync_all(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { sync_all(&path)? } else { std::fs::File::open(path)?.sync_all()? }
    }
    lock::sync_folder(folder)
}

fn size(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let data = entry.metadata()?;
        bytes += if data.is_dir() { size(&entry.path())? } else { on_disk(&data) };
    }
    Ok(bytes)
}

/// Files with holes take less than their length.
fn on_disk(data: &std::fs::Metadata) -> u64 {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::blocks(data).saturating_mul(512);
    #[cfg(not(unix))]
    return data.len();
}
