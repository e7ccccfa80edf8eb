//! The embedded store: one folder, one process, durable on return.
//!
//! sled is used with a discipline that measurement taught. One tree. One writer thread: it drains what waits, checks expectations, applies
//! one batch, flushes once, then answers; so a hundred commits at a time cost one flush, and neither `flush_async` (which can deadlock)
//! nor transactions (which stop every database of the process) are needed. Values above [`INLINE`] are files named by their content,
//! because sled never gives back the room of large values, and because it does not sync the files it would make of them itself.

mod blobs;
mod compact;
mod create;
mod ledger;
mod lock;
mod scan;
mod value;
mod writer;

use std::{
    fmt,
    fs::File,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};

pub use self::compact::CompactReport;
use self::{
    blobs::Blobs,
    ledger::{Found, Ledger},
    lock::FolderLock,
    value::{Body, Row},
    writer::{Change, Job, Writer},
};
use crate::{Kv, KvStorage, Scan, StorageError, StorageErrorKind, Versioned, Write};

/// A complete store in a folder of this machine.
pub type SledStorage = KvStorage<SledKv>;

/// Values up to so many bytes stand in sled itself. A leaf of its tree has at most 18 entries, and a leaf is written as one piece; it must
/// stay below a quarter of `SEGMENT`, above which sled moves it to a file that it never syncs.
pub const INLINE: usize = 64 * 1024;
/// sled's unit of allocation.
const SEGMENT: usize = 8 * 1024 * 1024;
/// The largest value.
const LARGEST: usize = 256 * 1024 * 1024;
/// The longest key.
const LONGEST_KEY: usize = 16 * 1024;
/// So many entries of a scan are read at once, what follows them on a thread for blocking work.
const SHORT_SCAN: usize = 16;
/// Writes that may wait for the writer; more wait for room.
const QUEUE: usize = 4096;
/// Number of the form in which rows stand in sled and in files.
const FORMAT: u32 = 1;

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// The end of the process, however it comes. After a power cut up to half a second of writes may be gone.
    Process,
    /// A power cut too: an `fdatasync` per group of commits.
    #[default]
    Power,
}

/// How to open a [`SledStorage`].
///
/// ```
/// use ac_storage::{Durability, SledOptions, SledStorage, StorageError};
///
/// # async fn run() -> Result<(), StorageError> {
/// let store = SledStorage::open(".agent").await?;
/// store.close().await?;
/// let faster = SledOptions::new(".agent").durability(Durability::Process).open().await?;
/// # drop(faster);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SledOptions {
    path: PathBuf,
    durability: Durability,
    cache_bytes: u64,
    keep_free: u64,
    accept_loss: bool,
    free_space: fn(&Path) -> u64,
}

impl SledOptions {
    /// The store in this folder, which is made if it is not there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            durability: Durability::default(),
            // What is read again within a turn is the end of a thread; the system caches the file anyway.
            cache_bytes: 8 * 1024 * 1024,
            keep_free: 64 * 1024 * 1024,
            accept_loss: false,
            free_space: lock::free_space,
        }
    }

    /// What an acknowledged write survives. The default is [`Durability::Power`].
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Memory for pages that were read or written, in bytes. The default is 8 MiB; a host that lists long threads all day may give more.
    /// The buffer of the log, 8 MiB that come into use as they are written, is not counted.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// So many bytes of the disk stay free: a write that would go below fails with [`Full`](StorageErrorKind::Full) before anything is
    /// touched, and works again when there is room. (Were the disk to fill up in the middle of a write, sled would stop for good, and the
    /// store with it, until it is opened again.) Deletions may use three quarters of it. The default is 64 MiB.
    #[must_use]
    pub fn keep_free(mut self, bytes: u64) -> Self {
        self.keep_free = bytes;
        self
    }

    /// Opens a damaged store with what is left of it, after [`Corrupt`](StorageErrorKind::Corrupt) said that writes are missing. Copy the
    /// folder first.
    #[must_use]
    pub fn accept_loss(mut self, accept: bool) -> Self {
        self.accept_loss = accept;
        self
    }

    /// Opens the store.
    ///
    /// # Errors
    /// [`Locked`](StorageErrorKind::Locked) when it is open already, here or elsewhere; [`NewerSchema`](StorageErrorKind::NewerSchema);
    /// [`Corrupt`](StorageErrorKind::Corrupt): the folder is left as it is, [`set_aside`] moves it away;
    /// [`Unavailable`](StorageErrorKind::Unavailable), [`Full`](StorageErrorKind::Full).
    pub async fn open(self) -> Result<SledStorage, StorageError> {
        let name = format!("the store at {}", self.path.display());
        let path = self.path.clone();
        let kv = blocking(move || SledKv::open(&self)).await.unwrap_or_else(|| Err(damaged(&path)))?;
        KvStorage::connect(kv, name).await
    }
}

