use std::path::PathBuf;

use crate::FileKind;

/// Which files and folders to list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WalkQuery {
    /// Where to start.
    pub path: PathBuf,
    /// Globs of which one must match, relative to `path`; one without `/` matches names at any depth. Empty: everything.
    pub patterns: Vec<String>,
    /// Globs of what is left out, with everything below it.
    pub exclude: Vec<String>,
    /// How many levels below `path`; 1 is what is in it.
    pub max_depth: Option<usize>,
    /// Names that start with a dot, too.
    pub hidden: bool,
    /// What ignore files (`.gitignore`, `.ignore`, `.git/info/exclude`) leave out, too, and `.git` itself.
    pub ignored: bool,
    /// Folders, too.
    pub dirs: bool,
    /// How many entries at most.
    pub limit: usize,
}

impl WalkQuery {
    /// All files that are neither hidden nor ignored, at most 1,000.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            patterns: Vec::new(),
            exclude: Vec::new(),
            max_depth: None,
            hidden: false,
            ignored: false,
            dirs: false,
            limit: 1000,
        }
    }
}

/// What a walk found, sorted by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WalkResult {
    /// The first of them.
    pub entries: Vec<WalkEntry>,
    /// How many there are.
    pub total: usize,
    /// Folders that could not be read, or that lie too deep.
    pub skipped: usize,
}

/// A file or folder that a walk found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct WalkEntry {
    /// Relative to the workspace folder, or absolute in another root.
    pub path: PathBuf,
    /// What it is.
    pub kind: FileKind,
}

impl WalkEntry {
    /// Something at a path.
    pub fn new(path: impl Into<PathBuf>, kind: FileKind) -> Self {
        Self { path: path.into(), kind }
    }
}
