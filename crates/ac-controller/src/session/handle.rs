use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use ac_core::{DisplayState, EpochId, ModeId, ModelId, ResourceId, SessionKey, ThreadId};
use ac_storage::SessionId;
use serde_json::{Map, Value};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use super::record::{Cell, Change, SessionRecord};
use crate::{
    ControllerError, ControllerErrorKind, Cursor, Subscription,
    controller::Shared,
    feed::{About, Feed},
};

/// The isolated runtime of one `(resource, scope)`: a bound thread, a mode, a model, permissions, a queue, state, and a stream of events.
///
/// A cheap handle: clones, and handles that `create_session` gave out for the same key, are the same session and compare equal. Commands
/// of a session are carried out one at a time, in the order in which they came; reads never wait for them.
///
/// ```
/// use ac_controller::{AgentController, Answer, ControllerError};
/// use ac_core::{EventBody, event::PendingKind};
///
/// # async fn run(controller: &AgentController) -> Result<(), ControllerError> {
/// let session = controller.create_session("ada").await?;
/// let mut events = session.subscribe(); // begins with the state as it stands
/// session.submit("Tidy up the notes").await?;
/// while let Some(event) = events.next_event().await {
///     match &event.body {
///         EventBody::ToolApprovalRequired { pending, .. } => drop(session.approve(pending).await?),
///         EventBody::AgentEnd { .. } => break,
///         _ => {}
///     }
/// }
/// for wait in session.pending().await? {
///     if wait.kind == PendingKind::Question {
///         session.answer(&wait.id, Answer::Reply { value: "By date".into() }).await?;
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
    shared: Arc<Shared>,
}

pub(crate) struct Inner {
    id: SessionId,
    feed: Arc<Feed>,
    /// One command at a time. Whoever waits here is a caller's own future, so nothing piles up in the session.
    turn: Mutex<()>,
    /// What is stored of the session. Held while it is read and written, never while a run is waited for.
    cell: Mutex<Option<Cell>>,
    view: RwLock<View>,
    /// One write of what tools keep with threads at a time.
    keeping: Mutex<()>,
    /// Whoever listens was told that the session is there.
    announced: OnceCell<()>,
    opened: AtomicBool,
    deleted: AtomicBool,
}

/// What reads see.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) record: Arc<SessionRecord>,
    pub(crate) state: Arc<Map<String, Value>>,
    /// Models that were chosen for this life of the session only.
    pub(crate) models: Arc<BTreeMap<ModeId, ModelId>>,
    pub(crate) tags: Arc<Map<String, Value>>,
}

impl Inner {
    pub(crate) fn new(id: SessionId, shared: &Arc<Shared>) -> Arc<Self> {
        let epoch = EpochId::from(shared.ids.fresh("epoch"));
        let feed = Feed::new(id.clone(), epoch, shared.bus.clone(), shared.clock.clone(), shared.tasks.clone());
        let record = SessionRecord::new(shared.config.default_mode.clone(), shared.clock.now());
        let view =
            View { record: Arc::new(record), state: shared.config.initial_state.clone(), models: Arc::default(), tags: Arc::default() };
        Arc::new(Self {
            id,
            feed,
            turn: Mutex::new(()),
            cell: Mutex::new(None),
            view: RwLock::new(view),
            keeping: Mutex::new(()),
            announced: OnceCell::new(),
            opened: AtomicBool::new(false),
            deleted: AtomicBool::new(false),
        })
    }

    pub(crate) fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    /// Tells that the session is there, once; whoever comes meanwhile waits until it is told.
    pub(crate) async fn announce<F: Future<Output = ()>>(&self, tell: impl FnOnce() -> F) {
        self.announced.get_or_init(tell).await;
    }

    pub(crate) fn keeping(&self) -> &Mutex<()> {
        &self.keeping
    }

    /// Whether the session was bound to its thread in this life of it.
    pub(crate) fn is_opened(&self) -> bool {
        self.opened.load(Ordering::Acquire)
    }

    pub(crate) fn set_opened(&self) {
        self.opened.store(true, Ordering::Release);
    }

