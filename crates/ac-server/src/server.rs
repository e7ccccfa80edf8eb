use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, Weak},
    time::Instant,
};

use ac_controller::AgentController;
use ac_core::{CancelToken, ModelId, SessionKey};
use axum::Router;

use crate::{
    Auth, Limits,
    frames::Frames,
    limits::{Rates, Streams, lock},
    metrics::Metrics,
    owners::Owners,
    route,
    webhook::Webhooks,
};

/// Serves controllers over HTTP. A cheap handle.
///
/// ```
/// use ac_controller::AgentController;
/// use ac_server::{Served, Server, ServerError};
///
/// fn serve(controller: AgentController) -> Result<axum::Router, ServerError> {
///     let server = Server::builder().controller(Served::new("code", controller)).loopback_hosts().build()?;
///     Ok(server.router()) // or `server.serve(listener, stop)`, with the limits that a public socket needs
/// }
/// # let _ = serve;
/// ```
#[derive(Clone)]
pub struct Server(pub(crate) Arc<App>);

/// What all requests share.
pub(crate) struct App {
    pub(crate) served: Vec<Arc<Served>>,
    pub(crate) prefix: String,
    pub(crate) auth: Auth,
    pub(crate) limits: Limits,
    /// Names in `Host` that are accepted; `None` accepts all.
    pub(crate) hosts: Option<Vec<String>>,
    pub(crate) webhooks: Option<Box<Webhooks>>,
    pub(crate) console: bool,
    pub(crate) owners: Owners,
    pub(crate) rates: Rates,
    pub(crate) streams: Arc<Streams>,
    pub(crate) metrics: Metrics,
    /// Streams end now, whatever they still have to say.
    pub(crate) cut: CancelToken,
    frames: Mutex<HashMap<(usize, SessionKey), Weak<Frames>>>,
    moved: Mutex<VecDeque<Moved>>,
}

/// A session that goes on under another key.
struct Moved {
    served: usize,
    from: SessionKey,
    to: SessionKey,
    at: Instant,
}

/// A controller, and the name it is served under.
pub struct Served {
    pub(crate) name: String,
    pub(crate) controller: AgentController,
    pub(crate) models: Vec<ModelEntry>,
    pub(crate) workspace: Option<bool>,
}

/// A model that a client may choose.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModelEntry {
    /// `provider/name`.
    pub id: ModelId,
    /// Whether the host has a key for it.
    pub has_key: bool,
    /// What `?all=1` tells besides: the size of its window, its prices.
    pub details: serde_json::Map<String, serde_json::Value>,
}

impl ModelEntry {
    /// A model that can be used.
    pub fn new(id: impl Into<ModelId>) -> Self {
        Self { id: id.into(), has_key: true, details: serde_json::Map::new() }
    }

    /// There is no key for it.
    #[must_use]
    pub fn without_key(mut self) -> Self {
        self.has_key = false;
        self
    }

    /// More about it.
    #[must_use]
    pub fn details(mut self, details: serde_json::Map<String, serde_json::Value>) -> Self {
        self.details = details;
        self
    }
}

impl Served {
    /// A controller under a name.
    pub fn new(name: impl Into<String>, controller: AgentController) -> Self {
        Self { name: name.into(), controller, models: vec![], workspace: None }
    }

    /// The controller.
    pub fn controller(&self) -> &AgentController {
        &self.controller
    }

    /// The models that a client may choose; those of the controller's own catalogue, unless set.
    #[must_use]
    pub fn models(mut self, models: impl IntoIterator<Item = ModelEntry>) -> Self {
        self.models.extend(models);
        self
    }

    /// Its agents have a workspace, which is ready or is not.
    #[must_use]
    pub fn workspace(mut self, ready: bool) -> Self {
        self.workspace = Some(ready);
        self
    }
}

/// Why a server could not be made.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ServerError(String);

/// Makes a [`Server`].
#[must_use]
pub struct ServerBuilder {
    served: Vec<Served>,
    prefix: String,
    auth: Auth,
    limits: Limits,
    hosts: Option<Vec<String>>,
    webhooks: Option<Box<Webhooks>>,
    console: bool,
}

impl Server {
    /// Begins a server: nobody must say who they are, unless [`ServerBuilder::auth`] says so.
    pub fn builder() -> ServerBuilder {
        let (served, prefix, limits) = (vec![], "/api".into(), Limits::default());
        ServerBuilder { served, prefix, auth: Auth::Open, limits, hosts: None, webhooks: None, console: true }
    }

    /// The routes, for a host that serves them itself. Limits of connections, heads and stalls are then the host's to set. One with a page of
    /// its own at `/` says [`console(false)`](ServerBuilder::console).
    ///
    /// ```
    /// use ac_server::Server;
    /// use axum::{Router, routing::get};
    ///
    /// let server = Server::builder().console(false).build()?;
    /// let app: Router = Router::new().route("/", get(|| async { "the shop" })).merge(server.router());
    /// # drop(app);
    /// # Ok::<(), ac_server::ServerError>(())
    /// ```
    pub fn router(&self) -> Router {
        route::router(&self.0)
    }
}

impl ServerBuilder {
    /// Serves a controller. The order is that of the listing.
    pub fn controller(mut self, served: Served) -> Self {
        self.served.push(served);
        self
    }

