//! A whole backend that several processes can share: one file and an advisory lock. It reads and writes the file as a whole, so it is for
//! small stores, and an example of how little a backend has to do.

use std::{collections::BTreeMap, fs, io, path::PathBuf};

use ac_storage::{Kv, Scan, StorageError, StorageErrorKind, Versioned, Write};
use async_trait::async_trait;

/// Version and value by key. Each byte is the character of its number: bytes keep their order, and a store of JSON rows can be read by eye.
type Rows = BTreeMap<String, (u64, String)>;

/// A [`Kv`] in this file, which need not be there yet. Its folder must be.
#[derive(Clone, Debug)]
pub struct FileKv(pub PathBuf);

impl FileKv {
    /// Writers replace the file by renaming another, so that readers see one state and need no lock.
    fn read(&self) -> io::Result<Rows> {
        match fs::read(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Rows::new()),
            bytes => Ok(serde_json::from_slice(&bytes?)?),
        }
    }

    fn replace(&self, batch: &[Write]) -> io::Result<bool> {
        let lock = fs::File::create(self.0.with_extension("lock"))?;
        lock.lock()?;
        let mut rows = self.read()?;
        let done = batch.iter().all(|write| write.expect.holds(rows.get(&text(&write.key)).map(|row| row.0)));
        if done {
            for write in batch {
                let version = rows.remove(&text(&write.key)).map_or(1, |row| row.0 + 1);
                rows.extend(write.value.as_ref().map(|value| (text(&write.key), (version, text(value)))));
            }
            let new = self.0.with_extension("new");
            fs::write(&new, serde_json::to_vec(&rows)?)?;
            fs::File::open(&new)?.sync_all()?;
            fs::rename(&new, &self.0)?;
            fs::File::open(self.0.parent().unwrap_or(&self.0))?.sync_all()?;
        }
        Ok(done)
    }
}

#[async_trait]
impl Kv for FileKv {
    async fn get(&self, key: &[u8]) -> Result<Option<Versioned>, StorageError> {
        Ok(self.read().map_err(broken)?.remove(&text(key)).map(|(version, value)| Versioned { version, value: bytes(&value).into() }))
    }

    async fn scan(&self, scan: Scan) -> Result<Vec<(Vec<u8>, Versioned)>, StorageError> {
        let rows = self.read().map_err(broken)?.into_iter();
        let rows = rows.map(|(key, (version, value))| (bytes(&key), Versioned { version, value: bytes(&value).into() }));
        let beyond = |key: &Vec<u8>| scan.after.as_ref().is_none_or(|after| if scan.reverse { key < after } else { key > after });
        let mut rows: Vec<_> = rows.filter(|(key, _)| key.starts_with(&scan.prefix) && beyond(key)).collect();
        rows.sort_by(|a, b| if scan.reverse { b.0.cmp(&a.0) } else { a.0.cmp(&b.0) });
        Ok(rows.into_iter().take(scan.limit).collect())
    }

    async fn write(&self, batch: Vec<Write>) -> Result<(), StorageError> {
        let (this, conflict) = (self.clone(), StorageError::new(StorageErrorKind::Conflict, "somebody else was first"));
        let done = tokio::task::spawn_blocking(move || this.replace(&batch)).await.map_err(io::Error::other).flatten();
        if done.map_err(broken)? { Ok(()) } else { Err(conflict) }
    }
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

fn bytes(text: &str) -> Vec<u8> {
    text.chars().filter_map(|character| u8::try_from(character).ok()).collect()
}

/// Whether the file was replaced before something failed cannot be told.
fn broken(error: io::Error) -> StorageError {
    StorageError::new(StorageErrorKind::Unknown, "the file of the store cannot be read or written").with_source(error)
}
