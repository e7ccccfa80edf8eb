use std::{collections::VecDeque, io::Write as _, sync::Mutex};

use ac_core::{EpochId, Event, EventBody, wire};
use bytes::Bytes;
use serde_json::Value;

use crate::{limits::lock, plain};

/// The latest events of one session as they are sent, so that each is made once however many streams there are.
#[derive(Debug, Default)]
pub(crate) struct Frames(Mutex<VecDeque<Made>>);

#[derive(Debug)]
struct Made {
    epoch: EpochId,
    seq: u64,
    /// `Some(None)`: it was made, and there is nothing to send.
    plain: Option<Option<Bytes>>,
    all: Option<Bytes>,
}

/// Which of the two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The reference's.
    Plain,
    /// Everything.
    All,
}

impl Frames {
    /// Streams that read are never further apart than this; one that falls behind makes its own.
    const KEPT: usize = 64;

    /// The bytes of an event; `None` where this form has nothing to say.
    pub(crate) fn of(&self, event: &Event, form: Form) -> Option<Bytes> {
        let mut kept = lock(&self.0);
        let at = kept.iter().rposition(|made| made.seq == event.seq && made.epoch == event.epoch);
        let at = match at {
            Some(at) => at,
            None => {
                if kept.len() >= Self::KEPT {
                    kept.pop_front();
                }
                kept.push_back(Made { epoch: event.epoch.clone(), seq: event.seq, plain: None, all: None });
                kept.len() - 1
            }
        };
        // Made under the lock: whoever comes second waits for the first, which is cheaper than doing the same.
        let made = kept.get_mut(at)?;
        match form {
            Form::Plain => made.plain.get_or_insert_with(|| plain::body(event).map(|body| frame(&event.epoch, event.seq, &body))).clone(),
            Form::All => Some(made.all.get_or_insert_with(|| frame(&event.epoch, event.seq, &all(event))).clone()),
        }
    }
}

fn all(event: &Event) -> Value {
    let mut out = wire::event(event);
    if let EventBody::DisplayStateChanged { state } = &event.body
        && let Value::Object(fields) = &mut out
    {
        fields.extend(plain::full_state(state));
    }
    out
}

/// One frame: its number, and one line of JSON.
pub(crate) fn frame(epoch: &EpochId, seq: u64, body: &Value) -> Bytes {
    let mut out = Vec::with_capacity(256);
    // Writing to memory does not fail, and a `Value` is always JSON.
    let _ = write!(out, "id: {epoch}-{seq}\ndata: ");
    let _ = serde_json::to_writer(&mut out, body);
    out.extend_from_slice(b"\n\n");
    out.into()
}
