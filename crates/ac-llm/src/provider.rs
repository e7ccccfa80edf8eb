//! Providers over HTTP.

#[cfg(feature = "openai")]
mod compatible;
mod reading;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use ac_core::{CancelToken, ModelError, ModelErrorKind, ModelProvider, ModelRequest, ModelStream};
use async_trait::async_trait;
use bytes::Bytes;
#[cfg(feature = "openai")]
pub use compatible::OpenAiCompatible;
use futures::StreamExt;
use http::{HeaderValue, Method, header};
use reading::Reading;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::{
    decode::{AnswerHead, AnswerLimits, AnswerReader},
    error::Origin,
    history,
    profile::{Auth, Profile},
    request::{self, origin},
    transport::{HttpAnswer, Transport, TransportError},
};

/// How long to wait for an answer. The time to connect is the transport's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// From sending the request to the first byte of the answer's body. Local models read a long prompt for minutes.
    pub first_byte: Duration,
    /// Between two pieces of the body. A comment that keeps the connection alive is a piece.
    pub idle: Duration,
    /// The whole answer.
    pub total: Duration,
}

/// Five minutes, five minutes, one hour.
impl Default for Timeouts {
    fn default() -> Self {
        Self { first_byte: Duration::from_secs(300), idle: Duration::from_secs(300), total: Duration::from_secs(3600) }
    }
}

impl Timeouts {
    /// These three.
    pub const fn new(first_byte: Duration, idle: Duration, total: Duration) -> Self {
        Self { first_byte, idle, total }
    }
}

/// One provider over HTTP, whatever its protocol.
#[derive(Clone)]
pub struct HttpProvider {
    profile: Arc<Profile>,
    transport: Arc<dyn Transport>,
    key: Option<SecretString>,
    timeouts: Timeouts,
    limits: AnswerLimits,
}

impl std::fmt::Debug for HttpProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpProvider").field("name", &self.profile.name).field("base_url", &self.profile.address()).finish_non_exhaustive()
    }
}

impl HttpProvider {
    /// A provider without a key.
    pub fn new(profile: Profile, transport: Arc<dyn Transport>) -> Self {
        Self { profile: Arc::new(profile), transport, key: None, timeouts: Timeouts::default(), limits: AnswerLimits::default() }
    }

    /// With this key. An empty one is none.
    #[must_use]
    pub fn key(mut self, key: impl Into<Option<SecretString>>) -> Self {
        self.key = key.into().filter(|key| !key.expose_secret().trim().is_empty());
        self
    }

