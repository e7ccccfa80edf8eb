use ac_core::{Suspend, ToolCallId, ToolCallState, Usage, tool::ChildRun};

use super::{Settled, Turn, denied};
use crate::{Moment, OutboxAction, Refusal, RunSnapshot, SlotStatus, ToolResult, wording};

impl RunSnapshot {
    pub(super) fn tool_done(&mut self, turn: &mut Turn, call: &ToolCallId, attempt: u32, result: ToolResult) -> Result<(), Refusal> {
        let slot = self.expect_started(call, attempt)?;
        self.settle(turn, vec![Settled { slot, state: done(result), wait: None }]);
        Ok(())
    }

    pub(super) fn tool_interrupted(&mut self, turn: &mut Turn, call: &ToolCallId, attempt: u32) -> Result<(), Refusal> {
        let slot = self.expect_started(call, attempt)?;
        self.settle(turn, vec![Settled { slot, state: denied(wording::INTERRUPTED), wait: None }]);
        Ok(())
    }

    pub(super) fn tool_suspended(&mut self, turn: &mut Turn, call: &ToolCallId, attempt: u32, suspend: Suspend) -> Result<(), Refusal> {
        let at = self.expect_started(call, attempt)?;
        if self.deny_if_stopped(turn, at) {
            return Ok(());
        }
        self.wait(turn, at, SlotStatus::Suspended { suspend, since: turn.at });
        Ok(())
    }

    pub(super) fn tool_delegated(&mut self, turn: &mut Turn, call: &ToolCallId, attempt: u32, child: ChildRun) -> Result<(), Refusal> {
        let at = self.expect_started(call, attempt)?;
        if self.deny_if_stopped(turn, at) {
            return Ok(());
        }
        let run = self.child_id(call);
        if let Some(slot) = self.slot_mut(at) {
            slot.status = SlotStatus::Child { run: run.clone() };
        }
        self.post(OutboxAction::StartChild { run, call: call.clone(), child });
        Ok(())
    }

    pub(super) fn child_finished(
        &mut self,
        turn: &mut Turn,
        call: &ToolCallId,
        result: ToolResult,
        usage: Option<Usage>,
    ) -> Result<(), Refusal> {
        let (slot, _) = self.slot_of(call).filter(|(_, slot)| matches!(slot.status, SlotStatus::Child { .. })).ok_or(Refusal::Stale)?;
        if let Some(usage) = usage {
            self.spend(turn, usage);
        }
        self.settle(turn, vec![Settled { slot, state: done(result), wait: None }]);
        Ok(())
    }

    /// The slot opens its next wait.
    pub(super) fn wait(&mut self, turn: &mut Turn, at: usize, status: SlotStatus) {
        if let Some(slot) = self.slot_mut(at) {
            slot.waits = slot.waits.saturating_add(1);
            slot.status = status;
        }
        if let Some(slot) = self.slots().get(at) {
            turn.tell(Moment::Suspended(self.pending_id(slot)));
        }
    }

    /// A call that is being stopped neither asks nor starts anything more.
    fn deny_if_stopped(&mut self, turn: &mut Turn, at: usize) -> bool {
        let reason = match self.slots().get(at) {
            _ if self.cancel.is_some() => wording::ABORTED,
            Some(slot) if slot.cancelled => wording::CANCELLED,
            _ => return false,
        };
        self.settle(turn, vec![Settled { slot: at, state: denied(reason), wait: None }]);
        true
    }

    fn expect_started(&self, call: &ToolCallId, attempt: u32) -> Result<usize, Refusal> {
        let (at, _) = self.slot_of(call).filter(|(_, slot)| slot.attempt == attempt && slot.status.started()).ok_or(Refusal::Stale)?;
        Ok(at)
    }
}

fn done(result: ToolResult) -> ToolCallState {
    ToolCallState::Result { output: result.output, is_error: result.is_error }
}
