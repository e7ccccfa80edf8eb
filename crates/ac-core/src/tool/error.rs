use crate::{ErrorInfo, error::Source};

/// Why a tool failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// The arguments make no sense to the tool.
    Args,
    /// It did not work; the message says why, for the model to read.
    Failed,
    /// It may not do that (a path outside the workspace, a policy).
    Denied,
    /// It was told to stop and did.
    Cancelled,
    /// The tool itself is broken: told as an error event besides the failed result.
    Fatal,
}

/// A tool that failed. The model reads the message as a failed result, and the run goes on.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    kind: ToolErrorKind,
    message: String,
    #[source]
    source: Option<Source>,
}

impl ToolError {
    /// A failure of this kind. The message is for the model and the person: what went wrong and what to do instead.
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// It did not work.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Failed, message)
    }

    /// The arguments make no sense.
    pub fn args(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Args, message)
    }

    /// Keeps the cause for logs; the model reads only the message.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Why it failed.
    pub fn kind(&self) -> ToolErrorKind {
        self.kind
    }

    /// `tool.args`, `tool.failed`, …
    pub fn code(&self) -> &'static str {
        match self.kind {
            ToolErrorKind::Args => "tool.args",
            ToolErrorKind::Failed => "tool.failed",
            ToolErrorKind::Denied => "tool.denied",
            ToolErrorKind::Cancelled => "tool.cancelled",
            ToolErrorKind::Fatal => "tool.fatal",
        }
    }
}

impl From<&ToolError> for ErrorInfo {
    fn from(error: &ToolError) -> Self {
        Self::new(error.code(), error.message.clone())
    }
}
