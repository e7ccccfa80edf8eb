//! The one place where events of a session come from: it numbers them, keeps the view, and hands them to the bus.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ac_core::{
    Clock, DisplayState, EpochId, Event, EventBody, RunId, ThreadId,
    display::reduce,
    event::{EventClass, QueueItem, QueueKind},
};
use ac_storage::SessionId;
use futures::stream::BoxStream;
use tokio::{runtime::Handle, time::Instant};
use tokio_util::task::TaskTracker;

use crate::bus::{BusItem, Cursor, EventBus, Resync, StateSource, Subscription};

/// The least time between two views that deltas lead to.
const VIEW_INTERVAL: Duration = Duration::from_millis(16);

/// What an event is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    pub(crate) run: Option<RunId>,
    pub(crate) thread: Option<ThreadId>,
}

impl About {
    pub(crate) fn thread(thread: &ThreadId) -> Self {
        Self { run: None, thread: Some(thread.clone()) }
    }
}

pub(crate) struct Feed {
    session: SessionId,
    bus: Arc<dyn EventBus>,
    clock: Arc<dyn Clock>,
    tasks: TaskTracker,
    told: Mutex<Told>,
}

struct Told {
    epoch: EpochId,
    seq: u64,
    /// The thread that the view shows. Events about another one pass by without touching it.
    shown: Option<ThreadId>,
    /// Shared with the views that were told; what changes it copies the pointers in it, if somebody still has the last one.
    state: Arc<DisplayState>,
    /// Runs of which a segment is open.
    open: Vec<RunId>,
    /// Messages that wait for the open run, as the run last said; the follow-ups come after them.
    waiting: Vec<QueueItem>,
    follow_ups: Vec<QueueItem>,
    /// A view that deltas led to is due no earlier than this.
    next_view: Option<Instant>,
    /// A view is due that nobody got yet.
    withheld: bool,
    timer: bool,
    closed: bool,
}

