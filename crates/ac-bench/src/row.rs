//! A measured figure, and what it may be.

use std::sync::LazyLock;

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

/// What each row may be at most, in its own unit. A file of its own, because the page and the plot of the figures show it too.
static LIMITS: LazyLock<Vec<Limit>> = LazyLock::new(|| serde_json::from_str(include_str!("../limits.json")).unwrap_or_default());

#[derive(Deserialize)]
struct Limit {
    name: String,
    limit: f64,
}

impl Row {
    /// What it may be at most, where that is said.
    pub(crate) fn limit(&self) -> Option<f64> {
        LIMITS.iter().find(|limit| limit.name == self.name).map(|limit| limit.limit)
    }

    /// Whether it is within its limit.
    pub(crate) fn holds(&self) -> bool {
        self.limit().is_none_or(|limit| self.value <= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::LIMITS;
    use crate::measure::Measure;

    #[test]
    fn every_row_has_a_limit() {
        let rows: Vec<_> = Measure::all().iter().flat_map(|measure| measure.rows).copied().collect();
        let limited: Vec<_> = LIMITS.iter().map(|limit| limit.name.as_str()).collect();
        assert_eq!(limited, rows);
    }
}
