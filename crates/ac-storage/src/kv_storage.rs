//! A complete [`Storage`] over the three methods of a [`Kv`].
//!
//! Keys are made in `keys`, the form of rows in `row`. What every method keeps to: a change is one conditional batch, so a process
//! may die anywhere; what has no upper bound (deleting a thread, copying one) is many batches of bounded size in an order that leaves
//! no visible half, and can be begun again.

mod copies;
mod large;
mod messages;
mod runs;
mod sessions;
mod state;
mod threads;

use std::sync::Arc;

use ac_core::ThreadId;
use serde::{Deserialize, Serialize};

use crate::{
    Expect, Kv, MessageStore, RunStore, Scan, SessionStore, StateStore, Storage, StorageError, StorageErrorKind, Stored, ThreadStore,
    Versioned, Write, keys,
    row::{self, HeadRow, Mark, Row},
};

/// How often an operation is tried again after somebody else was first, where that is harmless.
const TRIES: usize = 16;
/// Rows per scan and per batch of work without an upper bound.
const CHUNK: usize = 256;

/// Implements all domain stores over a [`Kv`].
#[derive(Clone, Debug)]
pub struct KvStorage<K> {
    kv: K,
    name: Arc<str>,
}

/// The row under [`keys::layout`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Layout {
    layout: u32,
}

impl Row for Layout {
    const KIND: &'static str = "layout";
}

impl<K: Kv> KvStorage<K> {
    /// A store over `kv`, which is taken to be empty or of this program's making; [`KvStorage::connect`] checks that.
    pub fn over(kv: K) -> Self {
        Self { kv, name: "the store".into() }
    }

    /// What error messages call the store.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// A store over `kv`, after a look at what is in it: marks an empty one with the number of its layout, refuses one of a newer program,
    /// and finishes deletions of threads that a dying process left half done.
    ///
    /// # Errors
    /// [`NewerSchema`](StorageErrorKind::NewerSchema), [`Corrupt`](StorageErrorKind::Corrupt), or when the store does not answer.
    pub async fn connect(kv: K, name: impl Into<Arc<str>>) -> Result<Self, StorageError> {
        let store = Self::over(kv).named(name);
        store.check_layout().await?;
        store.finish_deletions().await?;
        Ok(store)
    }

    /// What error messages call the store.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is below.
    pub fn kv(&self) -> &K {
        &self.kv
    }

    async fn check_layout(&self) -> Result<(), StorageError> {
        for _ in 0..TRIES {
            if let Some(found) = self.read::<Layout>(&keys::layout()).await? {
                let layout = found.value.layout;
                if layout > keys::LAYOUT {
                    return Err(StorageError::new(
                        StorageErrorKind::NewerSchema,
                        format!(
                            "{} has layout {layout}, this program knows {}; nothing was changed: use the program that wrote it, or newer",
                            self.name,
                            keys::LAYOUT
                        ),
                    ));
                }
                if layout < keys::LAYOUT {
                    self.upgrade(layout).await?;
                    let next = self.put::<Layout>(keys::layout(), Expect::Version(found.version), &Layout { layout: keys::LAYOUT })?;
                    match self.kv.write(vec![next]).await {
                        Err(error) if error.kind() == StorageErrorKind::Conflict => continue,
                        done => done?,
                    }
                }
                return Ok(());
            }
            let first = self.put::<Layout>(keys::layout(), Expect::Absent, &Layout { layout: keys::LAYOUT })?;
            match self.kv.write(vec![first]).await {
                Err(error) if error.kind() == StorageErrorKind::Conflict => {}
                done => return done,
            }
        }
        Err(self.contended("layout"))
    }

    /// Adds what rows of an older layout lack: of the first one, the lists of open runs by session. May be done twice.
    pub(crate) async fn upgrade(&self, from: u32) -> Result<(), StorageError> {
        if from >= 2 {
            return Ok(());
        }
        let mut last = None;
        loop {
            let rows = self.chunk(&keys::open_runs(), last).await?;
            let Some((key, _)) = rows.last() else { return Ok(()) };
            last = Some(key.clone());
            let entries = rows.iter().map(|(_, stored)| {
                let header: crate::RunHeader = self.decode(stored)?;
                self.mark(keys::open_run_of(&header.session_id(), &header.run))
            });
            self.kv.write(entries.collect::<Result<_, _>>()?).await?;
        }
    }

