//! The task of one conversation: hands on what came in, in order, and posts what the thread says.

mod decide;
mod inbound;
mod present;
mod waits;

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use ac_controller::{AgentController, Delivery, Session, Subscription};
use ac_core::{ErrorInfo, EventBody, MessageId, RunId, Timestamp, event::EndReason};
use futures::{FutureExt, StreamExt};
use tokio::time::Instant;

use crate::{
    Capabilities, ChannelAdapter, ChannelError, ChannelErrorKind, PostKey,
    channels::{Registered, Shared},
    event::{Conversation, Speaker},
    hooks::About,
    live::Live,
    record::{ConversationRecord, Lease, Note},
};

/// How long the task outlives the last thing that happened, for what other surfaces do on the thread.
const LINGER: Duration = Duration::from_secs(300);
/// How often people are shown that the agent is at work.
const TYPING: Duration = Duration::from_secs(4);
/// The longest pause after a failure.
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// How often something that fails for no passing reason is tried before people are told.
const TRIES: u32 = 5;
/// So long what is to be said waits for credentials or rights to be mended, in milliseconds.
const DENIED_FOR: i64 = 24 * 60 * 60 * 1000;

pub(crate) struct Actor {
    shared: Arc<Shared>,
    registered: Arc<Registered>,
    live: Arc<Live>,
    conversation: Conversation,
    session: Option<Session>,
    /// In a lock that nobody waits for, so that the task may move between threads.
    events: Option<Mutex<Subscription>>,
    /// What has to be looked at again.
    dirty: Dirty,
    /// Posts of an earlier process may have arrived without anybody knowing.
    first: bool,
    /// What each message on the platform says, as far as this process knows.
    says: HashMap<String, String>,
    /// Nothing is posted before: the platform wants a pause, or edits come too thick.
    not_before: Option<Instant>,
    /// The limit of texts, where the platform found one too long.
    limit: usize,
    failures: u32,
    /// The event that is being handed on, and how often that failed for a reason that does not pass by itself.
    tried: (u64, u32),
    /// The item that is being handed on.
    item: Option<u64>,
    /// Messages that were settled lately: the view may still show them.
    settled: VecDeque<MessageId>,
    next_typing: Option<Instant>,
    /// A run moves on the thread, as far as the events say.
    running: bool,
    /// A run failed, and nothing was said about it yet.
    failed_run: Option<(RunId, ErrorInfo)>,
    holds_lease: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Dirty {
    /// Text arrived.
    text: bool,
    /// The stored thread changed.
    thread: bool,
    /// Something waits for a person, or no longer.
    waits: bool,
}

impl Dirty {
    const ALL: Self = Self { text: true, thread: true, waits: true };
}

/// When to look again.
enum Next {
    /// When somebody has something.
    Rest,
    /// When somebody has something, or may have answered elsewhere.
    Look,
    At(Instant),
}

impl Actor {
    pub(crate) fn new(shared: Arc<Shared>, registered: Arc<Registered>, live: Arc<Live>, conversation: Conversation) -> Self {
        let limit = registered.adapter.capabilities().max_text;
        Self {
            shared,
            registered,
            live,
            conversation,
            session: None,
            events: None,
            dirty: Dirty::ALL,
            first: true,
            says: HashMap::new(),
            not_before: None,
            limit,
            failures: 0,
            tried: (u64::MAX, 0),
            item: None,
            settled: VecDeque::new(),
            next_typing: None,
            running: false,
            failed_run: None,
            holds_lease: false,
        }
    }

