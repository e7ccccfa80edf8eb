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
