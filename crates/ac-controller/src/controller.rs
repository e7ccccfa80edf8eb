use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ac_agent::{Runtime, RuntimeSettings};
use ac_core::{CancelToken, Clock, ControllerId, Ids, Message, ModeId, OwnerId, ResourceId, SessionKey, ThreadId, event::ThreadInfo};
use ac_storage::{
    Page, SessionId, Storage, ThreadRecord,
    domain::{MessageQuery, ThreadQuery},
    record::StoredMessage,
};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;

use crate::{
    ControllerBuilder, ControllerError, ControllerErrorKind, EventBus, Mode, Session, Subagent,
    config::{Config, PreparedMode},
    interval::Intervals,
    listener::Listeners,
    map::SharedMap,
    models::Models,
    request_context::Transient,
    session::Inner,
};

/// How long `shutdown` waits for tasks that only tidy up.
const TIDY: Duration = Duration::from_secs(5);

/// Holds the configuration of an agent application and its sessions. A cheap handle; clones are the same controller.
///
/// ```
/// use std::sync::Arc;
///
/// use ac_controller::{AgentConfig, AgentController, ControllerError, Mode};
/// use ac_core::{ModelError, ModelErrorKind, ModelId, ModelProvider};
/// use ac_storage::MemoryStorage;
///
/// # fn connect(_: &ModelId) -> Result<Arc<dyn ModelProvider>, ModelError> { Err(ModelError::new(ModelErrorKind::Auth, "no key")) }
/// # async fn run() -> Result<(), ControllerError> {
/// let controller = AgentController::builder()
///     .storage(Arc::new(MemoryStorage::new()))
///     .models(connect)
///     .agent(AgentConfig::new("helper").instructions("You help."))
///     .mode(Mode::new("chat").model("openai/gpt-5"))
///     .build()?;
/// controller.init().await?; // goes on with what an earlier process left
/// let session = controller.create_session("ada").await?;
/// session.send_message("Hello").await?;
/// controller.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct AgentController(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) bus: Arc<dyn EventBus>,
    pub(crate) runtime: Runtime,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancelToken,
    /// Request contexts that are not stored.
    pub(crate) transient: Transient,
    pub(crate) listeners: Listeners,
    pub(crate) intervals: Intervals,
    pub(crate) models: Models,
    /// How often runs that nobody moves are looked for. A dead process keeps its runs for as long as a lease, so more often is no use.
    pub(crate) look: Duration,
    pub(crate) sessions: SharedMap<SessionKey, Arc<Inner>>,
    closed: AtomicBool,
    init: Mutex<bool>,
    me: OnceLock<Weak<Shared>>,
}

/// Which session, and how it begins.
///
/// ```
/// use ac_controller::SessionRequest;
///
/// let request = SessionRequest::new("ada").scope("second window").thread("notes").tag("project", "site");
/// assert_eq!(request.key().to_string(), "ada::second window");
/// assert!(!request.is_plain());
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct SessionRequest {
    pub(crate) key: SessionKey,
    pub(crate) thread: Option<ThreadId>,
    pub(crate) tags: Map<String, Value>,
}

impl SessionRequest {
    /// The session of this key.
    pub fn new(key: impl Into<SessionKey>) -> Self {
        Self { key: key.into(), thread: None, tags: Map::new() }
    }

    /// Another session of the same resource, with its own thread, mode, model and events.
    pub fn scope(mut self, scope: impl Into<Arc<str>>) -> Self {
        self.key.scope = Some(scope.into());
        self
    }

    /// Bound to this thread: one that exists and belongs to the resource, or one that is made with this id.
    pub fn thread(mut self, thread: impl Into<ThreadId>) -> Self {
        self.thread = Some(thread.into());
        self
    }

    /// A tag: a key of the session's state that its threads carry, and that a thread must carry to be picked by itself (SPEC H-6). Only
    /// counts when the session is new.
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.tags.insert(key.into(), value.into());
        self
    }
}

impl SessionRequest {
    /// The session's key.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Whether nothing is asked for but the session, on whatever thread it is.
    pub fn is_plain(&self) -> bool {
        self.thread.is_none() && self.tags.is_empty()
    }
}

impl<K: Into<SessionKey>> From<K> for SessionRequest {
    fn from(key: K) -> Self {
        Self::new(key)
    }
}

