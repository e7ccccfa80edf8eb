//! Readable ids: `thread-1`, `run-1`, `message-1`.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use ac_core::Ids;

/// Counts per kind, so that a transcript is the same every time and says what each id names.
///
/// Two controllers on one store need ids that differ: give each a prefix.
///
/// ```
/// use ac_core::Ids;
/// let ids = ac_testkit::SequentialIds::new();
/// assert_eq!([ids.fresh("run"), ids.fresh("run"), ids.fresh("thread")], ["run-1", "run-2", "thread-1"]);
/// assert_eq!(ac_testkit::SequentialIds::prefixed("b-").fresh("run"), "b-run-1");
/// ```
#[derive(Debug, Default)]
pub struct SequentialIds {
    prefix: String,
    last: Mutex<BTreeMap<String, u64>>,
}

impl SequentialIds {
    /// Every kind begins with 1.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every id begins with `prefix`: another process on the same store, or the same one after a restart.
    pub fn prefixed(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), last: Mutex::default() }
    }
}

impl Ids for SequentialIds {
    fn fresh(&self, kind: &str) -> String {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let n = last.entry(kind.to_owned()).or_default();
        *n += 1;
        format!("{}{kind}-{n}", self.prefix)
    }
}
