//! Failures of providers, read into one form.
//!
//! Servers say the same things in a dozen shapes: an `error` object, an `error` text, `detail`, top-level fields, a list of one. The status
//! alone often misleads (a bad key is a 400 at two of them), so what the body says comes first.

use std::{sync::Arc, time::SystemTime};

use ac_core::{ModelError, ModelErrorKind as Kind};
use http::HeaderMap;
use serde_json::Value;

use crate::{
    profile::Api,
    retry::after::retry_after,
    transport::{TransportError, TransportErrorKind},
};

/// Who was asked, for the sentence that says what to do.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) provider: Arc<str>,
    /// The variable that holds the key.
    pub(crate) key_var: Option<Arc<str>>,
    pub(crate) base_url: Arc<str>,
    /// The model, as the provider names it.
    pub(crate) model: Arc<str>,
}

/// What an error body says.
#[derive(Debug, Default)]
struct Said {
    message: Option<String>,
    code: Option<String>,
    class: Option<String>,
    status: Option<u16>,
    /// Machine-readable reasons of the details (`API_KEY_INVALID`).
    reasons: Vec<String>,
}

/// The longest text of a provider that goes into a message.
const TEXT_LIMIT: usize = 600;

impl Origin {
    /// An error of the adapter's own.
    pub(crate) fn error(&self, kind: Kind, message: impl std::fmt::Display) -> ModelError {
        let mut error = ModelError::new(kind, format!("{}: {message}", self.provider));
        error.provider = Some(self.provider.to_string());
        error
    }

    pub(crate) fn protocol(&self, what: impl std::fmt::Display) -> ModelError {
        self.error(Kind::Protocol, what)
    }

    /// The adapter of this protocol was left out when the program was built.
    pub(crate) fn not_built_in(&self, api: Api) -> ModelError {
        self.error(
            Kind::UnknownProvider,
            format_args!("its protocol is not built in; build with the feature `{}` of agent-controller (or of ac-llm)", api.feature()),
        )
    }

    pub(crate) fn truncated(&self) -> ModelError {
        self.error(Kind::Truncated, "the answer was cut off before its end; what came so far is kept, ask again for the rest")
    }

    pub(crate) fn cancelled(&self) -> ModelError {
        self.error(Kind::Cancelled, "stopped as asked")
    }

    /// No answer at all, or one that broke off.
    pub(crate) fn transport(&self, error: TransportError) -> ModelError {
        let at = &self.base_url;
        let failed = match error.kind {
            TransportErrorKind::Request => {
                self.error(Kind::BadRequest, format_args!("no request can be sent to {at} ({error}); correct the base URL"))
            }
            TransportErrorKind::Connect => self.error(
                Kind::Connect,
                format_args!("no connection to {at} ({error}); start the server there, correct the base URL, or check the network"),
            ),
            TransportErrorKind::Broken => self.error(Kind::Connect, format_args!("the connection to {at} broke ({error}); ask again")),
            TransportErrorKind::Timeout => self.error(Kind::Timeout, format_args!("{at} did not answer in time ({error}); ask again")),
        };
        failed.with_source(error)
    }

    /// An answer with a status that is no success.
    pub(crate) fn status(&self, status: u16, headers: &HeaderMap, body: &[u8], now: SystemTime) -> ModelError {
        let value: Option<Value> = serde_json::from_slice(trim_ascii_bom(body)).ok().or_else(|| in_event(body)).map(first);
        let said = match &value {
            Some(value) => read(value),
            None => Said { message: text_of(body), ..Said::default() },
        };
        self.build(Some(status), headers, value.as_ref(), said, now)
    }

    /// An error object inside an answer whose status was success.
    pub(crate) fn in_answer(&self, status: u16, headers: &HeaderMap, value: &Value, now: SystemTime) -> ModelError {
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        let mut error = self.build(None, headers, Some(value), read(value), now);
        error.status = Some(status);
        error
    }

