//! What runs changed, as it was before.

use std::{
    collections::{BTreeMap, VecDeque},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use ac_core::RunId;

/// How many runs are remembered, how many files of each, and how long a file may be.
const RUNS: usize = 16;
const FILES: usize = 500;
const LONGEST: usize = 1 << 20;

/// The content of each file before a run first changed it. In memory, of the latest runs.
#[derive(Debug, Default)]
pub(super) struct Changes(Mutex<VecDeque<(RunId, BTreeMap<PathBuf, Before>)>>);

/// What a file was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// It was not there.
    Absent,
    /// This text.
    Text(String),
    /// Something that is not kept: too long, or no text.
    Unknown,
}

impl Before {
    pub(super) fn of(text: Option<&str>) -> Self {
        match text {
            Some(text) if text.len() <= LONGEST => Self::Text(text.to_owned()),
            _ => Self::Unknown,
        }
    }
}

impl Changes {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(RunId, BTreeMap<PathBuf, Before>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what a file was; the first word counts.
    pub(super) fn note(&self, run: &RunId, path: &Path, before: Before) {
        let mut runs = self.lock();
        if !runs.iter().any(|(known, _)| known == run) {
            if runs.len() >= RUNS {
                runs.pop_front();
            }
            runs.push_back((run.clone(), BTreeMap::new()));
        }
        if let Some((_, files)) = runs.iter_mut().find(|(known, _)| known == run)
            && (files.len() < FILES || files.contains_key(path))
        {
            files.entry(path.to_owned()).or_insert(before);
        }
    }

    /// What a run changed, at or below a path.
    pub(super) fn of(&self, run: &RunId, below: Option<&Path>) -> Vec<(PathBuf, Before)> {
        let runs = self.lock();
        let files = runs.iter().find(|(known, _)| known == run).map(|(_, files)| files);
        let fits = |path: &Path| below.is_none_or(|below| below == Path::new(".") || path.starts_with(below));
        files.into_iter().flatten().filter(|(path, _)| fits(path)).map(|(path, before)| (path.clone(), before.clone())).collect()
    }
}
