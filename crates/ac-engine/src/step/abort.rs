use ac_core::ToolCallId;

use super::{Settled, Turn, denied};
use crate::{Answer, Cancel, Effect, OutboxAction, Outcome, Phase, Refusal, Resolution, RunSnapshot, Slot, SlotStatus, pending, wording};

impl RunSnapshot {
    /// Everything stops. The run ends, or goes on with what a person wrote, once every call has its result (`R4`).
    pub(super) fn abort(&mut self, turn: &mut Turn, go_on: bool) {
        if self.is_finished() {
            return;
        }
        if let Some(cancel) = &mut self.cancel {
            // Who stops the run for good is not overruled by who only changed its course before.
            cancel.go_on &= go_on;
            return;
        }
        self.cancel = Some(Cancel { go_on });
        match &self.phase {
            Phase::Ready => self.boundary(turn, false),
            Phase::Sampling => turn.effects.push(Effect::StopSample { attempt: self.attempt }),
            Phase::Tools { slots } => {
                let all: Vec<usize> = (0..slots.len()).collect();
                self.stop(turn, &all, wording::ABORTED);
            }
            // The answer is complete; only what might follow is stopped.
            Phase::Judging { .. } => {
                self.drop_judge(turn);
                self.end(turn, Outcome::Aborted);
            }
            Phase::Finished { .. } => {}
        }
    }

    /// One call stops; the run goes on.
    pub(super) fn cancel_call(&mut self, turn: &mut Turn, call: &ToolCallId) -> Result<(), Refusal> {
        if self.is_finished() {
            return Err(Refusal::Finished);
        }
        let (at, slot) = self.slot_of(call).ok_or(Refusal::NotPending)?;
        if slot.cancelled {
            return Ok(());
        }
        if slot.status == SlotStatus::Done {
            return Err(Refusal::NotPending);
        }
        if self.cancel.is_some() {
            return Ok(());
        }
        self.stop(turn, &[at], wording::CANCELLED);
        Ok(())
    }

    /// Stops calls. What is going on is told to stop and keeps its slot until it reports; everything else gets its result now.
    fn stop(&mut self, turn: &mut Turn, which: &[usize], reason: &str) {
        let mut settled = vec![];
        let mut children = vec![];
        for &at in which {
            let Some(slot) = self.slots().get(at) else { continue };
            match &slot.status {
                SlotStatus::Done => {}
                status if status.started() => turn.effects.push(Effect::StopTool { call: slot.call.clone() }),
                SlotStatus::Child { .. } if slot.cancelled => {}
                SlotStatus::Child { run } => children.push(run.clone()),
                _ => {
                    let text = if self.may_have_run(slot) { wording::INTERRUPTED } else { reason };
                    let wait = pending::wait(slot).map(|_| (self.pending_id(slot), Some(reason.to_owned())));
                    settled.push(Settled { slot: at, state: denied(text), wait });
                }
            }
        }
        if self.cancel.is_none() {
            for &at in which {
                if let Some(slot) = self.slot_mut(at) {
                    slot.cancelled = true;
                }
            }
        }
        for run in children {
            self.post(OutboxAction::AbortChild { run });
        }
        for Settled { slot, wait, .. } in &settled {
            let doubt = self.slots().get(*slot).is_some_and(|slot| matches!(slot.status, SlotStatus::InDoubt { .. }));
            if let Some((pending, _)) = wait {
                let closed = if doubt { Resolution::ClosedInDoubt } else { Resolution::Closed };
                self.answers.insert(pending.clone(), closed);
            }
        }
        self.settle(turn, settled);
    }

    /// Whether a call that is not going on may have done something: it is in doubt, or a person let it run again after it was.
    fn may_have_run(&self, slot: &Slot) -> bool {
        match slot.status {
            SlotStatus::InDoubt { .. } => true,
            // Set back by a recovery: it was started and never reported.
            SlotStatus::Queued if slot.attempt > 0 => true,
            SlotStatus::Resuming { .. } => self.answers.get(&self.pending_id(slot)) == Some(&Resolution::Answered(Answer::RunAgain)),
            _ => false,
        }
    }
}
