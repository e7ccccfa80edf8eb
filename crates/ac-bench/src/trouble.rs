//! Why a row could not be measured.

use std::fmt;

/// A sentence for the person who runs the program.
#[derive(Debug)]
pub(crate) struct Trouble(String);

impl Trouble {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for Trouble {
    fn from(error: E) -> Self {
        let mut sentence = error.to_string();
        let mut source = error.source();
        while let Some(next) = source {
            sentence.push_str(": ");
            sentence.push_str(&next.to_string());
            source = next.source();
        }
        Self(sentence)
    }
}