impl KvStorage<SledKv> {
    /// Opens the store in this folder with the default options.
    ///
    /// # Errors
    /// As [`SledOptions::open`].
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, StorageError> {
        SledOptions::new(path).open().await
    }

    /// Waits for the writes under way and closes the store, so that it can be opened again at once. Every later call fails with
    /// [`Unavailable`](StorageErrorKind::Unavailable). Dropping the store does the same, without a word about errors.
    ///
    /// # Errors
    /// When the last flush failed; what was acknowledged is not concerned.
    pub async fn close(&self) -> Result<(), StorageError> {
        let shared = Arc::clone(&self.kv().shared);
        blocking(move || shared.close()).await.unwrap_or(Ok(()))
    }
}

/// Moves a store that cannot be opened out of the way: to `<path>.corrupt-<millis of at>`, which is returned. Nothing is deleted.
///
/// # Errors
/// [`Locked`](StorageErrorKind::Locked) while somebody has it open; [`Unavailable`](StorageErrorKind::Unavailable).
pub fn set_aside(path: &Path, at: ac_core::Timestamp) -> Result<PathBuf, StorageError> {
    let lock = FolderLock::take(path)?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".corrupt-{}", at.as_millis()));
    let target = PathBuf::from(name);
    std::fs::rename(path, &target).map_err(|error| failed(path, error))?;
    drop(lock);
    Ok(target)
}

/// [`Kv`] over sled.
pub struct SledKv {
    shared: Arc<Shared>,
}

/// What reads, writes and the writer thread have in common.
pub(crate) struct Shared {
    path: PathBuf,
    /// `None` once closed. Readers hold the read guard while they read, never across an await.
    db: RwLock<Option<sled::Db>>,
    blobs: Blobs,
    /// `None` once closed.
    queue: Mutex<Option<mpsc::Sender<Job>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Set when a flush failed: what is in memory and what is on disk may differ from here on, so nothing more is read or written.
    broken: AtomicBool,
    lock: Mutex<Option<FolderLock>>,
}

impl fmt::Debug for SledKv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SledKv").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

impl Drop for SledKv {
    fn drop(&mut self) {
        let _closed = self.shared.close();
    }
}

impl SledKv {
    fn open(options: &SledOptions) -> Result<Self, StorageError> {
        let path = &options.path;
        lock::create_folder(path).map_err(|error| failed(path, error))?;
        let lock = FolderLock::take(path)?;
        let db = create::open(path, options.cache_bytes)?;
        let blobs = Blobs::open(&path.join("blobs")).map_err(|error| failed(path, error))?;
        let (groups, found) = check_whole(options, &db, &blobs)?;
        let ledger = Ledger::open(path, found, groups).map_err(|error| failed(path, error))?;
        let (queue, jobs) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared {
            path: path.clone(),
            db: RwLock::new(Some(db.clone())),
            blobs: blobs.clone(),
            queue: Mutex::new(Some(queue)),
            writer: Mutex::new(None),
            broken: AtomicBool::new(false),
            lock: Mutex::new(Some(lock)),
        });
        let writer = Writer {
            shared: Arc::clone(&shared),
            db,
            blobs,
            file: File::open(path.join("sled").join("db")).map_err(|error| failed(path, error))?,
            durability: options.durability,
            ledger,
            groups,
            keep_free: options.keep_free,
            free_space: options.free_space,
        };
        let thread = std::thread::Builder::new().name("ac-storage writer".into()).spawn(move || writer.run(jobs));
        *shared.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread.map_err(|error| failed(path, error))?);
        Ok(Self { shared })
    }
}