    /// A row.
    async fn read<R: Row>(&self, key: &[u8]) -> Result<Option<Stored<R>>, StorageError> {
        match self.kv.get(key).await? {
            None => Ok(None),
            Some(stored) => Ok(Some(Stored { version: stored.version, value: self.decode(&stored)? })),
        }
    }

    fn decode<R: Row>(&self, stored: &Versioned) -> Result<R, StorageError> {
        row::decode(&self.name, stored)
    }

    /// Up to [`CHUNK`] rows with this prefix.
    async fn chunk(&self, prefix: &[u8], after: Option<Vec<u8>>) -> Result<Vec<(Vec<u8>, Versioned)>, StorageError> {
        self.kv.scan(Scan { prefix: prefix.to_vec(), after, limit: CHUNK, reverse: false }).await
    }

    #[expect(clippy::unused_self, reason = "reads as the counterpart of `read`")]
    fn put<R: Row>(&self, key: Vec<u8>, expect: Expect, row: &(impl Serialize + ?Sized)) -> Result<Write, StorageError> {
        Ok(Write { key, expect, value: Some(row::encode::<R>(row)?) })
    }

    fn mark(&self, key: Vec<u8>) -> Result<Write, StorageError> {
        self.put::<Mark>(key, Expect::Any, &Mark {})
    }

    async fn read_head(&self, thread: &ThreadId) -> Result<Option<Stored<HeadRow>>, StorageError> {
        self.read(&keys::head(thread)).await
    }

    /// The head of a thread that can be written to.
    async fn live_head(&self, thread: &ThreadId) -> Result<Stored<HeadRow>, StorageError> {
        match self.read_head(thread).await? {
            None => Err(self.no_thread()),
            Some(head) if head.value.head.deleted => Err(self.deleted()),
            Some(head) => Ok(head),
        }
    }

    /// The writes that put `new` in the place of `old`, with its entry in the resource's list.
    fn put_head(&self, thread: &ThreadId, old: &Stored<HeadRow>, new: &HeadRow) -> Result<Vec<Write>, StorageError> {
        let entry = |row: &HeadRow| {
            let resource = row.resource.as_ref().filter(|_| !row.head.deleted)?;
            Some(keys::recency(resource, row.head.updated_at, thread, keys::Follows::Head))
        };
        let mut writes = vec![self.put::<HeadRow>(keys::head(thread), Expect::Version(old.version), new)?];
        let (was, is) = (entry(&old.value), entry(new));
        if was != is {
            writes.extend(was.map(remove));
            if let Some(is) = is {
                writes.push(self.mark(is)?);
            }
        }
        Ok(writes)
    }

    fn no_thread(&self) -> StorageError {
        StorageError::new(StorageErrorKind::NotFound, format!("{} has no such thread", self.name))
    }

    fn deleted(&self) -> StorageError {
        StorageError::new(StorageErrorKind::Deleted, "the thread was deleted; nothing can be written to it")
    }

    fn conflict(&self, what: &str) -> StorageError {
        StorageError::new(StorageErrorKind::Conflict, format!("{what}; nothing was written: read again and decide again"))
    }

    fn contended(&self, what: &str) -> StorageError {
        self.conflict(&format!("the {what} row in {} was changed by others {TRIES} times in a row", self.name))
    }
}

fn remove(key: Vec<u8>) -> Write {
    Write { key, expect: Expect::Any, value: None }
}

impl<K: Kv> Storage for KvStorage<K> {
    fn threads(&self) -> &dyn ThreadStore {
        self
    }

    fn messages(&self) -> &dyn MessageStore {
        self
    }

    fn runs(&self) -> &dyn RunStore {
        self
    }

    fn sessions(&self) -> &dyn SessionStore {
        self
    }

    fn state(&self) -> &dyn StateStore {
        self
    }
}
