//! Exit codes.

use std::process::ExitCode;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It is done.
    Complete,
    /// It failed.
    Failed,
    /// Only a person can move it on.
    Waiting,
    /// It was called wrongly.
    Usage,
    /// Ctrl-C ended it.
    Aborted,
}

impl Exit {
    /// The number.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::Failed => 1,
            Self::Waiting => 2,
            Self::Usage => 64,
            Self::Aborted => 130,
        }
    }

    /// From a number that another process sent; an unknown one is a failure.
    pub(crate) fn from_code(code: u64) -> Self {
        [Self::Complete, Self::Waiting, Self::Usage, Self::Aborted]
            .into_iter()
            .find(|exit| u64::from(exit.code()) == code)
            .unwrap_or(Self::Failed)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// Why a command did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// How the program ends.
    pub(crate) exit: Exit,
    /// Stable, for scripts.
    pub(crate) code: String,
    /// What happened and what to do.
    pub(crate) message: String,
}

impl Failure {
    /// It did not work.
    pub(crate) fn failed(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, code: code.into(), message: message.into() }
    }

    /// Says it to a person.
    pub(crate) fn complain(&self) {
        let code = if self.code == "usage" { String::new() } else { format!(" ({})", self.code) };
        crate::talk::complain(&format!("{}{code}", self.message));
    }

    /// It was asked wrongly.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, code: "usage".into(), message: message.into() }
    }
}
