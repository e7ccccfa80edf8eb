use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ac_controller::{AgentController, SystemClock, UuidIds};
use ac_core::{CancelToken, Clock, Ids, OwnerId, PendingId};
use ac_storage::Storage;
use bytes::Bytes;
use http::{Method, StatusCode};
use secrecy::{ExposeSecret, SecretSlice};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::{
    ChannelAdapter, ChannelError, ChannelErrorKind, ChannelHooks, ChannelSettings, NoHooks, Received,
    adapter::json,
    button::Signer,
    conversation::Actor,
    event::{Click, Conversation, Incoming, IncomingKind, NO_LONGER_IN_USE},
    live::Live,
    prepared::Prepared,
    record::{ConversationRecord, Records},
};

/// The chat channels of one controller. A cheap handle; clones are the same channels.
///
/// ```
/// use std::sync::Arc;
///
/// use ac_channels::{Channels, Slack};
/// use ac_controller::AgentController;
/// use ac_storage::Storage;
///
/// async fn open(controller: AgentController, storage: Arc<dyn Storage>, key: Vec<u8>) -> Result<Channels, Box<dyn std::error::Error>> {
///     let channels = Channels::builder(controller.clone())
///         .storage(storage) // the controller's own
///         .key(key) // 32 random bytes, the same after a restart
///         .adapter(Slack::new("signing secret", "xoxb-token"))
///         .build()?;
///     controller.init().await?;
///     channels.start().await?;
///     Ok(channels) // requests of the platform go to `Channels::receive`
/// }
/// # let _ = open;
/// ```
#[derive(Clone)]
pub struct Channels(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) controller: AgentController,
    pub(crate) records: Records,
    adapters: BTreeMap<String, Arc<Registered>>,
    pub(crate) hooks: Arc<dyn ChannelHooks>,
    pub(crate) signer: Signer,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) owner: OwnerId,
    pub(crate) look: Duration,
    pub(crate) lease: Duration,
    live: Mutex<HashMap<String, Arc<Live>>>,
    tasks: TaskTracker,
    pub(crate) stop: CancelToken,
    started: AtomicBool,
    /// Sessions that the host has prepared.
    pub(crate) prepared: Prepared,
    /// Places for notices to people in conversations that are not known.
    notices: Arc<Semaphore>,
    /// What waits anywhere, as of a moment ago: one look at the store serves all conversations.
    waits: tokio::sync::Mutex<Option<(tokio::time::Instant, Arc<HashSet<PendingId>>)>>,
}

/// An adapter and how it behaves here.
pub(crate) struct Registered {
    pub(crate) adapter: Arc<dyn ChannelAdapter>,
    pub(crate) settings: ChannelSettings,
}

/// Makes [`Channels`].
#[must_use]
pub struct ChannelsBuilder {
    controller: AgentController,
    storage: Option<Arc<dyn Storage>>,
    key: Option<SecretSlice<u8>>,
    adapters: Vec<Registered>,
    hooks: Arc<dyn ChannelHooks>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    look: Duration,
    lease: Duration,
}

/// The largest request that is read.
const MAX_BODY: usize = 2 * 1024 * 1024;
/// Platforms wait three seconds for their answer. What is not stored by then is refused, and comes again.
const ANSWER_WITHIN: Duration = Duration::from_millis(2_500);
/// The shortest key that buttons are signed with.
const MIN_KEY: usize = 32;
/// How many people at a time are told that a button belongs to nothing.
const NOTICES: usize = 16;
/// How long `shutdown` waits for conversations to come to rest.
const STOP_WITHIN: Duration = Duration::from_secs(15);

impl ChannelsBuilder {
    /// Where conversations are remembered: the controller's own store.
    pub fn storage(mut self, storage: Arc<dyn Storage>) -> Self {
        self.storage = Some(storage);
        self
    }

