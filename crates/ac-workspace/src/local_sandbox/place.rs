//! The folder that a sandbox makes for itself: logs of commands, and their temporary files.
//!
//! It goes with the sandbox. A host that was killed leaves its folder behind; the next host of the same user finds and removes it.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Once,
};

use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

const PREFIX: &str = "ac-commands-";
/// Locked by the process that made the folder, for as long as it lives.
const OWNER: &str = "owner";

#[derive(Debug)]
pub(super) struct Place {
    // Removed before the lock is let go, so nobody else removes it at the same time.
    folder: TempDir,
    _owner: File,
}

impl Place {
    /// Makes it in the system's folder for temporary files. The first one of a process removes what others left behind there.
    pub(super) fn make() -> io::Result<Self> {
        static CLEARED: Once = Once::new();
        let temp = std::env::temp_dir();
        CLEARED.call_once(|| clear(&temp));
        Self::make_in(&temp)
    }

    fn make_in(temp: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(temp)?;
        let (fresh, owner) = (folder.path().join("fresh"), folder.path().join(OWNER));
        let file = File::create_new(&fresh)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        // It is locked already when others first see it under its name.
        fs::rename(fresh, owner)?;
        fs::create_dir(folder.path().join("logs"))?;
        fs::create_dir(folder.path().join("files"))?;
        Ok(Self { folder, _owner: file })
    }

    /// For the logs of commands.
    pub(super) fn logs(&self) -> PathBuf {
        self.folder.path().join("logs")
    }

    /// For temporary files of commands, which may change nothing else outside of the workspace.
    pub(super) fn files(&self) -> PathBuf {
        self.folder.path().join("files")
    }
}

/// Removes folders of this user whose owners are gone. Whatever is not certainly one of those stays.
fn clear(temp: &Path) {
    let Ok(entries) = fs::read_dir(temp) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())) {
        if is_abandoned(&entry.path()) {
            // Links in it are removed and not followed. What cannot be removed now is tried again next time.
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

fn is_abandoned(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let mine = |path: &Path, folder: bool| {
        let uid = rustix::process::getuid().as_raw();
        fs::symlink_metadata(path).is_ok_and(|meta| meta.uid() == uid && if folder { meta.is_dir() } else { meta.is_file() })
    };
    let owner = folder.join(OWNER);
    mine(folder, true)
        && mine(&owner, false)
        && File::open(&owner).is_ok_and(|owner| flock(&owner, FlockOperation::NonBlockingLockExclusive).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_host_left_behind_is_removed_and_nothing_else() {
        let temp = TempDir::new().unwrap();
        let alive = Place::make_in(temp.path()).unwrap();
        let Place { folder, _owner: lock } = Place::make_in(temp.path()).unwrap();
        // As after a kill: the folder stays, the lock is gone.
        let abandoned = folder.keep();
        fs::write(abandoned.join("files/left"), "x").unwrap();
        let outside = temp.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        std::os::unix::fs::symlink(&outside, abandoned.join("files/link")).unwrap();
        drop(lock);
        // Others that only look like one.
        let nameless = temp.path().join(format!("{PREFIX}nameless"));
        fs::create_dir(&nameless).unwrap();
        let link = temp.path().join(format!("{PREFIX}link"));
        fs::write(outside.join(OWNER), "").unwrap();
        std::os::unix::fs::symlink(&outside, &link).unwrap();

        clear(temp.path());
        assert!(!abandoned.exists());
        assert!(alive.logs().is_dir() && nameless.is_dir() && link.exists() && outside.join("kept").exists());
        let path = alive.folder.path().to_owned();
        drop(alive);
        assert!(!path.exists());
    }
}