    /// What the routes begin with; `/api`, unless set.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Who may ask.
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// What may be used.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The only names and addresses that a request may be addressed to. A server on a loopback address without tokens should set them:
    /// otherwise a web page whose name leads to that address could use it.
    pub fn hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.hosts = Some(hosts.into_iter().map(Into::into).collect());
        self
    }

    /// As [`ServerBuilder::hosts`], with the names of this machine for itself.
    pub fn loopback_hosts(self) -> Self {
        self.hosts(["localhost", "127.0.0.1", "[::1]"])
    }

    /// The page for people at `/`, with what it is made of below `/console/`. It is there, unless this says `false`: a host with a front page
    /// of its own leaves it out.
    pub fn console(mut self, console: bool) -> Self {
        self.console = console;
        self
    }

    /// Who takes requests of chat platforms: `POST {prefix}/agent-controllers/{controller}/channels/{platform}/webhook`. It gets both names
    /// and the request with its exact bytes, and checks the platform's signature; a token is not asked for on this route alone. With
    /// `ac-channels`:
    ///
    /// ```
    /// # struct ChannelRegistry;
    /// # impl ChannelRegistry {
    /// #     async fn receive(&self, _: &str, _: &str, _: http::Request<bytes::Bytes>) -> http::Response<bytes::Bytes> { Default::default() }
    /// # }
    /// # let registry = ChannelRegistry;
    /// let registry = std::sync::Arc::new(registry); // of all controllers
    /// let server = ac_server::Server::builder().webhooks(move |controller, platform, request| {
    ///     let registry = registry.clone();
    ///     async move { registry.receive(&controller, &platform, request).await }
    /// });
    /// # drop(server);
    /// ```
    pub fn webhooks<F, R>(mut self, receive: F) -> Self
    where
        F: Fn(String, String, http::Request<bytes::Bytes>) -> R + Send + Sync + 'static,
        R: Future<Output = http::Response<bytes::Bytes>> + Send + 'static,
    {
        self.webhooks = Some(Box::new(move |controller, platform, request| Box::pin(receive(controller, platform, request))));
        self
    }

    /// Checks everything and makes the server.
    ///
    /// # Errors
    /// When two controllers have the same name, or the prefix is no path.
    pub fn build(self) -> Result<Server, ServerError> {
        for (at, served) in self.served.iter().enumerate() {
            if self.served.iter().take(at).any(|other| other.name == served.name) {
                return Err(ServerError(format!("two controllers are served as `{}`; give each a name of its own", served.name)));
            }
            if served.controller.id().as_str() == Owners::ROWS {
                return Err(ServerError(format!("the id `{}` is the server's own; give the controller another one", Owners::ROWS)));
            }
        }
        let prefix = self.prefix.trim_end_matches('/').to_owned();
        if (!prefix.is_empty() && !prefix.starts_with('/')) || prefix.contains(['{', '}', '?', '#']) {
            return Err(ServerError(format!("the prefix `{}` is no path; it begins with / and holds no {{}}?#", self.prefix)));
        }
        Ok(Server(Arc::new(App {
            served: self.served.into_iter().map(Arc::new).collect(),
            prefix,
            auth: self.auth,
            limits: self.limits,
            hosts: self.hosts,
            webhooks: self.webhooks,
            console: self.console,
            owners: Owners::default(),
            rates: Rates::default(),
            streams: Arc::default(),
            metrics: Metrics::default(),
            cut: CancelToken::new(),
            frames: Mutex::default(),
            moved: Mutex::default(),
        })))
    }
}

impl App {
    pub(crate) fn find(&self, name: &str) -> Option<(usize, &Arc<Served>)> {
        self.served.iter().enumerate().find(|(_, served)| served.name == name)
    }

    /// The streams of `from` go on with `to`.
    pub(crate) fn moves(&self, served: usize, from: SessionKey, to: SessionKey) {
        /// A stream notices at once; more than the latest moves need not be known.
        const KEPT: usize = 1024;
        let mut moved = lock(&self.moved);
        if moved.len() >= KEPT {
            moved.pop_front();
        }
        moved.push_back(Moved { served, from, to, at: Instant::now() });
    }

    /// Where a session went after `since`.
    pub(crate) fn moved(&self, served: usize, key: &SessionKey, since: Instant) -> Option<SessionKey> {
        let moved = lock(&self.moved);
        moved.iter().rev().find(|moved| moved.served == served && moved.from == *key && moved.at >= since).map(|moved| moved.to.clone())
    }

    /// What the streams of a session share.
    pub(crate) fn frames(&self, served: usize, key: &SessionKey) -> Arc<Frames> {
        let mut all = lock(&self.frames);
        if let Some(known) = all.get(&(served, key.clone())).and_then(Weak::upgrade) {
            return known;
        }
        if all.len() >= 64 && all.len().is_power_of_two() {
            all.retain(|_, frames| frames.strong_count() > 0);
        }
        let made = Arc::new(Frames::default());
        all.insert((served, key.clone()), Arc::downgrade(&made));
        made
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.served.iter().map(|served| &served.name)).finish()
    }
}

impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").field("name", &self.name).field("controller", &self.controller).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerBuilder").field("served", &self.served).field("prefix", &self.prefix).finish_non_exhaustive()
    }
}
