//! How events get from a session to whoever listens.

mod local;
mod subscription;

use std::sync::Arc;

use ac_core::{EpochId, Event};
use ac_storage::SessionId;
use futures::stream::BoxStream;
pub use local::LocalBus;
pub(crate) use subscription::StateSource;
pub use subscription::{Delivery, Resync, Subscription};

/// Carries the events of sessions. Nothing else hands events to subscribers.
///
/// A bus never waits for a reader and never grows without bound: a reader that falls behind is told so once, and starts again from the
/// present state.
///
/// Calls about one session come one at a time; calls about different sessions come at once.
pub trait EventBus: Send + Sync + 'static {
    /// Takes the next event of a session, in the order of `seq`. Never waits.
    fn publish(&self, session: &SessionId, event: Arc<Event>);

    /// Events of a session, in order, each once.
    ///
    /// With `after`: those that follow it; if the bus no longer has all of them the first item is [`BusItem::Lost`] and nothing follows.
    /// Without: those that are published from now on.
    fn subscribe(&self, session: &SessionId, after: Option<Cursor>) -> BoxStream<'static, BusItem>;

    /// How many readers a session has now. Views are built only for sessions that have some.
    fn readers(&self, session: &SessionId) -> usize;

    /// Nothing is going on in the session: what is only kept for readers that may come back can go, unless there are some.
    fn rest(&self, session: &SessionId);

    /// The session is over, or the process stops: its streams end.
    fn close(&self, session: &SessionId);
}

/// The place of an event in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The activation of the session that numbers the event.
    pub epoch: EpochId,
    /// The number of the event within it; 0 is before the first.
    pub seq: u64,
}

/// What a bus hands to a reader.
#[derive(Clone, Debug)]
pub enum BusItem {
    /// The next event.
    Event(Arc<Event>),
    /// Events are missing here. Nothing follows.
    Lost,
}
