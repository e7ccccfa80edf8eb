//! One process per folder, and what there is to say to the second.

use std::{
    fs::{File, TryLockError},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{StorageError, StorageErrorKind};

/// Held as long as the store is open. The system lets go of it when the process ends, however it ends.
pub(super) struct FolderLock {
    _file: File,
    info: PathBuf,
}

/// Who has the store open.
#[derive(Serialize, Deserialize)]
pub(super) struct Holder {
    pid: u32,
    process: String,
}

impl FolderLock {
    pub(super) fn take(path: &Path) -> Result<Self, StorageError> {
        let info = path.join("lock.json");
        let file =
            File::options().create(true).truncate(false).write(true).open(path.join("lock")).map_err(|error| super::failed(path, error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = std::fs::read(&info).ok().and_then(|text| serde_json::from_slice::<Holder>(&text).ok());
                return Err(locked(path, holder.as_ref()));
            }
            Err(TryLockError::Error(error)) => return Err(super::failed(path, error)),
        }
        let holder = Holder { pid: std::process::id(), process: process_name() };
        // Without it a second opener learns less, nothing else.
        let _told = serde_json::to_vec(&holder).map(|text| File::create(&info).and_then(|mut file| file.write_all(&text)));
        Ok(Self { _file: file, info })
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.info);
    }
}

pub(super) fn locked(path: &Path, holder: Option<&Holder>) -> StorageError {
    let path = path.display();
    let who = match holder {
        Some(holder) if holder.pid == std::process::id() => "this process has it open already: share the one store".to_owned(),
        Some(Holder { pid, process }) => format!("the process {process} (pid {pid}) has it open: end that process, or use another folder"),
        None => format!("another process has it open (`lsof {path}/lock` names it): end that process, or use another folder"),
    };
    StorageError::new(StorageErrorKind::Locked, format!("the store at {path} is in use; {who}"))
}

fn process_name() -> String {
    let name = std::env::current_exe().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| "of unknown name".to_owned())
}

/// Conversations are nobody else's business.
pub(super) fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Makes names that were given or taken away in a folder durable.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

/// Bytes that this user may still write; without an answer there is no limit.
pub(super) fn free_space(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}
