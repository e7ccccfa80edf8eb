use std::{
    fmt,
    path::{Path, PathBuf},
};

use ac_core::CancelToken;
use async_trait::async_trait;
use sha2::{Digest, Sha256};

use crate::{SearchQuery, SearchResult, WalkQuery, WalkResult, WorkspaceError};

/// The files that an agent may see. Paths are relative to the workspace folder; an absolute path counts when it lies inside.
///
/// An implementation keeps three promises: nothing outside of its roots is ever read, listed or changed, whatever links exist or appear;
/// a write is atomic, so a reader sees the old or the new content; a failed call leaves everything as it was.
#[async_trait]
pub trait Filesystem: Send + Sync + 'static {
    /// The folder on this machine, where there is one. Commands run there.
    fn root(&self) -> Option<&Path>;

    /// Whether everything in it may only be read.
    fn read_only(&self) -> bool;

    /// The path with links followed and dots removed, as rules should judge it; parts that do not exist yet are kept as they are.
    /// Relative where it lies below [`Filesystem::root`].
    ///
    /// # Errors
    /// `Escape` when it leads outside.
    async fn resolve(&self, path: &Path) -> Result<PathBuf, WorkspaceError>;

    /// What is at the path, links followed.
    ///
    /// # Errors
    /// `NotFound`, `Escape`, …
    async fn stat(&self, path: &Path) -> Result<FileStat, WorkspaceError>;

    /// The whole content of a file.
    ///
    /// # Errors
    /// `TooLarge` when it has more than `max_bytes`, `IsDirectory`, `Special`, `NotFound`, `Escape`.
    async fn read(&self, path: &Path, max_bytes: u64) -> Result<FileContent, WorkspaceError>;

    /// What is in a folder, sorted by name. Links are told, not followed.
    ///
    /// # Errors
    /// `NotDirectory`, `NotFound`, `Escape`.
    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, WorkspaceError>;

    /// Makes `bytes` the content of a file, atomically; creates the folders above it. An existing file keeps its mode. A link inside of
    /// the workspace is written through, one that leads out is refused.
    ///
    /// # Errors
    /// `Stale` or `Exists` when `expect` does not hold, `ReadOnly`, `TooLarge`, `IsDirectory`, `Special`, `Escape`. The file is then as it was.
    async fn write(&self, path: &Path, bytes: Vec<u8>, expect: Expect) -> Result<FileVersion, WorkspaceError>;

    /// Makes a folder and the folders above it. One that exists is fine.
    ///
    /// # Errors
    /// `Exists` when a file is there, `ReadOnly`, `Escape`.
    async fn make_dir(&self, path: &Path) -> Result<(), WorkspaceError>;

    /// Removes a file, a link itself, or a folder; with what is in it when `recursive`.
    ///
    /// # Errors
    /// `NotEmpty`, `NotFound`, `ReadOnly`, `Escape`; `Denied` for the workspace folder itself.
    async fn remove(&self, path: &Path, recursive: bool) -> Result<(), WorkspaceError>;

    /// Moves a file or folder. Never replaces anything.
    ///
    /// # Errors
    /// `Exists` when something is at `to`, `NotFound`, `ReadOnly`, `Escape`.
    async fn rename(&self, from: &Path, to: &Path) -> Result<(), WorkspaceError>;

    /// Files and folders below a path.
    ///
    /// # Errors
    /// `Invalid` for a bad pattern, `NotFound`, `Escape`, `Cancelled`.
    async fn walk(&self, query: WalkQuery, cancel: &CancelToken) -> Result<WalkResult, WorkspaceError>;

    /// Lines that match a pattern.
    ///
    /// # Errors
    /// `Invalid` for a bad pattern, `NotFound`, `Escape`, `Cancelled`.
    async fn search(&self, query: SearchQuery, cancel: &CancelToken) -> Result<SearchResult, WorkspaceError>;
}

impl fmt::Debug for dyn Filesystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filesystem").field("root", &self.root()).field("read_only", &self.read_only()).finish()
    }
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileStat {
    /// What kind of thing.
    pub kind: FileKind,
    /// Bytes, of a file.
    pub size: u64,
}

impl FileStat {
    /// Something of this kind and size; a folder has none.
    pub fn new(kind: FileKind, size: u64) -> Self {
        Self { kind, size }
    }
}

/// What kind of thing is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Dir,
    /// A link, where links are not followed.
    Link,
    /// A pipe, a socket, a device.
    Special,
}

/// One thing in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirEntry {
    /// Its name; bytes that are no UTF-8 are shown as U+FFFD.
    pub name: String,
    /// What it is.
    pub kind: FileKind,
}

impl DirEntry {
    /// Something in a folder.
    pub fn new(name: impl Into<String>, kind: FileKind) -> Self {
        Self { name: name.into(), kind }
    }
}

/// The content of a file and a mark of it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileContent {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Changes with every change of the content and never otherwise.
    pub version: FileVersion,
}

impl FileContent {
    /// These bytes and their version.
    pub fn new(bytes: Vec<u8>) -> Self {
        let version = FileVersion::of(&bytes);
        Self { bytes, version }
    }
}

impl fmt::Debug for FileContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileContent").field("len", &self.bytes.len()).field("version", &self.version).finish()
    }
}

/// A mark of a content: its SHA-256. Time stamps and sizes are no proof that nothing changed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileVersion([u8; 32]);

impl FileVersion {
    /// The mark of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Debug for FileVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(6).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What must be true of a path for a write to happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expect {
    /// Nothing.
    #[default]
    Anything,
    /// There is nothing.
    Absent,
    /// There is a file with this content.
    Version(FileVersion),
}
