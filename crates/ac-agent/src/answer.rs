//! Answers, checked and completed before they are committed (`R6`).

use ac_core::{
    CancelToken, PendingId, SuspendKind, ToolContext, ToolOutcome, ToolResume,
    tool::{Capabilities, NoProgress, ToolContextParts},
};
use ac_engine::{Answer, Input, PlanReply, RunSnapshot, SlotStatus};
use serde_json::{Map, Value};

use crate::{RunError, RunErrorKind, RunHost, RunRef, gate::Schemas};

/// The most that a request context may take, in bytes of JSON.
pub(crate) const REQUEST_CONTEXT: usize = 64 * 1024;

/// Makes the input of an answer: checks a reply against the schema of what was asked, and works out what follows from the decision on a
/// plan. An answer to something that is not open is left to the machine to judge.
pub(crate) async fn prepare(
    host: &dyn RunHost,
    run: &RunRef,
    snapshot: &RunSnapshot,
    schemas: &Schemas,
    pending: PendingId,
    answer: Answer,
    request_context: Option<Map<String, Value>>,
) -> Result<Input, RunError> {
    if request_context.as_ref().is_some_and(|context| Value::Object(context.clone()).to_string().len() > REQUEST_CONTEXT) {
        return Err(RunError::new(RunErrorKind::InvalidAnswer, "the request context is larger than 64 KiB; pass a reference instead"));
    }
    let mut plan = None;
    let waits = snapshot.waits();
    let open = waits.iter().find(|wait| wait.id == pending).filter(|_| !snapshot.answers.contains_key(&pending));
    if let (Some(wait), Answer::Reply { value }) = (open, &answer)
        && let SlotStatus::Suspended { suspend, .. } = &wait.slot.status
    {
        let schema = suspend.answer_schema.as_ref().or(wait.slot.answer_schema.as_ref());
        if let Some(reason) = schema.and_then(|schema| schemas.misfit(schema, value)) {
            let message = format!("the answer does not fit what {} asked: {reason}", wait.slot.tool);
            return Err(RunError::new(RunErrorKind::InvalidAnswer, message));
        }
        if suspend.kind == SuspendKind::Plan {
            let resume = ToolResume {
                args: snapshot.call_part(&pending.call).map(|part| part.args.clone()).unwrap_or_default(),
                state: suspend.state.clone(),
                payload: suspend.payload.clone(),
                answer: value.clone(),
            };
            plan = Some(decide_plan(host, run, snapshot, &wait.slot.tool, &pending, resume).await?);
        }
    }
    Ok(Input::Answer { pending, answer, plan, request_context })
}

/// The tool's resume is pure, so its result can be worked out before anything is committed; a process that dies here changed nothing.
async fn decide_plan(
    host: &dyn RunHost,
    run: &RunRef,
    snapshot: &RunSnapshot,
    tool: &str,
    pending: &PendingId,
    resume: ToolResume,
) -> Result<PlanReply, RunError> {
    let approved = resume.answer.get("action").and_then(Value::as_str) == Some("approved");
    let tools = host.tools(&snapshot.profile);
    let Some((_, tool)) = tools.get(tool) else {
        return Err(RunError::new(
            RunErrorKind::InvalidAnswer,
            "the tool that submitted this plan is not there; start with the same tools",
        ));
    };
    let cx = ToolContext::new(ToolContextParts {
        run: run.run.clone(),
        thread: run.thread.clone(),
        resource: run.resource.clone(),
        call: pending.call.clone(),
        tool: tool.definition().name,
        attempt: 0,
        cancel: CancelToken::new(),
        progress: std::sync::Arc::new(NoProgress),
        capabilities: Capabilities::new(),
        request_context: std::sync::Arc::new(Map::new()),
    });
    match tool.resume(resume, &cx).await {
        Ok(ToolOutcome::Done(output)) => {
            let profile = if approved { Some(Box::new(host.plan_target(&snapshot.profile).await?)) } else { None };
            Ok(PlanReply { output, is_error: false, profile })
        }
        Ok(_) => Err(RunError::new(RunErrorKind::InvalidAnswer, "the tool that submitted this plan does not take a decision")),
        Err(error) => Err(RunError::new(RunErrorKind::InvalidAnswer, error.to_string()).with_source(error)),
    }
}
