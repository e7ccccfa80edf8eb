//! Models: what a provider is asked and what it answers, whatever its wire looks like.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{CancelToken, ErrorInfo, Message, ModelId, Part, ToolDefinition, error::Source};

/// A way to a language model.
///
/// A provider never retries: retrying is a policy that the driver applies, because only the driver knows what was shown already.
///
/// ```
/// use ac_core::{
///     CancelToken, FinishReason, ModelError, ModelEvent, ModelProvider, ModelRequest, ModelStream, Part, model::Finish,
/// };
/// use async_trait::async_trait;
/// use futures::stream;
///
/// /// Repeats what it is told.
/// struct Echo;
///
/// #[async_trait]
/// impl ModelProvider for Echo {
///     async fn stream(&self, request: ModelRequest, _: CancelToken) -> Result<ModelStream, ModelError> {
///         let said = request.messages.last().map(|message| message.text()).unwrap_or_default();
///         let events = [
///             ModelEvent::TextDelta { index: 0, text: said.clone() },
///             ModelEvent::PartDone { index: 0, part: Part::text(said) },
///             ModelEvent::Finish(Finish::new(FinishReason::Stop)),
///         ];
///         Ok(Box::pin(stream::iter(events.map(Ok))))
///     }
/// }
/// # drop(Echo);
/// ```
#[async_trait]
pub trait ModelProvider: Send + Sync + 'static {
    /// Asks the model. The stream yields events and then either one [`ModelEvent::Finish`] or one error, and nothing after that.
    ///
    /// When `cancel` fires the connection is closed at once and the stream ends with [`ModelErrorKind::Cancelled`].
    ///
    /// # Errors
    /// Whatever is known before the first event: a missing key, a refused connection, an HTTP status.
    async fn stream(&self, request: ModelRequest, cancel: CancelToken) -> Result<ModelStream, ModelError>;
}

/// The events of one answer.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// What a model is asked.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelRequest {
    /// `provider/name`.
    pub model: ModelId,
    /// The system text.
    pub instructions: Option<Arc<str>>,
    /// The conversation; each tool call in it has its result.
    pub messages: Vec<Arc<Message>>,
    /// What the model may ask for.
    pub tools: Arc<[ToolDefinition]>,
    /// Whether it must.
    pub tool_choice: ToolChoice,
    /// The longest answer, in tokens.
    pub max_output_tokens: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f32>,
    /// Provider options, by provider name, sent as they are.
    pub options: Map<String, Value>,
}

impl ModelRequest {
    /// Asks `model` to go on with `messages`.
    pub fn new(model: impl Into<ModelId>, messages: Vec<Arc<Message>>) -> Self {
        Self {
            model: model.into(),
            instructions: None,
            messages,
            tools: Arc::new([]),
            tool_choice: ToolChoice::Auto,
            max_output_tokens: None,
            temperature: None,
            options: Map::new(),
        }
    }
}

/// Whether a model must use a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It may not.
    None,
    /// It must use one.
    Required,
    /// It must use this one.
    Tool(String),
}

/// One step of an answer. `index` orders the parts of the answer and names the part that a delta belongs to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// Visible text goes on.
    TextDelta {
        /// The part.
        index: u32,
        /// What is added.
        text: String,
    },
    /// Thinking goes on.
    ReasoningDelta {
        /// The part.
        index: u32,
        /// What is added.
        text: String,
    },
    /// A tool call begins.
    ToolInputStart {
        /// The part.
        index: u32,
        /// The provider's id, where it gave one.
        id: Option<String>,
        /// The tool.
        name: String,
    },
    /// The arguments of a call go on, as JSON text.
    ToolInputDelta {
        /// The part.
        index: u32,
        /// What is added.
        text: String,
    },
    /// A part is complete. It equals what its deltas said, and carries what the provider wants back with it.
    PartDone {
        /// The part.
        index: u32,
        /// The whole part; a tool call is in state `call`, with an empty id where the provider gave none.
        part: Part,
    },
    /// The answer is complete. Always last.
    Finish(Finish),
}

/// How an answer ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finish {
    /// Why the model stopped.
    pub reason: FinishReason,
    /// In the provider's words.
    pub raw_reason: Option<String>,
    /// What it cost.
    pub usage: Option<Usage>,
    /// The provider's id of the answer.
    pub response_id: Option<String>,
    /// The model that really answered, as the provider names it.
    pub model: Option<String>,
    /// What a refusal or a content filter said about itself.
    pub explanation: Option<String>,
}

