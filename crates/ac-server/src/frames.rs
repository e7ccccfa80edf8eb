use std::{collections::VecDeque, io::Write as _, sync::Mutex};

use ac_core::{EpochId, Event, EventBody, wire};
use bytes::Bytes;
use serde_json::Value;

use crate::{limits::lock, plain};

/// The latest events of one session as they are sent, so that each is made once however many streams there are.
#[derive(Debug, Default)]
pub(crate) struct Frames(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    made: VecDeque<Made>,
    bytes: usize,
}

#[derive(Debug)]
struct Made {
    epoch: EpochId,
    seq: u64,
    /// `Some(None)`: it was made, and there is nothing to send.
    plain: Option<Option<Bytes>>,
    all: Option<Option<Bytes>>,
}

/// Which of the two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The reference's.
    Plain,
    /// Everything.
    All,
}

impl Made {
    fn bytes(&self) -> usize {
        [&self.plain, &self.all].into_iter().flatten().flatten().map(Bytes::len).sum()
    }
}

impl Frames {
    /// Streams that read are never further apart than this; one that falls behind makes its own.
    const KEPT: usize = 64;
    /// Nor are so many bytes kept: a view has the whole text of its message.
    const BYTES: usize = 64 * 1024;
    /// However long they are: the event and its view, while they are being sent.
    const LEAST: usize = 4;

    /// The bytes of an event; `None` where this form has nothing to say.
    pub(crate) fn of(&self, event: &Event, form: Form) -> Option<Bytes> {
        let mut kept = lock(&self.0);
        let kept = &mut *kept;
        let at = kept.made.iter().rposition(|made| made.seq == event.seq && made.epoch == event.epoch);
        if at.is_none() && kept.made.front().is_some_and(|oldest| oldest.epoch == event.epoch && event.seq < oldest.seq) {
            // A stream that catches up does not push out what the others are about to send.
            return make(event, form);
        }
        let at = at.unwrap_or_else(|| {
            kept.made.push_back(Made { epoch: event.epoch.clone(), seq: event.seq, plain: None, all: None });
            kept.made.len() - 1
        });
        // Made under the lock: whoever comes second waits for the first, which is cheaper than doing the same.
        let made = kept.made.get_mut(at)?;
        let before = made.bytes();
        let bytes = match form {
            Form::Plain => made.plain.get_or_insert_with(|| make(event, form)).clone(),
            Form::All => made.all.get_or_insert_with(|| make(event, form)).clone(),
        };
        kept.bytes = kept.bytes.saturating_sub(before).saturating_add(made.bytes());
        while kept.made.len() > Self::KEPT || (kept.bytes > Self::BYTES && kept.made.len() > Self::LEAST) {
            let Some(oldest) = kept.made.pop_front() else { break };
            kept.bytes = kept.bytes.saturating_sub(oldest.bytes());
        }
        bytes
    }
}

fn make(event: &Event, form: Form) -> Option<Bytes> {
    let body = match form {
        Form::Plain => plain::body(event)?,
        Form::All => all(event),
    };
    Some(frame(&event.epoch, event.seq, &body))
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
    // It is kept for other streams, and waits in the buffers of slow ones.
    out.shrink_to_fit();
    out.into()
}

#[cfg(test)]
mod tests {
    use ac_core::{SessionKey, Timestamp};

    use super::*;

    fn event(seq: u64, bytes: usize) -> Event {
        let body = EventBody::Info { message: "x".repeat(bytes) };
        Event { epoch: "e".into(), seq, at: Timestamp::default(), session: SessionKey::new("r"), run: None, thread: None, body }
    }

    fn kept(frames: &Frames) -> (usize, usize) {
        let kept = lock(&frames.0);
        assert_eq!(kept.bytes, kept.made.iter().map(Made::bytes).sum::<usize>());
        (kept.made.len(), kept.bytes)
    }

    #[test]
    fn a_frame_is_made_once_and_the_latest_are_kept() {
        let frames = Frames::default();
        for seq in 1..=1000 {
            let event = event(seq, 10);
            let (one, other) = (frames.of(&event, Form::Plain).unwrap(), frames.of(&event, Form::Plain).unwrap());
            assert_eq!(one.as_ptr(), other.as_ptr(), "the same bytes");
            assert_ne!(frames.of(&event, Form::All).unwrap(), one, "each form for itself");
        }
        assert_eq!(kept(&frames).0, Frames::KEPT);
        // A stream that catches up makes its own, and leaves the others theirs.
        let newest = frames.of(&event(1000, 10), Form::Plain).unwrap();
        (1..=900).for_each(|seq| assert!(frames.of(&event(seq, 10), Form::Plain).is_some()));
        assert_eq!(frames.of(&event(1000, 10), Form::Plain).unwrap().as_ptr(), newest.as_ptr());
    }

    #[test]
    fn long_frames_are_few() {
        let frames = Frames::default();
        (1..=100).for_each(|seq| drop(frames.of(&event(seq, 5_000), Form::Plain)));
        let (count, bytes) = kept(&frames);
        assert!((10..=13).contains(&count) && bytes <= Frames::BYTES, "{count} frames, {bytes} bytes");
        (101..=200).for_each(|seq| drop(frames.of(&event(seq, 1_000_000), Form::Plain)));
        assert_eq!(kept(&frames).0, Frames::LEAST, "and the latest are made once, however long");
    }
}
