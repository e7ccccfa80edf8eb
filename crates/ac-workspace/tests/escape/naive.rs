//! The file system that many agents have: it joins strings and compares their beginnings.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use ac_workspace::{WorkspaceError, WorkspaceErrorKind as Kind};

use crate::{Act, SECRET, Subject};

/// How hard the strings are looked at.
enum Check {
    /// The joined path begins with the folder's name.
    Prefix,
    /// The path without links begins with the folder: right at that moment, not at the next, which `then` makes the worst one.
    RealPath { then: Box<dyn Fn()> },
}

pub(crate) struct Naive {
    base: PathBuf,
    check: Check,
}

impl Naive {
    pub(crate) fn new(base: &Path) -> Self {
        Self { base: base.to_owned(), check: Check::Prefix }
    }

    /// `then` happens after each check and before what was checked is used.
    pub(crate) fn checking_real_paths(base: &Path, then: impl Fn() + 'static) -> Self {
        Self { base: base.to_owned(), check: Check::RealPath { then: Box::new(then) } }
    }

    fn allow(&self, path: &Path) -> Result<PathBuf, WorkspaceError> {
        let full = self.base.join(path);
        let refused = || WorkspaceError::new(Kind::Escape, "outside");
        match &self.check {
            Check::Prefix => {
                let (full, base) = (full.to_string_lossy(), self.base.to_string_lossy());
                if !full.starts_with(&*base) {
                    return Err(refused());
                }
            }
            Check::RealPath { then } => {
                let there = if full.exists() { full.as_path() } else { full.parent().unwrap_or(&full) };
                if !there.canonicalize().map_err(failed)?.starts_with(&self.base) {
                    return Err(refused());
                }
                then();
            }
        }
        Ok(full)
    }
}

fn failed(error: io::Error) -> WorkspaceError {
    WorkspaceError::new(Kind::Io, error.to_string())
}

impl Subject for Naive {
    fn act(&self, act: Act, path: &Path) -> Result<String, WorkspaceError> {
        let full = self.allow(path)?;
        let done = |()| String::new();
        match act {
            Act::Read => read(&full),
            Act::List => fs::read_dir(&full)
                .map(|entries| entries.flatten().map(|entry| format!("{}\n", entry.file_name().to_string_lossy())).collect()),
            Act::Overwrite | Act::Create => fs::write(&full, "pwned").map(done),
            Act::MakeDir => fs::create_dir_all(&full).map(done),
            Act::Remove => fs::remove_file(&full).or_else(|_| fs::remove_dir(&full)).map(done),
            Act::RemoveTree => remove(&full).map(done),
            Act::MoveOut => fs::rename(self.base.join("own"), &full).map(done),
            Act::MoveIn => fs::rename(&full, self.base.join("moved")).and_then(|()| read(&self.base.join("moved"))),
            Act::Walk => {
                let mut out = String::new();
                walk(&full, 0, &mut |path| out.push_str(&format!("{}\n", path.display()))).map(|()| out)
            }
            Act::Search => {
                let mut out = String::new();
                walk(&full, 0, &mut |path| out.extend(read(path).into_iter().filter(|text| text.contains(SECRET)))).map(|()| out)
            }
        }
        .map_err(failed)
    }
}

/// At most a megabyte: some of what is read never ends.
fn read(path: &Path) -> io::Result<String> {
    use io::Read;
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(1 << 20).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn walk(path: &Path, depth: usize, visit: &mut dyn FnMut(&Path)) -> io::Result<()> {
    if path.is_file() {
        visit(path);
        return Ok(());
    }
    for entry in fs::read_dir(path)?.flatten() {
        let path = entry.path();
        if path.is_dir() && depth < 4 {
            walk(&path, depth + 1, visit).ok();
        } else if path.is_file() {
            visit(&path);
        }
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)?.flatten() {
            remove(&entry.path())?;
        }
        return fs::remove_dir(path).or_else(|_| fs::remove_file(path));
    }
    fs::remove_file(path)
}
