//! Files below folders of this machine.

mod ignores;
mod mount;
mod root;
mod searcher;
mod walker;
mod writer;

use std::{
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use ac_core::CancelToken;
use async_trait::async_trait;
use cap_std::fs::{Dir, File};

use self::root::{Located, Root};
use crate::{
    DirEntry, Expect, FileContent, FileKind, FileStat, FileVersion, Filesystem, SearchQuery, SearchResult, WalkQuery, WalkResult,
    WorkspaceError, WorkspaceErrorKind as Kind,
};

/// What a [`LocalFilesystem`] may do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LocalFilesystemOptions {
    /// Nothing may be changed.
    pub read_only: bool,
    /// Further folders that may be read, named by absolute paths.
    pub readable: Vec<PathBuf>,
    /// Further folders that may be read and changed, named by absolute paths.
    pub writable: Vec<PathBuf>,
    /// The longest file that may be written, in bytes.
    pub max_write: u64,
    /// Whether what is mounted inside of a root belongs to it. A bind mount shows a part of the machine that lies outside, so the default is
    /// no; a container that mounts volumes into its project needs yes.
    pub cross_mounts: bool,
}

impl Default for LocalFilesystemOptions {
    fn default() -> Self {
        Self { read_only: false, readable: Vec::new(), writable: Vec::new(), max_write: 64 << 20, cross_mounts: false }
    }
}

/// Files below one folder of this machine, and below further folders that the host allows.
///
/// Each path is resolved by the kernel relative to the open folder (`openat2` with `RESOLVE_BENEATH` on Linux, step by step without
/// following links elsewhere), so a link that leads out is refused, whenever it appeared. What is mounted inside is refused unless the
/// options say otherwise. An absolute link is refused even if it points inside.
///
/// A write goes to a new file that is then renamed, so other names of the old file (hard links) keep the old content.
#[derive(Clone, Debug)]
pub struct LocalFilesystem(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    roots: Vec<Root>,
    options: LocalFilesystemOptions,
}

impl LocalFilesystem {
    /// Opens a folder.
    ///
    /// # Errors
    /// When it, or one of the further folders, cannot be opened.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, WorkspaceError> {
        Self::open_with(folder, LocalFilesystemOptions::default())
    }

    /// Opens a folder.
    ///
    /// # Errors
    /// When it, or one of the further folders, cannot be opened.
    pub fn open_with(folder: impl AsRef<Path>, options: LocalFilesystemOptions) -> Result<Self, WorkspaceError> {
        let mut roots = vec![Root::open(folder.as_ref(), !options.read_only)?];
        for path in &options.readable {
            roots.push(Root::open(path, false)?);
        }
        for path in &options.writable {
            roots.push(Root::open(path, !options.read_only)?);
        }
        Ok(Self(Arc::new(Inner { roots, options })))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        path: &Path,
        work: impl FnOnce(&Inner, &Path) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, WorkspaceError> {
        let (inner, path) = (Arc::clone(&self.0), path.to_owned());
        match tokio::task::spawn_blocking(move || work(&inner, &path)).await {
            Ok(result) => result,
            Err(error) => Err(WorkspaceError::new(Kind::Io, "the file system task did not finish").with_source(error)),
        }
    }
}

