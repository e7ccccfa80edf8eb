//! Whether all is there that was acknowledged.
//!
//! Where its file is damaged, sled recovers what stands before the damage and says nothing about the rest. So every group of writes
//! carries its number, and the number of the last group that is on disk stands in a file beside the database. A database that knows fewer
//! groups than the file has lost some. A file that does not read is damage as well: who overwrites both leaves no empty store behind.

use std::{
    fs::File,
    io::{self, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use sha2::{Digest, Sha256};

use super::{lock, value::GROUPS_KEY};

/// The file.
pub(super) struct Ledger {
    file: File,
}

/// What is found of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// There is none: the store is new.
    Nothing,
    /// What it says is not what the store wrote.
    Damaged,
    /// It says this.
    Entry(Entry),
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
    pub(super) fn look(path: &Path) -> io::Result<Found> {
        match std::fs::read(path.join("groups")) {
            Ok(bytes) => Ok(read(&bytes).map_or(Found::Damaged, Found::Entry)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Opens the file. One that is not there, or no longer of use, is made whole or not at all.
    pub(super) fn open(path: &Path, found: Found, groups: u64) -> io::Result<Self> {
        let name = path.join("groups");
        if !matches!(found, Found::Entry(_)) {
            let new = path.join("groups.new");
            let mut file = File::create(&new)?;
            file.write_all(&bytes(Entry { groups, synced: false }))?;
            file.sync_all()?;
            std::fs::rename(&new, &name)?;
            lock::sync_folder(path)?;
        }
        Ok(Self { file: File::options().write(true).open(&name)? })
    }

    /// Not synced: after a power cut an older number stands there, which asks for less.
    pub(super) fn write(&mut self, entry: Entry) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&bytes(entry))
    }
}

/// Number, whether it was synced, and what tells both from anything else that may stand there.
fn bytes(Entry { groups, synced }: Entry) -> Vec<u8> {
    let mut bytes = groups.to_be_bytes().to_vec();
    bytes.push(u8::from(synced));
    let check = Sha256::digest(&bytes);
    bytes.extend(check.iter().take(8));
    bytes
}

fn read(stored: &[u8]) -> Option<Entry> {
    let (groups, rest) = stored.split_first_chunk::<8>()?;
    let entry = Entry { groups: u64::from_be_bytes(*groups), synced: *rest.first()? == 1 };
    (*stored == bytes(entry)).then_some(entry)
}

/// Number of the last group that the database has.
pub(super) fn groups_in(db: &sled::Db) -> Result<u64, sled::Error> {
    let stored = db.get(GROUPS_KEY)?;
    Ok(stored.and_then(|stored| <[u8; 8]>::try_from(&*stored).ok()).map_or(0, u64::from_be_bytes))
}