    pub(crate) fn view(&self) -> View {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn change_view(&self, change: impl FnOnce(&mut View)) {
        change(&mut self.view.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Session {
    pub(crate) fn new(inner: Arc<Inner>, shared: Arc<Shared>) -> Self {
        Self { inner, shared }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn view(&self) -> View {
        self.inner.view()
    }

    pub(crate) fn feed(&self) -> &Arc<Feed> {
        &self.inner.feed
    }

    /// What the session is identified by.
    pub fn key(&self) -> &SessionKey {
        &self.inner.id.key
    }

    /// Who its threads belong to.
    pub fn resource(&self) -> &ResourceId {
        &self.inner.id.key.resource
    }

    /// The thread it is bound to. None after that thread was deleted; the next message makes a new one.
    pub fn thread_id(&self) -> Option<ThreadId> {
        self.view().record.thread.clone()
    }

    /// The tags it was made with.
    pub fn tags(&self) -> Map<String, Value> {
        self.view().tags.as_ref().clone()
    }

    /// What a client draws, as it stands. A shared snapshot; copying it copies pointers.
    pub fn display_state(&self) -> Arc<DisplayState> {
        self.inner.feed.state()
    }

    /// Whether a segment of a run is open on the bound thread.
    pub fn is_running(&self) -> bool {
        self.inner.feed.is_running()
    }

    /// The events of the session from now on, beginning with its state.
    pub fn subscribe(&self) -> Subscription {
        self.inner.feed.subscribe(None)
    }

    /// The events that follow one that the subscriber has seen; where they are no longer there, the present state and what follows it.
    pub fn subscribe_after(&self, cursor: Cursor) -> Subscription {
        self.inner.feed.subscribe(Some(cursor))
    }

    /// Whether anybody listens.
    pub fn has_listeners(&self) -> bool {
        self.inner.feed.readers() > 0
    }

    /// Waits for the turn of a command.
    pub(crate) async fn turn(&self) -> Result<MutexGuard<'_, ()>, ControllerError> {
        let turn = self.inner.turn.lock().await;
        self.check_alive()?;
        Ok(turn)
    }

    pub(crate) fn check_alive(&self) -> Result<(), ControllerError> {
        self.shared.check_open()?;
        self.check_deleted()
    }

    fn check_deleted(&self) -> Result<(), ControllerError> {
        if self.inner.deleted.load(Ordering::Acquire) {
            return Err(ControllerError::new(ControllerErrorKind::SessionDeleted, "this session was deleted; create it again"));
        }
        Ok(())
    }

    /// Changes the stored record, and with it what reads see. `then` is told what came of it while nobody else can write, so that events
    /// come in the order of the writes.
    pub(crate) async fn write<T>(
        &self,
        change: impl FnMut(&mut SessionRecord) -> Result<Change<T>, ControllerError>,
        then: impl FnOnce(&T),
    ) -> Result<T, ControllerError> {
        let mut slot = self.inner.cell.lock().await;
        let cell = self.loaded(&mut slot).await?;
        let value = cell.update(self.shared.storage.sessions(), &self.inner.id, change).await?;
        let record = cell.record.clone();
        self.inner.change_view(|view| view.record = record);
        then(&value);
        Ok(value)
    }

    /// The record as the store has it now, another process's writes included.
    pub(crate) async fn refresh(&self) -> Result<Arc<SessionRecord>, ControllerError> {
        let mut slot = self.inner.cell.lock().await;
        let cell = self.loaded(&mut slot).await?;
        let changed = cell.refresh(self.shared.storage.sessions(), &self.inner.id).await?;
        let record = cell.record.clone();
        if changed {
            self.inner.change_view(|view| {
                view.record = record.clone();
                view.show_rules();
            });
        }
        Ok(record)
    }

    async fn loaded<'a>(&self, slot: &'a mut Option<Cell>) -> Result<&'a mut Cell, ControllerError> {
        // What was deleted is not written again by who still has it.
        self.check_deleted()?;
        if slot.is_none() {
            let fresh = self.view().record.as_ref().clone();
            let mut cell = Cell::load(self.shared.storage.sessions(), &self.inner.id, fresh).await?;
            if self.shared.config.ephemeral_permissions && cell.is_stored() {
                let record = Arc::make_mut(&mut cell.record);
                record.rules = ac_core::PermissionRules::default();
                record.grants.clear();
            }
            let record = cell.record.clone();
            self.inner.feed.show(record.thread.clone(), |_| {});
            self.inner.change_view(|view| {
                if let Some(state) = record.state.as_ref().filter(|_| self.shared.config.persist_state) {
                    Arc::make_mut(&mut view.state).extend(state.clone());
                }
                view.record = record;
                view.show_rules();
            });
            *slot = Some(cell);
        }
        slot.as_mut().ok_or_else(|| ControllerError::new(ControllerErrorKind::SessionDeleted, "this session was deleted; create it again"))
    }

    /// Ends the session; says whether there was one.
    pub(crate) async fn delete(&self) -> Result<bool, ControllerError> {
        let _turn = self.turn().await?;
        let existed = {
            let mut slot = self.inner.cell.lock().await;
            self.loaded(&mut slot).await?.is_stored()
        };
        for header in self.open_headers().await? {
            if header.parent.is_none() {
                self.leave(&header.thread).await?;
            }
        }
        self.sweep_forks().await?;
        {
            let mut slot = self.inner.cell.lock().await;
            self.shared.storage.sessions().delete(&self.inner.id).await?;
            self.inner.deleted.store(true, Ordering::Release);
            for item in slot.take().iter().flat_map(|cell| &cell.record.queue) {
                self.shared.transient.forget_message(&item.thread, &item.message.id);
            }
        }
        // What waits for a person goes on waiting, but not for this session: its rules and grants are gone, and nobody hears it any more.
        for header in self.open_headers().await? {
            if let Some(handle) = self.shared.runtime.live(&header.run) {
                handle.park().await;
            }
        }
        self.inner.feed.close();
        Ok(existed)
    }

    pub(crate) fn tell(&self, about: About, body: ac_core::EventBody) {
        self.inner.feed.tell(about, body);
    }
}

/// The same session.
impl PartialEq for Session {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for Session {}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("key", self.key()).finish_non_exhaustive()
    }
}