impl Inner {
    fn locate(&self, path: &Path) -> Result<Located<'_>, WorkspaceError> {
        root::locate(&self.roots, path)
    }

    /// Refuses what is mounted inside of a root.
    fn same_mount(&self, at: &Located<'_>, shown: &Path, file: impl std::os::fd::AsFd) -> Result<(), WorkspaceError> {
        if self.options.cross_mounts || mount::id(file).map_err(|error| WorkspaceError::from_io(shown, error))? == at.root.mount {
            return Ok(());
        }
        Err(WorkspaceError::new(
            Kind::Escape,
            format!("`{}` is mounted from outside of the workspace; the host must allow mounts for it to be used", shown.display()),
        ))
    }

    fn open_dir(&self, at: &Located<'_>, rel: &Path, shown: &Path) -> Result<Dir, WorkspaceError> {
        let dir = at.root.dir.open_dir(rel).map_err(|error| WorkspaceError::from_io(shown, error))?;
        self.same_mount(at, shown, &dir)?;
        Ok(dir)
    }

    fn stat(&self, path: &Path) -> Result<FileStat, WorkspaceError> {
        let at = self.locate(path)?;
        let meta = at.root.dir.metadata(&at.rel).map_err(|error| WorkspaceError::from_io(path, error))?;
        let kind = kind_of(meta.file_type());
        match kind {
            FileKind::Dir => drop(self.open_dir(&at, &at.rel, path)?),
            FileKind::File => drop(self.open_file(path)?),
            FileKind::Link | FileKind::Special => {}
        }
        Ok(FileStat { kind, size: meta.len() })
    }

    fn open_file(&self, path: &Path) -> Result<File, WorkspaceError> {
        let at = self.locate(path)?;
        let file = root::open_regular(&at.root.dir, &at.rel, path)?;
        self.same_mount(&at, path, &file)?;
        Ok(file)
    }

    fn read(&self, path: &Path, max_bytes: u64) -> Result<FileContent, WorkspaceError> {
        let file = self.open_file(path)?;
        read_all(file, path, max_bytes).map(FileContent::new)
    }

    fn list(&self, path: &Path) -> Result<Vec<DirEntry>, WorkspaceError> {
        let at = self.locate(path)?;
        let dir = self.open_dir(&at, &at.rel, path)?;
        let mut entries = Vec::new();
        for entry in dir.entries().map_err(|error| WorkspaceError::from_io(path, error))? {
            let entry = entry.map_err(|error| WorkspaceError::from_io(path, error))?;
            let kind = entry.file_type().map_or(FileKind::Special, kind_of);
            entries.push(DirEntry { name: entry.file_name().to_string_lossy().into_owned(), kind });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn resolve(&self, path: &Path) -> Result<PathBuf, WorkspaceError> {
        let at = self.locate(path)?;
        let rel = root::resolve(&at.root.dir, &at.rel, path)?;
        Ok(at.shown(&self.roots, &rel))
    }
}

fn read_all(file: File, path: &Path, max_bytes: u64) -> Result<Vec<u8>, WorkspaceError> {
    let size = file.metadata().map_err(|error| WorkspaceError::from_io(path, error))?.len();
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(max_bytes)).unwrap_or_default());
    // A file may grow while it is read, and files of the kernel claim to be empty: what counts is what comes.
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| WorkspaceError::from_io(path, error))?;
    if bytes.len() as u64 > max_bytes {
        return Err(WorkspaceError::new(
            Kind::TooLarge,
            format!("`{}` has {} bytes, more than the limit of {max_bytes}", path.display(), size.max(bytes.len() as u64)),
        ));
    }
    Ok(bytes)
}

fn kind_of(kind: cap_std::fs::FileType) -> FileKind {
    if kind.is_file() {
        FileKind::File
    } else if kind.is_dir() {
        FileKind::Dir
    } else if kind.is_symlink() {
        FileKind::Link
    } else {
        FileKind::Special
    }
}

#[async_trait]
impl Filesystem for LocalFilesystem {
    fn root(&self) -> Option<&Path> {
        self.0.roots.first().map(|root| root.path.as_path())
    }

    fn read_only(&self) -> bool {
        self.0.options.read_only
    }

    async fn resolve(&self, path: &Path) -> Result<PathBuf, WorkspaceError> {
        self.blocking(path, Inner::resolve).await
    }

    async fn stat(&self, path: &Path) -> Result<FileStat, WorkspaceError> {
        self.blocking(path, Inner::stat).await
    }

    async fn read(&self, path: &Path, max_bytes: u64) -> Result<FileContent, WorkspaceError> {
        self.blocking(path, move |inner, path| inner.read(path, max_bytes)).await
    }

    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, WorkspaceError> {
        self.blocking(path, Inner::list).await
    }

    async fn write(&self, path: &Path, bytes: Vec<u8>, expect: Expect) -> Result<FileVersion, WorkspaceError> {
        self.blocking(path, move |inner, path| inner.write(path, &bytes, expect)).await
    }

    async fn make_dir(&self, path: &Path) -> Result<(), WorkspaceError> {
        self.blocking(path, Inner::make_dir).await
    }

    async fn remove(&self, path: &Path, recursive: bool) -> Result<(), WorkspaceError> {
        self.blocking(path, move |inner, path| inner.remove(path, recursive)).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), WorkspaceError> {
        let to = to.to_owned();
        self.blocking(from, move |inner, from| inner.rename(from, &to)).await
    }

    async fn walk(&self, query: WalkQuery, cancel: &CancelToken) -> Result<WalkResult, WorkspaceError> {
        let (cancel, path) = (cancel.clone(), query.path.clone());
        self.blocking(&path, move |inner, _| walker::list(inner, &query, &cancel)).await
    }

    async fn search(&self, query: SearchQuery, cancel: &CancelToken) -> Result<SearchResult, WorkspaceError> {
        let (cancel, path) = (cancel.clone(), query.files.path.clone());
        self.blocking(&path, move |inner, _| searcher::search(inner, &query, &cancel)).await
    }
}

#[cfg(test)]
mod tests;
