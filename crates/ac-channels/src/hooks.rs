//! What a host may decide about its channels.

use ac_controller::Session;
use ac_core::{ErrorInfo, ResourceId, ThreadId, event::PendingKind};
use async_trait::async_trait;

use crate::event::{Conversation, Speaker};

/// A decision of the host about who talks with what, and who may decide. Every method has a default.
///
/// ```
/// use ac_channels::{About, ChannelHooks, Deciding};
/// use ac_core::ResourceId;
/// use async_trait::async_trait;
///
/// /// Threads of direct messages belong to the person; only Grace decides in channels.
/// struct Ours;
///
/// #[async_trait]
/// impl ChannelHooks for Ours {
///     async fn resolve_resource_id(&self, about: &About<'_>) -> Option<ResourceId> {
///         about.conversation.direct.then(|| about.speaker.id.as_str().into())
///     }
///
///     async fn may_decide(&self, decision: &Deciding<'_>) -> bool {
///         decision.about.conversation.direct || decision.about.speaker.id == "U-GRACE"
///     }
/// }
/// # drop(Ours);
/// ```
#[async_trait]
pub trait ChannelHooks: Send + Sync + 'static {
    /// Who the thread of a new conversation belongs to; `None` is `channel:<conversation id>`. Asked once per conversation (SPEC N-6).
    async fn resolve_resource_id(&self, _about: &About<'_>) -> Option<ResourceId> {
        None
    }

    /// The id of the thread of a new conversation; `None`, and an id that exists already, is a fresh one. Asked once per conversation.
    async fn resolve_thread_id(&self, _about: &About<'_>) -> Option<ThreadId> {
        None
    }

    /// May refuse a person or a conversation, before a session exists: nothing is stored for the agent and nothing is posted
    /// (SPEC N-10, fail closed). May also bring a session of its own, which must belong to `resource`; `None` is the conversation's own.
    /// Asked for every message and for every click.
    ///
    /// # Errors
    /// The refusal; it is logged, without the text.
    async fn resolve_session(&self, _about: &About<'_>, _resource: &ResourceId) -> Result<Option<Session>, SessionRefused> {
        Ok(None)
    }

    /// Prepares a session: once for each session in each process, before its first message. An error is logged, and changes nothing
    /// (SPEC N-12).
    ///
    /// # Errors
    /// Whatever went wrong.
    async fn on_session_start(&self, _session: &Session, _about: &About<'_>) -> Result<(), ac_core::error::Source> {
        Ok(())
    }

    /// Whether a person may decide. In a direct message that is whoever is there, elsewhere the person who started the run.
    async fn may_decide(&self, decision: &Deciding<'_>) -> bool {
        decision.by_default()
    }

    /// The text of a plan, as Markdown, where the host can read the file.
    async fn plan_text(&self, _session: &Session, _path: &str) -> Option<String> {
        None
    }

    /// The one line that people see when a run failed; `None` is a friendly one.
    fn format_error(&self, _error: &ErrorInfo) -> Option<String> {
        None
    }
}

/// Nothing decided otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl ChannelHooks for NoHooks {}

/// Who does something where.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The platform.
    pub platform: &'a str,
    /// The conversation.
    pub conversation: &'a Conversation,
    /// The person.
    pub speaker: &'a Speaker,
}

/// Somebody wants to decide something.
#[derive(Clone, Copy, Debug)]
pub struct Deciding<'a> {
    /// Who, and where.
    pub about: About<'a>,
    /// What is to be decided.
    pub kind: PendingKind,
    /// The tool.
    pub tool: &'a str,
    /// Who started the run; `None` when that was nobody in this conversation.
    pub starter: Option<&'a Speaker>,
}

impl Deciding<'_> {
    /// What holds where the host says nothing: in a direct message anyone, elsewhere the person who started the run.
    pub fn by_default(&self) -> bool {
        self.about.conversation.direct || self.starter.is_some_and(|starter| starter.id == self.about.speaker.id)
    }
}

/// A conversation, or a person, that the host does not serve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("refused: {0}")]
pub struct SessionRefused(pub String);