    /// With other time-outs.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// With other limits of what is read.
    #[must_use]
    pub fn limits(mut self, limits: AnswerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// What is particular to it.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The names of the provider's models, as it lists them.
    ///
    /// # Errors
    /// As [`ModelProvider::stream`].
    pub async fn models(&self, cancel: CancelToken) -> Result<Vec<String>, ModelError> {
        let origin = origin(&self.profile, "");
        let request =
            self.request(&origin, Method::GET, &self.profile.url(self.profile.api.models_path()), Bytes::new(), &self.profile.headers)?;
        let deadline = Instant::now() + self.timeouts.first_byte.min(Duration::from_secs(60));
        let listing = async {
            let mut answer =
                timeout_at(deadline, self.transport.send(request)).await.map_err(|_| late(&origin))?.map_err(|e| self.lost(&origin, e))?;
            let mut body = Vec::new();
            while let Some(piece) = timeout_at(deadline, answer.body.next()).await.map_err(|_| late(&origin))? {
                body.extend_from_slice(&piece.map_err(|error| self.lost(&origin, error))?);
                if body.len() > MODELS_LIMIT {
                    return Err(origin.protocol("the list of models is longer than the limit"));
                }
            }
            if !(200..300).contains(&answer.status) {
                return Err(self.redacted(origin.status(answer.status, &answer.headers, &body, SystemTime::now())));
            }
            let value: Value = serde_json::from_slice(&body).map_err(|error| {
                origin.protocol(format_args!("{} lists no models in JSON; check the base URL", origin.base_url)).with_source(error)
            })?;
            Ok(model_names(&value))
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(origin.cancelled()),
            listed = listing => listed,
        }
    }

    fn request(
        &self,
        origin: &Origin,
        method: Method,
        url: &str,
        body: Bytes,
        headers: &http::HeaderMap,
    ) -> Result<http::Request<Bytes>, ModelError> {
        let mut request = http::Request::builder().method(method).uri(url).body(body).map_err(|error| {
            origin.error(ModelErrorKind::BadRequest, format_args!("`{url}` is no address; correct the base URL")).with_source(error)
        })?;
        if request.uri().host().is_none() || !matches!(request.uri().scheme_str(), Some("http" | "https")) {
            return Err(origin.error(
                ModelErrorKind::BadRequest,
                format_args!("`{}` is no web address; a base URL begins with http:// or https://", self.profile.address()),
            ));
        }
        let sent = request.headers_mut();
        sent.extend(headers.clone());
        match &self.key {
            None if !self.profile.key_optional => return Err(self.missing_key(origin)),
            None => {}
            Some(key) => {
                let (name, value) = match &self.profile.auth {
                    Auth::Bearer => (header::AUTHORIZATION, format!("Bearer {}", key.expose_secret().trim())),
                    Auth::Header(name) => (name.clone(), key.expose_secret().trim().to_owned()),
                };
                let mut value = HeaderValue::from_str(&value)
                    .map_err(|_| origin.error(ModelErrorKind::Auth, "the key holds characters that no header may hold; check it"))?;
                value.set_sensitive(true);
                sent.insert(name, value);
            }
        }
        Ok(request)
    }

    /// Whether the key that is needed is there.
    pub(crate) fn check_key(&self) -> Result<(), ModelError> {
        if self.key.is_none() && !self.profile.key_optional { Err(self.missing_key(&origin(&self.profile, ""))) } else { Ok(()) }
    }

    fn missing_key(&self, origin: &Origin) -> ModelError {
        let what = match self.profile.key_vars.as_slice() {
            [] => "no key is configured; give one".to_owned(),
            [var] => format!("no key is configured; set {var}"),
            [var, others @ ..] => format!("no key is configured; set {var} (or {})", others.join(", ")),
        };
        origin.error(ModelErrorKind::MissingKey, what)
    }

    /// A server may repeat the key in its complaint about it.
    fn redacted(&self, mut error: ModelError) -> ModelError {
        if let Some(key) = self.key.as_ref().map(|key| key.expose_secret().trim()).filter(|key| key.len() >= 6) {
            error.message = error.message.replace(key, "[key]");
            error.provider_message = error.provider_message.map(|text| text.replace(key, "[key]"));
        }
        error
    }

    fn lost(&self, origin: &Origin, error: TransportError) -> ModelError {
        self.redacted(origin.transport(error))
    }
}

/// A list of models longer than this is none.
const MODELS_LIMIT: usize = 16 << 20;

fn late(origin: &Origin) -> ModelError {
    origin.error(
        ModelErrorKind::Timeout,
        format_args!("{} did not begin to answer in time; ask again, or allow it more time", origin.base_url),
    )
}

/// `data[].id` (OpenAI), `models[].name` (Ollama, Gemini) or a bare list.
fn model_names(value: &Value) -> Vec<String> {
    let list = value.get("data").or_else(|| value.get("models")).unwrap_or(value);
    let names = list.as_array().into_iter().flatten().filter_map(|model| {
        let name = model.get("id").or_else(|| model.get("name")).unwrap_or(model).as_str()?;
        Some(name.strip_prefix("models/").unwrap_or(name).to_owned())
    });
    names.collect()
}

#[async_trait]
impl ModelProvider for HttpProvider {
    async fn stream(&self, request: ModelRequest, cancel: CancelToken) -> Result<ModelStream, ModelError> {
        let origin = origin(&self.profile, request.model.as_str());
        match self.open(&origin, &request, &cancel).await {
            // Thinking that was signed under other circumstances makes a thread refused for good. Without it the thread goes on; nothing
            // was told yet, and it is another request, so this is no retry.
            Err(error) if refuses_thinking(&error) => {
                let plain = history::without_thinking(&request);
                if plain == request { Err(error) } else { self.open(&origin, &plain, &cancel).await }
            }
            opened => opened,
        }
    }
}

/// Whether a provider complains of the thinking that it was sent back.
fn refuses_thinking(error: &ModelError) -> bool {
    let text = error.provider_message.as_deref().unwrap_or_default().to_ascii_lowercase();
    error.kind == ModelErrorKind::BadRequest
        && ["signature", "encrypted_content", "encrypted content", "thinking block", "without its required"]
            .iter()
            .any(|word| text.contains(word))
}

impl HttpProvider {
    async fn open(&self, origin: &Origin, request: &ModelRequest, cancel: &CancelToken) -> Result<ModelStream, ModelError> {
        let wire = request::build(&self.profile, request)?;
        let body = wire.bytes().map_err(|error| origin.error(ModelErrorKind::BadRequest, "the request is no JSON").with_source(error))?;
        let mut http = self.request(origin, Method::POST, &wire.url, body.into(), &wire.headers)?;
        http.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        http.headers_mut().entry(header::ACCEPT).or_insert(HeaderValue::from_static("text/event-stream, application/json"));

        let started = Instant::now();
        let total = started + self.timeouts.total;
        let first = (started + self.timeouts.first_byte).min(total);
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(origin.cancelled()),
            answer = timeout_at(first, self.transport.send(http)) => match answer {
                Err(_) => return Err(late(origin)),
                Ok(answer) => answer.map_err(|error| self.lost(origin, error))?,
            },
        };
        let HttpAnswer { status, headers, body } = answer;
        let reader = AnswerReader::new(&self.profile, request, AnswerHead::new(status, headers, SystemTime::now()), self.limits);
        let reading = Reading::new(self.clone(), origin.clone(), reader, body, cancel.clone(), first, total);
        if !(200..300).contains(&status) {
            // An error status is known before the first event, so it is told as such.
            return match reading.into_stream().next().await {
                Some(Err(error)) => Err(error),
                _ => Err(origin.protocol("an error without a body")),
            };
        }
        Ok(reading.into_stream())
    }
}

#[cfg(test)]
#[cfg(all(feature = "transport-reqwest", feature = "openai", feature = "anthropic"))]
mod tests;
