use ac_storage::{Expect, Kv, MemoryKv, Scan, StorageError, StorageErrorKind, Versioned, Write};
use async_trait::async_trait;

/// What is wrong with a [`BrokenKv`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KvDefect {
    /// Deletions are forgotten.
    KeepsDeleted,
    /// The version is always 1.
    CountsNothing,
    /// A key that was deleted goes on with its old version.
    RemembersVersions,
    /// Expectations are not looked at.
    ExpectsNothing,
    /// Only the first expectation of a batch is looked at.
    ExpectsOnce,
    /// What stands before the write that conflicts is done.
    Tears,
    /// Keys are taken for text.
    FoldsKeys,
    /// What is long is cut off.
    CutsValues,
    /// A scan always goes forwards.
    ScansForwards,
    /// A scan sees all keys that follow its prefix.
    ScansOn,
    /// A scan repeats the key that it should begin beyond.
    ScansAgain,
    /// A scan gives one entry more than asked for.
    ScansTooFar,
    /// Conflicts are answered as if the write had been done.
    HidesConflicts,
}

impl KvDefect {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::KeepsDeleted,
        Self::CountsNothing,
        Self::RemembersVersions,
        Self::ExpectsNothing,
        Self::ExpectsOnce,
        Self::Tears,
        Self::FoldsKeys,
        Self::CutsValues,
        Self::ScansForwards,
        Self::ScansOn,
        Self::ScansAgain,
        Self::ScansTooFar,
        Self::HidesConflicts,
    ];
}

/// A backend with one defect, over a sound one in memory.
#[derive(Debug)]
pub struct BrokenKv {
    sound: MemoryKv,
    defect: KvDefect,
}

impl BrokenKv {
    /// An empty backend with this defect.
    pub fn new(defect: KvDefect) -> Self {
        Self { sound: MemoryKv::default(), defect }
    }

    fn is(&self, defect: KvDefect) -> bool {
        self.defect == defect
    }

    fn key(&self, key: &[u8]) -> Vec<u8> {
        if self.is(KvDefect::FoldsKeys) { String::from_utf8_lossy(key).into_owned().into_bytes() } else { key.to_vec() }
    }

    fn shown(&self, mut found: Versioned) -> Option<Versioned> {
        if self.is(KvDefect::CountsNothing) {
            found.version = 1;
        }
        // A deleted row that is remembered has an empty value behind a mark.
        if self.is(KvDefect::RemembersVersions) && *found.value == *GONE {
            return None;
        }
        Some(found)
    }
}

const GONE: &[u8] = b"\0gone";

#[async_trait]
impl Kv for BrokenKv {
    async fn get(&self, key: &[u8]) -> Result<Option<Versioned>, StorageError> {
        Ok(self.sound.get(&self.key(key)).await?.and_then(|found| self.shown(found)))
    }

    async fn scan(&self, mut scan: Scan) -> Result<Vec<(Vec<u8>, Versioned)>, StorageError> {
        let asked = scan.clone();
        match self.defect {
            KvDefect::ScansForwards => scan.reverse = false,
            KvDefect::ScansOn => {
                scan.after = scan.after.or_else(|| (!scan.reverse).then(|| scan.prefix.clone()));
                scan.prefix.clear();
            }
            KvDefect::ScansTooFar => scan.limit = scan.limit.saturating_add(1),
            _ => {}
        }
        let mut found = self.sound.scan(scan).await?;
        if let (KvDefect::ScansAgain, Some(after)) = (self.defect, asked.after)
            && after.starts_with(&asked.prefix)
            && let Some(again) = self.sound.get(&after).await?
        {
            found.insert(0, (after, again));
            found.truncate(asked.limit);
        }
        Ok(found.into_iter().filter_map(|(key, found)| Some((key, self.shown(found)?))).collect())
    }

    async fn write(&self, mut batch: Vec<Write>) -> Result<(), StorageError> {
        for (n, write) in batch.iter_mut().enumerate() {
            write.key = self.key(&write.key);
            match self.defect {
                KvDefect::ExpectsNothing => write.expect = Expect::Any,
                KvDefect::ExpectsOnce if n > 0 => write.expect = Expect::Any,
                KvDefect::RemembersVersions if write.value.is_none() => write.value = Some(GONE.to_vec()),
                KvDefect::RemembersVersions if write.expect == Expect::Absent => {
                    if let Some(row) = self.sound.get(&write.key).await? {
                        let gone = *row.value == *GONE;
                        write.expect = if gone { Expect::Version(row.version) } else { Expect::Absent };
                    }
                }
                KvDefect::CutsValues => write.value = write.value.take().map(|value| value.into_iter().take(65_535).collect()),
                _ => {}
            }
        }
        match self.defect {
            KvDefect::KeepsDeleted => batch.retain(|write| write.value.is_some()),
            KvDefect::Tears => {
                for write in batch {
                    self.sound.write(vec![write]).await?;
                }
                return Ok(());
            }
            _ => {}
        }
        match self.sound.write(batch).await {
            Err(error) if error.kind() == StorageErrorKind::Conflict && self.is(KvDefect::HidesConflicts) => Ok(()),
            done => done,
        }
    }
}
