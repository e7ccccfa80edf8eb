//! A measured figure, and what it may be.

use serde::{Deserialize, Serialize};

/// One figure at one size.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    /// What was measured.
    pub(crate) name: String,
    /// How much of `unit`.
    pub(crate) value: f64,
    /// `ms`, `MB`, `KB` or `us`.
    pub(crate) unit: String,
    /// The size it was measured at: so many deltas, turns, sessions, messages.
    pub(crate) n: usize,
    /// Processor time of the measuring process during the measured part, in milliseconds.
    pub(crate) cpu_ms: f64,
    /// What of the measuring process is in memory at the end of the measured part, in kilobytes of 1,024 bytes.
    pub(crate) rss_kb: u64,
}

/// The most a row may be, in its own unit.
const LIMITS: [(&str, f64); 14] = [
    ("startup", 30.0),
    ("idle_rss", 15.0),
    ("sessions_mem", 4.0),
    ("sessions_sled", 6.0),
    ("deltas", 5.0),
    ("tool_turns", 1.0),
    ("turn", 2.0),
    ("resume", 3.0),
    ("resume_p99", 10.0),
    ("thread_list", 20.0),
    ("thread_page", 2.0),
    ("thread_switch", 2.0),
    ("thread_clone", 100.0),
    ("soak", SOAK_KB),
];

/// What an allocator may move about while nothing grows.
const SOAK_KB: f64 = 512.0;

impl Row {
    /// What it may be at most, where that is said.
    pub(crate) fn limit(&self) -> Option<f64> {
        LIMITS.iter().find(|(name, _)| *name == self.name).map(|(_, limit)| *limit)
    }

    /// Whether it is within its limit.
    pub(crate) fn holds(&self) -> bool {
        self.limit().is_none_or(|limit| self.value <= limit)
    }
}
