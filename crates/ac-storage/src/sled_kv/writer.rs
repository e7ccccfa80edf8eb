//! The one thread that writes.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs::File,
    io,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::sync::{mpsc, oneshot};

use super::{
    Durability, INLINE, LARGEST, LONGEST_KEY, Shared,
    blobs::Blobs,
    damaged, foreign,
    ledger::{Entry, Ledger},
    value::{self, BlobRef, Body, Row},
};
use crate::{Expect, StorageError, StorageErrorKind, Write};

/// Jobs and bytes per group.
const GROUP_JOBS: usize = 512;
const GROUP_BYTES: usize = 4 * 1024 * 1024;

/// A write of the batch, with its value where it belongs.
pub(super) struct Change {
    key: Vec<u8>,
    expect: Expect,
    value: Option<Value>,
}

struct Value {
    bytes: Vec<u8>,
    /// Set when the bytes belong into a file.
    file: Option<BlobRef>,
}

impl Change {
    pub(super) fn new(Write { key, expect, value }: Write) -> Result<Self, StorageError> {
        let too_large = |what: &str, limit: usize| {
            let message = format!("a {what} of more than {limit} bytes is not stored; nothing was written");
            Err(StorageError::new(StorageErrorKind::TooLarge, message))
        };
        if key.len() > LONGEST_KEY {
            return too_large("key", LONGEST_KEY);
        }
        let value = match value {
            Some(bytes) if bytes.len() > LARGEST => return too_large("row", LARGEST),
            Some(bytes) => Some(Value { file: (bytes.len() > INLINE).then(|| BlobRef::of(&bytes)), bytes }),
            None => None,
        };
        Ok(Self { key: value::key(&key), expect, value })
    }

    pub(super) fn has_file(&self) -> bool {
        self.file().is_some()
    }

    pub(super) fn store_file(&self, blobs: &Blobs) -> io::Result<()> {
        match &self.value {
            Some(Value { bytes, file: Some(blob) }) => blobs.store(blob, bytes),
            _ => Ok(()),
        }
    }

    fn file(&self) -> Option<BlobRef> {
        self.value.as_ref().and_then(|value| value.file)
    }

    fn size(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, |value| value.bytes.len())
    }
}

/// A batch that waits, and who waits for it.
pub(super) struct Job {
    pub(super) changes: Vec<Change>,
    pub(super) done: oneshot::Sender<Result<(), StorageError>>,
}

/// What the thread owns.
pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    pub(super) db: sled::Db,
    pub(super) blobs: Blobs,
    /// sled's file, for `fdatasync`.
    pub(super) file: File,
    pub(super) durability: Durability,
    pub(super) ledger: Ledger,
    /// Number of the last group.
    pub(super) groups: u64,
    pub(super) keep_free: u64,
    pub(super) free_space: fn(&Path) -> u64,
}

/// So many writes in a group are many.
const CROWD: usize = 4;
/// How long a group waits for as many writes as came with the one before it.
const GATHER: Duration = Duration::from_micros(200);

/// What the group has done so far, over what is stored.
#[derive(Default)]
struct Overlay {
    /// Version and file of rows; `None` is absent.
    rows: HashMap<Vec<u8>, Option<(u64, Option<BlobRef>)>>,
    /// How many rows refer to a file.
    counts: BTreeMap<BlobRef, u64>,
    batch: sled::Batch,
}

