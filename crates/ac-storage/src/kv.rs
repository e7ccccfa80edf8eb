//! Level 1: three methods that make a complete backend.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{StorageError, memory::range};

/// A key-value store with conditional batches.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use ac_storage::{Kv, KvStorage, MemoryKv, Scan, Storage, StorageError, Versioned, Write};
/// use async_trait::async_trait;
///
/// /// Another backend, and how often it was written to.
/// struct Counted<K>(K, AtomicU64);
///
/// #[async_trait]
/// impl<K: Kv> Kv for Counted<K> {
///     async fn get(&self, key: &[u8]) -> Result<Option<Versioned>, StorageError> {
///         self.0.get(key).await
///     }
///
///     async fn scan(&self, scan: Scan) -> Result<Vec<(Vec<u8>, Versioned)>, StorageError> {
///         self.0.scan(scan).await
///     }
///
///     async fn write(&self, batch: Vec<Write>) -> Result<(), StorageError> {
///         self.1.fetch_add(1, Ordering::Relaxed);
///         self.0.write(batch).await
///     }
/// }
///
/// let store = KvStorage::over(Counted(MemoryKv::default(), AtomicU64::new(0))); // complete; proven by `ac_testkit::kv_conformance!`
/// # let _: &dyn Storage = &store;
/// ```
#[async_trait]
pub trait Kv: Send + Sync + 'static {
    /// What is stored under `key`.
    ///
    /// # Errors
    /// [`Unavailable`](crate::StorageErrorKind::Unavailable), [`Corrupt`](crate::StorageErrorKind::Corrupt).
    async fn get(&self, key: &[u8]) -> Result<Option<Versioned>, StorageError>;

    /// The entries that a [`Scan`] names, in its order. An entry that is in the store during the whole scan is in the answer.
    ///
    /// # Errors
    /// As [`Kv::get`].
    async fn scan(&self, scan: Scan) -> Result<Vec<(Vec<u8>, Versioned)>, StorageError>;

    /// Does all writes of the batch, or none. Durable when it returns. No key stands twice in a batch.
    ///
    /// # Errors
    /// [`Conflict`](crate::StorageErrorKind::Conflict) when an expectation does not hold: nothing was written.
    /// [`Unknown`](crate::StorageErrorKind::Unknown) when it cannot be told whether the batch was written.
    /// [`Full`](crate::StorageErrorKind::Full), [`Unavailable`](crate::StorageErrorKind::Unavailable): nothing was written.
    async fn write(&self, batch: Vec<Write>) -> Result<(), StorageError>;
}

/// A value and how often it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// 1 for the first write after the key was absent, one more for each write after that.
    pub version: u64,
    /// The value.
    pub value: Arc<[u8]>,
}

/// Which entries to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Keys that start with this.
    pub prefix: Vec<u8>,
    /// Only keys beyond this one, in the direction of the scan.
    pub after: Option<Vec<u8>>,
    /// At most so many; 0 means none.
    pub limit: usize,
    /// From the greatest key to the least.
    pub reverse: bool,
}

impl Scan {
    /// Whether a key is among those that the scan asks for; `limit` and order aside.
    pub fn covers(&self, key: &[u8]) -> bool {
        let beyond = |after: &Vec<u8>| if self.reverse { key < after.as_slice() } else { key > after.as_slice() };
        key.starts_with(&self.prefix) && self.after.as_ref().is_none_or(beyond)
    }

    /// The answer to the scan, where all rows are in memory.
    pub fn select(&self, rows: &BTreeMap<Vec<u8>, Versioned>) -> Vec<(Vec<u8>, Versioned)> {
        let Some((from, to)) = range(self) else { return Vec::new() };
        let copy = |(key, value): (&Vec<u8>, &Versioned)| (key.clone(), value.clone());
        let found = rows.range::<[u8], _>((from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice)));
        if self.reverse { found.rev().take(self.limit).map(copy).collect() } else { found.take(self.limit).map(copy).collect() }
    }
}

/// One conditional write. A store that keeps a log may keep batches as they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// Where.
    pub key: Vec<u8>,
    /// What must hold.
    pub expect: Expect,
    /// The new value; `None` deletes.
    pub value: Option<Vec<u8>>,
}

/// What must hold for a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// Anything.
    Any,
    /// The key is absent.
    Absent,
    /// The key has this version.
    Version(u64),
}

impl Expect {
    /// Whether it holds for what is stored under the key now.
    ///
    /// # Errors
    /// [`Conflict`](crate::StorageErrorKind::Conflict): what [`Kv::write`] answers where one expectation of a batch does not hold.
    pub fn check(self, now: Option<&Versioned>) -> Result<(), StorageError> {
        let changed = "a row was changed by somebody else; nothing was written";
        let conflict = || StorageError::new(crate::StorageErrorKind::Conflict, changed);
        self.holds(now.map(|row| row.version)).then_some(()).ok_or_else(conflict)
    }

    /// Whether it holds for a key that now has `version`, `None` being absent.
    pub fn holds(self, version: Option<u64>) -> bool {
        match self {
            Self::Any => true,
            Self::Absent => version.is_none(),
            Self::Version(expected) => version == Some(expected),
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<K: Kv + ?Sized> Kv for Arc<K> {
    async fn get(&self, key: &[u8]) -> Result<Option<Versioned>, StorageError> {
        (**self).get(key).await
    }

    async fn scan(&self, scan: Scan) -> Result<Vec<(Vec<u8>, Versioned)>, StorageError> {
        (**self).scan(scan).await
    }

    async fn write(&self, batch: Vec<Write>) -> Result<(), StorageError> {
        (**self).write(batch).await
    }
}
