use std::{convert::Infallible, sync::Arc, time::Duration};

use ac_controller::{Cursor, Delivery, Subscription};
use ac_core::{EpochId, SessionKey};
use axum::body::Body;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::StatusCode;
use tokio::time::{Instant, Sleep};

use crate::{
    Principal,
    auth::Pass,
    call::{Call, Reply},
    failure::Failure,
    frames::{Form, Frames, frame},
    limits::OpenStream,
    owners::Access,
    plain,
    server::{App, Served},
};

/// `GET …/stream` (WIRE 3). Open at once, also for a session that does not exist: silent then until it begins.
pub(crate) async fn open(call: Call) -> Result<Reply, Failure> {
    let (place, served) = call.served()?;
    let key = call.key()?.clone();
    let form = if call.query.get("events") == Some("all") { Form::All } else { Form::Plain };
    let open = call.app.streams.open(&call.who.name, call.app.limits.streams).ok_or_else(|| {
        let message = "too many streams are open; close some first";
        Failure::new(StatusCode::TOO_MANY_REQUESTS, "stream.too_many", message).after(5)
    })?;
    let after = call.last_event_id.as_deref().and_then(cursor);
    // The view is told at the beginning to who asks for everything, and to who comes back with a number that means nothing here.
    let told = form == Form::Plain && call.last_event_id.is_none();
    let heartbeat = call.app.limits.heartbeat;
    let reading = Reading {
        items: served.controller.listen(&key, after),
        frames: call.app.frames(place, &key),
        form,
        told,
        checked: call.access == Some(Access::Granted) || call.who.all,
        timer: Box::pin(tokio::time::sleep(heartbeat)),
        heartbeat,
        since: std::time::Instant::now(),
        let_in: std::time::Instant::now(),
        place,
        left: Left { served: served.clone(), key, app: call.app.clone(), who: call.who.clone(), pass: call.pass.clone(), _open: open },
    };
    call.app.metrics.stream_opened();
    let first = stream::once(std::future::ready(Ok::<_, Infallible>(Bytes::from_static(b": connected\n\n"))));
    let rest = stream::unfold(reading, |mut reading| async move {
        let bytes = reading.next().await?;
        Some((Ok(bytes), reading))
    });
    Ok(Reply::Stream(Body::from_stream(first.chain(rest))))
}

/// `EPOCH-SEQ`. What is no such thing is taken as a place that nobody knows.
fn cursor(text: &str) -> Option<Cursor> {
    let (epoch, seq) = text.rsplit_once('-').unwrap_or((text, ""));
    Some(Cursor { epoch: EpochId::from(epoch), seq: seq.parse().ok()? })
}

/// How often it is looked whether somebody is still let in.
const LOOK: Duration = Duration::from_secs(1);

struct Reading {
    items: Subscription,
    frames: Arc<Frames>,
    form: Form,
    /// The view that a subscription begins with need not be told.
    told: bool,
    /// The resource is known to be theirs.
    checked: bool,
    timer: std::pin::Pin<Box<Sleep>>,
    heartbeat: Duration,
    /// When it began to listen to this session.
    since: std::time::Instant,
    /// When it was last looked whether they are still let in.
    let_in: std::time::Instant,
    /// Which controller it is of.
    place: usize,
    left: Left,
}

impl Reading {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let item = tokio::select! {
                biased;
                () = self.left.app.cut.cancelled() => return None,
                item = self.items.next() => match item {
                    Some(item) => item,
                    None if self.follow().await => continue,
                    None => return None,
                },
                () = self.timer.as_mut() => {
                    if !self.is_let_in() {
                        return None;
                    }
                    self.rearm();
                    return Some(Bytes::from_static(b": heartbeat\n\n"));
                }
            };
            if !self.is_let_in() {
                return None;
            }
            if !self.checked {
                // It was nobody's when the stream was opened. Whose it is now decides.
                let Left { app, served, key, who, .. } = &self.left;
                match (app.owners.check(served, &key.resource, who).await, &item) {
                    (Ok(Access::Granted), _) => self.checked = true,
                    // The view of what is still nobody's shows nothing.
                    (Ok(Access::Free), Delivery::State(_)) => {}
                    _ => return None,
                }
            }
            let bytes = match item {
                Delivery::State(_) if std::mem::take(&mut self.told) => None,
                Delivery::State(resync) => {
                    self.left.app.metrics.resynced();
                    let body = match self.form {
                        Form::Plain => plain::state_changed(&resync.state),
                        Form::All => plain::full_state(&resync.state).into(),
                    };
                    Some(frame(&resync.cursor.epoch, resync.cursor.seq, &body))
                }
                Delivery::Event(event) => {
                    self.told = false;
                    self.frames.of(&event, self.form)
                }
            };
            if let Some(bytes) = bytes {
                self.rearm();
                self.left.app.metrics.frame();
                return Some(bytes);
            }
        }
    }

    /// The session ended. Says whether it goes on under another key that they may listen to; the stream then does too.
    async fn follow(&mut self) -> bool {
        let Left { app, served, key, who, .. } = &mut self.left;
        let Some(to) = app.moved(self.place, key, self.since) else { return false };
        if !matches!(app.owners.check(served, &to.resource, who).await, Ok(Access::Granted)) {
            return false;
        }
        self.since = std::time::Instant::now();
        self.items = served.controller.listen(&to, None);
        self.frames = app.frames(self.place, &to);
        served.controller.forget(key);
        *key = to;
        (self.told, self.checked) = (false, true);
        true
    }

    /// Whether a token that was good when the stream was opened still is. Looked up by the clock and not for each event.
    fn is_let_in(&mut self) -> bool {
        if self.let_in.elapsed() < LOOK {
            return true;
        }
        self.let_in = std::time::Instant::now();
        self.left.app.auth.lets_in(&self.left.pass, &self.left.who)
    }

    fn rearm(&mut self) {
        self.timer.as_mut().reset(Instant::now() + self.heartbeat);
    }
}

/// What there is to do when a stream ends, however it does. Dropped after the subscription.
struct Left {
    app: Arc<App>,
    served: Arc<Served>,
    key: SessionKey,
    who: Principal,
    pass: Pass,
    _open: OpenStream,
}

impl Drop for Left {
    fn drop(&mut self) {
        self.app.metrics.stream_closed();
        self.served.controller.forget(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_event_id_names_an_epoch_and_a_number_in_it() {
        assert_eq!(cursor("0193-ab-7"), Some(Cursor { epoch: "0193-ab".into(), seq: 7 }));
        for forged in ["", "7", "-", "a-", "a-x", "a--1", "a-99999999999999999999999", "a-7 ", "a-7\u{0}"] {
            assert!(cursor(forged).is_none_or(|cursor| cursor.epoch.as_str().is_empty() || cursor.epoch.as_str() == "a-"), "{forged}");
        }
    }
}