impl Finish {
    /// An end with nothing else known.
    pub fn new(reason: FinishReason) -> Self {
        Self { reason, raw_reason: None, usage: None, response_id: None, model: None, explanation: None }
    }
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// It reached the longest answer.
    Length,
    /// It wants tools.
    ToolCalls,
    /// The provider withheld the rest.
    ContentFilter,
    /// It declined.
    Refusal,
    /// The provider paused a long turn; sending the answer back goes on with it.
    Pause,
    /// The provider failed.
    Error,
    /// Something else.
    Other,
}

/// Tokens, as one provider counted them. `input` and `output` include cached and reasoning tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input: u64,
    /// Tokens written, reasoning included.
    pub output: u64,
    /// Both, as the provider counts.
    pub total: u64,
    /// Read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<u64>,
    /// Written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// Thought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    /// The provider's own object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
}

impl Usage {
    /// Input and output, and their sum.
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, total: input.saturating_add(output), ..Self::default() }
    }

    /// Adds another count; `raw` becomes the other's (SPEC S-61).
    pub fn add(&mut self, other: &Self) {
        fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
            match (a, b) {
                (None, None) => None,
                (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
            }
        }
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.total = self.total.saturating_add(other.total);
        self.cached_input = sum(self.cached_input, other.cached_input);
        self.cache_write = sum(self.cache_write, other.cache_write);
        self.reasoning = sum(self.reasoning, other.reasoning);
        if other.raw.is_some() {
            self.raw.clone_from(&other.raw);
        }
    }
}

/// Why a model did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// No such provider is configured.
    UnknownProvider,
    /// The provider has no such model.
    UnknownModel,
    /// No key is configured; the message names the variable.
    MissingKey,
    /// The key was refused.
    Auth,
    /// Too many requests.
    RateLimit,
    /// The account has no money left. Not retried.
    Quota,
    /// The provider has too much to do.
    Overloaded,
    /// The provider failed.
    Server,
    /// The conversation is longer than the model reads.
    ContextTooLong,
    /// The request itself is wrong.
    BadRequest,
    /// The provider refused the content.
    ContentFilter,
    /// No connection.
    Connect,
    /// Nothing came in time.
    Timeout,
    /// The stream ended before the answer did.
    Truncated,
    /// What came was no answer.
    Protocol,
    /// It was told to stop.
    Cancelled,
}

impl ModelErrorKind {
    /// `model.rate_limit`, … Stable.
    pub const fn code(self) -> &'static str {
        match self {
            Self::UnknownProvider => "model.unknown_provider",
            Self::UnknownModel => "model.unknown_model",
            Self::MissingKey => "model.missing_key",
            Self::Auth => "model.auth",
            Self::RateLimit => "model.rate_limit",
            Self::Quota => "model.quota",
            Self::Overloaded => "model.overloaded",
            Self::Server => "model.server",
            Self::ContextTooLong => "model.context_too_long",
            Self::BadRequest => "model.bad_request",
            Self::ContentFilter => "model.content_filter",
            Self::Connect => "model.connect",
            Self::Timeout => "model.timeout",
            Self::Truncated => "model.truncated",
            Self::Protocol => "model.protocol",
            Self::Cancelled => "model.cancelled",
        }
    }

    /// Whether the same request may work later.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::RateLimit | Self::Overloaded | Self::Server | Self::Connect | Self::Timeout | Self::Truncated)
    }
}

/// A model that did not answer, or not to the end. The message never holds a prompt or a key.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ModelError {
    /// Why.
    pub kind: ModelErrorKind,
    /// What happened and what to do.
    pub message: String,
    /// Who was asked.
    pub provider: Option<String>,
    /// The HTTP status.
    pub status: Option<u16>,
    /// The provider's own code.
    pub provider_code: Option<String>,
    /// The provider's own class of the error, where it has one beside the code.
    pub provider_type: Option<String>,
    /// What the provider said, as it said it, without keys. The message says it too.
    pub provider_message: Option<String>,
    /// The provider's id of the request, for its support.
    pub request_id: Option<String>,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
    /// Whether the provider itself says that the same request may work later. Where it says nothing, the kind decides.
    pub should_retry: Option<bool>,
    #[source]
    source: Option<Source>,
}

impl ModelError {
    /// A failure of this kind.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            provider: None,
            status: None,
            provider_code: None,
            provider_type: None,
            provider_message: None,
            request_id: None,
            retry_after: None,
            should_retry: None,
            source: None,
        }
    }

    /// Keeps the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// `model.rate_limit`, … Stable.
    pub const fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// Whether the same request may work later: what the provider says of it, else what the kind says.
    pub fn is_retryable(&self) -> bool {
        self.should_retry.unwrap_or_else(|| self.kind.is_retryable())
    }
}

impl From<&ModelError> for ErrorInfo {
    fn from(error: &ModelError) -> Self {
        Self {
            code: error.code().into(),
            message: error.message.clone(),
            retryable: error.is_retryable(),
            retry_after_ms: error.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}
