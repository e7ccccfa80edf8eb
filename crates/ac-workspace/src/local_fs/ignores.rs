//! Ignore files, read through open folders like everything else.

use std::{
    ffi::OsStr,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use cap_std::fs::Dir;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::root::open_regular;

/// The rules of a folder and of those above it.
#[derive(Debug)]
pub(super) struct Ignores {
    parent: Option<Arc<Ignores>>,
    base: PathBuf,
    rules: Gitignore,
}

const FILES: [&str; 3] = [".git/info/exclude", ".gitignore", ".ignore"];
const LONGEST: u64 = 1 << 20;

impl Ignores {
    /// Whether rules may be found in, or below, an entry of this name.
    pub(super) fn is_source(name: &OsStr) -> bool {
        name == ".gitignore" || name == ".ignore" || name == ".git"
    }

    /// The rules in force below `base`, an open folder.
    pub(super) fn enter(parent: Option<Arc<Self>>, dir: &Dir, base: &Path) -> Option<Arc<Self>> {
        let mut builder = GitignoreBuilder::new("");
        let mut any = false;
        for name in FILES {
            let mut text = String::new();
            let Ok(file) = open_regular(dir, Path::new(name), Path::new(name)) else { continue };
            if file.take(LONGEST).read_to_string(&mut text).is_err() {
                continue;
            }
            any = true;
            for line in text.trim_start_matches('\u{feff}').lines() {
                // A line that is no glob ignores nothing, as in git.
                builder.add_line(None, line).ok();
            }
        }
        match builder.build() {
            Ok(rules) if any && !rules.is_empty() => Some(Arc::new(Self { parent, base: base.to_owned(), rules })),
            _ => parent,
        }
    }

    /// Whether a path, relative to the root of the walk, is left out. The nearest rule that speaks of it decides.
    pub(super) fn ignored(this: Option<&Arc<Self>>, path: &Path, is_dir: bool) -> bool {
        let mut current = this;
        while let Some(ignores) = current {
            let rel = path.strip_prefix(&ignores.base).unwrap_or(path);
            match ignores.rules.matched(rel, is_dir) {
                ignore::Match::Ignore(_) => return true,
                ignore::Match::Whitelist(_) => return false,
                ignore::Match::None => current = ignores.parent.as_ref(),
            }
        }
        false
    }
}