    fn build(&self, status: Option<u16>, headers: &HeaderMap, value: Option<&Value>, said: Said, now: SystemTime) -> ModelError {
        let kind = classify(status.or(said.status), &said);
        let text = said.message.clone().unwrap_or_default();
        let what = match (status, text.trim()) {
            (Some(status), "") => format!("answered {status}{}", name_of(&said)),
            (Some(status), text) => format!("answered {status}: {}", text.trim_end_matches('.')),
            (None, "") => format!("reported an error{}", name_of(&said)),
            (None, text) => format!("reported an error: {}", text.trim_end_matches('.')),
        };
        let hint = self.hint(kind);
        let mut error = ModelError::new(kind, format!("{} {what}. {hint}", self.provider).trim_end().to_owned());
        error.provider = Some(self.provider.to_string());
        error.status = status;
        error.retry_after = retry_after(headers, value, said.message.as_deref(), now);
        error.provider_message = said.message;
        error.provider_code = said.code.or_else(|| said.class.clone());
        error.provider_type = said.class;
        error.request_id = request_id(headers, value);
        error.should_retry = match headers.get("x-should-retry").and_then(|value| value.to_str().ok()) {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        error
    }

    fn hint(&self, kind: Kind) -> String {
        match (kind, &self.key_var) {
            (Kind::Auth, Some(var)) => format!("Check the key: {var} holds it."),
            (Kind::Auth, None) => "Check the key and what it may do.".into(),
            (Kind::UnknownModel, _) => format!("Choose another model than `{}`, or check the base URL {}.", self.model, self.base_url),
            (Kind::Quota, _) => "The account has no credit left: add some, or choose another provider.".into(),
            (Kind::ContextTooLong, _) => "Start a new thread, shorten the conversation, or choose a model that reads more.".into(),
            (Kind::RateLimit | Kind::Overloaded | Kind::Server | Kind::Timeout, _) => "Ask again later.".into(),
            (Kind::ContentFilter, _) => "The provider's content policy refused it; say it differently.".into(),
            _ => String::new(),
        }
    }
}

fn name_of(said: &Said) -> String {
    said.code.as_ref().or(said.class.as_ref()).map_or_else(String::new, |name| format!(" ({name})"))
}

fn request_id(headers: &HeaderMap, value: Option<&Value>) -> Option<String> {
    ["x-request-id", "request-id", "apim-request-id", "x-ms-request-id", "x-goog-request-id", "cf-ray"]
        .iter()
        .find_map(|name| headers.get(*name)?.to_str().ok().map(str::to_owned))
        .or_else(|| value?.get("request_id")?.as_str().map(str::to_owned))
}

/// Whether a value of a 200 answer is an error: it carries one that is not null, or it is one.
pub(crate) fn is_error(value: &Value) -> bool {
    match value.get("error") {
        Some(Value::Null) | None => {
            ["object", "type"].iter().any(|field| value.get(*field).and_then(Value::as_str) == Some("error"))
                && value.get("message").is_some()
        }
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(_) => true,
    }
}

/// A code or a status: a text as it is, a number as text; empty and null are none.
fn word(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Gemini without server-sent events answers a list of one.
fn first(value: Value) -> Value {
    match value {
        Value::Array(list) => list.into_iter().next().unwrap_or_default(),
        value => value,
    }
}

/// The error of a body that was framed as an event stream in spite of its status.
fn in_event(body: &[u8]) -> Option<Value> {
    body.split(|byte| matches!(byte, b'\n' | b'\r')).find_map(|line| serde_json::from_slice(line.strip_prefix(b"data:")?).ok())
}

fn read(value: &Value) -> Said {
    let inner = match value.get("error") {
        Some(inner @ Value::Object(_)) => inner,
        _ => value,
    };
    let message = match (value.get("error"), inner.get("message"), value.get("detail")) {
        (Some(Value::String(text)), _, _) => Some(text.clone()),
        (_, Some(Value::String(text)), _) => Some(text.clone()),
        (_, Some(other), _) if !other.is_null() => Some(other.to_string()),
        (_, _, Some(Value::String(text))) => Some(text.clone()),
        (_, _, Some(Value::Object(fields))) => {
            fields.get("message").or_else(|| fields.get("error")).and_then(Value::as_str).map(str::to_owned)
        }
        (_, _, Some(Value::Array(list))) => Some(list.iter().filter_map(|item| item.get("msg")?.as_str()).collect::<Vec<_>>().join("; ")),
        _ => None,
    };
    // What an aggregator passes on from the server behind it says more than its own sentence.
    let raw = inner.get("metadata").and_then(|metadata| metadata.get("raw")).and_then(Value::as_str);
    let code = word(inner.get("code")).or_else(|| word(value.get("code")));
    let status = [inner.get("code"), inner.get("status"), value.get("code"), value.get("raw_status_code")]
        .into_iter()
        .find_map(|status| status?.as_u64().and_then(|n| u16::try_from(n).ok()).filter(|n| (400..600).contains(n)));
    let class = word(inner.get("type")).or_else(|| word(inner.get("status")).filter(|text| text.parse::<u16>().is_err()));
    let class = class.filter(|class| class != "error");
    let reasons = inner.get("details").and_then(Value::as_array).into_iter().flatten().filter_map(|detail| word(detail.get("reason")));
    Said {
        message: message.map(|message| match raw {
            Some(raw) if !raw.is_empty() => shorten(&format!("{message}: {raw}")),
            _ => shorten(&message),
        }),
        code,
        class,
        status,
        reasons: reasons.collect(),
    }
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= TEXT_LIMIT { text.to_owned() } else { text.chars().take(TEXT_LIMIT).chain(['…']).collect() }
}

/// What a person can use of a body that is no JSON.
fn text_of(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(trim_ascii_bom(body));
    let text = text.trim();
    if text.is_empty() {
        None
    } else if text.starts_with('<') {
        let lower = text.to_ascii_lowercase();
        let title = lower.find("<title>").and_then(|at| text.get(at + 7..)).and_then(|rest| rest.split('<').next()).map(str::trim);
        Some(format!(
            "a web page{}",
            title.filter(|title| !title.is_empty()).map_or_else(String::new, |title| format!(" ({})", shorten(title)))
        ))
    } else {
        Some(shorten(&text.split_whitespace().collect::<Vec<_>>().join(" ")))
    }
}

pub(crate) fn trim_ascii_bom(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii()
}

fn classify(status: Option<u16>, said: &Said) -> Kind {
    let code = said.code.as_deref().unwrap_or_default().to_ascii_lowercase();
    let class = said.class.as_deref().unwrap_or_default().to_ascii_lowercase();
    let text = said.message.as_deref().unwrap_or_default().to_ascii_lowercase();
    let named = |names: &[&str]| names.iter().any(|name| code == *name || class == *name);
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));

