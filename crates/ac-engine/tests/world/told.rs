//! What a subscriber of a run is told.

use ac_core::{MessageId, PendingId, event::EndReason};
use ac_engine::Moment;

use crate::driver::Task;

/// What a subscriber is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    SegmentStart,
    SegmentEnd(EndReason),
    MessageStart(MessageId),
    MessageUpdate(MessageId),
    MessageEnd(MessageId),
    Asked(PendingId),
    Over(PendingId),
    Other,
}

/// Segments and message boundaries: a segment opens with the first event of the run in this epoch.
pub(crate) fn tell(task: &mut Task, moment: Moment) {
    let mut out = vec![];
    if !task.segment {
        task.segment = true;
        out.push(Told::SegmentStart);
    }
    let close = |open: &mut Option<MessageId>, out: &mut Vec<Told>| out.extend(open.take().map(Told::MessageEnd));
    match moment {
        Moment::SegmentEnd { reason, .. } => {
            close(&mut task.open, &mut out);
            out.push(Told::SegmentEnd(reason));
            task.segment = false;
        }
        Moment::MessageChanged { message, .. } => {
            if task.open.as_ref() != Some(&message.id) {
                close(&mut task.open, &mut out);
                task.open = Some(message.id.clone());
                out.push(Told::MessageStart(message.id.clone()));
            }
            out.push(Told::MessageUpdate(message.id.clone()));
        }
        Moment::MessageRestarted { id, .. } if task.open.as_ref() == Some(&id) => out.push(Told::MessageStart(id)),
        Moment::MessageDone(id) if task.open.as_ref() == Some(&id) => close(&mut task.open, &mut out),
        Moment::Delivered(message) => {
            close(&mut task.open, &mut out);
            out.extend([Told::MessageStart(message.id.clone()), Told::MessageEnd(message.id.clone())]);
        }
        Moment::ApprovalRequired(pending) | Moment::Suspended(pending) => out.push(Told::Asked(pending)),
        Moment::Resolved { pending, .. } => out.push(Told::Over(pending)),
        _ => out.push(Told::Other),
    }
    task.told.extend(out);
}

/// Segments and messages are told in pairs, and no wait is over before it was told in the same life.
pub(crate) fn well_formed(told: &[Told], ended: bool) -> Result<(), &'static str> {
    let (mut segment, mut open): (bool, Option<&MessageId>) = (false, None);
    for one in told {
        match one {
            Told::SegmentStart if segment => return Err("two starts"),
            Told::SegmentStart => segment = true,
            _ if !segment => return Err("something outside a segment"),
            Told::SegmentEnd(_) if open.is_some() => return Err("a segment ends with an open message"),
            Told::SegmentEnd(_) => segment = false,
            Told::MessageStart(id) if open.is_some_and(|open| open != id) => return Err("a message inside another"),
            Told::MessageStart(id) => open = Some(id),
            Told::MessageUpdate(id) if open != Some(id) => return Err("an update without a start"),
            Told::MessageEnd(id) if open != Some(id) => return Err("an end without a start"),
            Told::MessageEnd(_) => open = None,
            _ => {}
        }
    }
    if ended && segment { Err("a segment left open") } else { Ok(()) }
}