impl AgentController {
    /// Begins a controller.
    pub fn builder() -> ControllerBuilder {
        ControllerBuilder::default()
    }

    pub(crate) fn new(
        config: Config,
        storage: Arc<dyn Storage>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        bus: Arc<dyn EventBus>,
        settings: RuntimeSettings,
    ) -> Self {
        let transient = Transient::new(config.transient_keys.clone());
        let owner = OwnerId::from(ids.fresh("owner"));
        let look = settings.lease;
        let runtime = Runtime::new(storage.clone(), clock.clone(), ids.clone(), owner, settings);
        let shared = Arc::new(Shared {
            config,
            storage,
            clock,
            ids,
            bus,
            runtime,
            tasks: TaskTracker::new(),
            stop: CancelToken::new(),
            transient,
            listeners: Listeners::default(),
            intervals: Intervals::default(),
            models: Models::default(),
            look,
            sessions: SharedMap::default(),
            closed: AtomicBool::new(false),
            init: Mutex::new(false),
            me: OnceLock::new(),
        });
        let _ = shared.me.set(Arc::downgrade(&shared));
        Self(shared)
    }

    /// Its id among the controllers of a store.
    pub fn id(&self) -> &ControllerId {
        &self.0.config.id
    }

    /// Its modes, in order.
    pub fn modes(&self) -> impl Iterator<Item = &Mode> {
        self.0.config.modes.iter().map(|prepared| &prepared.mode)
    }

    /// Its types of subagents, in order.
    pub fn subagents(&self) -> impl Iterator<Item = &Subagent> {
        self.0.config.subagents.all().iter()
    }

    /// The mode that sessions begin in.
    pub fn default_mode(&self) -> &ModeId {
        &self.0.config.default_mode
    }

    /// Takes over the open runs of this controller that can move and that nobody else moves (`R5`). Runs that wait for a person go on
    /// waiting, and are listed by [`Session::pending`]. Also starts the backstop that looks for such runs from time to time.
    ///
    /// May be called again, also after an error; after a success it does nothing.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn init(&self) -> Result<(), ControllerError> {
        self.0.check_open()?;
        let mut done = self.0.init.lock().await;
        if !*done {
            crate::recovery::recover(&self.0).await?;
            crate::recovery::spawn_poller(&self.0);
            *done = true;
            self.0.start_intervals();
        }
        Ok(())
    }

    /// The session of a key: the same one for the same key, made at the first call. It is bound to a thread: the one asked for, else the
    /// one it was bound to before, else the newest of its resource that carries its scope and tags, else a new one.
    ///
    /// # Errors
    /// [`ThreadNotFound`](ControllerErrorKind::ThreadNotFound) for a thread of somebody else; the session is then as it was.
    pub async fn create_session(&self, request: impl Into<SessionRequest>) -> Result<Session, ControllerError> {
        let request = request.into();
        loop {
            self.0.check_open()?;
            let session = self.0.session(&request.key);
            match session.open(&request).await {
                // It was being deleted: the next one is another.
                Err(error) if error.kind() == ControllerErrorKind::SessionDeleted => {
                    let dead = session.inner().clone();
                    self.0.sessions.remove_if(&request.key, |known| Arc::ptr_eq(known, &dead));
                }
                Err(error) => return Err(error),
                Ok(()) => {
                    session.inner().announce(|| self.0.tell_created(&session)).await;
                    return Ok(session);
                }
            }
        }
    }

    /// The session of a key, if it exists in this process.
    pub fn session(&self, key: &SessionKey) -> Option<Session> {
        self.0.sessions.get(key).map(|inner| Session::new(inner, self.0.clone()))
    }

    /// The sessions of this process.
    pub fn sessions(&self) -> Vec<Session> {
        self.0.sessions.values().into_iter().map(|inner| Session::new(inner, self.0.clone())).collect()
    }

    /// Ends a session: aborts its moving run, and forgets its mode, models, rules, grants, queue and thread binding. Threads and messages
    /// stay, and so do runs that wait for a person. Says whether there was one.
    ///
    /// # Errors
    /// When the store does not answer; the session is then as it was.
    pub async fn delete_session(&self, key: &SessionKey) -> Result<bool, ControllerError> {
        self.0.check_open()?;
        let session = self.0.session(key);
        // A task of its own, so that it is done to the end even if the caller goes away.
        let deleting = session.clone();
        let deleted = self.0.tasks.spawn(async move { deleting.delete().await }).await;
        let existed = match deleted.map_err(|_| ControllerError::new(ControllerErrorKind::Closed, "the process stops"))? {
            Err(error) if error.kind() == ControllerErrorKind::SessionDeleted => return Ok(false),
            other => other?,
        };
        let dead = session.inner().clone();
        self.0.sessions.remove_if(key, |known| Arc::ptr_eq(known, &dead));
        if existed {
            self.0.tell_deleted(&session);
        }
        Ok(existed)
    }

    /// A thread, whoever it belongs to.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadInfo>, ControllerError> {
        let stored = self.0.storage.threads().get(thread).await?;
        Ok(stored.filter(|stored| self.0.is_ours(&stored.value)).map(|stored| stored.value.info))
    }

    /// Threads, newest first, without making a session.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn threads(&self, query: &ThreadQuery) -> Result<Page<ThreadInfo>, ControllerError> {
        self.0.list_threads(query).await
    }

    /// Messages of a thread, without making a session.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn messages(&self, thread: &ThreadId, query: &MessageQuery) -> Result<Page<StoredMessage>, ControllerError> {
        Ok(self.0.storage.messages().page(thread, query).await?)
    }

    /// Parks all runs, gives their leases back, ends all streams. Aborts nothing. Bounded in time; what does not end by then is left to
    /// its lease.
    pub async fn shutdown(&self) {
        self.0.closed.store(true, Ordering::Release);
        self.0.stop_intervals().await;
        self.0.stop.cancel();
        self.0.runtime.shutdown().await;
        for inner in self.0.sessions.values() {
            inner.feed().close();
        }
        self.0.tasks.close();
        if tokio::time::timeout(TIDY, self.0.tasks.wait()).await.is_err() {
            tracing::warn!("some tasks did not end in time");
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }
}

