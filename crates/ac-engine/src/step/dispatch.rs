use super::Turn;
use crate::{Effect, Moment, Phase, RunSnapshot, SlotStatus, wording};

impl RunSnapshot {
    /// Starts what can be started. The only input that acts (`R2`).
    pub(super) fn dispatch(&mut self, turn: &mut Turn) {
        match &mut self.phase {
            // The outbox is applied before the run samples again (`R1b`).
            Phase::Ready if self.outbox.is_empty() => self.sample(turn),
            Phase::Tools { slots } if self.cancel.is_none() => {
                for slot in slots {
                    match &mut slot.status {
                        status @ SlotStatus::Queued => *status = SlotStatus::Running,
                        SlotStatus::Resuming { started, .. } if !*started => *started = true,
                        _ => continue,
                    }
                    slot.attempt = slot.attempt.saturating_add(1);
                    turn.effects.push(Effect::RunTool { call: slot.call.clone(), attempt: slot.attempt });
                }
            }
            Phase::Judging { asked } if !*asked => {
                *asked = true;
                turn.effects.push(Effect::Judge { step: self.step });
            }
            _ => {}
        }
    }

    fn sample(&mut self, turn: &mut Turn) {
        self.fold_time(turn.at);
        let anew = self.deliver(turn);
        // A retry belongs to a step that was counted, unless a person's message made the count start anew.
        let new_step = self.failures == 0 || anew;
        if let Some(error) = wording::exhausted(&self.profile.limits, &self.budget, new_step) {
            if self.failures > 0 {
                turn.tell(Moment::MessageDone(self.message_id()));
            }
            return self.fail(turn, error);
        }
        if new_step {
            self.budget.steps = self.budget.steps.saturating_add(1);
        }
        self.attempt = self.attempt.saturating_add(1);
        self.finish = None;
        self.phase = Phase::Sampling;
        turn.effects.push(Effect::Sample { step: self.step, attempt: self.attempt });
    }
}
