//! What is particular to one provider: where it is, how it is asked, and in which ways its wire differs from the others that speak the
//! same protocol.

pub mod known;

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::mode::ToolCallMode;
pub(crate) use crate::name::CallIds;

/// The protocols that the runtime speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Api {
    /// OpenAI Chat Completions: `BASE/chat/completions`.
    OpenAiChat,
    /// OpenAI Responses: `BASE/responses`.
    OpenAiResponses,
    /// Anthropic Messages: `BASE/messages`.
    Anthropic,
    /// Google Gemini: `BASE/models/MODEL:streamGenerateContent`.
    Gemini,
    /// Ollama's own protocol: `BASE/api/chat`.
    Ollama,
}

impl Api {
    /// The feature of this crate that holds the adapter.
    pub const fn feature(self) -> &'static str {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses | Self::Ollama => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// Whether the adapter is compiled in.
    pub const fn is_built_in(self) -> bool {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses | Self::Ollama => cfg!(feature = "openai"),
            Self::Anthropic => cfg!(feature = "anthropic"),
            Self::Gemini => cfg!(feature = "gemini"),
        }
    }

    pub(crate) fn is_ndjson(self) -> bool {
        self == Self::Ollama
    }

    /// Where the models are listed.
    pub(crate) fn models_path(self) -> &'static str {
        if self == Self::Ollama { "/api/tags" } else { "/models" }
    }
}

/// How a key is shown to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Auth {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// A header that holds the key alone.
    Header(HeaderName),
}

/// How much of a model id is the model's name at the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelNames {
    /// What follows the first `/`; an id without one is a name.
    #[default]
    AfterProvider,
    /// All of it.
    Whole,
}

impl ModelNames {
    /// The name to send.
    pub fn name(self, model: &str) -> &str {
        match self {
            Self::AfterProvider => model.split_once('/').map_or(model, |(_, name)| name),
            Self::Whole => model,
        }
    }
}

/// One provider.
///
/// ```
/// use ac_llm::{Api, Profile, ToolCallMode};
///
/// let profile = Profile::new("lab", Api::OpenAiChat, "https://models.example.com/v1/")
///     .key_from(["LAB_API_KEY"])
///     .tool_calls(ToolCallMode::JsonAction); // for models without a form for calls
/// assert_eq!(&*profile.base_url, "https://models.example.com/v1");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Profile {
    /// What stands before the first `/` of its model ids. Opaque data carries it and goes back to no other.
    pub name: Arc<str>,
    /// What it speaks.
    pub api: Api,
    /// Up to and without the path of the protocol (`https://api.openai.com/v1`).
    pub base_url: Arc<str>,
    /// How a key is shown.
    pub auth: Auth,
    /// The variables that may hold a key, the usual one first. Empty: no key is needed.
    pub key_vars: Vec<Arc<str>>,
    /// A server of the user's own: a key is sent where there is one, and none is fine.
    pub key_optional: bool,
    /// Sent with every request.
    pub headers: HeaderMap,
    /// How much of a model id is the name.
    pub model_names: ModelNames,
    /// Marks in the request up to where its prefix may be read from a cache: Anthropic, and Claude behind a gateway (OpenRouter).
    pub cache_marks: bool,
    /// How its models ask for tools.
    pub tool_calls: ToolCallMode,
    /// Its models are whatever its user installed: a [`Router`](crate::Router) asks those that are known to have no form for calls in
    /// [`ToolCallMode::JsonAction`], whatever `tool_calls` says.
    pub local_models: bool,
    /// The differences of servers that speak Chat Completions.
    pub chat: ChatQuirks,
}

/// How a server that speaks Chat Completions differs from the others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChatQuirks {
    /// The field for the longest answer: `max_tokens`, or `max_completion_tokens` where reasoning counts.
    pub max_tokens: &'static str,
    /// Usage comes only when asked for by `stream_options`.
    pub usage_option: bool,
    /// Thinking goes back with the message, in the field it came in. Others refuse the field or bill it.
    pub replay_reasoning: bool,
    /// Ids of calls are nine letters and digits.
    pub short_call_ids: bool,
}

/// The careful middle that most servers take.
impl Default for ChatQuirks {
    fn default() -> Self {
        Self { max_tokens: "max_tokens", usage_option: true, replay_reasoning: false, short_call_ids: false }
    }
}

impl Profile {
    /// A provider of this name that speaks `api` at `base_url`, with a bearer key that it may do without.
    pub fn new(name: impl Into<Arc<str>>, api: Api, base_url: impl AsRef<str>) -> Self {
        Self {
            name: name.into(),
            api,
            base_url: base_url.as_ref().trim_end_matches('/').into(),
            auth: Auth::Bearer,
            key_vars: vec![],
            key_optional: true,
            headers: HeaderMap::new(),
            model_names: ModelNames::default(),
            cache_marks: api == Api::Anthropic,
            tool_calls: ToolCallMode::Native,
            local_models: false,
            chat: ChatQuirks::default(),
        }
    }

    /// A key is needed and these variables hold it, the usual one first.
    #[must_use]
    pub fn key_from<S: Into<Arc<str>>>(mut self, vars: impl IntoIterator<Item = S>) -> Self {
        self.key_vars = vars.into_iter().map(Into::into).collect();
        self.key_optional = false;
        self
    }

    /// Asks for tools in this way.
    #[must_use]
    pub fn tool_calls(mut self, mode: ToolCallMode) -> Self {
        self.tool_calls = mode;
        self
    }

    /// Its models are whatever its user installed; see [`Profile::local_models`].
    #[must_use]
    pub fn with_local_models(mut self) -> Self {
        self.local_models = true;
        self
    }

    /// How a model of this provider asks for tools when nobody says otherwise.
    pub fn tool_calls_of(&self, name: &str) -> ToolCallMode {
        if self.local_models && crate::mode::lacks_calls(name) { ToolCallMode::JsonAction } else { self.tool_calls }
    }

    /// Sends this header with every request. For a header with a secret use the key instead: this one is shown in `Debug`.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// The base as it may be told: a query and what stands before the host can hold a key.
    pub(crate) fn address(&self) -> String {
        let base = self.base_url.split(['?', '#']).next().unwrap_or_default();
        match base.split_once("://") {
            Some((scheme, rest)) => {
                let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                format!("{scheme}://{}{path}", host.rsplit('@').next().unwrap_or(host))
            }
            None => base.to_owned(),
        }
    }

    /// The address of `path` below the base. A query of the base (`?api-version=…`) stays at the end.
    pub(crate) fn url(&self, path: &str) -> String {
        match self.base_url.split_once('?') {
            Some((base, query)) => {
                let joint = if path.contains('?') { '&' } else { '?' };
                format!("{}{path}{joint}{query}", base.trim_end_matches('/'))
            }
            None => format!("{}{path}", self.base_url),
        }
    }

    pub(crate) fn call_ids(&self) -> CallIds {
        if self.chat.short_call_ids { CallIds::Nine } else { CallIds::Any }
    }
}
