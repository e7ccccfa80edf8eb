use ac_core::{ErrorInfo, error::Source};
use ac_engine::Refusal;
use ac_storage::StorageError;

/// Why a run did not take what it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RunErrorKind {
    /// There is no such run.
    NotFound,
    /// Another run holds the thread.
    Busy,
    /// Another process moves the run; its commits come first.
    Owned,
    /// The machine refused the input.
    Refused(Refusal),
    /// The answer does not fit what was asked; the message says why.
    InvalidAnswer,
    /// The store did not do what it was asked.
    Storage(ac_storage::StorageErrorKind),
    /// What is stored is no run that this version can read.
    Corrupt,
    /// A child run cannot be started, and the call that wants it fails; the message says why.
    ChildRefused,
    /// The process stops.
    Closed,
}

/// A run that did not take what it was given.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct RunError {
    kind: RunErrorKind,
    message: String,
    #[source]
    source: Option<Source>,
}

impl RunError {
    /// A failure of this kind.
    pub fn new(kind: RunErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Keeps the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Why.
    pub fn kind(&self) -> RunErrorKind {
        self.kind
    }

    /// Stable.
    pub const fn code(&self) -> &'static str {
        match self.kind {
            RunErrorKind::NotFound => "run.not_found",
            RunErrorKind::Busy => "run.busy",
            RunErrorKind::Owned => "run.owned",
            RunErrorKind::Refused(Refusal::AlreadyResolved) => "answer.already_resolved",
            RunErrorKind::Refused(Refusal::NotPending | Refusal::Finished) => "answer.not_pending",
            RunErrorKind::Refused(Refusal::InvalidAnswer) | RunErrorKind::InvalidAnswer => "answer.invalid",
            RunErrorKind::Refused(Refusal::Aborting) => "answer.aborting",
            RunErrorKind::Refused(_) => "run.stale",
            RunErrorKind::Storage(_) => "storage.failed",
            RunErrorKind::Corrupt => "storage.corrupt",
            RunErrorKind::ChildRefused => "run.child_refused",
            RunErrorKind::Closed => "run.closed",
        }
    }
}

impl From<StorageError> for RunError {
    fn from(error: StorageError) -> Self {
        Self::new(RunErrorKind::Storage(error.kind()), error.to_string()).with_source(error)
    }
}

impl From<Refusal> for RunError {
    fn from(refusal: Refusal) -> Self {
        Self::new(RunErrorKind::Refused(refusal), refusal.to_string())
    }
}

impl From<&RunError> for ErrorInfo {
    fn from(error: &RunError) -> Self {
        Self::new(error.code(), error.message.clone())
    }
}
