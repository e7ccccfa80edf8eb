use std::sync::Arc;

use ac_core::{
    MessageId, PendingId, RunId, SuspendKind, Timestamp, ToolCallId, ToolCallPart,
    event::PendingKind,
    id::{child_run, step_message},
};

use crate::{Answer, OutboxAction, Outcome, Phase, Posture, Resolution, RunSnapshot, Slot, SlotStatus, StartRun, Wait};

impl RunSnapshot {
    /// The version of the stored form that this version writes.
    pub const SCHEMA: u32 = 1;

    /// So many answers are kept, so that the same answer again is recognised (`R6`); the record is written with every commit, and must not
    /// grow for as long as the run lives. The oldest steps are forgotten first, as a whole, and the newest step that asked anything never.
    /// What is said to a wait that was forgotten is refused as [`AlreadyResolved`](crate::Refusal::AlreadyResolved), the same answer too.
    pub const REMEMBERED: usize = 128;

    /// A new run, in epoch 1: [`Phase::Ready`], its messages in `queued`.
    pub fn start(start: StartRun, at: Timestamp) -> Self {
        let follow_up = start.messages.first().filter(|_| start.from_queue).map(|first| first.id.clone());
        let mut run = Self {
            schema: Self::SCHEMA,
            run: start.run,
            thread: start.thread,
            parent: start.parent,
            epoch: 1,
            step: 0,
            attempt: 0,
            failures: 0,
            phase: Phase::Ready,
            budget: crate::Budget::default(),
            working_since: Some(at),
            prompt: start.messages.len(),
            queued: start.messages.into_iter().map(Arc::new).collect(),
            profile: Arc::new(start.profile),
            cancel: None,
            message: None,
            calls: 0,
            answers: std::collections::BTreeMap::new(),
            answers_from: 0,
            outbox: vec![],
            next_outbox: 1,
            finish: None,
        };
        if let Some(id) = follow_up {
            run.post(OutboxAction::RemoveQueued { id });
        }
        run
    }

    /// The calls of the open step, in the order in which the model asked for them; empty unless [`Phase::Tools`].
    pub fn slots(&self) -> &[Slot] {
        match &self.phase {
            Phase::Tools { slots } => slots,
            _ => &[],
        }
    }

