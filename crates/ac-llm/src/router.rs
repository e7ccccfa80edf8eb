//! From a model's id to who answers it.

use std::sync::Arc;

use ac_core::{CancelToken, ModelError, ModelErrorKind, ModelId, ModelProvider, ModelRequest, ModelStream};
use async_trait::async_trait;

use crate::{
    catalog::{self, AuthStatus, ModelInfo},
    key::{EnvKeys, Keys},
    mode::ToolCallMode,
    profile::{Profile, known},
    provider::{HttpProvider, Timeouts},
    request::origin,
    transport::Transport,
};

/// Routes `provider/model` to its provider. The host's own routes are looked at first, in the order in which they were added; the first
/// that matches wins. Then come the providers that the runtime knows.
///
/// ```
/// use std::sync::Arc;
///
/// use ac_llm::{Api, Profile, Router, Transport, demo::Guide};
///
/// fn router(transport: Arc<dyn Transport>) -> Router {
///     Router::builder(transport)
///         .http(Profile::new("mine", Api::OpenAiChat, "http://127.0.0.1:8080/v1"))
///         .provider("demo", Arc::new(Guide::new()))
///         .build()
/// }
///
/// # fn show(router: &Router) -> Result<(), ac_core::ModelError> {
/// let model = router.resolve(&"mine/llama-3".into())?; // or a typed error that says which variable to set
/// # drop(model);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Router {
    routes: Arc<[Route]>,
    transport: Arc<dyn Transport>,
    keys: Arc<dyn Keys>,
    timeouts: Timeouts,
    models: Arc<[ModelInfo]>,
    tool_calls: Arc<ChooseMode>,
}

type ChooseMode = dyn Fn(&ModelId) -> Option<ToolCallMode> + Send + Sync;

#[derive(Clone)]
enum Route {
    Http(Profile),
    Provider(Arc<str>, Arc<dyn ModelProvider>),
    Gateway(Arc<str>, Arc<dyn Gateway>),
}

/// A way to many models that decides by itself which it serves.
pub trait Gateway: Send + Sync + 'static {
    /// Who answers `model`; `None` if this gateway does not serve it. Asked for each request, so keep what is costly.
    fn provider(&self, model: &ModelId) -> Option<Arc<dyn ModelProvider>>;
}

impl<F> Gateway for F
where
    F: Fn(&ModelId) -> Option<Arc<dyn ModelProvider>> + Send + Sync + 'static,
{
    fn provider(&self, model: &ModelId) -> Option<Arc<dyn ModelProvider>> {
        self(model)
    }
}

/// Collects what a [`Router`] knows.
#[must_use]
pub struct RouterBuilder {
    routes: Vec<Route>,
    transport: Arc<dyn Transport>,
    keys: Arc<dyn Keys>,
    timeouts: Timeouts,
    models: Vec<ModelInfo>,
    tool_calls: Arc<ChooseMode>,
    known: bool,
}

impl Router {
    /// A router over this transport, with keys from the environment.
    pub fn builder(transport: Arc<dyn Transport>) -> RouterBuilder {
        RouterBuilder {
            routes: vec![],
            transport,
            keys: Arc::new(EnvKeys),
            timeouts: Timeouts::default(),
            models: vec![],
            tool_calls: Arc::new(|_| None),
            known: true,
        }
    }

    /// Who answers `model`.
    ///
    /// # Errors
    /// [`ModelErrorKind::UnknownProvider`] with the names that are known, or with the feature that holds the provider's protocol where that
    /// was left out of the program, [`ModelErrorKind::UnknownModel`] for an id without a model,
    /// [`ModelErrorKind::MissingKey`] with the variable to set.
    pub fn resolve(&self, model: &ModelId) -> Result<Arc<dyn ModelProvider>, ModelError> {
        let (prefix, name) = model.as_str().split_once('/').unwrap_or((model.as_str(), ""));
        for route in self.routes.iter() {
            match route {
                Route::Gateway(_, gateway) => {
                    if let Some(provider) = gateway.provider(model) {
                        return Ok(provider);
                    }
                }
                Route::Provider(known, provider) if **known == *prefix => {
                    return named(prefix, name).map(|()| Arc::clone(provider));
                }
                Route::Http(profile) if *profile.name == *prefix => {
                    named(prefix, name)?;
                    if !profile.api.is_built_in() {
                        return Err(origin(profile, model.as_str()).not_built_in(profile.api));
                    }
                    let key = self.keys.key(prefix, &profile.key_vars);
                    let mut profile = profile.clone();
                    let told = self.models.iter().find(|info| info.id == *model).and_then(|info| info.tool_calls);
                    profile.tool_calls = (self.tool_calls)(model).or(told).unwrap_or_else(|| profile.tool_calls_of(name));
                    let provider = HttpProvider::new(profile, Arc::clone(&self.transport)).key(key).timeouts(self.timeouts);
                    provider.check_key()?;
                    return Ok(Arc::new(provider));
                }
                _ => {}
            }
        }
        let what = if model.as_str().contains('/') {
            format!("no provider `{prefix}` is known")
        } else {
            format!("`{model}` names no provider; write provider/model")
        };
        let mut names: Vec<_> = self.providers().collect();
        names.dedup();
        Err(ModelError::new(ModelErrorKind::UnknownProvider, format!("{what}. Known: {}.", names.join(", "))))
    }

