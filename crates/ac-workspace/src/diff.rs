//! Unified diffs of what was changed.

use std::time::Duration;

use similar::TextDiff;

/// A unified diff of two texts, with three lines of context and the path in both headers. `None` when they are the same or when the diff
/// is longer than `max_bytes`.
///
/// Bounded in time: two large texts that have little in common give a coarser diff instead of a slow one.
pub fn unified(path: &str, before: &str, after: &str, max_bytes: usize) -> Option<String> {
    if before == after || before.len().saturating_add(after.len()) > 8 << 20 {
        return None;
    }
    let diff = TextDiff::configure().timeout(Duration::from_millis(200)).diff_lines(before, after);
    let text = diff.unified_diff().context_radius(3).header(&format!("a/{path}"), &format!("b/{path}")).to_string();
    (text.len() <= max_bytes).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_its_surroundings() {
        let diff = unified("a.txt", "1\n2\n3\n4\n5\n6\n", "1\n2\n3\nfour\n5\n6\n", 1000).unwrap();
        assert_eq!(diff, "--- a/a.txt\n+++ b/a.txt\n@@ -1,6 +1,6 @@\n 1\n 2\n 3\n-4\n+four\n 5\n 6\n");
    }

    #[test]
    fn nothing_is_shown_of_no_change_or_of_too_much() {
        assert_eq!(unified("a", "x\n", "x\n", 1000), None);
        assert_eq!(unified("a", "x\n", "y\n", 10), None);
    }

    #[test]
    fn texts_with_nothing_in_common_are_compared_in_bounded_time() {
        let before: String = (0..60_000).map(|n| format!("{n}\n")).collect();
        let after: String = (0..60_000).rev().map(|n| format!("x{}\n", n * 7)).collect();
        let start = std::time::Instant::now();
        unified("a", &before, &after, usize::MAX).unwrap();
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}
