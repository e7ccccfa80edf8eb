//! Stages: each says when it begins and how long it took; all run, and the end says what failed.

use std::{
    error::Error,
    fmt::Write as _,
    time::{Duration, Instant},
};

use crate::cargo::Outcome;

/// What a stage came to.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) found: Vec<String>,
    pub(crate) skipped: bool,
}

impl Verdict {
    /// One check with its findings.
    pub(crate) fn check(found: Vec<String>) -> Self {
        let failed = u64::from(!found.is_empty());
        Self { passed: 1 - failed, failed, found, skipped: false }
    }

    /// One child process, and the tests it ran.
    pub(crate) fn child(outcome: &Outcome) -> Self {
        let failed = u64::from(!outcome.success);
        Self { passed: 1 - failed + outcome.tests_passed, failed: failed + outcome.tests_failed, found: Vec::new(), skipped: false }
    }

    /// Not run, and why.
    pub(crate) fn skipped(why: impl Into<String>) -> Self {
        Self { skipped: true, found: vec![why.into()], ..Self::default() }
    }
}

/// The stages of one call.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<(String, Duration, Verdict)>,
}

impl Report {
    /// Runs a stage.
    pub(crate) fn stage(&mut self, name: &str, what: &str, run: impl FnOnce() -> Result<Verdict, Box<dyn Error>>) {
        println!("== {name}: {what}");
        let begun = Instant::now();
        let verdict = run().unwrap_or_else(|error| Verdict::check(vec![error.to_string()]));
        for line in &verdict.found {
            println!("    {line}");
        }
        let took = begun.elapsed();
        println!("== {name}: {} in {}", word(&verdict), seconds(took));
        self.rows.push((name.to_owned(), took, verdict));
    }

    /// Whether nothing failed.
    pub(crate) fn is_good(&self) -> bool {
        self.rows.iter().all(|(_, _, verdict)| verdict.failed == 0)
    }

    /// The table of times, and the last line.
    pub(crate) fn summary(&self) -> String {
        let mut out = String::from("\n");
        for (name, took, verdict) in &self.rows {
            writeln!(out, "{name:<10} {:>9}  {:>5} passed {:>4} failed  {}", seconds(*took), verdict.passed, verdict.failed, word(verdict))
                .ok();
        }
        let total: Duration = self.rows.iter().map(|(_, took, _)| *took).sum();
        let sum = |of: fn(&Verdict) -> u64| self.rows.iter().map(|(_, _, verdict)| of(verdict)).sum::<u64>();
        write!(out, "{:<10} {:>9}\n{} passed, {} failed", "all", seconds(total), sum(|v| v.passed), sum(|v| v.failed)).ok();
        out
    }
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict { skipped: true, .. } => "skipped",
        Verdict { failed: 0, .. } => "ok",
        _ => "FAILED",
    }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::{Report, Verdict};
    use crate::cargo::Outcome;

    #[test]
    fn every_stage_runs_and_the_last_line_counts_all() {
        let mut report = Report::default();
        report.stage("one", "finds", || Ok(Verdict::check(vec!["a".to_owned(), "b".to_owned()])));
        report.stage("two", "breaks", || Err("no such program".into()));
        report.stage("three", "tests", || Ok(Verdict::child(&Outcome { success: true, tests_passed: 4, tests_failed: 0 })));
        report.stage("four", "is not there", || Ok(Verdict::skipped("no bench")));
        assert_eq!(report.summary().lines().last(), Some("5 passed, 2 failed"));
        assert!(!report.is_good());
    }

    #[test]
    fn a_child_that_fails_without_a_test_counts_as_one() {
        let verdict = Verdict::child(&Outcome::default());
        assert_eq!((verdict.passed, verdict.failed), (0, 1));
        let verdict = Verdict::child(&Outcome { success: false, tests_passed: 2, tests_failed: 1 });
        assert_eq!((verdict.passed, verdict.failed), (2, 2));
    }
}
