//! Errors as readers see them: a stable code, a sentence that says what to do, and when to try again.

use serde::{Deserialize, Serialize};

/// The serialisable twin of every typed error of the workspace: in events, over HTTP and in logs.
///
/// The code is stable (`storage.conflict`, `model.rate_limit`); the message is for people and may change. Neither holds a prompt, a
/// payload or a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct ErrorInfo {
    /// `concern.kind`, stable.
    pub code: String,
    /// What happened and what to do next.
    pub message: String,
    /// Whether the same thing may work later without a change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retryable: bool,
    /// How long to wait before trying again, in milliseconds, where somebody said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl ErrorInfo {
    /// An error that trying again does not mend.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: false, retry_after_ms: None }
    }
}

/// A boxed cause. Foreign error types stay inside, so that a dependency can change without breaking anybody.
pub type Source = Box<dyn std::error::Error + Send + Sync>;
