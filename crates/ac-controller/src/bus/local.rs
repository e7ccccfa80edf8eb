use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use ac_core::Event;
use ac_storage::SessionId;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use tokio::sync::Notify;

use super::{BusItem, Cursor, EventBus};
use crate::map::SharedMap;

/// A bus within one process: a bounded ring for each session that is at work or listened to.
pub struct LocalBus {
    rings: SharedMap<SessionId, Arc<Ring>>,
    capacity: usize,
}

impl LocalBus {
    /// How many events a ring keeps unless told otherwise.
    pub const CAPACITY: usize = 4096;

    /// A bus whose rings keep this many events, at least one.
    pub fn new(capacity: usize) -> Self {
        Self { rings: SharedMap::default(), capacity: capacity.max(1) }
    }

    fn ring(&self, session: &SessionId) -> Arc<Ring> {
        self.rings.get_or_insert_with(session, || Arc::new(Ring::new(self.capacity)))
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
        let reader = Reader { _count: Counted::new(ring.clone()), ring, next, taken: VecDeque::new(), lost: false };
        stream::unfold(reader, |mut reader| async move {
            let item = reader.next().await?;
            Some((item, reader))
        })
        .boxed()
    }

    fn readers(&self, session: &SessionId) -> usize {
        self.rings.get(session).map_or(0, |ring| ring.readers.load(Ordering::Acquire))
    }

    fn rest(&self, session: &SessionId) {
        self.rings.remove_if(session, |ring| ring.readers.load(Ordering::Acquire) == 0);
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
    capacity: usize,
}

struct Kept {
    events: VecDeque<Arc<Event>>,
    /// Counts all events that ever were in the ring: the index of the one that comes next.
    next: u64,
    closed: bool,
}

impl Kept {
    fn first(&self) -> u64 {
        self.next.saturating_sub(self.events.len() as u64)
    }

    /// The index of the event that follows `after`, if every event from there on is still here.
    fn index_after(&self, after: &Cursor) -> Option<u64> {
        let Some(newest) = self.events.back() else { return (after.seq == 0 && self.next == 0).then_some(0) };
        if newest.epoch != after.epoch || after.seq > newest.seq {
            return None;
        }
        let missing = newest.seq.saturating_sub(after.seq);
        let index = self.next.checked_sub(missing)?;
        (index >= self.first()).then_some(index)
    }
}

impl Ring {
    fn new(capacity: usize) -> Self {
        let kept = Kept { events: VecDeque::new(), next: 0, closed: false };
        Self { kept: Mutex::new(kept), wake: Notify::new(), readers: AtomicUsize::new(0), capacity }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: Arc<Event>) {
        let dropped = {
            let mut kept = self.lock();
            let dropped = if kept.events.len() >= self.capacity { kept.events.pop_front() } else { None };
            kept.events.push_back(event);
            kept.next += 1;
            dropped
        };
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
    _count: Counted,
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
            let ring = self.ring.clone();
            let mut woken = std::pin::pin!(ring.wake.notified());
            // Registered before the look, so that an event that comes in between is not slept through.
            woken.as_mut().enable();
            {
                let kept = ring.lock();
                let first = kept.first();
                if self.next < first {
                    self.lost = true;
                    return Some(BusItem::Lost);
                }
                let skip = usize::try_from(self.next - first).unwrap_or(usize::MAX);
                self.taken.extend(kept.events.iter().skip(skip).take(Self::BATCH).cloned());
                self.next += self.taken.len() as u64;
                if self.taken.is_empty() && kept.closed {
                    return None;
                }
            }
            if self.taken.is_empty() {
                woken.await;
            }
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