impl Writer {
    pub(super) fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut before = 1;
        while let Some(first) = jobs.blocking_recv() {
            // One flush is for all that is there. Where many write, it pays to let them come; who writes alone is never kept waiting.
            if before >= CROWD && jobs.len() + 1 < before {
                std::thread::sleep(GATHER);
            }
            let mut bytes: usize = first.changes.iter().map(Change::size).sum();
            let mut group = vec![first];
            while group.len() < GROUP_JOBS
                && bytes < GROUP_BYTES
                && let Ok(job) = jobs.try_recv()
            {
                bytes += job.changes.iter().map(Change::size).sum::<usize>();
                group.push(job);
            }
            before = group.len();
            self.write(group, bytes);
        }
        self.end();
    }

    /// Leaves the store synced, whatever its durability is.
    fn end(&mut self) {
        if self.shared.check().is_ok() && self.db.flush().is_ok() && self.file.sync_data().is_ok() {
            let _less_is_checked = self.ledger.write(Entry { groups: self.groups, synced: true });
        }
    }

    fn write(&mut self, group: Vec<Job>, bytes: usize) {
        let free = (self.free_space)(&self.shared.path);
        let reserve = self.keep_free.saturating_add(bytes as u64);
        let mut overlay = Overlay::default();
        let mut outcomes = Vec::with_capacity(group.len());
        let mut refused = Vec::new();
        for Job { changes, done } in group {
            let only_deletes = changes.iter().all(|change| change.value.is_none());
            let needed = if only_deletes { self.keep_free / 4 } else { reserve };
            let files: Vec<_> = changes.iter().filter_map(Change::file).collect();
            let outcome = if free < needed { Err(self.full()) } else { self.add(changes, &mut overlay) };
            if outcome.is_err() {
                refused.extend(files);
            }
            outcomes.push((done, outcome));
        }
        let mut unused: BTreeSet<_> = overlay.counts.iter().filter(|(_, count)| **count == 0).map(|(blob, _)| *blob).collect();
        // The caller of a refused job stored its files already.
        unused.extend(refused.into_iter().filter(|blob| self.count(blob, &overlay).is_ok_and(|count| count == 0)));
        let flushed = if outcomes.iter().any(|(_, outcome)| outcome.is_ok()) { self.flush(overlay) } else { Ok(()) };
        if flushed.is_ok() {
            unused.iter().for_each(|blob| self.blobs.remove(blob));
        }
        // Refusals wait for the flush too: a conflict may be with a write of the same group, which must not become known before it is kept.
        for (done, outcome) in outcomes {
            let answer = match (&flushed, outcome) {
                (Err(kind), Ok(())) => Err(StorageError::new(*kind, "the disk failed while the batch was written; open the store again")),
                (_, outcome) => outcome,
            };
            let _caller_left = done.send(answer);
        }
    }

    /// Adds a job to the group, whole or not at all.
    fn add(&self, changes: Vec<Change>, overlay: &mut Overlay) -> Result<(), StorageError> {
        self.shared.check()?;
        let mut before = Vec::with_capacity(changes.len());
        for change in &changes {
            let row = self.row(&change.key, overlay)?;
            if !change.expect.holds(row.map(|(version, _)| version)) {
                return Err(StorageError::new(StorageErrorKind::Conflict, "a row was changed by somebody else; nothing was written"));
            }
            before.push(row);
        }
        // The last user of a file may have gone, and the file with it, after the caller stored it.
        for change in &changes {
            if let Some(Value { file: Some(blob), .. }) = &change.value
                && !self.blobs.path(blob).exists()
            {
                change.store_file(&self.blobs).map_err(|error| super::failed(&self.shared.path, error))?;
            }
        }
        let mut counts = BTreeMap::new();
        for (change, row) in changes.iter().zip(&before) {
            let old = row.and_then(|(_, file)| file);
            for (blob, difference) in change.file().map(|blob| (blob, 1)).into_iter().chain(old.map(|blob| (blob, -1))) {
                *counts.entry(blob).or_insert(0_i64) += difference;
            }
        }
        let counts: Vec<_> = counts
            .into_iter()
            .map(|(blob, difference)| Ok((blob, self.count(&blob, overlay)?.saturating_add_signed(difference))))
            .collect::<Result<_, StorageError>>()?;
        // From here on nothing fails: a job is in the group as a whole or not at all.
        for (blob, count) in counts {
            overlay.counts.insert(blob, count);
            let key = value::count_key(&blob);
            if count == 0 { overlay.batch.remove(key) } else { overlay.batch.insert(key, &count.to_be_bytes()) }
        }
        for (Change { key, value, .. }, row) in changes.into_iter().zip(before) {
            let version = row.map_or(0, |(version, _)| version) + 1;
            match value {
                None => overlay.batch.remove(key.as_slice()),
                Some(Value { ref bytes, file }) => {
                    let body = file.map_or(Body::Inline(bytes), Body::File);
                    overlay.batch.insert(key.as_slice(), Row { version, body }.encode());
                }
            }
            overlay.rows.insert(key, value.map(|value| (version, value.file)));
        }
        Ok(())
    }

    fn row(&self, key: &[u8], overlay: &Overlay) -> Result<Option<(u64, Option<BlobRef>)>, StorageError> {
        if let Some(row) = overlay.rows.get(key) {
            return Ok(*row);
        }
        let Some(stored) = self.db.get(key).map_err(|error| foreign(&self.shared.path, error))? else { return Ok(None) };
        let row = Row::decode(&stored).ok_or_else(|| damaged(&self.shared.path))?;
        Ok(Some((row.version, row.blob())))
    }

    fn count(&self, blob: &BlobRef, overlay: &Overlay) -> Result<u64, StorageError> {
        if let Some(count) = overlay.counts.get(blob) {
            return Ok(*count);
        }
        let Some(stored) = self.db.get(value::count_key(blob)).map_err(|error| foreign(&self.shared.path, error))? else { return Ok(0) };
        <[u8; 8]>::try_from(&*stored).map(u64::from_be_bytes).map_err(|_| damaged(&self.shared.path))
    }

    /// On an error nobody can tell what is on disk, so the store stops before anybody hears of it.
    fn flush(&mut self, mut overlay: Overlay) -> Result<(), StorageErrorKind> {
        self.groups += 1;
        overlay.batch.insert(value::GROUPS_KEY, &self.groups.to_be_bytes());
        let synced = self.durability == Durability::Power;
        let written = self.db.apply_batch(overlay.batch).and_then(|()| self.db.flush()).is_ok()
            && (!synced || self.file.sync_data().is_ok())
            && self.ledger.write(Entry { groups: self.groups, synced }).is_ok();
        if written {
            return Ok(());
        }
        self.shared.broken.store(true, Ordering::Release);
        Err(StorageErrorKind::Unknown)
    }

    fn full(&self) -> StorageError {
        StorageError::new(
            StorageErrorKind::Full,
            format!(
                "the disk of the store at {} has no room for this and the {} bytes that are to stay free; nothing was written and nothing \
                 is lost: make room, then try again",
                self.shared.path.display(),
                self.keep_free
            ),
        )
    }
}
