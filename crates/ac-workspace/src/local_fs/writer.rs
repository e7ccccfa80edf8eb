//! Changes: each one happens whole or not at all.

use std::{
    ffi::{OsStr, OsString},
    hash::{BuildHasher, Hasher, RandomState},
    io::{self, Write},
    path::{Component, Path},
    sync::{Mutex, PoisonError},
};

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, File, Metadata, OpenOptions, Permissions};

use super::{
    Inner, read_all,
    root::{self, Located},
};
use crate::{Expect, FileVersion, WorkspaceError, WorkspaceErrorKind as Kind};

/// One write at a time in this process: between the check of a version and the rename nobody of us changes the file.
static WRITING: Mutex<()> = Mutex::new(());

impl Inner {
    pub(super) fn write(&self, path: &Path, bytes: &[u8], expect: Expect) -> Result<FileVersion, WorkspaceError> {
        let at = self.locate(path)?;
        at.writable(path)?;
        if bytes.len() as u64 > self.options.max_write {
            let limit = self.options.max_write;
            return Err(WorkspaceError::new(Kind::TooLarge, format!("{} bytes are more than the limit of {limit}", bytes.len())));
        }
        let at = self.through_link(at, path)?;
        let (dir, name) = self.parent(&at, path, true)?;
        let fail = |error| WorkspaceError::from_io(path, error);
        let old = match dir.symlink_metadata(&name) {
            Ok(meta) if meta.is_file() => Some(meta),
            Ok(meta) if meta.is_dir() => return Err(WorkspaceError::new(Kind::IsDirectory, format!("`{}` is a folder", path.display()))),
            Ok(_) => return Err(WorkspaceError::new(Kind::Special, format!("`{}` is no regular file", path.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(fail(error)),
        };
        if old.is_some() {
            // Also refuses a file that is itself a mount.
            self.same_mount(&at, path, &root::open_regular(&dir, Path::new(&name), path)?)?;
        }
        let temporary = Temporary::create(&dir, bytes, old.as_ref()).map_err(fail)?;
        let _one = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        self.check(&dir, &name, path, expect)?;
        match expect {
            Expect::Absent => temporary.publish_new(&name),
            Expect::Anything | Expect::Version(_) => temporary.publish(&name),
        }
        .map_err(fail)?;
        Ok(FileVersion::of(bytes))
    }

    fn check(&self, dir: &Dir, name: &OsStr, path: &Path, expect: Expect) -> Result<(), WorkspaceError> {
        let Expect::Version(expected) = expect else { return Ok(()) };
        let found = root::open_regular(dir, Path::new(name), path).and_then(|file| read_all(file, path, u64::MAX - 1));
        match found {
            Ok(bytes) if FileVersion::of(&bytes) == expected => Ok(()),
            Ok(_) => Err(stale(path, "changed")),
            Err(error) if error.kind() == Kind::NotFound => Err(stale(path, "was removed")),
            Err(error) => Err(error),
        }
    }

    /// An existing link is written through, so that it stays a link; it must lead to something inside.
    fn through_link<'a>(&self, at: Located<'a>, path: &Path) -> Result<Located<'a>, WorkspaceError> {
        match at.root.dir.symlink_metadata(&at.rel) {
            Ok(meta) if meta.is_symlink() => {
                let rel = at.root.dir.canonicalize(&at.rel).map_err(|error| match error.kind() {
                    io::ErrorKind::NotFound => {
                        WorkspaceError::new(Kind::Escape, format!("`{}` is a link to something that does not exist", path.display()))
                    }
                    _ => WorkspaceError::from_io(path, error),
                })?;
                Ok(Located { root: at.root, rel })
            }
            _ => Ok(at),
        }
    }

    /// The open folder that holds the last part of the path.
    fn parent(&self, at: &Located<'_>, path: &Path, create: bool) -> Result<(Dir, OsString), WorkspaceError> {
        let (parent, name) = at.split(path)?;
        match self.open_dir(at, &parent, path) {
            Err(error) if create && error.kind() == Kind::NotFound => {
                self.create_dirs(at, &parent, path)?;
                Ok((self.open_dir(at, &parent, path)?, name))
            }
            other => Ok((other?, name)),
        }
    }

    /// Like `create_dir_all`, but nothing is created on the far side of a mount.
    fn create_dirs(&self, at: &Located<'_>, rel: &Path, path: &Path) -> Result<(), WorkspaceError> {
        let mut there = rel;
        while let Some(up) = there.parent() {
            let probe = if up.as_os_str().is_empty() { Path::new(".") } else { up };
            there = up;
            match self.open_dir(at, probe, path) {
                Ok(_) => break,
                Err(error) if error.kind() == Kind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        // What is refused changes nothing: a way back out of a folder that does not exist would leave that folder behind.
        if rel.strip_prefix(there).unwrap_or(rel).components().any(|part| part == Component::ParentDir) {
            let message =
                format!("`{}` goes back with `..` out of a folder that does not exist; write the path without it", path.display());
            return Err(WorkspaceError::new(Kind::NotFound, message));
        }
        at.root.dir.create_dir_all(rel).map_err(|error| WorkspaceError::from_io(path, error))
    }

    pub(super) fn make_dir(&self, path: &Path) -> Result<(), WorkspaceError> {
        let at = self.locate(path)?;
        at.writable(path)?;
        match self.open_dir(&at, &at.rel, path) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == Kind::NotFound => {
                at.split(path)?;
                self.create_dirs(&at, &at.rel, path)?;
                self.open_dir(&at, &at.rel, path).map(drop)
            }
            Err(error) if error.kind() == Kind::NotDirectory && at.root.dir.symlink_metadata(&at.rel).is_ok() => {
                Err(WorkspaceError::new(Kind::Exists, format!("`{}` exists and is not a folder", path.display())))
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn remove(&self, path: &Path, recursive: bool) -> Result<(), WorkspaceError> {
        let at = self.locate(path)?;
        at.writable(path)?;
        let (dir, name) = self.parent(&at, path, false)?;
        let fail = |error| WorkspaceError::from_io(path, error);
        let meta = dir.symlink_metadata(&name).map_err(fail)?;
        let _one = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        if !meta.is_dir() {
            return dir.remove_file(&name).map_err(fail);
        }
        if recursive { self.remove_tree(&at, &dir, &name, path) } else { dir.remove_dir(&name).map_err(fail) }
    }

    /// Depth first, on open folders, never through a link, never into a mount.
    fn remove_tree(&self, at: &Located<'_>, dir: &Dir, name: &OsStr, path: &Path) -> Result<(), WorkspaceError> {
        let fail = |error| WorkspaceError::from_io(path, error);
        let mut open = vec![(dir.open_dir_nofollow(name).map_err(fail)?, name.to_owned())];
        self.same_mount(at, path, open.last().map(|(dir, _)| dir).unwrap_or(dir))?;
        while let Some((current, _)) = open.last() {
            let mut deeper = None;
            for entry in current.entries().map_err(fail)? {
                let entry = entry.map_err(fail)?;
                let name = entry.file_name();
                if entry.file_type().map_err(fail)?.is_dir() {
                    let next = current.open_dir_nofollow(&name).map_err(fail)?;
                    self.same_mount(at, path, &next)?;
                    deeper = Some((next, name));
                    break;
                }
                current.remove_file(&name).map_err(fail)?;
            }
            match deeper {
                Some(_) if open.len() >= 512 => {
                    return Err(WorkspaceError::new(Kind::Invalid, format!("`{}` holds folders nested too deeply", path.display())));
                }
                Some(next) => open.push(next),
                None => {
                    if let Some((_, name)) = open.pop() {
                        open.last().map_or(dir, |(dir, _)| dir).remove_dir(&name).map_err(fail)?;
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn rename(&self, from: &Path, to: &Path) -> Result<(), WorkspaceError> {
        let (source, target) = (self.locate(from)?, self.locate(to)?);
        source.writable(from)?;
        target.writable(to)?;
        let (from_dir, from_name) = self.parent(&source, from, false)?;
        from_dir.symlink_metadata(&from_name).map_err(|error| WorkspaceError::from_io(from, error))?;
        let (to_dir, to_name) = self.parent(&target, to, true)?;
        let _one = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        rename_new(&from_dir, &from_name, &to_dir, &to_name).map_err(|error| match error.kind() {
            io::ErrorKind::CrossesDevices => {
                WorkspaceError::new(Kind::Unsupported, "the two places are on different file systems; write a copy and delete the old one")
                    .with_source(error)
            }
            io::ErrorKind::InvalidInput => {
                WorkspaceError::new(Kind::Invalid, format!("`{}` cannot be moved into itself", from.display())).with_source(error)
            }
            _ => WorkspaceError::from_io(to, error),
        })
    }
}

fn stale(path: &Path, what: &str) -> WorkspaceError {
    WorkspaceError::new(Kind::Stale, format!("`{}` {what} since it was read; read it again, then repeat the change", path.display()))
}

/// Renames without replacing.
fn rename_new(from: &Dir, name: &OsStr, to: &Dir, new: &OsStr) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    {
        use rustix::{fs::RenameFlags, io::Errno};
        match rustix::fs::renameat_with(from, name, to, new, RenameFlags::NOREPLACE) {
            // A file system without this flag.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if to.symlink_metadata(new).is_err() => {}
            other => return Ok(other?),
        }
    }
    if to.symlink_metadata(new).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    from.rename(name, to, new)
}

/// A file stays its owner's where the host may see to that: as root it may, and within its own groups.
#[cfg(unix)]
fn keep_owner(file: &File, old: &Metadata) {
    use cap_std::fs::MetadataExt;
    use rustix::fs::{Gid, Uid, fchown};
    let Ok(new) = file.metadata() else { return };
    let owner = (new.uid() != old.uid()).then(|| Uid::from_raw(old.uid()));
    let group = (new.gid() != old.gid()).then(|| Gid::from_raw(old.gid()));
    // One at a time: the group may be given to it where the owner may not.
    for (owner, group) in [(None, group), (owner, None)] {
        if owner.is_some() || group.is_some() {
            let _may_not = fchown(file, owner, group);
        }
    }
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &Metadata) {}

/// Who may do what with a file. That it runs with its owner's rights was said of what was in it before.
fn modes(old: &Metadata) -> Permissions {
    #[allow(unused_mut, reason = "only where there are modes")]
    let mut permissions = old.permissions();
    #[cfg(unix)]
    {
        use cap_std::fs::PermissionsExt;
        permissions.set_mode(permissions.mode() & 0o777);
    }
    permissions
}

/// A complete new file beside the old one. Removed unless it is published.
struct Temporary<'a> {
    dir: &'a Dir,
    name: String,
    done: bool,
}

impl<'a> Temporary<'a> {
    /// `old` is the file that it takes the place of: it stays its owner's, and as it may be used.
    fn create(dir: &'a Dir, bytes: &[u8], old: Option<&Metadata>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).follow(FollowSymlinks::No);
        // Until then nobody else reads what few may read.
        #[cfg(unix)]
        if old.is_some() {
            use cap_std::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        for _ in 0..16 {
            let name = format!(".{:016x}.tmp", RandomState::new().build_hasher().finish());
            let mut file = match dir.open_with(&name, &options) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                other => other?,
            };
            let temporary = Self { dir, name, done: false };
            file.write_all(bytes)?;
            if let Some(old) = old {
                keep_owner(&file, old);
                file.set_permissions(modes(old))?;
            }
            file.sync_data()?;
            return Ok(temporary);
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn publish(mut self, name: &OsStr) -> io::Result<()> {
        self.dir.rename(&self.name, self.dir, name)?;
        self.done = true;
        Ok(())
    }

    fn publish_new(mut self, name: &OsStr) -> io::Result<()> {
        rename_new(self.dir, self.name.as_ref(), self.dir, name)?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.dir.remove_file(&self.name).ok();
        }
    }
}
