//! A new database, with whole settings or none.

use std::path::Path;

use super::{compact, failed, lock, open_sled};
use crate::StorageError;

/// Begins the database, if there is none.
///
/// sled writes its settings and their checksum one after the other, and refuses a database whose settings were cut short. A process that
/// dies between the two would leave a store that nobody can open, so they are written beside and get their name when they are complete.
pub(super) fn create_if_new(path: &Path, cache_bytes: u64) -> Result<(), StorageError> {
    let io = |error| failed(path, error);
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
