//! Large values: files named by their content.

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{lock, value::BlobRef};

/// The folder of files.
#[derive(Clone)]
pub(super) struct Blobs {
    folder: Arc<Path>,
    /// For names of files under way.
    next: Arc<AtomicU64>,
}

impl Blobs {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        lock::create_folder(folder)?;
        Ok(Self { folder: folder.into(), next: Arc::default() })
    }

    pub(super) fn path(&self, blob: &BlobRef) -> PathBuf {
        self.folder.join(blob.file_name())
    }

    /// Makes sure that the file is there and on disk, name and all.
    pub(super) fn store(&self, blob: &BlobRef, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(blob);
        if !path.exists() {
            let part = self.folder.join(format!("part-{}", self.next.fetch_add(1, Ordering::Relaxed)));
            let written = File::create(&part).and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()
            });
            if let Err(error) = written.and_then(|()| std::fs::rename(&part, &path)) {
                let _gone = std::fs::remove_file(&part);
                return Err(error);
            }
        }
        lock::sync_folder(&self.folder)
    }

    /// What is in the file; `None` when there is none.
    pub(super) fn read(&self, blob: &BlobRef) -> io::Result<Option<Vec<u8>>> {
        match std::fs::read(self.path(blob)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether there is any.
    pub(super) fn any(&self) -> io::Result<bool> {
        let mut names = std::fs::read_dir(&*self.folder)?.map(|entry| entry.map(|entry| entry.file_name()));
        names.try_fold(false, |any, name| Ok(any || !name?.to_string_lossy().starts_with("part-")))
    }

    /// A file that stays behind only takes room, until the store is compacted.
    pub(super) fn remove(&self, blob: &BlobRef) {
        let _gone = std::fs::remove_file(self.path(blob));
    }

    /// Removes every file that `keep` does not name. Returns how many.
    pub(super) fn retain(&self, keep: impl Fn(&str) -> bool) -> io::Result<u64> {
        let mut removed = 0;
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            if !entry.file_name().to_str().is_some_and(&keep) {
                std::fs::remove_file(entry.path())?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}