    pub(crate) async fn run(mut self) {
        let stop = self.shared.stop.clone();
        // The first event is stored by whoever made this task.
        tokio::select! {
            () = self.live.nudge.notified() => {}
            () = stop.cancelled() => return,
        }
        loop {
            let wakes = self.live.wakes.load(Ordering::Acquire);
            let next = match self.pass().await {
                Ok(next) => {
                    self.failures = 0;
                    next
                }
                Err(error) => self.failed(&error),
            };
            let at = match next {
                Next::Rest => {
                    self.release().await;
                    Instant::now() + LINGER
                }
                // Another process may take the answer.
                Next::Look => {
                    self.release().await;
                    Instant::now() + self.shared.look
                }
                Next::At(at) => at,
            };
            tokio::select! {
                () = stop.cancelled() => {
                    self.release().await;
                    return;
                }
                () = self.live.nudge.notified() => {}
                delivery = next_delivery(&mut self.events) => self.hear(delivery),
                () = tokio::time::sleep_until(at) => match next {
                    Next::Rest if self.shared.retire(&self.conversation, &self.live, wakes) => return,
                    Next::Rest => {}
                    Next::Look => self.look().await,
                    // What no event told, because another process moves the run.
                    Next::At(_) => self.dirty.thread |= self.running,
                },
            }
            // Whatever is there already is heard at once.
            while let Some(delivery) = next_delivery(&mut self.events).now_or_never() {
                self.hear(delivery);
            }
        }
    }

    fn failed(&mut self, error: &ChannelError) -> Next {
        if let Some(pause) = error.retry_after() {
            let at = Instant::now() + pause;
            self.not_before = Some(at);
            tracing::debug!(pause = pause.as_secs_f32(), "the platform wants a pause");
            return Next::At(at.min(Instant::now() + self.shared.lease / 3));
        }
        self.failures += 1;
        // The session may be another one by now.
        self.session = None;
        self.events = None;
        let pause = Duration::from_millis(100).saturating_mul(1 << self.failures.min(9)).min(MAX_BACKOFF);
        tracing::warn!(code = error.code(), failures = self.failures, "a conversation did not go on; it is tried again");
        // What was posted is not sure any more.
        self.first = true;
        Next::At(Instant::now() + pause)
    }

    fn hear(&mut self, delivery: Option<Delivery>) {
        let event = match delivery {
            None => {
                self.events = None;
                self.session = None;
                // What is told from here on is told to nobody until the session is there again.
                self.dirty = Dirty::ALL;
                return;
            }
            Some(Delivery::State(resync)) => {
                self.running = resync.state.is_running;
                self.dirty = Dirty::ALL;
                return;
            }
            Some(Delivery::Event(event)) => event,
        };
        match &event.body {
            EventBody::DisplayStateChanged { .. } | EventBody::ToolInputDelta { .. } | EventBody::ShellOutput { .. } => {}
            EventBody::MessageUpdate { .. } => self.dirty.text = true,
            EventBody::AgentStart => {
                self.running = true;
                self.dirty.thread = true;
            }
            EventBody::AgentEnd { reason, error, .. } => {
                self.running = false;
                let here = self.session.as_ref().is_some_and(|session| session.thread_id() == event.thread);
                if let (EndReason::Error, Some(run), Some(error), true) = (reason, &event.run, error, here) {
                    self.failed_run = Some((run.clone(), error.clone()));
                }
                self.dirty = Dirty::ALL;
                if *reason == EndReason::Suspended {
                    self.next_typing = None;
                }
            }
            EventBody::ToolApprovalRequired { .. }
            | EventBody::ToolSuspended { .. }
            | EventBody::ToolSuspensionCancelled { .. }
            | EventBody::PendingResolved { .. } => {
                self.dirty.waits = true;
                self.dirty.thread = true;
            }
            _ => self.dirty.thread = true,
        }
    }

    /// Everything that can be done now.
    async fn pass(&mut self) -> Result<Next, ChannelError> {
        let record = self.record().await?;
        if !self.has_work(&record) {
            return Ok(if record.open_cards().next().is_some() { Next::Look } else { Next::Rest });
        }
        if let Some(later) = self.lease().await? {
            return Ok(Next::At(later));
        }
        self.drain().await?;
        if !self.attach().await? {
            self.dirty = Dirty::default();
            return Ok(Next::Rest);
        }
        let now = Instant::now();
        if let Some(at) = self.not_before.filter(|at| *at > now) {
            return Ok(Next::At(at.min(now + self.shared.lease / 3)));
        }
        self.present().await?;
        self.first = false;
        let record = self.record().await?;
        if !record.inbox.is_empty() {
            return Ok(Next::At(Instant::now()));
        }
        // An open approval is no work of the agent's.
        if record.open_cards().next().is_some() {
            return Ok(Next::Look);
        }
        if self.running {
            self.typing().await;
            return Ok(Next::At(Instant::now() + TYPING.min(self.shared.lease / 3)));
        }
        Ok(Next::Rest)
    }