    if named(&["insufficient_quota", "billing_error", "billing_hard_limit_reached", "insufficient_credits"]) || status == Some(402) {
        return Kind::Quota;
    }
    if named(&["context_length_exceeded", "exceed_context_size_error", "string_above_max_length"])
        || says(&[
            "maximum context length",
            "prompt is too long",
            "context length exceeded",
            "context window",
            "exceeds the available context size",
            "input token count",
            "too many tokens in the prompt",
            "exceed context limit",
            "maximum prompt length",
            "input is too long for requested model",
        ])
    {
        return Kind::ContextTooLong;
    }
    if named(&["content_filter", "content_policy_violation", "responsibleaipolicyviolation", "content_filter_error"]) {
        return Kind::ContentFilter;
    }
    if named(&["rate_limit_exceeded", "rate_limit_error", "ratelimitreached", "resource_exhausted", "too_many_requests"]) {
        return if says(&[
            "check your plan and billing",
            "quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 0",
        ]) && !says(&["retry in"])
        {
            Kind::Quota
        } else {
            Kind::RateLimit
        };
    }
    if named(&["overloaded_error", "server_overloaded", "slow_down", "unavailable", "engine_overloaded"]) {
        return Kind::Overloaded;
    }
    if named(&[
        "invalid_api_key",
        "authentication_error",
        "permission_error",
        "unauthenticated",
        "permission_denied",
        "invalid_authentication",
    ]) || said.reasons.iter().any(|reason| reason == "API_KEY_INVALID")
        || says(&["incorrect api key", "invalid api key", "api key not valid", "invalid bearer token", "no api key", "missing api key"])
    {
        return Kind::Auth;
    }
    if named(&["model_not_found", "deploymentnotfound", "model_not_available", "unknown_model"])
        || matches!(status, Some(400 | 404))
            && text.contains("model")
            && says(&["not found", "does not exist", "not exist", "unknown model", "no such model", "is not a valid model"])
    {
        return Kind::UnknownModel;
    }
    if named(&["server_error", "api_error", "internal_server_error", "internal"]) && status.is_none_or(|status| status >= 500) {
        return Kind::Server;
    }
    match status {
        Some(401 | 403 | 407) => Kind::Auth,
        Some(404) => Kind::UnknownModel,
        Some(408 | 504) => Kind::Timeout,
        Some(429) => Kind::RateLimit,
        Some(503 | 529 | 498) => Kind::Overloaded,
        Some(409 | 500..=599) => Kind::Server,
        Some(300..=399) => Kind::Protocol,
        Some(_) => Kind::BadRequest,
        None if named(&["invalid_request_error", "invalid_prompt", "invalid_argument", "tool_use_failed"]) => Kind::BadRequest,
        None => Kind::Server,
    }
}

#[cfg(test)]
mod tests;
