use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use ac_core::{DisplayState, Event, EventBody};
use ac_storage::SessionId;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use tokio::sync::Notify;

use super::{BusItem, Cursor, EventBus};
use crate::map::SharedMap;

/// A bus within one process: a ring for each session that is at work or listened to, bounded in the number of its events and in the memory
/// that they take.
///
/// ```
/// use ac_controller::LocalBus;
///
/// // For many sessions on a small machine: clients that come back late are told the state instead of what they missed.
/// let bus = LocalBus::new(1024).bytes(512 * 1024);
/// # let _ = bus;
/// ```
pub struct LocalBus {
    rings: SharedMap<SessionId, Arc<Ring>>,
    bounds: Bounds,
}

/// What a ring may keep.
#[derive(Clone, Copy)]
struct Bounds {
    events: usize,
    bytes: usize,
}

impl LocalBus {
    /// How many events a ring keeps unless told otherwise.
    pub const CAPACITY: usize = 4096;

    /// How many bytes a ring keeps, about, unless told otherwise: 4 MiB. Small events fill a ring by number before.
    pub const BYTES: usize = 4 * 1024 * 1024;
    /// Bytes never take a ring below this many events (nor below its capacity): who reads at once loses nothing, however large the events.
    pub const LEAST: usize = 64;

    /// A bus whose rings keep this many events, at least one, and [`LocalBus::BYTES`].
    pub fn new(capacity: usize) -> Self {
        Self { rings: SharedMap::default(), bounds: Bounds { events: capacity.max(1), bytes: Self::BYTES } }
    }

    /// How many bytes a ring keeps, about ([`Event::weight`]). It then keeps fewer events, down to [`LocalBus::LEAST`].
    #[must_use]
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bounds.bytes = bytes;
        self
    }

    fn ring(&self, session: &SessionId) -> Arc<Ring> {
        self.rings.get_or_insert_with(session, || Arc::new(Ring::new(self.bounds)))
    }
}

impl Default for LocalBus {
    fn default() -> Self {
        Self::new(Self::CAPACITY)
    }
}

impl EventBus for LocalBus {
    fn publish(&self, session: &SessionId, event: Arc<Event>) {
        self.ring(session).push(event);
    }

    fn subscribe(&self, session: &SessionId, after: Option<Cursor>) -> BoxStream<'static, BusItem> {
        let ring = self.ring(session);
        let start = match after {
            None => Some(ring.lock().next),
            Some(after) => ring.lock().index_after(&after),
        };
        let Some(next) = start else { return stream::iter([BusItem::Lost]).boxed() };
        let reader = Reader { _count: Counted::new(ring.clone()), ring, next, taken: VecDeque::new(), lost: false, busy: false };
        stream::unfold(reader, |mut reader| async move {
            let item = reader.next().await?;
            Some((item, reader))
        })
        .boxed()
    }

    fn readers(&self, session: &SessionId) -> usize {
        self.rings.get(session).map_or(0, |ring| ring.readers())
    }

    fn rest(&self, session: &SessionId) {
        self.rings.remove_if(session, |ring| ring.readers() == 0);
    }

    fn close(&self, session: &SessionId) {
        if let Some(ring) = self.rings.remove(session) {
            ring.lock().closed = true;
            ring.wake.notify_waiters();
        }
    }
}

/// The latest events of one session.
struct Ring {
    kept: Mutex<Kept>,
    wake: Notify,
    readers: AtomicUsize,
    bounds: Bounds,
}

struct Kept {
    events: VecDeque<Weighed>,
    /// What they weigh together.
    bytes: usize,
    /// The last view: a view weighs what it does not share with the one before it.
    view: Option<Arc<DisplayState>>,
    /// Counts all events that ever were in the ring: the index of the one that comes next.
    next: u64,
    closed: bool,
}

struct Weighed {
    event: Arc<Event>,
    weight: usize,
}

