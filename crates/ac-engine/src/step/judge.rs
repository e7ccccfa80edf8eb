use std::sync::Arc;

use ac_core::{Message, Usage};
use serde_json::Value;

use super::Turn;
use crate::{Effect, Moment, Outcome, Phase, Refusal, RunSnapshot};

impl RunSnapshot {
    /// Somebody said whether the work is done. What they say goes into the history before anything that waits; then the run goes on with
    /// another step, or is complete.
    pub(super) fn judged(
        &mut self,
        turn: &mut Turn,
        step: u32,
        go_on: bool,
        message: Option<Box<Message>>,
        verdict: Option<Value>,
        usage: Option<Usage>,
    ) -> Result<(), Refusal> {
        if !matches!(self.phase, Phase::Judging { .. }) || self.step != step {
            return Err(Refusal::Stale);
        }
        if let Some(usage) = usage {
            self.spend(turn, usage);
        }
        if let Some(message) = message.map(Arc::<Message>::from) {
            turn.put(message.clone());
            turn.tell(Moment::Delivered(message));
        }
        if let Some(verdict) = verdict {
            turn.tell(Moment::Judged(verdict));
        }
        self.fold_time(turn.at);
        if go_on {
            self.next_step();
        } else {
            self.end(turn, Outcome::Complete);
        }
        Ok(())
    }

    /// The verdict is not waited for any more.
    pub(super) fn drop_judge(&self, turn: &mut Turn) {
        if self.phase == (Phase::Judging { asked: true }) {
            turn.effects.push(Effect::StopJudge);
        }
    }
}