    fn has_work(&self, record: &ConversationRecord) -> bool {
        let Dirty { text, thread, waits } = self.dirty;
        let cards = record.cards.iter().any(|card| card.stale || (card.outcome.is_none() && card.message.is_none()));
        let running = self.running && record.open_cards().next().is_none();
        text || thread || waits || running || cards || !record.inbox.is_empty() || !record.notes.is_empty()
    }

    /// Whether something that is open here was answered elsewhere.
    async fn look(&mut self) {
        self.live.forget().await;
        let (Ok(record), Ok(open)) = (self.record().await, self.shared.open_waits().await) else { return };
        if record.open_cards().any(|card| !open.contains(&card.pending)) {
            self.dirty = Dirty::ALL;
        }
    }

    /// Takes the conversation, or says when to try again.
    async fn lease(&mut self) -> Result<Option<Instant>, ChannelError> {
        let (owner, now) = (self.shared.owner.clone(), self.shared.clock.now());
        let term = i64::try_from(self.shared.lease.as_millis()).unwrap_or(i64::MAX);
        let record = self.record().await?;
        let mine = record.lease.as_ref().filter(|lease| lease.owner == owner && self.holds_lease);
        if mine.is_some_and(|lease| lease.expires.millis_since(now) > term / 2) {
            return Ok(None);
        }
        let held = self
            .live
            .update(&self.shared, &self.conversation, |record| {
                if let Some(lease) = &record.lease
                    && lease.owner != owner
                    && lease.expires > now
                {
                    return Some(Some(lease.expires.millis_since(now)));
                }
                record.lease = Some(Lease { owner: owner.clone(), expires: now.plus_millis(term) });
                Some(None)
            })
            .await?;
        match held.flatten() {
            None => {
                self.holds_lease = true;
                Ok(None)
            }
            Some(millis) => {
                self.holds_lease = false;
                self.first = true;
                self.live.forget().await;
                Ok(Some(Instant::now() + Duration::from_millis(millis.clamp(50, 1_000).unsigned_abs())))
            }
        }
    }

    async fn release(&mut self) {
        if !std::mem::take(&mut self.holds_lease) {
            return;
        }
        let owner = self.shared.owner.clone();
        let released = self
            .live
            .update(&self.shared, &self.conversation, |record| {
                record.lease.as_ref().is_some_and(|lease| lease.owner == owner).then(|| record.lease = None)
            })
            .await;
        if let Err(error) = released {
            tracing::debug!(code = error.code(), "a conversation was not given back; it comes back by itself");
        }
    }

    /// What tells a post from all others.
    async fn post_key(&self, name: &str, since: Timestamp) -> Result<PostKey, ChannelError> {
        let after = self.record().await?.last.clone();
        Ok(PostKey { again: self.first, after, ..PostKey::new(format!("{}#{name}", self.conversation.id), since) })
    }

    async fn record(&self) -> Result<Arc<ConversationRecord>, ChannelError> {
        self.live.record(&self.shared, &self.conversation).await
    }

    async fn change<T>(&self, change: impl FnMut(&mut ConversationRecord) -> Option<T>) -> Result<Option<T>, ChannelError> {
        self.live.update(&self.shared, &self.conversation, change).await
    }

