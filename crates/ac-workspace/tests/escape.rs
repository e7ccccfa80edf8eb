//! Attempts to get out of the workspace folder. Each one is first made against a file system that checks strings, where it must succeed:
//! an attempt that cannot escape there proves nothing. Then it is made against [`LocalFilesystem`], where nothing may get out.
//!
//! Attempts that this machine does not allow to be set up (device files and mounts need rights) are named as skipped.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]

#[path = "escape/commands.rs"]
mod commands;
#[path = "escape/naive.rs"]
mod naive;
#[path = "escape/races.rs"]
mod races;
#[cfg(feature = "rules")]
#[path = "escape/smuggling.rs"]
mod smuggling;
#[path = "escape/vectors.rs"]
mod vectors;

use std::{
    fs,
    path::{Path, PathBuf},
};

use ac_core::CancelToken;
use ac_workspace::{Expect, Filesystem, LocalFilesystem, SearchQuery, WalkQuery, WorkspaceError, WorkspaceErrorKind as Kind};
use tempfile::TempDir;

/// What lies outside and must not be seen.
const SECRET: &str = "the-secret-of-the-machine";

/// A folder that is the workspace and one beside it that is not.
pub(crate) struct Place {
    _temp: TempDir,
    pub(crate) base: PathBuf,
    pub(crate) outside: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let temp = TempDir::new().unwrap();
        let top = temp.path().canonicalize().unwrap();
        let (base, outside) = (top.join("base"), top.join("outside"));
        fs::create_dir_all(base.join("sub")).unwrap();
        fs::write(base.join("sub/own"), "own").unwrap();
        fs::write(base.join("own"), "own").unwrap();
        fs::create_dir_all(outside.join("deep")).unwrap();
        fs::write(outside.join("secret"), SECRET).unwrap();
        fs::write(outside.join("deep/secret"), SECRET).unwrap();
        Self { _temp: temp, base, outside }
    }

    /// Everything outside, as one text: what is there and what it holds.
    pub(crate) fn state(&self) -> String {
        fn tell(path: &Path, out: &mut String) {
            let mut entries: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
            entries.sort();
            for entry in entries {
                out.push_str(&format!("{}\n", entry.display()));
                if entry.is_dir() {
                    tell(&entry, out);
                } else if entry.is_file() {
                    out.push_str(&fs::read_to_string(&entry).unwrap());
                }
            }
        }
        let mut out = String::new();
        tell(&self.outside, &mut out);
        out
    }

    pub(crate) fn changed(&self, before: &str) -> bool {
        self.state() != before
    }

    /// Whether what was seen, or what is there now, shows that somebody was outside.
    pub(crate) fn escaped(&self, before: &str, seen: &Result<String, WorkspaceError>) -> bool {
        self.state() != before
            || seen.as_ref().is_ok_and(|seen| seen.contains(SECRET) || seen.contains("/secret") || seen.contains("secret\n"))
    }
}

/// What is done with a path. Everything that is seen comes back as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Read,
    List,
    Overwrite,
    Create,
    MakeDir,
    Remove,
    RemoveTree,
    MoveOut,
    MoveIn,
    Walk,
    Search,
}

/// One of the two file systems.
pub(crate) trait Subject {
    fn act(&self, act: Act, path: &Path) -> Result<String, WorkspaceError>;
}

pub(crate) struct Confined {
    files: LocalFilesystem,
    runtime: tokio::runtime::Runtime,
}

impl Confined {
    pub(crate) fn new(base: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { files: LocalFilesystem::open(base).unwrap(), runtime }
    }
}

impl Subject for Confined {
    fn act(&self, act: Act, path: &Path) -> Result<String, WorkspaceError> {
        let (files, cancel, done) = (&self.files, CancelToken::new(), |()| String::new());
        self.runtime.block_on(async {
            match act {
                Act::Read => files.read(path, 1 << 20).await.map(|content| String::from_utf8_lossy(&content.bytes).into_owned()),
                Act::List => files.list(path).await.map(|entries| entries.iter().map(|entry| format!("{}\n", entry.name)).collect()),
                Act::Overwrite | Act::Create => files.write(path, b"pwned".into(), Expect::Anything).await.map(|_| String::new()),
                Act::MakeDir => files.make_dir(path).await.map(done),
                Act::Remove => files.remove(path, false).await.map(done),
                Act::RemoveTree => files.remove(path, true).await.map(done),
                Act::MoveOut => files.rename(Path::new("own"), path).await.map(done),
                Act::MoveIn => match files.rename(path, Path::new("moved")).await {
                    Ok(()) => files.read(Path::new("moved"), 1 << 20).await.map(|it| String::from_utf8_lossy(&it.bytes).into_owned()),
                    Err(error) => Err(error),
                },
                Act::Walk => {
                    let mut query = WalkQuery::new(path);
                    (query.hidden, query.ignored) = (true, true);
                    files
                        .walk(query, &cancel)
                        .await
                        .map(|found| found.entries.iter().map(|entry| format!("{}\n", entry.path.display())).collect())
                }
                Act::Search => {
                    let mut query = SearchQuery::new(SECRET, path);
                    query.files.ignored = true;
                    query.files.hidden = true;
                    files.search(query, &cancel).await.map(|found| found.hits.iter().map(|hit| format!("{}\n", hit.text)).collect())
                }
            }
        })
    }
}

/// Makes one attempt against both, each in a place of its own. `plant` prepares the place and says which path is used.
pub(crate) fn attempt(name: &str, act: Act, refusals: &[Kind], plant: &dyn Fn(&Place) -> PathBuf) {
    let place = Place::new();
    let path = plant(&place);
    let before = place.state();
    let seen = naive::Naive::new(&place.base).act(act, &path);
    assert!(place.escaped(&before, &seen), "{name}: {act:?} does not escape from a string check: {seen:?}");

    let place = Place::new();
    let path = plant(&place);
    let before = place.state();
    let seen = Confined::new(&place.base).act(act, &path);
    assert!(!place.escaped(&before, &seen), "{name}: {act:?} got out: {seen:?}");
    match seen {
        Err(error) => {
            assert!(refusals.contains(&error.kind()), "{name}: {act:?} was refused as {:?}: {error}", error.kind());
            assert!(error.code().starts_with("workspace."));
        }
        // A walk or a search goes on beside what it may not enter, and so does the removal of a link itself.
        Ok(_) => assert!(
            matches!(act, Act::Walk | Act::Search | Act::Remove | Act::RemoveTree | Act::MoveIn) && refusals.is_empty(),
            "{name}: {act:?} was not refused"
        ),
    }
}
