//! Whether all is there that was acknowledged.
//!
//! Where its file is damaged, sled recovers what stands before the damage and says nothing about the rest. So every group of writes
//! carries its number, and the number of the last group that is on disk stands in a file beside the database. A database that knows fewer
//! groups than the file has lost some.

use std::{
    fs::File,
    io::{self, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use super::{lock, value::GROUPS_KEY};

/// The file.
pub(super) struct Ledger {
    file: File,
}

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Number of the last group.
    pub(super) groups: u64,
    /// Whether it was on disk, rather than with the system, when this was written. Else a power cut may have taken it, as promised.
    pub(super) synced: bool,
}

impl Ledger {
    pub(super) fn open(path: &Path) -> io::Result<(Self, Option<Entry>)> {
        let name = path.join("groups");
        let found = match std::fs::read(&name) {
            Ok(bytes) => read(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let file = File::options().create(true).truncate(false).write(true).open(&name)?;
        lock::sync_folder(path)?;
        Ok((Self { file }, found))
    }

    /// Not synced: after a power cut an older number stands there, which asks for less.
    pub(super) fn write(&mut self, entry: Entry) -> io::Result<()> {
        let [a, b, c, d, e, f, g, h] = entry.groups.to_be_bytes();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&[a, b, c, d, e, f, g, h, u8::from(entry.synced)])
    }
}

fn read(bytes: &[u8]) -> Option<Entry> {
    match bytes.split_first_chunk::<8>()? {
        (groups, [synced]) => Some(Entry { groups: u64::from_be_bytes(*groups), synced: *synced == 1 }),
        _ => None,
    }
}

/// Number of the last group that the database has.
pub(super) fn groups_in(db: &sled::Db) -> Result<u64, sled::Error> {
    let stored = db.get(GROUPS_KEY)?;
    Ok(stored.and_then(|stored| <[u8; 8]>::try_from(&*stored).ok()).map_or(0, u64::from_be_bytes))
}
