use std::sync::Arc;

use ac_core::{Message, MessageId, Timestamp};

use super::{Settled, Turn, denied};
use crate::{Moment, OutboxAction, Phase, Refusal, Resolution, RunSnapshot, SlotStatus, wording};

impl RunSnapshot {
    pub(super) fn message_came(&mut self, turn: &mut Turn, message: Message, decline: bool) -> Result<(), Refusal> {
        if self.is_finished() {
            return Err(Refusal::Finished);
        }
        if self.queued.iter().any(|queued| queued.id == message.id) {
            return Ok(());
        }
        let prompts = message.prompts();
        self.queued.push(Arc::new(message));
        turn.tell(Moment::QueueChanged);
        // What was just said counts for more than what somebody thinks of the answer before it.
        if prompts && matches!(self.phase, Phase::Judging { .. }) {
            self.drop_judge(turn);
            self.next_step();
        }
        if decline {
            self.decline_open(turn, turn.at);
        }
        Ok(())
    }

    /// A person wrote to the run above this one.
    pub(super) fn interrupted(&mut self, turn: &mut Turn, at: Timestamp) -> Result<(), Refusal> {
        if self.is_finished() {
            return Err(Refusal::Finished);
        }
        self.decline_open(turn, at);
        Ok(())
    }

    /// A person wrote instead of deciding: exactly the approvals that were open then are declined, those of child runs included. Questions,
    /// plans and doubts stay (`R7`).
    fn decline_open(&mut self, turn: &mut Turn, at: Timestamp) {
        let mut declined = vec![];
        let mut children = vec![];
        for (slot, open) in self.slots().iter().enumerate() {
            match &open.status {
                SlotStatus::AwaitingApproval { since } if *since <= at => {
                    let wait = Some((self.pending_id(open), Some(wording::INTERRUPTED_BY_MESSAGE.to_owned())));
                    declined.push(Settled { slot, state: denied(wording::INTERRUPTED_BY_MESSAGE), wait });
                }
                // One that is being aborted asks nobody any more.
                SlotStatus::Child { run } if self.cancel.is_none() && !open.cancelled => children.push(run.clone()),
                _ => {}
            }
        }
        for run in children {
            self.post(OutboxAction::InterruptChild { run, at });
        }
        for (pending, _) in declined.iter().filter_map(|settled| settled.wait.as_ref()) {
            self.answers.insert(pending.clone(), Resolution::Interrupted);
        }
        self.settle(turn, declined);
    }

    /// Takes a message back that the model has not seen.
    ///
    /// Refused while the next model call is about to take it: the step before ended, or did not end, because of what was queued then.
    pub(super) fn withdraw(&mut self, turn: &mut Turn, message: &MessageId) -> Result<(), Refusal> {
        if self.phase == Phase::Ready && self.failures == 0 {
            return Err(Refusal::NotPending);
        }
        let at = self.queued.iter().position(|queued| queued.id == *message).ok_or(Refusal::NotPending)?;
        self.queued.remove(at);
        turn.tell(Moment::QueueChanged);
        Ok(())
    }
}
