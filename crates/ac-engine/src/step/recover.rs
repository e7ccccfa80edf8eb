use ac_core::ToolEffect;

use super::{Settled, Turn, denied};
use crate::{Phase, Refusal, RunSnapshot, SlotStatus, wording};

impl RunSnapshot {
    /// A new owner takes over (`R5`): what was going on when the old one went away is set back, put in doubt or recorded.
    pub(super) fn recover(&mut self, turn: &mut Turn, epoch: u64) -> Result<(), Refusal> {
        if epoch <= self.epoch {
            return Err(Refusal::Stale);
        }
        self.epoch = epoch;
        // Nobody knows for how much of the time since then somebody worked, so none of it counts.
        self.working_since = None;
        match &self.phase {
            Phase::Sampling => {
                self.phase = Phase::Ready;
                if self.failures == 0 {
                    self.budget.steps = self.budget.steps.saturating_sub(1);
                }
                if self.cancel.is_some() {
                    self.boundary(turn, false);
                }
            }
            Phase::Tools { slots } => {
                let started: Vec<usize> = (0..slots.len()).filter(|at| slots.get(*at).is_some_and(|slot| slot.status.started())).collect();
                self.set_back(turn, &started);
            }
            Phase::Judging { .. } => self.phase = Phase::Judging { asked: false },
            Phase::Ready | Phase::Finished { .. } => {}
        }
        Ok(())
    }

    fn set_back(&mut self, turn: &mut Turn, started: &[usize]) {
        let mut settled = vec![];
        for &at in started {
            let stopping = self.cancel.is_some();
            let Some(slot) = self.slot_mut(at) else { continue };
            if stopping || slot.cancelled {
                settled.push(Settled { slot: at, state: denied(wording::INTERRUPTED), wait: None });
                continue;
            }
            let resume = match &slot.status {
                SlotStatus::Resuming { resume, .. } => Some(resume.clone()),
                _ => None,
            };
            match slot.effect {
                ToolEffect::ReadOnly | ToolEffect::Idempotent => {
                    slot.status = match resume {
                        None => SlotStatus::Queued,
                        Some(resume) => SlotStatus::Resuming { resume, started: false },
                    };
                }
                ToolEffect::Mutating => self.wait(turn, at, SlotStatus::InDoubt { resume, since: turn.at }),
            }
        }
        self.settle(turn, settled);
    }
}