    /// The key that values of buttons are signed with: at least 32 random bytes, the same in every process and after a restart. With
    /// another key, old buttons no longer count.
    pub fn key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.key = Some(key.into().into());
        self
    }

    /// A platform.
    pub fn adapter(self, adapter: impl ChannelAdapter) -> Self {
        self.adapter_with(adapter, ChannelSettings::default())
    }

    /// A platform, and how it behaves here.
    pub fn adapter_with(mut self, adapter: impl ChannelAdapter, settings: ChannelSettings) -> Self {
        self.adapters.push(Registered { adapter: Arc::new(adapter), settings });
        self
    }

    /// What the host decides itself.
    pub fn hooks(mut self, hooks: impl ChannelHooks) -> Self {
        self.hooks = Arc::new(hooks);
        self
    }

    /// The time; the machine's, unless set.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Fresh ids; random ones, unless set.
    pub fn ids(mut self, ids: Arc<dyn Ids>) -> Self {
        self.ids = ids;
        self
    }

    /// How often a conversation with an open question is looked at for an answer that another process took. Ten seconds, unless set.
    pub fn look_every(mut self, look: Duration) -> Self {
        self.look = look;
        self
    }

    /// How long a process that died keeps its conversations from the next one. Twenty seconds, unless set; at least a tenth of one.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.max(Duration::from_millis(100));
        self
    }

    /// Checks everything. Nothing is read or written yet.
    ///
    /// # Errors
    /// [`Config`](ChannelErrorKind::Config): no store, no key or a short one, or two adapters of one platform.
    pub fn build(self) -> Result<Channels, ChannelError> {
        let config = |message: String| ChannelError::new(ChannelErrorKind::Config, message);
        let storage = self.storage.ok_or_else(|| config("channels need a store; give them the controller's with `storage`".into()))?;
        let key = self.key.ok_or_else(|| config("channels need a key to sign buttons with; give them one with `key`".into()))?;
        if key.expose_secret().len() < MIN_KEY {
            return Err(config(format!("the key is shorter than {MIN_KEY} bytes; take random ones and keep them over restarts")));
        }
        let mut adapters = BTreeMap::new();
        for registered in self.adapters {
            let platform = registered.adapter.platform().to_owned();
            if adapters.insert(platform.clone(), Arc::new(registered)).is_some() {
                return Err(config(format!("there are two adapters for `{platform}`")));
            }
        }
        let controller = self.controller;
        Ok(Channels(Arc::new(Shared {
            records: Records::new(storage, controller.id()),
            signer: Signer::new(key, controller.id().as_str().to_owned()),
            controller,
            adapters,
            hooks: self.hooks,
            clock: self.clock,
            owner: self.ids.fresh("owner").into(),
            ids: self.ids,
            look: self.look,
            lease: self.lease,
            live: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancelToken::new(),
            started: AtomicBool::new(false),
            prepared: Prepared::default(),
            notices: Arc::new(Semaphore::new(NOTICES)),
            waits: tokio::sync::Mutex::new(None),
        })))
    }
}

impl Channels {
    /// Begins the channels of a controller.
    pub fn builder(controller: AgentController) -> ChannelsBuilder {
        ChannelsBuilder {
            controller,
            storage: None,
            key: None,
            adapters: vec![],
            hooks: Arc::new(NoHooks),
            clock: Arc::new(SystemClock),
            ids: Arc::new(UuidIds),
            look: Duration::from_secs(10),
            lease: Duration::from_secs(20),
        }
    }

    /// The controller.
    pub fn controller(&self) -> &AgentController {
        &self.0.controller
    }

    /// The platforms, in alphabetical order.
    pub fn platforms(&self) -> impl Iterator<Item = &str> {
        self.0.adapters.keys().map(String::as_str)
    }

    /// Takes up what an earlier process left: messages that were taken and not handed on, answers that were not posted, questions that are
    /// open. Call it after [`AgentController::init`]. Requests are refused with 503 before. May be called again after an error.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn start(&self) -> Result<(), ChannelError> {
        self.0.check_open()?;
        let mut after = None;
        loop {
            let (conversations, next) = self.0.records.list(after.as_deref()).await?;
            for id in conversations {
                match self.0.records.load(&id).await {
                    Ok(Some(cell)) if cell.record.is_busy() || self.0.has_news(&cell.record).await? => {
                        self.0.wake(&cell.record.conversation);
                    }
                    Ok(_) => {}
                    // One that cannot be read keeps no other one from going on.
                    Err(error) => tracing::error!(code = error.code(), "a stored conversation is left as it is"),
                }
            }
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        self.0.started.store(true, Ordering::Release);
        Ok(())
    }

