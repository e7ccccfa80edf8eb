//! A new database, with whole settings or none.

use std::path::Path;

use super::{compact, failed, lock, open_sled};
use crate::StorageError;

/// Clears up after a process that died, and begins the database if there is none.
///
/// sled writes its settings and their checksum one after the other, and refuses a database whose settings were cut short. A process that
/// dies between the two would leave a store that nobody can open, so they are written beside and get their name when they are complete.
pub(super) fn prepare(path: &Path, cache_bytes: u64) -> Result<(), StorageError> {
    let io = |error| failed(path, error);
    compact::finish_or_undo(path).map_err(io)?;
    let current = path.join("sled");
    if current.exists() {
        return Ok(());
    }
    let workshop = compact::workshop(path);
    lock::create_folder(&workshop).map_err(io)?;
    drop(open_sled(&workshop, cache_bytes)?);
    // All the rest sled makes anew, and mends what a kill leaves of it. Opened again, the database would be filled up to a whole segment.
    for entry in std::fs::read_dir(workshop.join("sled")).map_err(io)? {
        let entry = entry.map_err(io)?;
        let is_folder = entry.file_type().map_err(io)?.is_dir();
        match entry.file_name().to_str() {
            Some("conf") => {}
            _ if is_folder => std::fs::remove_dir_all(entry.path()).map_err(io)?,
            _ => std::fs::remove_file(entry.path()).map_err(io)?,
        }
    }
    compact::sync_all(&workshop.join("sled")).map_err(io)?;
    std::fs::rename(workshop.join("sled"), &current).map_err(io)?;
    lock::sync_folder(path).map_err(io)?;
    std::fs::remove_dir_all(&workshop).map_err(io)
}

/// Opens the database, with [`prepare`] before.
pub(super) fn open(path: &Path, cache_bytes: u64) -> Result<sled::Db, StorageError> {
    prepare(path, cache_bytes)?;
    open_sled(path, cache_bytes)
}
