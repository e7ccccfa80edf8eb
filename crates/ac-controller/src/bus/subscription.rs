use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use ac_core::{DisplayState, Event};
use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};

use super::{BusItem, Cursor};

/// What a subscriber gets.
#[derive(Clone, Debug)]
pub enum Delivery {
    /// The state of the session as it stands: at the beginning, and again after the subscriber fell behind. Events that follow come
    /// after it.
    State(Resync),
    /// The next event. No number is skipped and none comes twice until the next [`Delivery::State`].
    Event(Arc<Event>),
}

/// The state of a session at one moment.
#[derive(Clone, Debug)]
pub struct Resync {
    /// The last event that the state contains.
    pub cursor: Cursor,
    /// The state.
    pub state: Arc<DisplayState>,
}

/// Events of a session, as a stream that ends with the session or with the process. Dropping it ends it; reading it slowly delays nobody.
///
/// ```
/// use ac_controller::{Delivery, Session};
/// use futures::StreamExt;
///
/// # async fn run(session: &Session) {
/// let mut events = session.subscribe();
/// while let Some(delivery) = events.next().await {
///     match delivery {
///         // At the beginning, and again after this reader fell too far behind.
///         Delivery::State(now) => println!("running: {}", now.state.is_running),
///         Delivery::Event(event) => println!("{} {:?}", event.seq, event.body),
///     }
/// }
/// # }
/// ```
pub struct Subscription {
    items: BoxStream<'static, Delivery>,
    source: Arc<dyn StateSource>,
}

/// Where a subscription gets the present state from, together with everything that follows it.
pub(crate) trait StateSource: Send + Sync + 'static {
    /// The state now, and what is published from now on. `None` when the session is over.
    fn restart(&self) -> Option<(Resync, BoxStream<'static, BusItem>)>;

    /// A subscription is gone.
    fn left(&self);
}

impl Subscription {
    pub(crate) fn new(source: Arc<dyn StateSource>, resumed: Option<BoxStream<'static, BusItem>>) -> Self {
        // From this moment on, not from the first read.
        let start = match resumed {
            Some(items) => Place::Reading(items),
            None => Place::restart(source.as_ref()),
        };
        let items = stream::unfold((source.clone(), start), |(source, mut place)| async move {
            loop {
                match place {
                    Place::Over => return None,
                    Place::Restarted(state, items) => return Some((Delivery::State(state), (source, Place::Reading(items)))),
                    Place::Reading(mut items) => match items.next().await? {
                        BusItem::Event(event) => return Some((Delivery::Event(event), (source, Place::Reading(items)))),
                        BusItem::Lost => place = Place::restart(source.as_ref()),
                    },
                }
            }
        })
        .boxed();
        Self { items, source }
    }

    /// The next event, without the states; `None` at the end.
    pub async fn next_event(&mut self) -> Option<Arc<Event>> {
        loop {
            if let Delivery::Event(event) = self.items.next().await? {
                return Some(event);
            }
        }
    }
}

enum Place {
    Restarted(Resync, BoxStream<'static, BusItem>),
    Reading(BoxStream<'static, BusItem>),
    Over,
}

impl Place {
    fn restart(source: &dyn StateSource) -> Self {
        source.restart().map_or(Self::Over, |(state, items)| Self::Restarted(state, items))
    }
}

impl Stream for Subscription {
    type Item = Delivery;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Delivery>> {
        self.items.poll_next_unpin(cx)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // The reader goes first, so that the bus no longer counts it.
        self.items = stream::empty().boxed();
        self.source.left();
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscription")
    }
}
