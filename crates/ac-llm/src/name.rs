//! Names and ids that a provider accepts.
//!
//! Providers take tool names of letters, digits, `_` and `-`, 64 at most; rules, approvals and events show the original. What has to change
//! gets a hash of the original, so that two names never meet, and the result depends on nothing but the name: a thread reads the same
//! after a restart and with other tools beside it.

use std::{borrow::Cow, collections::HashMap};

use sha2::{Digest, Sha256};

const LONGEST: usize = 64;

/// The tool name to send.
pub(crate) fn tool_name(name: &str) -> Cow<'_, str> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    // Gemini wants a letter or `_` first.
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if starts_well && name.len() <= LONGEST && name.chars().all(legal) {
        return Cow::Borrowed(name);
    }
    let first = if starts_well { "" } else { "_" };
    let cleaned = name.chars().map(|c| if legal(c) { c } else { '_' }).take(LONGEST - 10);
    Cow::Owned(first.chars().chain(cleaned).chain(['_']).chain(hex(name, 8)).collect())
}

/// Original names by the name that was sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolNames(HashMap<String, String>);

impl ToolNames {
    /// Only names that change need an entry.
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(
            names
                .into_iter()
                .filter_map(|name| match tool_name(name) {
                    Cow::Owned(sent) => Some((sent, name.to_owned())),
                    Cow::Borrowed(_) => None,
                })
                .collect(),
        )
    }

    /// The name that a person knows. A name that was never sent is the model's own invention and stays.
    pub(crate) fn original(&self, sent: &str) -> String {
        self.0.get(sent).map_or(sent, String::as_str).to_owned()
    }
}

/// What a provider takes as the id of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CallIds {
    /// Any text of up to 64 bytes.
    #[default]
    Any,
    /// Letters, digits, `_` and `-`.
    Plain,
    /// Exactly nine letters and digits.
    Nine,
}

impl CallIds {
    /// The id to send for a stored one; the same for call and result.
    pub(crate) fn legal(self, id: &str) -> Cow<'_, str> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        match self {
            Self::Any if !id.is_empty() && id.len() <= LONGEST => Cow::Borrowed(id),
            Self::Plain if !id.is_empty() && id.len() <= LONGEST && id.chars().all(plain) => Cow::Borrowed(id),
            Self::Nine if id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()) => Cow::Borrowed(id),
            Self::Nine => Cow::Owned(hex(id, 9).collect()),
            _ => Cow::Owned("call_".chars().chain(hex(id, 24)).collect()),
        }
    }
}

fn hex(text: &str, digits: usize) -> impl Iterator<Item = char> {
    let digest = Sha256::digest(text.as_bytes());
    digest.into_iter().flat_map(|byte| [byte >> 4, byte & 15]).filter_map(|nibble| char::from_digit(u32::from(nibble), 16)).take(digits)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    // B-112: names that no provider takes, and names that meet after cleaning.
    #[test]
    fn names_are_legal_unique_and_lead_back_to_the_original() {
        let long = "x".repeat(90);
        let names = ["db.query", "user/update", "größe", &long, "a.b", "a_b", "a-b", "a/b", "", "1st", "view", "_x"];
        let sent: Vec<_> = names.iter().map(|name| tool_name(name).into_owned()).collect();
        assert_eq!(sent.iter().collect::<HashSet<_>>().len(), names.len());
        for name in &sent {
            assert!((1..=64).contains(&name.len()), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'), "{name}");
            assert!(name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'), "{name}");
        }
        let back = ToolNames::new(names);
        assert_eq!(sent.iter().map(|name| back.original(name)).collect::<Vec<_>>(), names);
        assert_eq!((sent[10].as_str(), sent[0].as_str()), ("view", "db_query_82223c7d"));
        assert_eq!(back.original("invented"), "invented");
    }

    #[test]
    fn ids_that_a_provider_refuses_are_replaced_by_the_same_one_each_time() {
        assert_eq!(CallIds::Any.legal("functions.add:0"), "functions.add:0");
        assert!(CallIds::Plain.legal("functions.add:0").starts_with("call_"));
        assert_eq!(CallIds::Plain.legal("call_0~2"), CallIds::Plain.legal("call_0~2"));
        assert_ne!(CallIds::Plain.legal("call_0~2"), CallIds::Plain.legal("call_0~3"));
        assert_eq!(CallIds::Nine.legal("g6fVbXS8K"), "g6fVbXS8K");
        assert_eq!(CallIds::Nine.legal("call_1").len(), 9);
        assert!(CallIds::Any.legal(&"x".repeat(99)).len() <= 64);
    }
}