impl Shared {
    /// Runs `f` on the open database.
    fn read<T>(&self, f: impl FnOnce(&sled::Db) -> Result<T, StorageError>) -> Result<T, StorageError> {
        self.check()?;
        let db = self.db.read().unwrap_or_else(PoisonError::into_inner);
        f(db.as_ref().ok_or_else(|| self.closed())?)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Versioned>, StorageError> {
        // A row and its file are replaced one after the other, so a file may be gone because its row is new.
        let mut missing = None;
        loop {
            let Some(stored) = self.read(|db| db.get(key).map_err(|error| foreign(&self.path, error)))? else { return Ok(None) };
            let row = Row::decode(&stored).ok_or_else(|| damaged(&self.path))?;
            match self.resolve(&row)? {
                Some(found) => return Ok(Some(found)),
                None if missing == Some(row.version) => return Err(self.lost_file()),
                None => missing = Some(row.version),
            }
        }
    }

    /// The value of a row; `None` when its file is not there.
    fn resolve(&self, row: &Row<'_>) -> Result<Option<Versioned>, StorageError> {
        let value = match &row.body {
            Body::Inline(bytes) => Arc::from(*bytes),
            Body::File(blob) => match self.blobs.read(blob).map_err(|error| failed(&self.path, error))? {
                None => return Ok(None),
                Some(bytes) if blob.names(&bytes) => Arc::from(bytes),
                Some(_) => return Err(self.lost_file()),
            },
        };
        Ok(Some(Versioned { version: row.version, value }))
    }

    fn check(&self) -> Result<(), StorageError> {
        match self.broken.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(self.stopped()),
        }
    }

    fn close(&self) -> Result<(), StorageError> {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ended = writer.map_or(Ok(()), |writer| writer.join().map_err(|_| damaged(&self.path)));
        let db = self.db.write().unwrap_or_else(PoisonError::into_inner).take();
        let flushed = match db {
            Some(db) if !self.broken.load(Ordering::Acquire) => db.flush().map(drop).map_err(|error| foreign(&self.path, error)),
            _ => Ok(()),
        };
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner).take());
        ended.and(flushed)
    }

    fn closed(&self) -> StorageError {
        StorageError::new(StorageErrorKind::Unavailable, format!("the store at {} was closed; open it again", self.path.display()))
    }

    fn stopped(&self) -> StorageError {
        StorageError::new(
            StorageErrorKind::Unavailable,
            format!(
                "the store at {} stopped after a disk error, so that nothing is promised that is not on disk; what was acknowledged is \
                 safe: see to the disk, then open the store again",
                self.path.display()
            ),
        )
    }

    fn lost_file(&self) -> StorageError {
        StorageError::new(
            StorageErrorKind::Corrupt,
            format!("a file in {} is missing or damaged; restore it from a backup", self.path.join("blobs").display()),
        )
    }
}

#[async_trait]
impl Kv for SledKv {
    async fn get(&self, key: &[u8]) -> Result<Option<Versioned>, StorageError> {
        let key = value::key(key);
        let inline = self.shared.read(|db| {
            let Some(stored) = db.get(&key).map_err(|error| foreign(&self.shared.path, error))? else { return Ok(Some(None)) };
            match Row::decode(&stored).ok_or_else(|| damaged(&self.shared.path))? {
                Row { version, body: Body::Inline(bytes) } => Ok(Some(Some(Versioned { version, value: Arc::from(bytes) }))),
                Row { body: Body::File(_), .. } => Ok(None),
            }
        })?;
        if let Some(found) = inline {
            return Ok(found);
        }
        let shared = Arc::clone(&self.shared);
        blocking(move || shared.get(&key)).await.unwrap_or_else(|| Err(damaged(&self.shared.path)))
    }

    async fn scan(&self, mut scan: Scan) -> Result<Vec<(Vec<u8>, Versioned)>, StorageError> {
        let mut rows = vec![];
        // Most scans end where they begin.
        let short = Scan { limit: scan.limit.min(SHORT_SCAN), ..scan.clone() };
        if let Some(part) = self.shared.scan(&short, false)? {
            rows = part.rows;
            match part.next {
                Some(next) if rows.len() < scan.limit => scan.after = Some(next),
                _ => return Ok(rows),
            }
        }
        let shared = Arc::clone(&self.shared);
        blocking(move || shared.scan_on(scan, rows)).await.unwrap_or_else(|| Err(damaged(&self.shared.path)))
    }

    async fn write(&self, batch: Vec<Write>) -> Result<(), StorageError> {
        self.shared.check()?;
        let queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(|| self.shared.closed())?;
        let changes: Vec<Change> = batch.into_iter().map(Change::new).collect::<Result<_, _>>()?;
        let changes = if changes.iter().any(Change::has_file) {
            // Synced here, by as many threads as there are callers, so that the writer has no more to do than to look that they are there.
            let shared = Arc::clone(&self.shared);
            let stored = blocking(move || {
                changes.iter().try_for_each(|change| change.store_file(&shared.blobs)).map_err(|error| failed(&shared.path, error))?;
                Ok(changes)
            });
            stored.await.unwrap_or_else(|| Err(self.shared.closed()))?
        } else {
            changes
        };
        let (done, outcome) = oneshot::channel();
        queue.send(Job { changes, done }).await.map_err(|_| self.shared.closed())?;
        drop(queue);
        outcome.await.unwrap_or_else(|_| {
            let message = format!("the writer of the store at {} ended before it answered; open it again", self.shared.path.display());
            Err(StorageError::new(StorageErrorKind::Unknown, message))
        })
    }
}

