use std::sync::Arc;

use ac_core::{ErrorInfo, FinishReason, Message, Part, Role, ToolCallId, ToolCallPart, ToolCallState, model::Finish, permission};

use super::{Settled, Turn, denied, failed};
use crate::{CallPlan, Gate, Moment, Outcome, Phase, Refusal, RunSnapshot, Slot, SlotStatus, wording};

impl RunSnapshot {
    pub(super) fn sampled(
        &mut self,
        turn: &mut Turn,
        attempt: u32,
        parts: Vec<Part>,
        calls: Vec<CallPlan>,
        finish: &Finish,
    ) -> Result<(), Refusal> {
        self.expect_sample(attempt)?;
        let (slots, settled) = self.admit(turn, &parts, calls);
        let nothing_runs = slots.len() == settled.len();
        let error = wording::cut_short(finish).filter(|_| nothing_runs && self.cancel.is_none());

        self.finish = Some(finish.reason);
        self.calls = self.calls.saturating_add(slots.len() as u64);
        self.budget.ask(parts.iter().filter_map(|part| if let Part::ToolCall(call) = part { Some(call) } else { None }));
        if let Some(usage) = finish.usage.clone() {
            self.spend(turn, usage);
        }
        self.keep(turn, parts, error.clone());
        for slot in &slots {
            turn.tell(Moment::CallSeen(slot.call.clone()));
        }
        for slot in slots.iter().filter(|slot| matches!(slot.status, SlotStatus::AwaitingApproval { .. })) {
            turn.tell(Moment::ApprovalRequired(self.pending_id(slot)));
        }
        // An answer that only paused is no last word, sending it back goes on with it; but there must be something to send back.
        let last = finish.reason != FinishReason::Pause || self.message.is_none();
        let no_calls = slots.is_empty();
        self.phase = Phase::Tools { slots };
        match error {
            Some(error) => {
                self.write_results(turn, settled);
                turn.tell(Moment::MessageDone(self.message_id()));
                self.fail(turn, error);
            }
            None if no_calls => self.boundary(turn, last),
            None => self.settle(turn, settled),
        }
        Ok(())
    }

    /// What is worked on of an answer: a slot for each call, and the results that are known already.
    fn admit(&self, turn: &Turn, parts: &[Part], calls: Vec<CallPlan>) -> (Vec<Slot>, Vec<Settled>) {
        let mut plans: Vec<Option<CallPlan>> = calls.into_iter().map(Some).collect();
        let (mut slots, mut settled): (Vec<Slot>, Vec<Settled>) = (vec![], vec![]);
        let asked = parts.iter().filter_map(|part| if let Part::ToolCall(call) = part { Some(call) } else { None });
        for part in asked {
            let plan = plans.iter_mut().find(|plan| plan.as_ref().is_some_and(|plan| plan.call == part.id)).and_then(Option::take);
            let again = slots.iter().any(|slot| slot.call == part.id);
            let mut slot = slot(part, plan.as_ref());
            let state = match plan.map(|plan| plan.gate) {
                _ if part.state.is_settled() => Some(part.state.clone()),
                _ if self.cancel.is_some() => Some(denied(wording::ABORTED)),
                _ if again => Some(failed(wording::SAME_ID)),
                Some(Gate::Deny { reason }) => Some(denied(reason)),
                Some(Gate::Refuse { result }) => Some(ToolCallState::Result { output: result.output, is_error: result.is_error }),
                _ if part.raw.is_some() => Some(failed(wording::NO_JSON)),
                Some(Gate::Run) => None,
                Some(Gate::Ask) => {
                    slot.waits = 1;
                    slot.status = SlotStatus::AwaitingApproval { since: turn.at };
                    None
                }
                None => Some(failed(wording::UNDECIDED)),
            };
            if let Some(state) = state {
                settled.push(Settled { slot: slots.len(), state, wait: None });
            }
            slots.push(slot);
        }
        (slots, settled)
    }

    pub(super) fn sample_failed(
        &mut self,
        turn: &mut Turn,
        attempt: u32,
        error: ErrorInfo,
        retry: bool,
        partial: Vec<Part>,
    ) -> Result<(), Refusal> {
        self.expect_sample(attempt)?;
        let tries = self.profile.limits.attempts;
        if self.cancel.is_some() {
            self.stopped(turn, partial);
        } else if retry && self.failures.saturating_add(1) < tries {
            self.failures += 1;
            self.phase = Phase::Ready;
            let next = self.failures.saturating_add(1);
            turn.tell(Moment::MessageRestarted { id: self.message_id(), error, attempt: next, of: tries });
        } else {
            self.keep(turn, without_calls(partial), Some(error.clone()));
            turn.tell(Moment::MessageDone(self.message_id()));
            self.end(turn, Outcome::Error { error });
        }
        Ok(())
    }

    pub(super) fn sample_stopped(&mut self, turn: &mut Turn, attempt: u32, partial: Vec<Part>) -> Result<(), Refusal> {
        self.expect_sample(attempt)?;
        if self.cancel.is_none() {
            return Err(Refusal::Stale);
        }
        self.stopped(turn, partial);
        Ok(())
    }

    fn stopped(&mut self, turn: &mut Turn, partial: Vec<Part>) {
        self.keep(turn, without_calls(partial), None);
        self.boundary(turn, true);
    }

    fn expect_sample(&self, attempt: u32) -> Result<(), Refusal> {
        if self.phase == Phase::Sampling && self.attempt == attempt { Ok(()) } else { Err(Refusal::Stale) }
    }

    /// Makes what the model said the step's message. Where it said nothing there is none, for an empty message is no legal history; only
    /// an error is kept by itself, for people to read (SPEC T-46), and no model is ever sent it.
    fn keep(&mut self, turn: &mut Turn, parts: Vec<Part>, error: Option<ErrorInfo>) {
        if parts.is_empty() && error.is_none() {
            return;
        }
        let said_nothing = parts.is_empty();
        let changed = (0..parts.len()).collect();
        let mut message = Message::new(self.message_id(), Role::Assistant, parts, turn.at);
        message.meta.run = Some(self.run.clone());
        message.meta.model = Some(self.profile.model.clone());
        message.meta.finish = self.finish;
        message.meta.error = error;
        let message = Arc::new(message);
        turn.put(message.clone());
        if said_nothing {
            return;
        }
        turn.tell(Moment::MessageChanged { message: message.clone(), parts: changed });
        self.message = Some(message);
    }
}

/// Text and thinking: a call that was cut off is never kept, it could never get a result (`R4`).
fn without_calls(mut partial: Vec<Part>) -> Vec<Part> {
    partial.retain(|part| !matches!(part, Part::ToolCall(_)));
    partial
}

fn slot(part: &ToolCallPart, plan: Option<&CallPlan>) -> Slot {
    let undecided = permission::Decision { verdict: permission::Verdict::Deny, reason: permission::Reason::Default };
    Slot {
        call: ToolCallId::clone(&part.id),
        tool: part.name.clone(),
        decision: plan.map_or(undecided, |plan| plan.decision.clone()),
        effect: plan.map(|plan| plan.effect).unwrap_or_default(),
        category: plan.map(|plan| plan.category).unwrap_or_default(),
        answer_schema: plan.and_then(|plan| plan.answer_schema.clone()),
        definition: plan.map(|plan| plan.definition.clone()).unwrap_or_default(),
        attempt: 0,
        waits: 0,
        cancelled: false,
        status: SlotStatus::Queued,
    }
}
