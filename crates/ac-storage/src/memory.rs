//! The store of tests and of programs that need none: everything is gone with it.

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;

use crate::{Kv, KvStorage, Scan, StorageError, Versioned, Write};

/// A complete store in memory. "Durable" means: until it is dropped.
///
/// ```
/// use std::sync::Arc;
///
/// use ac_storage::{KvStorage, MemoryKv, MemoryStorage};
///
/// let alone = MemoryStorage::new();
/// // Two stores over the same rows, as two processes would have them.
/// let rows = Arc::new(MemoryKv::default());
/// let (one, two) = (KvStorage::over(rows.clone()), KvStorage::over(rows));
/// # drop((alone, one, two));
/// ```
pub type MemoryStorage = KvStorage<MemoryKv>;

impl KvStorage<MemoryKv> {
    /// An empty store.
    pub fn new() -> Self {
        Self::over(MemoryKv::default()).named("the memory store")
    }
}

impl Default for KvStorage<MemoryKv> {
    fn default() -> Self {
        Self::new()
    }
}

/// A [`Kv`] in memory. Share it in an [`Arc`] to give several stores the same rows, as several processes would have them.
#[derive(Default)]
pub struct MemoryKv {
    rows: Mutex<BTreeMap<Vec<u8>, Versioned>>,
}

impl MemoryKv {
    fn with<T>(&self, f: impl FnOnce(&mut BTreeMap<Vec<u8>, Versioned>) -> T) -> T {
        f(&mut self.rows.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Debug for MemoryKv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryKv").field("rows", &self.with(|rows| rows.len())).finish()
    }
}

#[async_trait]
impl Kv for MemoryKv {
    async fn get(&self, key: &[u8]) -> Result<Option<Versioned>, StorageError> {
        Ok(self.with(|rows| rows.get(key).cloned()))
    }

    async fn scan(&self, scan: Scan) -> Result<Vec<(Vec<u8>, Versioned)>, StorageError> {
        Ok(self.with(|rows| scan.select(rows)))
    }

    async fn write(&self, batch: Vec<Write>) -> Result<(), StorageError> {
        self.with(|rows| {
            for write in &batch {
                write.expect.check(rows.get(&write.key))?;
            }
            for Write { key, value, .. } in batch {
                match value {
                    None => {
                        rows.remove(&key);
                    }
                    Some(value) => {
                        let version = rows.get(&key).map_or(0, |row| row.version) + 1;
                        rows.insert(key, Versioned { version, value: Arc::from(value) });
                    }
                }
            }
            Ok(())
        })
    }
}

/// First and last key.
pub(crate) type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The keys that a scan covers; `None` when there can be none.
pub(crate) fn range(scan: &Scan) -> Option<KeyRange> {
    let mut from = Bound::Included(scan.prefix.clone());
    let mut to = successor(&scan.prefix).map_or(Bound::Unbounded, Bound::Excluded);
    if let Some(after) = &scan.after {
        if scan.reverse {
            if *after <= scan.prefix {
                return None;
            }
            if !matches!(&to, Bound::Excluded(end) if end <= after) {
                to = Bound::Excluded(after.clone());
            }
        } else {
            if matches!(&to, Bound::Excluded(end) if end <= after) {
                return None;
            }
            if *after >= scan.prefix {
                from = Bound::Excluded(after.clone());
            }
        }
    }
    Some((from, to))
}

/// The least key that is greater than every key with this prefix.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            return Some(end);
        }
        end.pop();
    }
    None
}

#[cfg(test)]
mod tests;