impl Feed {
    pub(crate) fn new(session: SessionId, epoch: EpochId, bus: Arc<dyn EventBus>, clock: Arc<dyn Clock>, tasks: TaskTracker) -> Arc<Self> {
        let told = Told {
            epoch,
            seq: 0,
            shown: None,
            state: Arc::default(),
            open: vec![],
            waiting: vec![],
            follow_ups: vec![],
            next_view: None,
            withheld: false,
            timer: false,
            closed: false,
        };
        Arc::new(Self { session, bus, clock, tasks, told: Mutex::new(told) })
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells an event. Never waits.
    pub(crate) fn tell(self: &Arc<Self>, about: About, body: EventBody) {
        self.tell_and(about, body, |_| {});
    }

    /// Tells an event and changes the view with it, before anybody sees the view.
    pub(crate) fn tell_and(self: &Arc<Self>, about: About, body: EventBody, change: impl FnOnce(&mut DisplayState)) {
        self.tell_in(&mut self.lock(), about, body, change);
    }

    fn tell_in(self: &Arc<Self>, told: &mut Told, about: About, body: EventBody, change: impl FnOnce(&mut DisplayState)) {
        if told.closed {
            return;
        }
        let class = body.class();
        if class != EventClass::Coalesced {
            self.flush(told);
        }
        told.count_segments(&about, &body);
        let shown = about.thread.is_none() || about.thread == told.shown;
        let event = self.number(told, about, body);
        let state = Arc::make_mut(&mut told.state);
        if shown {
            reduce(state, &event);
        }
        change(state);
        let readers = self.bus.readers(&self.session);
        if readers > 0 || !told.open.is_empty() {
            self.bus.publish(&self.session, event);
        } else {
            self.bus.rest(&self.session);
        }
        if readers == 0 {
            return;
        }
        match class {
            EventClass::Coalesced => self.view_soon(told),
            _ => self.view_now(told),
        }
    }

    /// The follow-up queue, as the session's record has it. Tells the change when `tell` says so.
    pub(crate) fn follow_ups(self: &Arc<Self>, items: Vec<QueueItem>, tell: bool) {
        let mut told = self.lock();
        if told.follow_ups == items {
            return;
        }
        told.follow_ups = items;
        let (count, items) = (told.follow_ups.len(), told.queue());
        if tell {
            self.tell_in(&mut told, About::default(), EventBody::FollowUpQueued { count }, |_| {});
            self.tell_in(&mut told, About::default(), EventBody::QueueChanged { items }, |_| {});
        } else {
            let state = Arc::make_mut(&mut told.state);
            state.queued_follow_ups = count;
            state.queue = items;
        }
    }

    /// What waits for the open run; the follow-ups are added.
    pub(crate) fn waiting(self: &Arc<Self>, about: About, items: &[QueueItem]) {
        let mut told = self.lock();
        told.waiting = items.iter().filter(|item| item.kind == QueueKind::Message).cloned().collect();
        let items = told.queue();
        self.tell_in(&mut told, about, EventBody::QueueChanged { items }, |_| {});
    }

    /// Changes the view without an event: what a thread brings with it when it becomes the shown one.
    pub(crate) fn show(&self, thread: Option<ThreadId>, change: impl FnOnce(&mut DisplayState)) {
        let mut told = self.lock();
        told.shown = thread;
        change(Arc::make_mut(&mut told.state));
    }

    /// The thread that the view shows.
    pub(crate) fn shows(&self) -> Option<ThreadId> {
        self.lock().shown.clone()
    }

    /// The view now.
    pub(crate) fn state(&self) -> Arc<DisplayState> {
        self.lock().state.clone()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.lock().state.is_running
    }

    pub(crate) fn readers(&self) -> usize {
        self.bus.readers(&self.session)
    }

    /// Events from now on, or those that follow `after` as long as the bus has them.
    pub(crate) fn subscribe(self: &Arc<Self>, after: Option<Cursor>) -> Subscription {
        let resumed = after.and_then(|after| {
            let told = self.lock();
            // What was told to nobody is not on the bus: who has seen nothing yet begins with the state.
            let nothing_missed = after.seq > 0 || told.seq == 0;
            (after.epoch == told.epoch && nothing_missed && !told.closed).then(|| self.bus.subscribe(&self.session, Some(after)))
        });
        Subscription::new(self.clone(), resumed)
    }

    /// The session is over: its streams end.
    pub(crate) fn close(&self) {
        let mut told = self.lock();
        told.closed = true;
        self.bus.close(&self.session);
    }

    fn number(&self, told: &mut Told, about: About, body: EventBody) -> Arc<Event> {
        told.seq += 1;
        Arc::new(Event {
            epoch: told.epoch.clone(),
            seq: told.seq,
            at: self.clock.now(),
            session: self.session.key.clone(),
            run: about.run,
            thread: about.thread,
            body,
        })
    }

    fn view_now(&self, told: &mut Told) {
        told.withheld = false;
        let state = told.state.clone();
        let event = self.number(told, About::default(), EventBody::DisplayStateChanged { state });
        self.bus.publish(&self.session, event);
    }

    fn view_soon(self: &Arc<Self>, told: &mut Told) {
        // It is under way; nobody has to look at the clock.
        if told.timer {
            told.withheld = true;
            return;
        }
        let now = Instant::now();
        match told.next_view {
            Some(due) if now < due => {
                told.withheld = true;
                if let Ok(runtime) = Handle::try_current() {
                    told.timer = true;
                    let feed = self.clone();
                    self.tasks.spawn_on(async move { feed.view_at(due).await }, &runtime);
                }
            }
            _ => {
                told.next_view = Some(now + VIEW_INTERVAL);
                self.view_now(told);
            }
        }
    }

    async fn view_at(self: Arc<Self>, due: Instant) {
        tokio::time::sleep_until(due).await;
        let mut told = self.lock();
        told.timer = false;
        if told.withheld && !told.closed {
            told.next_view = Some(Instant::now() + VIEW_INTERVAL);
            self.view_now(&mut told);
        }
    }

    /// A view that deltas led to comes before the next other event, so that no view comes after what overtook it.
    fn flush(&self, told: &mut Told) {
        if told.withheld && self.bus.readers(&self.session) > 0 {
            self.view_now(told);
        }
        told.withheld = false;
    }
}

impl Told {
    fn count_segments(&mut self, about: &About, body: &EventBody) {
        let Some(run) = &about.run else { return };
        match body {
            EventBody::AgentStart if !self.open.contains(run) => self.open.push(run.clone()),
            EventBody::AgentEnd { .. } => self.open.retain(|open| open != run),
            _ => {}
        }
    }

    fn queue(&self) -> Arc<[QueueItem]> {
        self.waiting.iter().chain(&self.follow_ups).cloned().collect()
    }
}

impl StateSource for Feed {
    fn restart(&self) -> Option<(Resync, BoxStream<'static, BusItem>)> {
        let mut told = self.lock();
        if told.closed {
            return None;
        }
        told.withheld = false;
        let cursor = Cursor { epoch: told.epoch.clone(), seq: told.seq };
        let state = told.state.clone();
        let items = self.bus.subscribe(&self.session, None);
        drop(told);
        Some((Resync { cursor, state }, items))
    }

    fn left(&self) {
        let told = self.lock();
        if told.open.is_empty() {
            self.bus.rest(&self.session);
        }
    }
}

#[cfg(test)]
mod tests;
