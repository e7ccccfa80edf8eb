//! Folders that a file system was given, and which of them a path belongs to.

use std::{
    io,
    path::{Component, Path, PathBuf},
};

use cap_fs_ext::OpenOptionsSyncExt;
use cap_std::{
    ambient_authority,
    fs::{Dir, File, OpenOptions},
};

use super::mount;
use crate::{WorkspaceError, WorkspaceErrorKind as Kind};

/// A folder that was given.
#[derive(Debug)]
pub(super) struct Root {
    /// Absolute, without links.
    pub(super) path: PathBuf,
    /// As it was named, absolute.
    named: PathBuf,
    pub(super) dir: Dir,
    pub(super) mount: u64,
    pub(super) writable: bool,
}

impl Root {
    pub(super) fn open(folder: &Path, writable: bool) -> Result<Self, WorkspaceError> {
        let fail = |error| WorkspaceError::from_io(folder, error);
        let named = std::path::absolute(folder).map_err(fail)?;
        let path = folder.canonicalize().map_err(fail)?;
        let dir = Dir::open_ambient_dir(&path, ambient_authority()).map_err(fail)?;
        let mount = mount::id(&dir).map_err(fail)?;
        Ok(Self { path, named, dir, mount, writable })
    }
}

/// A path and the root it is resolved in.
#[derive(Debug)]
pub(super) struct Located<'a> {
    pub(super) root: &'a Root,
    /// Relative to the root, `.` for itself. May hold `..`: the kernel decides where that leads.
    pub(super) rel: PathBuf,
}

impl Located<'_> {
    /// How a path below this root is named: relative in the first root, absolute in the others.
    pub(super) fn shown(&self, roots: &[Root], rel: &Path) -> PathBuf {
        match roots.first() {
            Some(first) if std::ptr::eq(first, self.root) => rel.to_owned(),
            _ => self.root.path.join(rel),
        }
    }

    pub(super) fn writable(&self, path: &Path) -> Result<(), WorkspaceError> {
        if self.root.writable {
            return Ok(());
        }
        Err(WorkspaceError::new(Kind::ReadOnly, format!("`{}` may be read but not changed", path.display())))
    }

    /// The open folder of the last part of the path, and that part.
    pub(super) fn split(&self, path: &Path) -> Result<(PathBuf, std::ffi::OsString), WorkspaceError> {
        match (self.rel.parent(), self.rel.components().next_back()) {
            (Some(parent), Some(Component::Normal(name))) => {
                let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
                Ok((parent.to_owned(), name.to_owned()))
            }
            _ => Err(WorkspaceError::new(Kind::Denied, format!("`{}` does not name something in the workspace folder", path.display()))),
        }
    }
}

/// Finds the root of a path. Only names are compared here; what lies behind them is checked when it is opened.
pub(super) fn locate<'a>(roots: &'a [Root], path: &Path) -> Result<Located<'a>, WorkspaceError> {
    let invalid = |why: &str| WorkspaceError::new(Kind::Invalid, format!("`{}` is not a usable path: {why}", path.display()));
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(invalid("it holds a NUL byte"));
    }
    if path.as_os_str().is_empty() {
        return Err(invalid("it is empty; the workspace folder itself is `.`"));
    }
    let (root, rel) = if path.has_root() {
        roots
            .iter()
            .flat_map(|root| [&root.path, &root.named].map(|prefix| (root, prefix)))
            .filter_map(|(root, prefix)| Some((root, path.strip_prefix(prefix).ok()?)))
            .min_by_key(|(_, rel)| rel.components().count())
            .ok_or_else(|| WorkspaceError::escape(path))?
    } else {
        (roots.first().ok_or_else(|| WorkspaceError::escape(path))?, path)
    };
    let mut clean: PathBuf = rel.components().filter(|part| !matches!(part, Component::CurDir)).collect();
    if clean.as_os_str().is_empty() {
        clean.push(".");
    }
    Ok(Located { root, rel: clean })
}

/// Opens a regular file to read it, links followed inside of the folder. Never waits for the other end of a pipe and touches no device.
pub(super) fn open_regular(dir: &Dir, rel: &Path, shown: &Path) -> Result<File, WorkspaceError> {
    let fail = |error| WorkspaceError::from_io(shown, error);
    let check = |meta: &cap_std::fs::Metadata| {
        if meta.is_file() {
            return Ok(());
        }
        let (kind, what) = if meta.is_dir() { (Kind::IsDirectory, "a folder") } else { (Kind::Special, "no regular file") };
        Err(WorkspaceError::new(kind, format!("`{}` is {what}", shown.display())))
    };
    // Before, so that no device is opened; after, because it may have been swapped meanwhile.
    check(&dir.metadata(rel).map_err(fail)?)?;
    let file = dir.open_with(rel, OpenOptions::new().read(true).nonblock(true)).map_err(fail)?;
    check(&file.metadata().map_err(fail)?)?;
    Ok(file)
}

/// The path with links followed. The part that does not exist yet stays as it is.
pub(super) fn resolve(dir: &Dir, rel: &Path, shown: &Path) -> Result<PathBuf, WorkspaceError> {
    let mut missing = Vec::new();
    let mut known = rel;
    loop {
        let probe = if known.as_os_str().is_empty() { Path::new(".") } else { known };
        match dir.canonicalize(probe) {
            Ok(found) => {
                let found: PathBuf = found.components().filter(|part| !matches!(part, Component::CurDir)).collect();
                let whole: PathBuf = found.iter().chain(missing.iter().rev().copied()).collect();
                return Ok(if whole.as_os_str().is_empty() { PathBuf::from(".") } else { whole });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && dir.symlink_metadata(probe).is_err() => {
                let Some(Component::Normal(name)) = known.components().next_back() else {
                    return Err(WorkspaceError::from_io(shown, error));
                };
                missing.push(name);
                known = known.parent().unwrap_or(Path::new("."));
            }
            Err(error) => return Err(WorkspaceError::from_io(shown, error)),
        }
    }
}