    /// Answers a webhook request. Whatever it answers, it does so within three seconds; an answer of 2xx means that the events are stored.
    pub async fn receive(&self, platform: &str, request: http::Request<Bytes>) -> http::Response<Bytes> {
        let Some(registered) = self.0.adapters.get(platform) else {
            return failure(StatusCode::NOT_FOUND, "channel.unknown", &format!("No webhook handler for {platform}"));
        };
        if request.method() != Method::POST {
            let mut response = failure(StatusCode::METHOD_NOT_ALLOWED, "channel.method", "only POST is taken");
            response.headers_mut().insert(http::header::ALLOW, http::HeaderValue::from_static("POST"));
            return response;
        }
        if request.body().len() > MAX_BODY {
            return failure(StatusCode::PAYLOAD_TOO_LARGE, "channel.too_large", "the request is too large");
        }
        if !self.0.started.load(Ordering::Acquire) || self.0.stop.is_cancelled() {
            return failure(StatusCode::SERVICE_UNAVAILABLE, "channel.not_started", "Chat not initialized");
        }
        let Received { response, events } = match registered.adapter.receive(&request, self.0.clock.now()) {
            Ok(received) => received,
            Err(refused) => {
                tracing::warn!(platform, code = refused.code(), "a request was refused");
                return failure(refused.status(), refused.code(), "the request was refused");
            }
        };
        let taken = async {
            for event in &events {
                self.0.take(event).await?;
            }
            Ok::<_, ChannelError>(())
        };
        match tokio::time::timeout(ANSWER_WITHIN, taken).await {
            Ok(Ok(())) => response,
            Ok(Err(error)) => {
                tracing::warn!(platform, code = error.code(), "an event was not stored; the platform delivers it again");
                failure(StatusCode::SERVICE_UNAVAILABLE, error.code(), "try again")
            }
            Err(_) => failure(StatusCode::SERVICE_UNAVAILABLE, "channel.slow", "try again"),
        }
    }

    /// Hands an event on that came in another way than by a request: over a connection that the host keeps open to the platform. The caller
    /// vouches for it. Says whether it was new and meant for the agent.
    ///
    /// # Errors
    /// When it could not be stored.
    pub async fn accept(&self, event: &Incoming) -> Result<bool, ChannelError> {
        self.0.check_open()?;
        self.0.take(event).await
    }

    /// Lets every conversation come to rest and stops. What is not done is done by the next process.
    pub async fn shutdown(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        if tokio::time::timeout(STOP_WITHIN, self.0.tasks.wait()).await.is_err() {
            tracing::warn!("some conversations did not come to rest in time");
        }
    }
}

impl Shared {
    pub(crate) fn check_open(&self) -> Result<(), ChannelError> {
        if self.stop.is_cancelled() {
            return Err(ChannelError::new(ChannelErrorKind::Closed, "the channels were shut down; build new ones"));
        }
        Ok(())
    }

    pub(crate) fn adapter(&self, conversation: &Conversation) -> Option<&Arc<Registered>> {
        self.adapters.get(conversation.id.split(':').next().unwrap_or_default())
    }

    /// Stores an event with the conversation, unless it was stored before, and wakes the conversation.
    async fn take(self: &Arc<Self>, event: &Incoming) -> Result<bool, ChannelError> {
        if let IncomingKind::Message(said) = &event.kind {
            // Receipts, joins, edits: nobody said anything (SPEC N-7).
            if said.text.trim().is_empty() && said.files.is_empty() {
                return Ok(false);
            }
        }
        let begins = matches!(&event.kind, IncomingKind::Message(said) if said.addressed);
        if !begins && !self.knows(&event.conversation.id).await? {
            if let IncomingKind::Click(click) = &event.kind {
                self.turn_away(event, click);
            }
            return Ok(false);
        }
        let follows = match &event.kind {
            IncomingKind::Message(said) => said.addressed || said.follows,
            IncomingKind::Click(_) => true,
        };
        if !follows {
            return Ok(false);
        }
        let live = self.live(&event.conversation);
        let now = self.clock.now();
        let mut left = false;
        let taken = live
            .update(self, &event.conversation, |record| {
                left = !record.inbox.is_empty();
                if record.is_full() {
                    return Some(None);
                }
                record.take(event, now).then_some(Some(()))
            })
            .await?;
        if left {
            // Whoever stored what is there may not have come to say so: the platform hung up, or the store took too long. That is why it
            // delivers again.
            self.wake(&event.conversation);
        }
        match taken {
            None => Ok(false),
            Some(None) => Err(ChannelError::new(ChannelErrorKind::RateLimited, "too much waits in this conversation")),
            Some(Some(())) => {
                self.wake(&event.conversation);
                Ok(true)
            }
        }
    }

