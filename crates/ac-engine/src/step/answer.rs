use std::sync::Arc;

use ac_core::{Part, PendingId, SuspendKind, ToolCallState};
use serde_json::{Map, Value};

use super::{Settled, Turn, denied, failed};
use crate::{Answer, Moment, OutboxAction, PlanReply, Refusal, Resolution, ResumeData, RunSnapshot, SlotStatus, pending, wording};

/// What an answer does to its slot, decided before anything is changed.
enum Verdict {
    /// The call goes on from here, as soon as the owner dispatches.
    Go(SlotStatus),
    /// The call has its result.
    End(ToolCallState),
    /// So it has, and the run may move to another mode.
    Plan(PlanReply),
}

impl RunSnapshot {
    pub(super) fn answered(
        &mut self,
        turn: &mut Turn,
        pending: &PendingId,
        answer: Answer,
        plan: Option<PlanReply>,
        request_context: Option<Map<String, Value>>,
    ) -> Result<(), Refusal> {
        if let Some(resolution) = self.answers.get(pending) {
            return match resolution {
                Resolution::Answered(given) if *given == answer => Ok(()),
                Resolution::Closed | Resolution::ClosedInDoubt if self.cancel.is_some() => Err(Refusal::Aborting),
                _ => Err(Refusal::AlreadyResolved),
            };
        }
        let open = |slot: &&crate::Slot| pending::wait(slot).is_some() && self.pending_id(slot) == *pending;
        let none = if pending.run == self.run && pending.step < self.answers_from { Refusal::AlreadyResolved } else { Refusal::NotPending };
        let at = self.slots().iter().position(|slot| open(&slot)).ok_or(none)?;
        let slot = self.slots().get(at).ok_or(Refusal::NotPending)?;
        let approved = matches!(answer, Answer::Approve { .. });
        let grant = if let Answer::Approve { grant } = &answer { grant.clone() } else { None };
        let verdict = judge(&slot.status, &answer, plan)?;

        self.answers.insert(pending.clone(), Resolution::Answered(answer));
        if let Some(target) = grant {
            self.post(OutboxAction::Grant { target, call: pending.call.clone(), at: turn.at });
        }
        if let Verdict::Plan(PlanReply { profile: Some(profile), .. }) = &verdict {
            self.move_on(turn, profile);
        }
        if let Some(context) = request_context {
            Arc::make_mut(&mut self.profile).request_context = context;
        }
        let over = Some((pending.clone(), None));
        match verdict {
            Verdict::Go(status) => {
                if let Some(slot) = self.slot_mut(at) {
                    slot.status = status;
                }
                if approved {
                    self.mark_approved(turn, at);
                }
                turn.tell(Moment::Resolved { pending: pending.clone(), cancelled: None });
            }
            Verdict::End(state) => self.settle(turn, vec![Settled { slot: at, state, wait: over }]),
            Verdict::Plan(PlanReply { output, is_error, .. }) => {
                self.settle(turn, vec![Settled { slot: at, state: ToolCallState::Result { output, is_error }, wait: over }]);
            }
        }
        Ok(())
    }

    /// An approved plan: run and session move to the target mode together. The outbox item is there also when the mode is the same; who
    /// applies it skips it then.
    fn move_on(&mut self, turn: &Turn, profile: &crate::Profile) {
        let from = self.profile.mode.clone();
        self.profile = Arc::new(profile.clone());
        self.post(OutboxAction::SetMode { mode: profile.mode.clone(), from, at: turn.at });
    }

    /// The stored call says that a person allowed it.
    fn mark_approved(&mut self, turn: &mut Turn, at: usize) {
        let Some(message) = &mut self.message else { return };
        let calls =
            Arc::make_mut(message).parts.iter_mut().filter_map(|part| if let Part::ToolCall(call) = part { Some(call) } else { None });
        for call in calls.skip(at).take(1) {
            call.approved = true;
        }
        turn.put(message.clone());
    }
}

fn judge(status: &SlotStatus, answer: &Answer, plan: Option<PlanReply>) -> Result<Verdict, Refusal> {
    // A decision on a plan says what follows from it; nothing else does.
    let decides_plan = matches!(answer, Answer::Reply { .. })
        && matches!(status, SlotStatus::Suspended { suspend, .. } if suspend.kind == SuspendKind::Plan);
    if plan.is_some() != decides_plan {
        return Err(Refusal::InvalidAnswer);
    }
    Ok(match (status, answer, plan) {
        (SlotStatus::AwaitingApproval { .. }, Answer::Approve { .. }, _) => Verdict::Go(SlotStatus::Queued),
        (SlotStatus::AwaitingApproval { .. } | SlotStatus::Suspended { .. }, Answer::Decline { reason }, _) => {
            Verdict::End(denied(reason.as_deref().unwrap_or(wording::DECLINED)))
        }
        (SlotStatus::Suspended { .. }, Answer::Reply { .. }, Some(plan)) => Verdict::Plan(plan),
        (SlotStatus::Suspended { suspend, .. }, Answer::Reply { value }, None) => {
            let resume = ResumeData { state: suspend.state.clone(), payload: suspend.payload.clone(), answer: value.clone() };
            Verdict::Go(SlotStatus::Resuming { resume, started: false })
        }
        (SlotStatus::InDoubt { resume: None, .. }, Answer::RunAgain, _) => Verdict::Go(SlotStatus::Queued),
        (SlotStatus::InDoubt { resume: Some(resume), .. }, Answer::RunAgain, _) => {
            Verdict::Go(SlotStatus::Resuming { resume: resume.clone(), started: false })
        }
        (SlotStatus::InDoubt { .. }, Answer::RecordFailed, _) => Verdict::End(failed(wording::RECORDED_FAILED)),
        _ => return Err(Refusal::InvalidAnswer),
    })
}
