use std::sync::Arc;

use ac_core::{CancelToken, ModelError, ModelProvider, ModelRequest, ModelStream};
use async_trait::async_trait;
use secrecy::SecretString;

use super::{HttpProvider, Timeouts};
use crate::{
    profile::{Api, ModelNames, Profile},
    transport::Transport,
};

/// A server that speaks Chat Completions at a base URL: `BASE/chat/completions`, `BASE/models`.
///
/// No key is needed; one is sent where there is one.
#[derive(Clone, Debug)]
pub struct OpenAiCompatible(HttpProvider);

impl OpenAiCompatible {
    /// The server at `base_url`, such as `http://127.0.0.1:8080/v1`.
    pub fn new(base_url: impl AsRef<str>, transport: Arc<dyn Transport>) -> Self {
        Self::from_profile(Profile::new("openai-compatible", Api::OpenAiChat, base_url), transport)
    }

    /// A server with differences of its own.
    pub fn from_profile(profile: Profile, transport: Arc<dyn Transport>) -> Self {
        Self(HttpProvider::new(profile, transport))
    }

    /// With this key.
    #[must_use]
    pub fn key(self, key: impl Into<Option<SecretString>>) -> Self {
        Self(self.0.key(key))
    }

    /// With other time-outs.
    #[must_use]
    pub fn timeouts(self, timeouts: Timeouts) -> Self {
        Self(self.0.timeouts(timeouts))
    }

    /// How much of a model id is the name that the server is told. By default what follows the first `/`.
    #[must_use]
    pub fn model_names(mut self, names: ModelNames) -> Self {
        Arc::make_mut(&mut self.0.profile).model_names = names;
        self
    }

    /// What the server lists under `BASE/models`.
    ///
    /// # Errors
    /// As [`ModelProvider::stream`].
    pub async fn models(&self, cancel: CancelToken) -> Result<Vec<String>, ModelError> {
        self.0.models(cancel).await
    }
}

#[async_trait]
impl ModelProvider for OpenAiCompatible {
    async fn stream(&self, request: ModelRequest, cancel: CancelToken) -> Result<ModelStream, ModelError> {
        self.0.stream(request, cancel).await
    }
}