impl Shared {
    pub(crate) fn check_open(&self) -> Result<(), ControllerError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(ControllerError::new(ControllerErrorKind::Closed, "the controller was shut down; build a new one"));
        }
        Ok(())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn mode(&self, id: &ModeId) -> Result<&PreparedMode, ControllerError> {
        self.config.mode(id).ok_or_else(|| ControllerError::mode_not_found(id))
    }

    /// The session of a key; makes its handle, reads nothing.
    pub(crate) fn session(self: &Arc<Self>, key: &SessionKey) -> Session {
        let inner = self.sessions.get_or_insert_with(key, || {
            let id = SessionId { controller: self.config.id.clone(), key: key.clone() };
            Inner::new(id, self)
        });
        Session::new(inner, self.clone())
    }

    pub(crate) fn weak(&self) -> Weak<Self> {
        self.me.get().cloned().unwrap_or_default()
    }

    pub(crate) async fn list_threads(&self, query: &ThreadQuery) -> Result<Page<ThreadInfo>, ControllerError> {
        let page = self.storage.threads().list(query).await?;
        let ours = page.items.into_iter().filter(|row| self.is_ours(row));
        Ok(Page { items: ours.map(|row| row.info).collect(), next: page.next })
    }

    /// Whether a thread is no other controller's.
    pub(crate) fn is_ours(&self, row: &ThreadRecord) -> bool {
        row.controller.as_ref().is_none_or(|controller| *controller == self.config.id)
    }

    /// Whether a session of a resource may use a thread.
    pub(crate) fn is_for(&self, row: &ThreadRecord, resource: &ResourceId) -> bool {
        row.info.resource == *resource && row.parent.is_none() && self.is_ours(row)
    }

    pub(crate) async fn owned_thread(&self, thread: &ThreadId, resource: &ResourceId) -> Result<ThreadInfo, ControllerError> {
        match self.storage.threads().get(thread).await? {
            Some(row) if self.is_for(&row.value, resource) => Ok(row.value.info),
            _ => Err(ControllerError::thread_not_found(thread)),
        }
    }

    pub(crate) fn user_message(&self, text: String) -> Message {
        Message::user(self.ids.fresh("message"), text, self.clock.now())
    }
}

impl std::fmt::Debug for AgentController {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentController").field("id", self.id()).finish_non_exhaustive()
    }
}
