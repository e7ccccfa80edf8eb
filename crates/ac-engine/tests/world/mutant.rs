//! Faults planted on purpose, and readings of the design that fail. None of them is inside the machine: those that break its rules change
//! the snapshot around an input, the rest are drivers and stores that get it wrong.

use ac_core::{Role, Timestamp, ToolEffect};
use ac_engine::{Effect, Input, Phase, Refusal, RunSnapshot, SlotStatus};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    None,
    // Planted faults.
    PutOutsideCommit,
    ResumeBeforeCommit,
    QueueItemRemovedFirst,
    RecoverRunsMutatingAgain,
    AbortLeavesOpenCall,
    OutboxDroppedOnTakeOver,
    MessagesDroppedAtEnd,
    // Readings that fail.
    RowsForMessages,
    RowsForAnswers,
    ConflictMeansStop,
    ForeignAnswerRuns,
    UnknownIsConflict,
    OutboxAppliedTwice,
    ResumingAlwaysResumes,
    BareCallId,
    EndClearsHead,
    AbortChildFirst,
    MessageOutsideRun,
    // A reading of our own: a foreign commit hides the mark of the owner's, whose outcome the owner does not know yet.
    ForeignMark,
}

pub(crate) const PLANTED: [Mutant; 7] = [
    Mutant::PutOutsideCommit,
    Mutant::ResumeBeforeCommit,
    Mutant::QueueItemRemovedFirst,
    Mutant::RecoverRunsMutatingAgain,
    Mutant::AbortLeavesOpenCall,
    Mutant::OutboxDroppedOnTakeOver,
    Mutant::MessagesDroppedAtEnd,
];

/// With whether it fails even if nothing crashes and nobody is taken over.
pub(crate) const READINGS: [(Mutant, bool); 12] = [
    (Mutant::RowsForMessages, true),
    (Mutant::RowsForAnswers, true),
    (Mutant::ConflictMeansStop, true),
    (Mutant::ForeignAnswerRuns, true),
    (Mutant::UnknownIsConflict, true),
    (Mutant::OutboxAppliedTwice, false),
    (Mutant::ResumingAlwaysResumes, false),
    (Mutant::BareCallId, false),
    (Mutant::EndClearsHead, true),
    (Mutant::AbortChildFirst, true),
    (Mutant::MessageOutsideRun, true),
    (Mutant::ForeignMark, true),
];

impl Mutant {
    /// The machine's step, wrong where this mutant is.
    pub(crate) fn step(self, run: &mut RunSnapshot, at: Timestamp, input: Input) -> Result<Vec<Effect>, Refusal> {
        let recovers = matches!(input, Input::Recover { .. });
        let aborts = matches!(input, Input::Abort { .. });
        match self {
            Self::RecoverRunsMutatingAgain if recovers => {
                as_idempotent(run, at, input, |status| matches!(status, SlotStatus::Running | SlotStatus::Resuming { .. }))
            }
            Self::ResumingAlwaysResumes if recovers => {
                as_idempotent(run, at, input, |status| matches!(status, SlotStatus::Resuming { .. }))
            }
            Self::AbortLeavesOpenCall if aborts => {
                replace(run, |status| matches!(status, SlotStatus::Suspended { .. }), &SlotStatus::Done);
                run.step(at, input)
            }
            Self::AbortChildFirst if aborts => {
                replace(run, |status| matches!(status, SlotStatus::Child { .. }), &SlotStatus::Queued);
                run.step(at, input)
            }
            Self::MessagesDroppedAtEnd => {
                let mut effects = run.step(at, input)?;
                if run.is_finished() {
                    effects.retain(|effect| !matches!(effect, Effect::Put(message) if message.role == Role::User));
                }
                Ok(effects)
            }
            _ => run.step(at, input),
        }
    }

    /// What counts as a run that is over for good.
    pub(crate) fn closed(self) -> fn(&RunSnapshot) -> bool {
        if self == Self::EndClearsHead { RunSnapshot::is_finished } else { RunSnapshot::is_closed }
    }
}

fn replace(run: &mut RunSnapshot, which: fn(&SlotStatus) -> bool, with: &SlotStatus) {
    if run.cancel.is_none()
        && let Phase::Tools { slots } = &mut run.phase
    {
        for slot in slots.iter_mut().filter(|slot| which(&slot.status)) {
            slot.status = with.clone();
            slot.attempt = 0;
        }
    }
}

fn as_idempotent(run: &mut RunSnapshot, at: Timestamp, input: Input, which: fn(&SlotStatus) -> bool) -> Result<Vec<Effect>, Refusal> {
    let mut real = vec![];
    if let Phase::Tools { slots } = &mut run.phase {
        for slot in slots.iter_mut() {
            real.push(slot.effect);
            if which(&slot.status) {
                slot.effect = ToolEffect::Idempotent;
            }
        }
    }
    let effects = run.step(at, input);
    if let Phase::Tools { slots } = &mut run.phase {
        for (slot, effect) in slots.iter_mut().zip(real) {
            slot.effect = effect;
        }
    }
    effects
}
