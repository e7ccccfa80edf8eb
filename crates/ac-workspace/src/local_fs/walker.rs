//! Walks through open folders, in several threads. Links are never followed, mounts never entered.

use std::{
    ffi::OsString,
    path::{Component, Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use ac_core::CancelToken;
use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::{
    Inner,
    ignores::Ignores,
    kind_of, mount,
    root::{self, Located},
};
use crate::{FileKind, WalkEntry, WalkQuery, WalkResult, WorkspaceError, WorkspaceErrorKind as Kind};

/// Deeper folders are skipped and counted: nobody works there, but a hostile tree goes on for ever.
const DEEPEST: usize = 200;
/// Files that one job hands to the visitor.
const BATCH: usize = 128;

/// Something that the walk came by.
pub(super) struct Found<'a> {
    /// The open folder that it is in.
    pub(super) dir: &'a Dir,
    pub(super) name: &'a OsString,
    /// Relative to the root.
    pub(super) rel: PathBuf,
    pub(super) kind: FileKind,
}

pub(super) struct Walk<'a> {
    inner: &'a Inner,
    at: Located<'a>,
    query: &'a WalkQuery,
    /// Where it starts, relative to the root, links followed, empty for the root itself.
    start: PathBuf,
    patterns: GlobSet,
    exclude: GlobSet,
    cancel: &'a CancelToken,
    stopped: AtomicBool,
    skipped: AtomicUsize,
}

enum Job {
    Folder { parent: Arc<Dir>, name: OsString, rel: PathBuf, depth: usize, ignores: Option<Arc<Ignores>> },
    Files { dir: Arc<Dir>, rel: PathBuf, names: Vec<(OsString, FileKind)> },
}

struct Jobs {
    waiting: Vec<Job>,
    working: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(inner: &'a Inner, query: &'a WalkQuery, cancel: &'a CancelToken) -> Result<Self, WorkspaceError> {
        let at = inner.locate(&query.path)?;
        let start = root::resolve(&at.root.dir, &at.rel, &query.path)?;
        let start: PathBuf = start.components().filter(|part| !matches!(part, Component::CurDir)).collect();
        Ok(Self {
            inner,
            at,
            query,
            start,
            patterns: globs(&query.patterns)?,
            exclude: globs(&query.exclude)?,
            cancel,
            stopped: AtomicBool::new(false),
            skipped: AtomicUsize::new(0),
        })
    }

    /// How a path that was found is named.
    pub(super) fn shown(&self, rel: &Path) -> PathBuf {
        self.at.shown(&self.inner.roots, rel)
    }

    /// Opens a file that was found, to read it: a regular one on the mount of its root, whatever stands under its name by now.
    pub(super) fn open(&self, found: &Found<'_>) -> Option<std::fs::File> {
        use rustix::fs::{Mode, OFlags, openat};
        // One name in an open folder, and no link: it cannot lead out.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(found.dir, found.name, flags, Mode::empty()).ok()?;
        let (regular, mount) = mount::look(&file).ok()?;
        (regular && (self.inner.options.cross_mounts || mount == self.at.root.mount)).then(|| file.into())
    }

