use std::path::PathBuf;

use crate::WalkQuery;

/// Which lines to look for, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchQuery {
    /// A regular expression of the Rust `regex` crate.
    pub pattern: String,
    /// Takes the pattern as plain text.
    pub literal: bool,
    /// `a` also finds `A`.
    pub ignore_case: bool,
    /// Lines before and after each hit.
    pub context: usize,
    /// How many hits at most.
    pub limit: usize,
    /// How many bytes of a line are kept at most.
    pub max_line: usize,
    /// In which files. Its `limit` is not used.
    pub files: WalkQuery,
}

impl SearchQuery {
    /// A pattern in all files that are neither hidden nor ignored; at most 200 hits, 500 bytes of a line, no context.
    pub fn new(pattern: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            pattern: pattern.into(),
            literal: false,
            ignore_case: false,
            context: 0,
            limit: 200,
            max_line: 500,
            files: WalkQuery::new(path),
        }
    }
}

/// What a search found, sorted by path and line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchResult {
    /// The lines.
    pub hits: Vec<SearchHit>,
    /// Not all were kept, or not all files were searched: there may be more.
    pub truncated: bool,
    /// Files with a hit.
    pub files: usize,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct SearchHit {
    /// Relative to the workspace folder, or absolute in another root.
    pub path: PathBuf,
    /// From 1.
    pub line: u64,
    /// The line without its end, cut at [`SearchQuery::max_line`].
    pub text: String,
    /// A neighbour of a hit, not one itself.
    pub context: bool,
}

impl SearchHit {
    /// A line that was looked for; lines are counted from 1.
    pub fn new(path: impl Into<PathBuf>, line: u64, text: impl Into<String>) -> Self {
        Self { path: path.into(), line, text: text.into(), context: false }
    }
}
