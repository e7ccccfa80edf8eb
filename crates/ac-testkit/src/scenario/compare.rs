//! Compares a recording with a golden one.
//!
//! Both sides are first folded to one form ([`fold`]): what differs only by the four global decisions (one message per step,
//! `message_end` at a suspension, the same id after a resume, own events), by the names of ids, or by the wording of sentences that each
//! side writes itself, is equal there. What differs after that is a [`Difference`], and must be listed as a [`Deviation`] with the rule
//! that decides it. A deviation that is listed and does not occur is a failure too.

mod deviations;
mod differ;
mod fold;
mod parts;
mod sound;
mod told;

pub use deviations::{Deviation, Deviations, Rule};
pub use differ::Difference;
pub use fold::{Folded, fold};
pub use sound::complaints;

use super::Recording;

/// How a recording stands to a golden one.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The same in substance.
    Same,
    /// It differs as listed; the rules that decide it.
    Deviating(Vec<String>),
    /// Why it fails.
    Failed(Vec<String>),
}

/// Compares.
pub fn compare(golden: &Recording, ours: &Recording, listed: &Deviations) -> Verdict {
    let differences = differences(golden, ours);
    let mut failures = sound::complaints(ours);
    let (rules, unexplained) = listed.explain(&ours.name, &differences);
    failures.extend(unexplained);
    if !failures.is_empty() {
        return Verdict::Failed(failures);
    }
    if rules.is_empty() { Verdict::Same } else { Verdict::Deviating(rules) }
}

/// Where two recordings differ in substance.
pub fn differences(golden: &Recording, ours: &Recording) -> Vec<Difference> {
    differ::differ(&fold(golden), &fold(ours))
}