    /// Adds a line of the channel itself, in the platform's markup; once for each key.
    async fn add_note(&self, key: String, text: String) -> Result<(), ChannelError> {
        let at = self.shared.clock.now();
        let note = Note { key, text, at };
        self.change(|record| (!record.notes.iter().any(|known| known.key == note.key)).then(|| record.notes.push(note.clone()))).await?;
        Ok(())
    }

    /// Hands on what came in, in order.
    async fn drain(&mut self) -> Result<(), ChannelError> {
        loop {
            let record = self.record().await?;
            let Some(item) = record.inbox.front().cloned() else { return Ok(()) };
            self.item = Some(item.n);
            if let Err(error) = self.inbound(&record, &item).await {
                if error.is_transient() || error.kind() == ChannelErrorKind::Closed || self.tries_again(item.n) {
                    return Err(error);
                }
                // It stands in the way of everything behind it.
                tracing::error!(code = error.code(), "an event could not be handled; it is left out");
                self.failures = 0;
                self.add_note(format!("item:{}", item.n), self.line(&self.error_line(None))).await?;
            }
            self.change(|record| (record.inbox.front()?.n == item.n).then(|| record.inbox.pop_front())).await?;
            self.dirty = Dirty::ALL;
        }
    }

    /// Whether an event is handed on once more. What failed meanwhile for other reasons does not count against it.
    fn tries_again(&mut self, item: u64) -> bool {
        if self.tried.0 != item {
            self.tried = (item, 0);
        }
        self.tried.1 += 1;
        self.tried.1 <= TRIES
    }

    /// Whether what failed is tried again. Credentials and rights are mended by people: what is to be said since then waits for them, a day.
    fn waits_for(&self, error: &ChannelError, since: Timestamp) -> bool {
        error.is_transient() || (error.kind() == ChannelErrorKind::Denied && self.shared.clock.now().millis_since(since) < DENIED_FOR)
    }

    /// Sees to it that the events of the session are heard, where there is a session.
    async fn attach(&mut self) -> Result<bool, ChannelError> {
        if self.events.is_some() && self.session.is_some() {
            return Ok(true);
        }
        if self.session.is_none() {
            let record = self.record().await?;
            let Some(binding) = &record.binding else { return Ok(false) };
            self.open_session(&binding.clone(), None).await?;
        }
        if let Some(session) = self.session.clone() {
            self.attach_events(&session);
        }
        Ok(self.session.is_some())
    }

    async fn typing(&mut self) {
        let now = Instant::now();
        if self.next_typing.is_some_and(|at| at > now) || !self.adapter().capabilities().typing {
            return;
        }
        self.next_typing = Some(now + TYPING);
        if let Err(error) = self.adapter().typing(&self.conversation).await {
            tracing::debug!(code = error.code(), "nobody sees that the agent is at work");
        }
    }

    fn adapter(&self) -> &dyn ChannelAdapter {
        self.registered.adapter.as_ref()
    }

    /// What the platform can do, with the limit that holds by now.
    fn can(&self) -> Capabilities {
        Capabilities { max_text: self.limit, ..self.adapter().capabilities() }
    }

    fn controller(&self) -> &AgentController {
        &self.shared.controller
    }

    fn about<'a>(&'a self, speaker: &'a Speaker) -> About<'a> {
        About { platform: self.registered.adapter.platform(), conversation: &self.conversation, speaker }
    }

    /// Markdown as one line of the channel itself.
    fn line(&self, markdown: &str) -> String {
        let can = self.can();
        crate::render::messages(markdown, can.dialect, can.max_text, can.unit).into_iter().next().unwrap_or_default()
    }

    fn error_line(&self, error: Option<&ac_core::ErrorInfo>) -> String {
        error
            .and_then(|error| self.shared.hooks.format_error(error))
            .unwrap_or_else(|| "⚠️ Sorry, something went wrong. Please try again.".to_owned())
    }
}

async fn next_delivery(events: &mut Option<Mutex<Subscription>>) -> Option<Delivery> {
    match events {
        Some(events) => events.get_mut().unwrap_or_else(PoisonError::into_inner).next().await,
        None => std::future::pending().await,
    }
}
