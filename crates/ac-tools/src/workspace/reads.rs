//! What each thread has seen of each file, so that nobody writes over what he does not know.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use ac_core::{ThreadId, ToolError};
use ac_workspace::FileVersion;

/// How many files are remembered of a thread, and how many threads. The oldest go first.
const FILES: usize = 200;
const THREADS: usize = 256;

/// The version in which each file was last seen, by thread. In memory: after a restart a file counts as never seen.
#[derive(Debug, Default)]
pub(super) struct Reads(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    threads: HashMap<ThreadId, HashMap<PathBuf, (FileVersion, u64)>>,
    /// Grows with each note: the age of what was noted.
    now: u64,
}

impl Reads {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread has seen, or written, this version.
    pub(super) fn note(&self, thread: &ThreadId, path: &Path, version: FileVersion) {
        let mut state = self.lock();
        state.now += 1;
        let now = state.now;
        if state.threads.len() >= THREADS && !state.threads.contains_key(thread) {
            let newest = |files: &HashMap<PathBuf, (FileVersion, u64)>| files.values().map(|(_, at)| *at).max();
            let oldest = state.threads.iter().min_by_key(|(_, files)| newest(files)).map(|(thread, _)| thread.clone());
            oldest.map(|oldest| state.threads.remove(&oldest));
        }
        let files = state.threads.entry(thread.clone()).or_default();
        files.insert(path.to_owned(), (version, now));
        if files.len() > FILES {
            let oldest = files.iter().min_by_key(|(_, (_, at))| *at).map(|(path, _)| path.clone());
            oldest.map(|oldest| files.remove(&oldest));
        }
    }

    pub(super) fn forget(&self, thread: &ThreadId, path: &Path) {
        if let Some(files) = self.lock().threads.get_mut(thread) {
            files.retain(|known, _| !known.starts_with(path));
        }
    }

    /// Refuses a change of a file that is not what the thread has seen. `found` is what is there now.
    pub(super) fn check(&self, thread: &ThreadId, path: &Path, found: Option<FileVersion>, required: bool) -> Result<(), ToolError> {
        let shown = path.display();
        let seen = self.lock().threads.get(thread).and_then(|files| files.get(path)).map(|(version, _)| *version);
        match (seen, found) {
            (Some(seen), Some(found)) if seen == found => Ok(()),
            (Some(_), Some(_)) => {
                Err(ToolError::failed(format!("`{shown}` changed since it was read; read it again, then repeat the change")))
            }
            (Some(_), None) => {
                // Told once: whoever still wants the file knows now that he makes a new one.
                self.forget(thread, path);
                Err(ToolError::failed(format!("`{shown}` was removed since it was read")))
            }
            (None, Some(_)) if required => {
                Err(ToolError::failed(format!("`{shown}` exists and was not read yet; read it before you change it")))
            }
            (None, _) => Ok(()),
        }
    }
}
