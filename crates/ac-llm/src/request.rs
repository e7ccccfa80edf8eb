//! The request half of an adapter: a neutral request becomes an HTTP request. Pure: no socket, no clock, no key.

use ac_core::{ModelError, ModelRequest};
use http::HeaderMap;
use serde_json::{Map, Value};

use crate::{
    error::Origin,
    name::ToolNames,
    profile::{Api, Profile},
};

/// An HTTP request without its key, which is added when it is sent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WireRequest {
    /// Where to.
    pub url: String,
    /// Headers besides `content-type` and the key.
    pub headers: HeaderMap,
    /// The JSON body.
    pub body: Value,
}

impl WireRequest {
    pub(crate) fn post(profile: &Profile, path: &str, body: Map<String, Value>) -> Self {
        Self { url: profile.url(path), headers: profile.headers.clone(), body: Value::Object(body) }
    }
}

/// Makes the HTTP request that asks for a streamed answer.
///
/// # Errors
/// When the request cannot be said in the provider's protocol.
pub fn build(profile: &Profile, request: &ModelRequest) -> Result<WireRequest, ModelError> {
    match profile.api {
        Api::OpenAiChat => crate::openai_chat::request::build(profile, request),
        Api::OpenAiResponses => crate::openai_responses::request::build(profile, request),
        Api::Anthropic => crate::anthropic::request::build(profile, request),
        Api::Gemini => crate::gemini::request::build(profile, request),
        Api::Ollama => crate::ollama::request::build(profile, request),
    }
}

/// The tool names that a request and its history may hold.
pub(crate) fn tool_names(request: &ModelRequest) -> ToolNames {
    let history = request.messages.iter().flat_map(|message| message.tool_calls()).map(|call| call.name.as_str());
    ToolNames::new(request.tools.iter().map(|tool| tool.name.as_str()).chain(history))
}

/// Who is asked.
pub(crate) fn origin(profile: &Profile, model: &str) -> Origin {
    Origin {
        provider: profile.name.clone(),
        key_var: profile.key_vars.first().cloned(),
        base_url: profile.base_url.clone(),
        model: profile.model_names.name(model).into(),
    }
}

/// Adds the host's options for this provider, as they are; they win.
pub(crate) fn add_options(body: &mut Map<String, Value>, profile: &Profile, request: &ModelRequest) {
    if let Some(Value::Object(options)) = request.options.get(&*profile.name) {
        body.extend(options.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
}