    /// Whoever presses a button of a conversation that is not known (another store, another bot of the same name) hears it in private. Nothing
    /// is kept, and the platform does not wait for it.
    fn turn_away(self: &Arc<Self>, event: &Incoming, click: &Click) {
        let (Some(registered), Ok(place)) = (self.adapter(&event.conversation), self.notices.clone().try_acquire_owned()) else { return };
        let (registered, stop) = (registered.clone(), self.stop.clone());
        let (conversation, speaker, responder) = (event.conversation.clone(), event.speaker.clone(), click.responder.clone());
        self.tasks.spawn(async move {
            let _place = place;
            let text = registered.adapter.capabilities().dialect.escape(NO_LONGER_IN_USE);
            let told = registered.adapter.notice(&conversation, &speaker, responder.as_deref(), &text);
            tokio::select! {
                told = told => if let Err(error) = told {
                    tracing::warn!(code = error.code(), "a private notice did not arrive");
                },
                () = stop.cancelled() => {}
            }
        });
    }

    /// Whether the agent takes part in a conversation.
    async fn knows(&self, conversation: &str) -> Result<bool, ChannelError> {
        if self.lives().contains_key(conversation) {
            return Ok(true);
        }
        Ok(self.records.load(conversation).await?.is_some())
    }

    /// What waits in any session of the controller; half of [`look`](ChannelsBuilder::look_every) old at most.
    pub(crate) async fn open_waits(&self) -> Result<Arc<HashSet<PendingId>>, ChannelError> {
        let mut waits = self.waits.lock().await;
        if let Some((at, open)) = waits.as_ref()
            && at.elapsed() < self.look / 2
        {
            return Ok(open.clone());
        }
        let open: Arc<HashSet<PendingId>> = Arc::new(self.controller.pending_ids().await?);
        *waits = Some((tokio::time::Instant::now(), open.clone()));
        Ok(open)
    }

    fn lives(&self) -> MutexGuard<'_, HashMap<String, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The conversation as something lives in it; its task begins with the first wake.
    fn live(self: &Arc<Self>, conversation: &Conversation) -> Arc<Live> {
        let mut lives = self.lives();
        if let Some(live) = lives.get(&conversation.id) {
            return live.clone();
        }
        let live = Arc::new(Live::new());
        lives.insert(conversation.id.clone(), live.clone());
        if let Some(registered) = self.adapter(conversation)
            && !self.stop.is_cancelled()
        {
            let actor = Actor::new(self.clone(), registered.clone(), live.clone(), conversation.clone());
            let span = tracing::info_span!("conversation", id = conversation.id);
            self.tasks.spawn(actor.run().instrument(span));
        }
        live
    }

    pub(crate) fn wake(self: &Arc<Self>, conversation: &Conversation) {
        let live = self.live(conversation);
        live.wakes.fetch_add(1, Ordering::AcqRel);
        live.nudge.notify_one();
    }

    /// The task of a conversation ends, unless somebody had something for it since it counted `wakes`.
    pub(crate) fn retire(&self, conversation: &Conversation, live: &Arc<Live>, wakes: u64) -> bool {
        let mut lives = self.lives();
        // Whoever holds it is about to write to it.
        if live.wakes.load(Ordering::Acquire) != wakes || Arc::strong_count(live) > 2 {
            return false;
        }
        lives.remove(&conversation.id);
        true
    }

    /// Whether the thread of a conversation has something that was not posted.
    async fn has_news(&self, record: &ConversationRecord) -> Result<bool, ChannelError> {
        let Some(binding) = &record.binding else { return Ok(false) };
        let query = ac_storage::domain::MessageQuery {
            after: record.cursor.map(ac_storage::record::MessageCursor::Position),
            newest_first: false,
            limit: 1,
        };
        Ok(!self.controller.messages(&binding.thread, &query).await?.items.is_empty())
    }
}

fn failure(status: StatusCode, code: &str, message: &str) -> http::Response<Bytes> {
    json(status, &json!({ "error": message, "code": code }))
}

impl std::fmt::Debug for Channels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channels").field("controller", self.0.controller.id()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ChannelsBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelsBuilder").field("controller", self.controller.id()).finish_non_exhaustive()
    }
}