impl Kept {
    /// Takes an event in. Gives back what there is no room for any more.
    fn push(&mut self, event: Arc<Event>, bounds: Bounds) -> Vec<Weighed> {
        let weight = event.weight(self.view.as_deref());
        if let EventBody::DisplayStateChanged { state } = &event.body {
            self.view = Some(state.clone());
        }
        self.bytes += weight;
        self.events.push_back(Weighed { event, weight });
        self.next += 1;
        let mut dropped = vec![];
        while self.events.len() > bounds.events || (self.bytes > bounds.bytes && self.events.len() > LocalBus::LEAST) {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(oldest.weight);
            dropped.push(oldest);
        }
        dropped
    }

    fn first(&self) -> u64 {
        self.next.saturating_sub(self.events.len() as u64)
    }

    /// The index of the event that follows `after`, if every event from there on is still here.
    fn index_after(&self, after: &Cursor) -> Option<u64> {
        let Some(Weighed { event: newest, .. }) = self.events.back() else { return (after.seq == 0 && self.next == 0).then_some(0) };
        if newest.epoch != after.epoch || after.seq > newest.seq {
            return None;
        }
        let missing = newest.seq.saturating_sub(after.seq);
        let index = self.next.checked_sub(missing)?;
        (index >= self.first()).then_some(index)
    }
}

impl Ring {
    fn new(bounds: Bounds) -> Self {
        let kept = Kept { events: VecDeque::new(), bytes: 0, view: None, next: 0, closed: false };
        Self { kept: Mutex::new(kept), wake: Notify::new(), readers: AtomicUsize::new(0), bounds }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn readers(&self) -> usize {
        self.readers.load(Ordering::Acquire)
    }

    fn push(&self, event: Arc<Event>) {
        let dropped = self.lock().push(event, self.bounds);
        // Not under the lock.
        drop(dropped);
        self.wake.notify_waiters();
    }
}

/// One subscription's place in the ring. It takes events in batches, so that a burst costs one lock and not one per event.
struct Reader {
    ring: Arc<Ring>,
    next: u64,
    taken: VecDeque<Arc<Event>>,
    lost: bool,
    /// It has read something since it last waited.
    busy: bool,
    _count: Counted,
}

/// What a look at the ring brought.
enum Look {
    Events,
    Nothing,
    Lost,
    Closed,
}

impl Reader {
    const BATCH: usize = 64;

    async fn next(&mut self) -> Option<BusItem> {
        loop {
            if let Some(event) = self.taken.pop_front() {
                return Some(BusItem::Event(event));
            }
            if self.lost {
                return None;
            }
            // Who just published is likely to publish more: it gets a chance to before the reader has itself woken, which costs both more
            // than reading does. So a burst wakes its reader now and then and not for each event.
            let look = match self.look() {
                Look::Nothing if std::mem::take(&mut self.busy) => {
                    tokio::task::yield_now().await;
                    self.look()
                }
                look => look,
            };
            let look = match look {
                Look::Nothing => {
                    let ring = self.ring.clone();
                    let mut woken = std::pin::pin!(ring.wake.notified());
                    // Registered before the look, so that an event that comes in between is not slept through.
                    woken.as_mut().enable();
                    let look = self.look();
                    if matches!(look, Look::Nothing) {
                        woken.await;
                    }
                    look
                }
                look => look,
            };
            match look {
                Look::Events => self.busy = true,
                Look::Nothing => {}
                Look::Closed => return None,
                Look::Lost => {
                    self.lost = true;
                    return Some(BusItem::Lost);
                }
            }
        }
    }

    fn look(&mut self) -> Look {
        let kept = self.ring.lock();
        let first = kept.first();
        if self.next < first {
            return Look::Lost;
        }
        let skip = usize::try_from(self.next - first).unwrap_or(usize::MAX);
        self.taken.extend(kept.events.iter().skip(skip).take(Self::BATCH).map(|kept| kept.event.clone()));
        self.next += self.taken.len() as u64;
        match (self.taken.is_empty(), kept.closed) {
            (false, _) => Look::Events,
            (true, true) => Look::Closed,
            (true, false) => Look::Nothing,
        }
    }
}

/// Counts a reader for as long as it lives.
struct Counted(Arc<Ring>);

impl Counted {
    fn new(ring: Arc<Ring>) -> Self {
        ring.readers.fetch_add(1, Ordering::AcqRel);
        Self(ring)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests;
