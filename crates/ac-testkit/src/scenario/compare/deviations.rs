use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Difference;
use crate::scenario::{ScenarioError, ScenarioErrorKind};

/// Where this runtime differs from the golden scenarios on purpose.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Deviations {
    /// The rules that decide it, by a short name.
    pub rules: BTreeMap<String, Rule>,
    /// What differs, by scenario.
    pub scenarios: BTreeMap<String, Vec<Deviation>>,
}

/// Why something differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// A `[W]` rule of the behaviour specification, or a sentence of the architecture.
    pub rule: String,
    /// The reason, for people.
    pub reason: String,
}

/// Something that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deviation {
    /// The rule that decides it, by its short name.
    pub rule: String,
    /// What differs.
    #[serde(flatten)]
    pub what: Difference,
    /// What differs instead where a moment decides: the scenario looks at something that is still going on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<Difference>,
}

impl Deviation {
    fn is(&self, difference: &Difference) -> bool {
        self.what == *difference || self.or.contains(difference)
    }
}

impl Deviations {
    /// The list of this repository.
    ///
    /// # Errors
    /// [`ScenarioErrorKind::Malformed`].
    pub fn ours() -> Result<Self, ScenarioError> {
        serde_json::from_str(include_str!("deviations.json"))
            .map_err(|error| ScenarioError::new(ScenarioErrorKind::Malformed, "the list of deviations cannot be read").with_source(error))
    }

    /// The rules that decide these differences, and what no rule does; a listed deviation that does not occur is among the latter.
    pub fn explain(&self, scenario: &str, differences: &[Difference]) -> (Vec<String>, Vec<String>) {
        let mut listed: Vec<&Deviation> = self.scenarios.get(scenario).into_iter().flatten().collect();
        let (mut rules, mut failures) = (vec![], vec![]);
        for difference in differences {
            match listed.iter().position(|deviation| deviation.is(difference)) {
                Some(at) => {
                    let rule = &listed.remove(at).rule;
                    if !self.rules.contains_key(rule) {
                        failures.push(format!("the deviation of {} names a rule that is not listed: {rule}", difference.field));
                    }
                    rules.push(rule.clone());
                }
                None => failures.push(difference.to_string()),
            }
        }
        failures.extend(listed.iter().map(|deviation| format!("listed, and no longer so: {}", deviation.what)));
        rules.sort();
        rules.dedup();
        (rules, failures)
    }

    /// The part of the documentation that is made from this list.
    pub fn page(&self) -> String {
        let mut text = String::from("| what | decided by | reason | scenarios |\n|---|---|---|---|\n");
        for (name, Rule { rule, reason }) in &self.rules {
            let of: Vec<&str> = self
                .scenarios
                .iter()
                .filter(|(_, deviations)| deviations.iter().any(|deviation| deviation.rule == *name))
                .map(|(scenario, _)| scenario.as_str())
                .collect();
            text.push_str(&format!("| `{name}` | {rule} | {reason} | {} |\n", of.join(", ")));
        }
        text
    }
}
