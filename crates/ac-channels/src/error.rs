use std::time::Duration;

use ac_core::error::Source;

/// Why a channel did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChannelErrorKind {
    /// The platform wants a pause; [`ChannelError::retry_after`] says how long.
    RateLimited,
    /// The message already says exactly that. Nothing is wrong.
    NotModified,
    /// The message, or the conversation, is not there any more, or may not be changed any more.
    Gone,
    /// The platform found the text too long. The same text is refused again.
    TooLong,
    /// The platform does not accept the credentials, or they do not reach that far.
    Denied,
    /// The platform did not answer, or not with sense; the request may have had its effect.
    Unavailable,
    /// The platform refused the request as it is.
    Rejected,
    /// The platform, or this adapter, has no such thing.
    Unsupported,
    /// A file is larger than it may be.
    TooLarge,
    /// The channels were built without something that they need.
    Config,
    /// The store did not do what it was asked.
    Storage,
    /// The session did not do what it was asked.
    Session,
    /// Somebody else works on the session at this moment, or a process that died still has it for a while. It passes.
    Busy,
    /// The channels were shut down.
    Closed,
}

/// A channel that did not do what it was asked. Holds no text of a conversation and no key.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ChannelError {
    kind: ChannelErrorKind,
    message: String,
    retry_after: Option<Duration>,
    #[source]
    source: Option<Source>,
}

impl ChannelError {
    /// A failure of this kind.
    pub fn new(kind: ChannelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, source: None }
    }

    /// The platform wants a pause.
    pub fn rate_limited(retry_after: Duration) -> Self {
        let message = format!("the platform wants a pause of {} s", retry_after.as_secs_f32());
        Self { retry_after: Some(retry_after), ..Self::new(ChannelErrorKind::RateLimited, message) }
    }

    /// What an adapter cannot do.
    pub fn unsupported(what: &str) -> Self {
        Self::new(ChannelErrorKind::Unsupported, format!("this adapter cannot {what}"))
    }

    /// Keeps the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Why.
    pub fn kind(&self) -> ChannelErrorKind {
        self.kind
    }

    /// How long the platform wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// `channel.rate_limited`, `channel.gone`, … Stable.
    pub fn code(&self) -> &'static str {
        use ChannelErrorKind as K;
        match self.kind {
            K::RateLimited => "channel.rate_limited",
            K::NotModified => "channel.not_modified",
            K::Gone => "channel.gone",
            K::TooLong => "channel.too_long",
            K::Denied => "channel.denied",
            K::Unavailable => "channel.unavailable",
            K::Rejected => "channel.rejected",
            K::Unsupported => "channel.unsupported",
            K::TooLarge => "channel.too_large",
            K::Config => "channel.config",
            K::Storage => "channel.storage",
            K::Session => "channel.session",
            K::Busy => "channel.busy",
            K::Closed => "channel.closed",
        }
    }

    /// Whether the same thing may work later.
    pub fn is_transient(&self) -> bool {
        use ChannelErrorKind as K;
        matches!(self.kind, K::RateLimited | K::Unavailable | K::Storage | K::Busy)
    }
}

impl From<ac_storage::StorageError> for ChannelError {
    fn from(error: ac_storage::StorageError) -> Self {
        Self::new(ChannelErrorKind::Storage, error.to_string()).with_source(error)
    }
}

impl From<ac_controller::ControllerError> for ChannelError {
    fn from(error: ac_controller::ControllerError) -> Self {
        use ac_controller::{ControllerErrorKind as K, RunErrorKind};
        let kind = match error.kind() {
            K::Storage(_) => ChannelErrorKind::Storage,
            K::Contended | K::Run(RunErrorKind::Owned | RunErrorKind::Busy) => ChannelErrorKind::Busy,
            K::Closed => ChannelErrorKind::Closed,
            _ => ChannelErrorKind::Session,
        };
        Self::new(kind, error.to_string()).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use ac_controller::{ControllerError, ControllerErrorKind as K, RunErrorKind};

    use super::*;

    #[test]
    fn a_session_that_somebody_else_works_on_is_waited_for() {
        for kind in [K::Contended, K::Run(RunErrorKind::Owned), K::Run(RunErrorKind::Busy)] {
            let error = ChannelError::from(ControllerError::new(kind, "another process has it"));
            assert_eq!((error.kind(), error.code(), error.is_transient()), (ChannelErrorKind::Busy, "channel.busy", true), "{kind:?}");
        }
        assert!(!ChannelError::from(ControllerError::new(K::NoModel, "no model")).is_transient());
    }
}