/// Runs `f` where blocking is allowed; `None` when it panicked.
async fn blocking<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(f).await.ok()
}

/// Compares the database with what stands beside it, and marks a new one. Returns the number of the last group, and what the ledger says.
fn check_whole(options: &SledOptions, db: &sled::Db, blobs: &Blobs) -> Result<(u64, Found), StorageError> {
    let path = &options.path;
    let format = read_format(path, db)?;
    let groups = ledger::groups_in(db).map_err(|error| foreign(path, error))?;
    let found = Ledger::look(path).map_err(|error| failed(path, error))?;
    let missing = match found {
        Found::Entry(entry) if (entry.synced && entry.groups > groups) || (entry.groups > 0 && format.is_none()) => {
            Some(format!("the last {} of {} groups of writes are missing", entry.groups - groups, entry.groups))
        }
        Found::Damaged => Some("what says how many writes it has does not read, so nothing tells whether they are all there".to_owned()),
        Found::Nothing if format.is_none() && blobs.any().map_err(|error| failed(path, error))? => {
            Some("it has files of large values, and no row".to_owned())
        }
        _ => None,
    };
    if let Some(missing) = missing.filter(|_| !options.accept_loss) {
        return Err(StorageError::new(
            StorageErrorKind::Corrupt,
            format!("the store at {} is damaged: {missing}; restore a backup, or go on with what is left (`accept_loss`)", path.display()),
        ));
    }
    if format.is_none() {
        mark_format(path, db)?;
    }
    Ok((groups, found))
}

/// sled's own threads may hold its lock for a moment after the last handle is gone. Ours is held here, so nobody else can be in.
fn open_sled(path: &Path, cache_bytes: u64) -> Result<sled::Db, StorageError> {
    let config = sled::Config::new().path(path.join("sled")).cache_capacity(cache_bytes).segment_size(SEGMENT).flush_every_ms(Some(200));
    let mut tries = 0;
    loop {
        match config.open() {
            Ok(db) => return Ok(db),
            Err(sled::Error::Io(error)) if error.to_string().contains("could not acquire lock") => {
                tries += 1;
                if tries > 100 {
                    return Err(lock::locked(path, None));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(foreign(path, error)),
        }
    }
}

fn mark_format(path: &Path, db: &sled::Db) -> Result<(), StorageError> {
    let from_sled = |error| foreign(path, error);
    db.insert(value::FORMAT_KEY, &FORMAT.to_be_bytes()).map_err(from_sled)?;
    db.flush().map_err(from_sled).map(drop)
}

/// The number of the format of the rows; `None` in a new database.
fn read_format(path: &Path, db: &sled::Db) -> Result<Option<u32>, StorageError> {
    let Some(stored) = db.get(value::FORMAT_KEY).map_err(|error| foreign(path, error))? else { return Ok(None) };
    match <[u8; 4]>::try_from(&*stored).map(u32::from_be_bytes) {
        Ok(found) if found <= FORMAT => Ok(Some(found)),
        Ok(found) => Err(StorageError::new(
            StorageErrorKind::NewerSchema,
            format!(
                "the store at {} has format {found}, this program knows {FORMAT}; nothing was changed: use the program that wrote it, or newer",
                path.display()
            ),
        )),
        Err(_) => Err(damaged(path)),
    }
}

fn foreign(path: &Path, error: sled::Error) -> StorageError {
    match error {
        sled::Error::Io(error) => failed(path, error),
        error => damaged(path).with_source(error.to_string()),
    }
}

fn failed(path: &Path, error: std::io::Error) -> StorageError {
    let (kind, advice) = match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => (StorageErrorKind::Full, "make room on the disk"),
        _ => (StorageErrorKind::Unavailable, "see to the folder and the disk"),
    };
    StorageError::new(kind, format!("the store at {} cannot be used: {}; {advice}", path.display(), error.kind())).with_source(error)
}

fn damaged(path: &Path) -> StorageError {
    StorageError::new(
        StorageErrorKind::Corrupt,
        format!(
            "the store at {} is damaged; it was left as it is: move it away (`set_aside`) and restore a backup or import an export",
            path.display()
        ),
    )
}

#[cfg(test)]
mod tests;