    /// The open waits, oldest first (`R6`).
    pub fn waits(&self) -> Vec<Wait<'_>> {
        let open = |slot| wait(slot).map(|(kind, since)| Wait { id: self.pending_id(slot), kind, slot, since });
        let mut waits: Vec<_> = self.slots().iter().filter_map(open).collect();
        waits.sort_by_key(|wait| wait.since);
        waits
    }

    /// The name of the latest wait of a slot.
    pub fn pending_id(&self, slot: &Slot) -> PendingId {
        PendingId { run: self.run.clone(), step: self.step, call: slot.call.clone(), n: slot.waits }
    }

    /// What the run waits for.
    ///
    /// A call that goes on as a child run counts as moving: its segment stays open, though no owner has anything to do for it.
    pub fn posture(&self) -> Posture {
        self.posture_with(|_| Posture::Moving)
    }

    /// What the run waits for, where `child` says it of its child runs: a run whose children wait for people waits for people.
    pub fn posture_with(&self, child: impl Fn(&RunId) -> Posture) -> Posture {
        let slots = match &self.phase {
            Phase::Finished { .. } => return Posture::Finished,
            Phase::Ready | Phase::Sampling | Phase::Judging { .. } => return Posture::Moving,
            Phase::Tools { slots } => slots,
        };
        let mut posture = Posture::Parked;
        for slot in slots {
            let of_slot = match &slot.status {
                status if status.works() => Posture::Moving,
                SlotStatus::Child { run } => child(run),
                SlotStatus::AwaitingApproval { .. } => Posture::Approval,
                _ => Posture::Parked,
            };
            match of_slot {
                // One that is over has a result to be taken.
                Posture::Moving | Posture::Finished => return Posture::Moving,
                Posture::Approval => posture = Posture::Approval,
                Posture::Parked => {}
            }
        }
        posture
    }

    /// The child runs that calls of the open step wait for.
    pub fn children(&self) -> impl Iterator<Item = (&ToolCallId, &RunId)> {
        self.slots().iter().filter_map(|slot| match &slot.status {
            SlotStatus::Child { run } => Some((&slot.call, run)),
            _ => None,
        })
    }

    /// Whether it is decided how the run ends.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Finished { .. })
    }

    /// Whether the run is over for good: finished, and nothing of it is left to apply (`R1`). Only then its thread is free again.
    pub fn is_closed(&self) -> bool {
        self.is_finished() && self.outbox.is_empty()
    }

    /// How the run ended.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Finished { outcome, .. } => Some(outcome),
            _ => None,
        }
    }

    /// The id of the open step's message.
    pub fn message_id(&self) -> MessageId {
        step_message(&self.run, self.step)
    }

    /// A call of the open step, as its message has it: name, arguments, state.
    pub fn call_part(&self, call: &ToolCallId) -> Option<&ToolCallPart> {
        self.message.as_deref()?.tool_calls().find(|part| part.id == *call)
    }

    /// What an id means that names a call only: the first wait of the call that is an approval or a suspension, never one in doubt
    /// (`R6`).
    ///
    /// A call that was approved and then asks a question has two: see [`alias_approval`](Self::alias_approval) and
    /// [`alias_suspension`](Self::alias_suspension).
    pub fn alias(&self, call: &ToolCallId) -> Option<PendingId> {
        self.issued(call).find(|(_, kind)| *kind != Issued::InDoubt).map(|(id, _)| id)
    }

    /// What the id of a call means to who approves or declines it: the approval of the call.
    pub fn alias_approval(&self, call: &ToolCallId) -> Option<PendingId> {
        self.issued(call).find(|(_, kind)| matches!(kind, Issued::Approval | Issued::Either)).map(|(id, _)| id)
    }

    /// What the id of a call means to who answers its question or decides its plan: the first suspension of the call.
    pub fn alias_suspension(&self, call: &ToolCallId) -> Option<PendingId> {
        self.issued(call).find(|(_, kind)| matches!(kind, Issued::Suspension | Issued::Either)).map(|(id, _)| id)
    }

    /// Every wait of a call that was ever issued, oldest first, with what is still known of its kind.
    fn issued<'a>(&'a self, call: &'a ToolCallId) -> impl Iterator<Item = (PendingId, Issued)> + 'a {
        let over = self.answers.iter().filter(move |(id, _)| id.call == *call).map(|(id, resolution)| {
            let kind = match resolution {
                Resolution::Answered(Answer::Approve { .. }) | Resolution::Interrupted => Issued::Approval,
                Resolution::Answered(Answer::Reply { .. }) => Issued::Suspension,
                Resolution::Answered(Answer::RunAgain | Answer::RecordFailed) | Resolution::ClosedInDoubt => Issued::InDoubt,
                // An approval is the first wait of its call, always.
                Resolution::Answered(Answer::Decline { .. }) | Resolution::Closed if id.n > 1 => Issued::Suspension,
                Resolution::Answered(Answer::Decline { .. }) | Resolution::Closed => Issued::Either,
            };
            (id.clone(), kind)
        });
        let open = self.slots().iter().filter(move |slot| slot.call == *call).filter_map(|slot| {
            let kind = match wait(slot)?.0 {
                PendingKind::Approval => Issued::Approval,
                PendingKind::Question | PendingKind::Plan => Issued::Suspension,
                PendingKind::InDoubt => Issued::InDoubt,
            };
            Some((self.pending_id(slot), kind))
        });
        over.chain(open)
    }

    /// Forgets how the oldest waits ended, where there are too many.
    pub(crate) fn forget_answers(&mut self) {
        while self.answers.len() > Self::REMEMBERED {
            let (Some(oldest), Some(newest)) = (self.answers.keys().next(), self.answers.keys().next_back()) else { return };
            let (oldest, newest) = (oldest.step, newest.step);
            if oldest == newest {
                return;
            }
            self.answers.retain(|id, _| id.step != oldest);
            self.answers_from = oldest.saturating_add(1);
        }
    }

    /// The id of the child run that a call of the open step starts.
    pub(crate) fn child_id(&self, call: &ToolCallId) -> ac_core::RunId {
        child_run(&self.run, self.step, call)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Issued {
    Approval,
    Suspension,
    /// Over, and nothing tells any more which of the two it was; so it is over for both.
    Either,
    InDoubt,
}

/// What a slot waits for, and since when.
pub(crate) fn wait(slot: &Slot) -> Option<(PendingKind, Timestamp)> {
    match &slot.status {
        SlotStatus::AwaitingApproval { since } => Some((PendingKind::Approval, *since)),
        SlotStatus::Suspended { suspend, since } => match suspend.kind {
            SuspendKind::Question => Some((PendingKind::Question, *since)),
            SuspendKind::Plan => Some((PendingKind::Plan, *since)),
        },
        SlotStatus::InDoubt { since, .. } => Some((PendingKind::InDoubt, *since)),
        _ => None,
    }
}

impl SlotStatus {
    /// Whether an owner has something to do for it, or is doing it.
    pub(crate) fn works(&self) -> bool {
        matches!(self, Self::Queued | Self::Running | Self::Resuming { .. })
    }

    /// Whether the owner of this epoch started it and waits for its report.
    pub(crate) fn started(&self) -> bool {
        matches!(self, Self::Running | Self::Resuming { started: true, .. })
    }
}
