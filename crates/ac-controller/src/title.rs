use std::{sync::Arc, time::Duration};

use ac_core::ModelId;

/// How threads get their titles, where nobody gave them one (SPEC C-42, H-36): after the first answer on a thread without a title, a model is
/// asked for one. A title that a person gave stays.
#[derive(Clone, Debug)]
#[must_use]
pub struct TitleGenerator {
    pub(crate) model: Option<ModelId>,
    pub(crate) instructions: Arc<str>,
    pub(crate) timeout: Duration,
}

const INSTRUCTIONS: &str = "You name conversations. Answer with a title for the conversation that you are shown: at most six words, in its \
    language, without quotation marks and without a full stop. Answer with the title alone.";

impl Default for TitleGenerator {
    /// The model of the session's mode, 30 seconds.
    fn default() -> Self {
        Self { model: None, instructions: INSTRUCTIONS.into(), timeout: Duration::from_secs(30) }
    }
}

impl TitleGenerator {
    /// A generator as by default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Who names threads: best a small model.
    pub fn model(mut self, model: impl Into<ModelId>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Other instructions.
    pub fn instructions(mut self, text: impl Into<Arc<str>>) -> Self {
        self.instructions = text.into();
        self
    }

    /// How long it may take.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

/// The longest title, in characters.
const LONGEST: usize = 100;

/// What a model said, as a title: one line, without the quotation marks that models like.
pub(crate) fn tidy(said: &str) -> String {
    let line = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let bare = line.trim_matches(|c: char| matches!(c, '"' | '\'' | '“' | '”' | '„' | '«' | '»' | '`' | '#' | '*') || c.is_whitespace());
    bare.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::tidy;

    #[test]
    fn a_title_is_one_bare_line() {
        assert_eq!(tidy("\n  \"Fixing the login\"\nBecause …"), "Fixing the login");
        assert_eq!(tidy("# “Login”"), "Login");
        assert_eq!(tidy(" \n "), "");
        assert_eq!(tidy(&"ä".repeat(300)).chars().count(), 100);
    }
}
