use serde_json::{Value, json};

use super::{display_state, error, live, part, set, set_some, thread, usage};
use crate::{
    Event, EventBody,
    event::{MessageUpdate, ModelScope},
};

/// An event with its number, time, run and thread: the form of `--json` and `?events=all`.
pub fn event(event: &Event) -> Value {
    let mut out = body(event);
    set(&mut out, "seq", json!(event.seq));
    set(&mut out, "at", json!(event.at.to_string()));
    set_some(&mut out, "run", event.run.as_ref().map(|run| json!(run)));
    out
}

/// The body alone: the form of the plain SSE stream.
#[allow(clippy::too_many_lines)] // One arm per event: the table of WIRE section 4.
pub fn body(event: &Event) -> Value {
    let thread_id = event.thread.as_ref();
    let mut out = json!({ "type": event.body.name() });
    let mut put = |key: &str, value: Value| set(&mut out, key, value);
    match &event.body {
        EventBody::AgentStart => {}
        EventBody::AgentEnd { reason, finish, error } => {
            put("reason", json!(reason.as_str()));
            if let Some(finish) = finish {
                put("finishReason", json!(finish));
            }
            if let Some(error) = error {
                put("error", json!({ "code": error.code, "message": error.message }));
            }
        }
        EventBody::MessageStart { message } => put("message", live(message, thread_id)),
        EventBody::MessageUpdate { id, update } => {
            put("id", json!(id));
            put("event", message_update(update));
        }
        EventBody::MessageEnd { id } => put("id", json!(id)),
        EventBody::ToolInputStart { call, tool } => {
            put("toolCallId", json!(call));
            put("toolName", json!(tool));
        }
        EventBody::ToolInputDelta { call, delta } => {
            put("toolCallId", json!(call));
            put("argsTextDelta", json!(delta));
        }
        EventBody::ToolInputEnd { call } => put("toolCallId", json!(call)),
        EventBody::ToolStart { call, tool, args } => {
            put("toolCallId", json!(call));
            put("toolName", json!(tool));
            put("args", args.clone());
        }
        EventBody::ToolApprovalRequired { pending, call, tool, args, parent_call } => {
            put("toolCallId", json!(call));
            put("toolName", json!(tool));
            put("args", args.clone());
            put("pendingId", json!(pending));
            if let Some(parent) = parent_call {
                put("parentToolCallId", json!(parent));
            }
        }
        EventBody::ToolSuspended { pending, kind, call, tool, args, payload, answer_schema, parent_call } => {
            put("toolCallId", json!(call));
            put("toolName", json!(tool));
            put("args", args.clone());
            put("suspendPayload", payload.clone());
            if let Some(schema) = answer_schema {
                put("resumeSchema", json!(schema.to_string()));
            }
            put("pendingId", json!(pending));
            put("kind", json!(kind.as_str()));
            if let Some(parent) = parent_call {
                put("parentToolCallId", json!(parent));
            }
        }
        EventBody::ToolSuspensionCancelled { call, tool, reason } => {
            put("toolCallId", json!(call));
            put("toolName", json!(tool));
            put("reason", json!(reason));
        }
        EventBody::PendingResolved { pending, call } => {
            put("pendingId", json!(pending));
            put("toolCallId", json!(call));
        }
        EventBody::ToolUpdate { call, partial } => {
            put("toolCallId", json!(call));
            put("partialResult", partial.clone());
        }
        EventBody::ToolEnd { call, result, is_error, denied, .. } => {
            put("toolCallId", json!(call));
            put("result", result.clone());
            put("isError", json!(is_error));
            if *denied {
                put("denied", json!(true));
            }
        }
        EventBody::ShellOutput { call, output, stderr } => {
            put("toolCallId", json!(call));
            put("output", json!(output));
            put("stream", json!(if *stderr { "stderr" } else { "stdout" }));
        }
        EventBody::CommandExit { call, exit_code } => {
            put("toolCallId", json!(call));
            put("exitCode", json!(exit_code));
            put("success", json!(*exit_code == 0));
        }
        EventBody::UsageUpdate { usage: step, .. } => put("usage", usage(step)),
        EventBody::Info { message } => put("message", json!(message)),
        EventBody::Error { error: info, retry } => {
            put("error", error(info));
            put("errorType", json!(info.code));
            put("retryable", json!(retry.is_some()));
            if let Some(retry) = retry {
                put("retryDelay", json!(retry.delay_ms));
                put("retryAttempt", json!(retry.attempt));
                put("maxRetries", json!(retry.of));
            }
        }
        EventBody::ModeChanged { mode, previous } => {
            put("modeId", json!(mode));
            put("previousModeId", json!(previous));
        }
        EventBody::ModelChanged { model, scope, mode } => {
            put("modelId", json!(model));
            if let Some(scope) = scope {
                put("scope", json!(if *scope == ModelScope::Global { "global" } else { "thread" }));
            }
            if let Some(mode) = mode {
                put("modeId", json!(mode));
            }
        }
        EventBody::SubagentModelChanged { model, agent_type } => {
            put("modelId", json!(model));
            put("scope", json!("thread"));
            if let Some(agent_type) = agent_type {
                put("agentType", json!(agent_type));
            }
        }
        EventBody::ThreadCreated { thread: info } => put("thread", thread(info)),
        EventBody::ThreadChanged { thread, previous } => {
            put("threadId", json!(thread));
            put("previousThreadId", json!(previous));
        }
        EventBody::ThreadDeleted { thread, .. } => put("threadId", json!(thread)),
        EventBody::ThreadTitleUpdated { thread, title } => {
            put("threadId", json!(thread));
            put("title", json!(title));
        }
        EventBody::StateChanged { state, changed } => {
            put("state", Value::Object(state.as_ref().clone()));
            put("changedKeys", json!(changed));
        }
        EventBody::FollowUpQueued { count } => put("count", json!(count)),
        EventBody::QueueChanged { items } => put(
            "items",
            items.iter().map(|item| json!({ "id": item.id, "kind": item.kind, "threadId": item.thread, "text": item.text })).collect(),
        ),
        EventBody::TaskUpdated { tasks } => put("tasks", json!(tasks)),
        EventBody::GoalEvaluation { payload } => put("payload", payload.clone()),
        EventBody::SubagentStart { call, agent_type, task, model, forked, .. } => {
            put("toolCallId", json!(call));
            put("agentType", json!(agent_type));
            put("task", json!(task));
            put("modelId", json!(model));
            put("forked", json!(forked));
        }
        EventBody::SubagentTextDelta { call, agent_type, delta } => {
            put("toolCallId", json!(call));
            put("agentType", json!(agent_type));
            put("textDelta", json!(delta));
        }
        EventBody::SubagentToolStart { call, agent_type, sub_call, tool, args } => {
            put("toolCallId", json!(call));
            put("agentType", json!(agent_type));
            put("subToolName", json!(tool));
            put("subToolArgs", args.clone());
            put("subToolCallId", json!(sub_call));
        }
        EventBody::SubagentToolEnd { call, agent_type, sub_call, tool, result, is_error } => {
            put("toolCallId", json!(call));
            put("agentType", json!(agent_type));
            put("subToolName", json!(tool));
            put("subToolResult", result.clone());
            put("isError", json!(is_error));
            put("subToolCallId", json!(sub_call));
        }
        EventBody::SubagentEnd { call, agent_type, result, is_error, duration_ms } => {
            put("toolCallId", json!(call));
            put("agentType", json!(agent_type));
            put("result", json!(result));
            put("isError", json!(is_error));
            put("durationMs", json!(duration_ms));
        }
        EventBody::DisplayStateChanged { state } => put("displayState", display_state(state)),
    }
    if carries_thread(&event.body) {
        set_some(&mut out, "threadId", thread_id.map(|thread| json!(thread)));
    }
    out
}

/// Tool events name the thread that their run works on (SPEC E-30).
fn carries_thread(body: &EventBody) -> bool {
    matches!(
        body,
        EventBody::ToolInputStart { .. }
            | EventBody::ToolInputDelta { .. }
            | EventBody::ToolInputEnd { .. }
            | EventBody::ToolStart { .. }
            | EventBody::ToolApprovalRequired { .. }
            | EventBody::ToolSuspended { .. }
            | EventBody::ToolSuspensionCancelled { .. }
            | EventBody::ToolUpdate { .. }
            | EventBody::ToolEnd { .. }
            | EventBody::ShellOutput { .. }
            | EventBody::CommandExit { .. }
            | EventBody::PendingResolved { .. }
    )
}

fn message_update(update: &MessageUpdate) -> Value {
    match update {
        MessageUpdate::TextDelta(delta) => json!({ "type": "text-delta", "delta": delta }),
        MessageUpdate::ReasoningDelta { index, delta } => json!({ "type": "reasoning-delta", "index": index, "delta": delta }),
        MessageUpdate::Part { index, part: changed } => json!({ "type": "part", "index": index, "part": part(changed) }),
    }
}
