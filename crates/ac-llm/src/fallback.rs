//! A list of models, the next of which answers where one cannot.

use std::sync::Arc;

use ac_core::{CancelToken, ModelError, ModelErrorKind, ModelId, ModelProvider, ModelRequest, ModelStream};
use async_trait::async_trait;
use futures::{StreamExt, stream};

/// Asks a model, and where it fails before it said anything, the next of a list.
///
/// What one model could not do because of the request (too long, refused by policy, malformed) the next is not asked for, but for a
/// conversation that is too long: another model may read more. Once anything was told there is no way back: the driver of the run then
/// retries as its policy says, and begins with the first model again.
#[derive(Clone)]
pub struct Fallback {
    provider: Arc<dyn ModelProvider>,
    then: Arc<[ModelId]>,
}

impl Fallback {
    /// Asks `provider` for the model of the request, then for each of `then`. With a [`Router`](crate::Router) these may be of any
    /// provider.
    pub fn new(provider: Arc<dyn ModelProvider>, then: impl IntoIterator<Item = ModelId>) -> Self {
        Self { provider, then: then.into_iter().collect() }
    }
}

impl std::fmt::Debug for Fallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fallback").field("then", &self.then).finish_non_exhaustive()
    }
}

fn moves_on(error: &ModelError) -> bool {
    use ModelErrorKind::{Auth, ContextTooLong, MissingKey, Quota, UnknownModel, UnknownProvider};
    error.is_retryable() || matches!(error.kind, Quota | Auth | MissingKey | UnknownModel | UnknownProvider | ContextTooLong)
}

#[async_trait]
impl ModelProvider for Fallback {
    async fn stream(&self, request: ModelRequest, cancel: CancelToken) -> Result<ModelStream, ModelError> {
        let models: Vec<ModelId> = std::iter::once(request.model.clone()).chain(self.then.iter().cloned()).collect();
        let mut first_error = None;
        for model in models {
            let mut attempt = request.clone();
            attempt.model = model;
            // The first event decides: an error in its place is one before anything was told.
            let error = match self.provider.stream(attempt, cancel.clone()).await {
                Err(error) => error,
                Ok(mut events) => match events.next().await {
                    Some(Err(error)) => error,
                    Some(Ok(first)) => return Ok(stream::iter([Ok(first)]).chain(events).boxed()),
                    None => return Ok(events),
                },
            };
            if !moves_on(&error) || cancel.is_cancelled() {
                return Err(error);
            }
            // The error of the model that was wanted says more than that of the last resort.
            first_error.get_or_insert(error);
        }
        Err(first_error.unwrap_or_else(|| ModelError::new(ModelErrorKind::UnknownModel, "no model was named")))
    }
}

#[cfg(test)]
mod tests;
