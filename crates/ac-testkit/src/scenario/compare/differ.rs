use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};

use super::Folded;

/// A place where two recordings differ: what stands there on each side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Which part of the recording: `events s`, `request 2`, `final s.mode`, …
    pub field: String,
    /// In the golden recording.
    pub theirs: Vec<String>,
    /// In ours.
    pub ours: Vec<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.field)?;
        for line in &self.theirs {
            write!(f, "\n      - {line}")?;
        }
        for line in &self.ours {
            write!(f, "\n      + {line}")?;
        }
        Ok(())
    }
}

/// All differences, field by field, in order.
pub(super) fn differ(theirs: &Folded, ours: &Folded) -> Vec<Difference> {
    let fields: BTreeSet<&String> = theirs.0.keys().chain(ours.0.keys()).collect();
    let empty = vec![];
    fields
        .into_iter()
        .flat_map(|field| {
            let (a, b) = (theirs.0.get(field).unwrap_or(&empty), ours.0.get(field).unwrap_or(&empty));
            hunks(a, b).into_iter().map(|(theirs, ours)| Difference { field: field.clone(), theirs, ours })
        })
        .collect()
}

/// What differs between two lists, by their longest common subsequence.
fn hunks(a: &[String], b: &[String]) -> Vec<(Vec<String>, Vec<String>)> {
    let width = b.len() + 1;
    // common[i * width + j]: the length of the longest common subsequence of a[i..] and b[j..].
    let mut common = vec![0_usize; (a.len() + 1) * width];
    let at = |common: &[usize], i: usize, j: usize| common.get(i * width + j).copied().unwrap_or(0);
    for (i, left) in a.iter().enumerate().rev() {
        for (j, right) in b.iter().enumerate().rev() {
            let best = if left == right { at(&common, i + 1, j + 1) + 1 } else { at(&common, i + 1, j).max(at(&common, i, j + 1)) };
            if let Some(cell) = common.get_mut(i * width + j) {
                *cell = best;
            }
        }
    }
    let mut hunks: Vec<(Vec<String>, Vec<String>)> = vec![];
    let mut open = false;
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        match (a.get(i), b.get(j)) {
            (Some(left), Some(right)) if left == right => {
                (i, j, open) = (i + 1, j + 1, false);
                continue;
            }
            (left, right) => {
                if !open {
                    hunks.push((vec![], vec![]));
                    open = true;
                }
                let Some((theirs, ours)) = hunks.last_mut() else { break };
                let take_left = right.is_none() || at(&common, i + 1, j) >= at(&common, i, j + 1);
                match (left, right) {
                    (Some(left), _) if take_left => {
                        theirs.push(left.clone());
                        i += 1;
                    }
                    (_, Some(right)) => {
                        ours.push(right.clone());
                        j += 1;
                    }
                    _ => break,
                }
            }
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_differ_where_their_longest_common_part_leaves_gaps() {
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let found = hunks(&list("a b c d e"), &list("a x c e f"));
        let expected = [("b", "x"), ("d", ""), ("", "f")].map(|(theirs, ours)| (list(theirs), list(ours)));
        assert_eq!(found, expected);
        assert!(hunks(&list("a b"), &list("a b")).is_empty());
    }
}