    /// Ends the walk early.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn skipped(&self) -> usize {
        self.skipped.load(Ordering::Relaxed)
    }

    fn over(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.cancel.is_cancelled()
    }

    /// Calls `visit` for everything that fits the query, in no order and from several threads.
    pub(super) fn run(&self, visit: impl Fn(Found<'_>) + Sync) -> Result<(), WorkspaceError> {
        let shown = self.query.path.as_path();
        let start = if self.start.as_os_str().is_empty() { Path::new(".") } else { &self.start };
        let first = match self.inner.open_dir(&self.at, start, shown) {
            Ok(dir) => self.read(&Arc::new(dir), &self.start, 0, self.ignores_above(), &visit),
            Err(error) if error.kind() == Kind::NotDirectory => return self.single(&visit),
            Err(error) => return Err(error),
        };
        let jobs = (Mutex::new(Jobs { waiting: first, working: 0 }), Condvar::new());
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(8);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| self.work(&jobs, &visit));
            }
            self.work(&jobs, &visit);
        });
        if self.cancel.is_cancelled() { Err(WorkspaceError::cancelled()) } else { Ok(()) }
    }

    /// A query for one file.
    fn single(&self, visit: &impl Fn(Found<'_>)) -> Result<(), WorkspaceError> {
        let at = Located { root: self.at.root, rel: self.start.clone() };
        let (parent, name) = at.split(&self.query.path)?;
        let dir = self.inner.open_dir(&at, &parent, &self.query.path)?;
        let meta = dir.symlink_metadata(&name).map_err(|error| WorkspaceError::from_io(&self.query.path, error))?;
        visit(Found { dir: &dir, name: &name, rel: self.start.clone(), kind: kind_of(meta.file_type()) });
        Ok(())
    }

    /// The rules of the folders above the start.
    fn ignores_above(&self) -> Option<Arc<Ignores>> {
        let mut ignores = None;
        if self.query.ignored || self.start.as_os_str().is_empty() {
            return ignores;
        }
        let mut above: Vec<&Path> = self.start.ancestors().skip(1).collect();
        above.reverse();
        for folder in above {
            let probe = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            if let Ok(dir) = self.inner.open_dir(&self.at, probe, probe) {
                ignores = Ignores::enter(ignores, &dir, folder);
            }
        }
        ignores
    }

    fn work(&self, jobs: &(Mutex<Jobs>, Condvar), visit: &impl Fn(Found<'_>)) {
        let (queue, wake) = jobs;
        let lock = || -> MutexGuard<'_, Jobs> { queue.lock().unwrap_or_else(PoisonError::into_inner) };
        let mut state = lock();
        loop {
            let Some(job) = state.waiting.pop() else {
                if state.working == 0 {
                    wake.notify_all();
                    return;
                }
                state = wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.working += 1;
            drop(state);
            let more = if self.over() { Vec::new() } else { self.job(job, visit) };
            state = lock();
            state.working -= 1;
            if !more.is_empty() || state.working == 0 {
                state.waiting.extend(more);
                wake.notify_all();
            }
        }
    }

    fn job(&self, job: Job, visit: &impl Fn(Found<'_>)) -> Vec<Job> {
        match job {
            Job::Files { dir, rel, names } => {
                for (name, kind) in names {
                    if self.over() {
                        break;
                    }
                    visit(Found { dir: &dir, name: &name, rel: rel.join(&name), kind });
                }
                Vec::new()
            }
            Job::Folder { parent, name, rel, depth, ignores } => {
                let open = parent.open_dir_nofollow(&name).map_err(|error| WorkspaceError::from_io(&rel, error));
                match open.and_then(|dir| self.inner.same_mount(&self.at, &rel, &dir).map(|()| dir)) {
                    Ok(dir) => self.read(&Arc::new(dir), &rel, depth, ignores, visit),
                    Err(_) => {
                        self.skipped.fetch_add(1, Ordering::Relaxed);
                        Vec::new()
                    }
                }
            }
        }
    }

    /// What is in a folder, as jobs. `depth` is that of the folder below the start.
    fn read(&self, dir: &Arc<Dir>, rel: &Path, depth: usize, above: Option<Arc<Ignores>>, visit: &impl Fn(Found<'_>)) -> Vec<Job> {
        let mut jobs = Vec::new();
        let Ok(entries) = dir.entries() else {
            self.skipped.fetch_add(1, Ordering::Relaxed);
            return jobs;
        };
        let entries: Vec<_> =
            entries.flatten().map(|entry| (entry.file_name(), entry.file_type().map_or(FileKind::Special, kind_of))).collect();
        let ignores = match self.query.ignored {
            true => None,
            // Most folders have no rules of their own: nothing is looked for there.
            false if entries.iter().any(|(name, _)| Ignores::is_source(name)) => Ignores::enter(above, dir, rel),
            false => above,
        };
        let deeper = depth + 1 < self.query.max_depth.unwrap_or(usize::MAX);
        let mut files = Vec::new();
        for (name, kind) in entries {
            let is_dir = kind == FileKind::Dir;
            if (!self.query.hidden && name.as_encoded_bytes().starts_with(b".")) || (!self.query.ignored && name == ".git") {
                continue;
            }
            let path = rel.join(&name);
            let below = path.strip_prefix(&self.start).unwrap_or(&path);
            if Ignores::ignored(ignores.as_ref(), &path, is_dir) || self.exclude.is_match(below) {
                continue;
            }
            let fits = self.patterns.is_empty() || self.patterns.is_match(below);
            if !is_dir {
                if fits {
                    files.push((name, kind));
                }
                continue;
            }
            if fits && self.query.dirs {
                visit(Found { dir, name: &name, rel: path.clone(), kind });
            }
            if !deeper {
                continue;
            }
            if depth >= DEEPEST {
                self.skipped.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            jobs.push(Job::Folder { parent: Arc::clone(dir), name, rel: path, depth: depth + 1, ignores: ignores.clone() });
        }
        while !files.is_empty() {
            let rest = files.split_off(files.len().min(BATCH));
            jobs.push(Job::Files { dir: Arc::clone(dir), rel: rel.to_owned(), names: std::mem::replace(&mut files, rest) });
        }
        jobs
    }
}

/// A glob without `/` matches names at any depth, as in an ignore file.
fn globs(patterns: &[String]) -> Result<GlobSet, WorkspaceError> {
    let bad = |pattern: &str, error: globset::Error| {
        WorkspaceError::new(Kind::Invalid, format!("`{pattern}` is not a usable pattern: {}", error.kind())).with_source(error)
    };
    let mut set = GlobSetBuilder::new();
    for pattern in patterns.iter().filter(|pattern| !pattern.trim().is_empty()) {
        let trimmed = pattern.trim().trim_start_matches("./");
        let whole = match trimmed.strip_prefix('/') {
            Some(anchored) => anchored.to_owned(),
            None if trimmed.contains('/') => trimmed.to_owned(),
            None => format!("**/{trimmed}"),
        };
        set.add(GlobBuilder::new(&whole).literal_separator(true).build().map_err(|error| bad(pattern, error))?);
    }
    set.build().map_err(|error| bad("the patterns", error))
}

/// Everything that fits, sorted, of which the first `limit` are kept.
pub(super) fn list(inner: &Inner, query: &WalkQuery, cancel: &CancelToken) -> Result<WalkResult, WorkspaceError> {
    let walk = Walk::new(inner, query, cancel)?;
    let found = Mutex::new(Vec::new());
    walk.run(|it| {
        let entry = WalkEntry { path: walk.shown(&it.rel), kind: it.kind };
        found.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    })?;
    let mut entries = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    entries.sort_unstable();
    let total = entries.len();
    entries.truncate(query.limit);
    Ok(WalkResult { entries, total, skipped: walk.skipped() })
}
