use ac_controller::{Answer, ControllerError, ControllerErrorKind, Pending, Session};
use ac_core::{ToolCallId, event::PendingKind};
use serde_json::Value;

use crate::{
    call::{ACCEPTED, Call, Reply},
    failure::Failure,
    query::request_context,
};

/// Allows or refuses the approval of a call. A stale or unknown call is acknowledged all the same; the header says so.
pub(crate) async fn approval(call: Call) -> Result<Reply, Failure> {
    let approved = call.body.get("approved").and_then(Value::as_bool).unwrap_or(false);
    let answer = if approved { Answer::Approve { grant: None } } else { Answer::Decline { reason: None } };
    settle(&call, |kind| kind == PendingKind::Approval, answer).await
}

/// Answers a question or decides a plan.
pub(crate) async fn suspension(call: Call) -> Result<Reply, Failure> {
    let value = call.body.get("resumeData").cloned().unwrap_or_default();
    settle(&call, |kind| matches!(kind, PendingKind::Question | PendingKind::Plan), Answer::Reply { value }).await
}

async fn settle(call: &Call, fits: impl Fn(PendingKind) -> bool, answer: Answer) -> Result<Reply, Failure> {
    let named = ToolCallId::from(call.text("toolCallId"));
    let looked = call.look().await?;
    let Some(open) = pick(&looked, looked.pending().await?, &named, fits) else {
        return Ok(Reply::Done(late(&looked, &named, &answer).await));
    };
    // It waits, so its session did begin once: beginning it again makes nothing new.
    let session = call.session().await?;
    let context = request_context(&call.query, &call.body);
    match session.answer_with(&open.id, answer, context).await {
        Ok(accepted) if accepted.repeated => Ok(Reply::Done("already_resolved")),
        Ok(_) => Ok(Reply::Done(ACCEPTED)),
        Err(error) => outcome(&error).map(Reply::Done).ok_or_else(|| error.into()),
    }
}

/// The wait of a call: on the bound thread, where the same id waits on several.
fn pick(session: &Session, open: Vec<Pending>, named: &ToolCallId, fits: impl Fn(PendingKind) -> bool) -> Option<Pending> {
    let bound = session.thread_id();
    let mut found: Vec<_> = open.into_iter().filter(|open| open.call == *named && fits(open.kind)).collect();
    found.sort_by_key(|open| Some(&open.thread) != bound.as_ref());
    found.into_iter().next()
}

/// Nothing waits. The run may still know that it was answered.
async fn late(session: &Session, named: &ToolCallId, answer: &Answer) -> &'static str {
    let tried = match answer {
        Answer::Reply { value } => session.respond_to_tool_suspension(value.clone(), Some(named)).await,
        Answer::Approve { .. } => session.respond_to_tool_approval(ac_controller::ApprovalDecision::Approve, Some(named)).await,
        _ => session.respond_to_tool_approval(ac_controller::ApprovalDecision::Decline { reason: None }, Some(named)).await,
    };
    match tried {
        Ok(_) => "already_resolved",
        Err(error) => outcome(&error).unwrap_or("not_pending"),
    }
}

/// The words of HTTP.md; `None` for what is no outcome of an answer.
fn outcome(error: &ControllerError) -> Option<&'static str> {
    use ControllerErrorKind as K;
    match error.kind() {
        K::AlreadyResolved => Some("already_resolved"),
        K::NotPending | K::Ambiguous | K::Aborting => Some("not_pending"),
        K::InvalidAnswer => Some("invalid_answer"),
        _ => None,
    }
}