    /// The names of the providers, in the order in which they are looked at.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.routes.iter().map(|route| match route {
            Route::Http(profile) => &*profile.name,
            Route::Provider(name, _) | Route::Gateway(name, _) => name,
        })
    }

    /// The models that are known, each with whether it can be asked right now. Those of a provider without a route are left out. Others
    /// work too: see [`Router::discover`].
    pub fn list_models(&self) -> Vec<ModelInfo> {
        let mut list: Vec<ModelInfo> = Vec::new();
        for model in self.models.iter().cloned().chain(catalog::known()) {
            if let Some(auth) = self.auth(model.provider())
                && !list.iter().any(|other| other.id == model.id)
            {
                list.push(ModelInfo { auth, ..model });
            }
        }
        list
    }

    /// Whether there is a key for a provider; `None` if there is no such provider, or its protocol is not built in.
    pub fn auth(&self, provider: &str) -> Option<AuthStatus> {
        self.routes.iter().find_map(|route| match route {
            Route::Http(profile) if *profile.name == *provider && profile.api.is_built_in() => {
                Some(match self.keys.key(provider, &profile.key_vars) {
                    Some(_) => AuthStatus::Ready,
                    None if profile.key_optional => AuthStatus::NotNeeded,
                    None => AuthStatus::MissingKey { vars: profile.key_vars.iter().map(ToString::to_string).collect() },
                })
            }
            Route::Provider(name, _) | Route::Gateway(name, _) if **name == *provider => Some(AuthStatus::NotNeeded),
            _ => None,
        })
    }

    /// Asks a provider which models it has, and adds what is known of them.
    ///
    /// # Errors
    /// As [`Router::resolve`] and as the provider answers. A provider that the host brought as a whole lists nothing.
    pub async fn discover(&self, provider: &str, cancel: CancelToken) -> Result<Vec<ModelInfo>, ModelError> {
        for route in self.routes.iter() {
            match route {
                Route::Http(profile) if *profile.name == *provider => {
                    let key = self.keys.key(provider, &profile.key_vars);
                    let http = HttpProvider::new(profile.clone(), Arc::clone(&self.transport)).key(key).timeouts(self.timeouts);
                    let known = self.list_models();
                    let auth = self.auth(provider).unwrap_or(AuthStatus::NotNeeded);
                    let names = http.models(cancel).await?;
                    let info = |name: String| {
                        let id = ModelId::from(format!("{provider}/{name}"));
                        let known = known.iter().find(|model| model.id == id).cloned();
                        ModelInfo { auth: auth.clone(), ..known.unwrap_or_else(|| ModelInfo::new(id)) }
                    };
                    return Ok(names.into_iter().map(info).collect());
                }
                Route::Provider(name, _) | Route::Gateway(name, _) if **name == *provider => return Ok(vec![]),
                _ => {}
            }
        }
        self.resolve(&ModelId::from(format!("{provider}/?"))).map(|_| vec![])
    }
}

fn named(prefix: &str, name: &str) -> Result<(), ModelError> {
    if name.is_empty() {
        return Err(ModelError::new(ModelErrorKind::UnknownModel, format!("`{prefix}` is a provider; name a model of it: {prefix}/MODEL")));
    }
    Ok(())
}

impl std::fmt::Debug for Router {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Router").field("providers", &self.providers().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

#[async_trait]
impl ModelProvider for Router {
    async fn stream(&self, request: ModelRequest, cancel: CancelToken) -> Result<ModelStream, ModelError> {
        self.resolve(&request.model)?.stream(request, cancel).await
    }
}

impl RouterBuilder {
    /// Takes keys from here instead of the environment.
    pub fn keys(mut self, keys: impl Keys) -> Self {
        self.keys = Arc::new(keys);
        self
    }

    /// Waits this long for answers.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// A server that speaks a known protocol; also a gateway whose ids begin with its own name (`openrouter/maker/model`).
    pub fn http(mut self, profile: Profile) -> Self {
        self.routes.push(Route::Http(profile));
        self
    }

    /// A provider of the host's own: answers `name/…`.
    pub fn provider(mut self, name: impl Into<Arc<str>>, provider: Arc<dyn ModelProvider>) -> Self {
        self.routes.push(Route::Provider(name.into(), provider));
        self
    }

    /// A gateway that decides by itself which ids it serves.
    pub fn gateway(mut self, name: impl Into<Arc<str>>, gateway: impl Gateway) -> Self {
        self.routes.push(Route::Gateway(name.into(), Arc::new(gateway)));
        self
    }

    /// Facts about a model, before those that the runtime knows.
    pub fn model(mut self, model: ModelInfo) -> Self {
        self.models.push(model);
        self
    }

    /// How models ask for tools, where the host or its user knows better than the profile; `None` leaves it to the profile. Beats
    /// [`ModelInfo::tool_calls`].
    pub fn tool_calls(mut self, choose: impl Fn(&ModelId) -> Option<ToolCallMode> + Send + Sync + 'static) -> Self {
        self.tool_calls = Arc::new(choose);
        self
    }

    /// Only what the host adds; none of the providers that the runtime knows.
    pub fn without_known(mut self) -> Self {
        self.known = false;
        self
    }

    /// The router.
    #[must_use]
    pub fn build(mut self) -> Router {
        if self.known {
            self.routes.extend(known::all().into_iter().map(Route::Http));
        }
        Router {
            routes: self.routes.into(),
            transport: self.transport,
            keys: self.keys,
            timeouts: self.timeouts,
            models: self.models.into(),
            tool_calls: self.tool_calls,
        }
    }
}

#[cfg(test)]
#[cfg(feature = "openai")]
mod tests;
