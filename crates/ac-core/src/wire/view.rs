use serde_json::{Map, Value, json};

use super::{part, set, set_some, usage};
use crate::{
    Message, Role,
    display::{ActiveSubagent, ActiveTool, DisplayMessage, DisplayPart, DisplayState, PendingSuspension},
    message::TextPart,
};

/// The view (WIRE 4.3): all 15 keys, always.
pub fn display_state(state: &DisplayState) -> Value {
    let mut tokens = usage(&state.token_usage);
    for key in ["cachedInputTokens", "cacheCreationInputTokens"] {
        if tokens.get(key).is_none() {
            set(&mut tokens, key, json!(0));
        }
    }
    json!({
        "isRunning": state.is_running,
        "currentMessage": state.current_message.as_deref().map(message),
        "queuedFollowUps": state.queued_follow_ups,
        "tokenUsage": tokens,
        "activeTools": map(state.active_tools.iter().map(|(id, tool)| (id.as_str(), active_tool(tool)))),
        "toolInputBuffers": map(
            state.tool_input_buffers.iter().map(|(id, open)| (id.as_str(), json!({ "text": open.text, "toolName": open.tool }))),
        ),
        "pendingApproval": state.pending_approvals.first().map(|open| {
            json!({ "toolCallId": open.call, "toolName": open.tool, "args": open.args })
        }),
        "pendingSuspensions": map(state.pending_suspensions.iter().map(|(id, open)| (id.as_str(), suspension(open)))),
        "activeSubagents": map(state.active_subagents.iter().map(|(id, agent)| (id.as_str(), subagent(agent)))),
        "omProgress": om_progress(),
        "bufferingMessages": false,
        "bufferingObservations": false,
        "modifiedFiles": map(state.modified_files.iter().map(|(path, file)| {
            (path.as_str(), json!({ "operations": file.operations, "firstModified": file.first_modified.to_string() }))
        })),
        "tasks": state.tasks,
        "previousTasks": state.previous_tasks,
    })
}

fn map<'a>(entries: impl Iterator<Item = (&'a str, Value)>) -> Value {
    Value::Object(entries.map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}

fn message(message: &DisplayMessage) -> Value {
    match message.role {
        Role::User | Role::Signal => {
            let parts = message.parts.iter().map(stored_part).collect();
            let mut whole = Message::new(message.id.clone(), message.role, parts, message.at);
            whole.meta = message.meta.as_ref().clone();
            super::live(&whole, message.thread.as_ref())
        }
        Role::System | Role::Assistant => {
            let parts: Vec<_> = message.parts.iter().map(display_part).collect();
            let role = if message.role == Role::System { "system" } else { "assistant" };
            let mut out =
                json!({ "id": message.id, "role": role, "content": { "format": 2, "parts": parts }, "createdAt": message.at.to_string() });
            set_some(&mut out, "threadId", message.thread.as_ref().map(|thread| json!(thread)));
            out
        }
    }
}

fn stored_part(part: &DisplayPart) -> crate::Part {
    match part {
        DisplayPart::Text(text) | DisplayPart::Reasoning(text) => crate::Part::Text(TextPart { text: text.to_string(), opaque: None }),
        DisplayPart::Part(part) => part.as_ref().clone(),
    }
}

fn display_part(shown: &DisplayPart) -> Value {
    match shown {
        DisplayPart::Text(text) => json!({ "type": "text", "text": text }),
        DisplayPart::Reasoning(text) => json!({ "type": "reasoning", "reasoning": text, "details": [{ "type": "text", "text": text }] }),
        DisplayPart::Part(shown) => part(shown),
    }
}

fn active_tool(tool: &ActiveTool) -> Value {
    let mut out = json!({ "name": tool.name, "args": tool.args, "status": tool.status.as_str() });
    set_some(&mut out, "partialResult", tool.partial_result.as_ref().map(|text| json!(text)));
    set_some(&mut out, "result", tool.result.as_deref().cloned());
    set_some(&mut out, "isError", tool.is_error.map(|error| json!(error)));
    if !tool.shell_output.is_empty() {
        set(&mut out, "shellOutput", json!(tool.shell_output));
    }
    out
}

fn suspension(open: &PendingSuspension) -> Value {
    let mut out = json!({ "toolCallId": open.call, "toolName": open.tool, "args": open.args, "suspendPayload": open.payload });
    set_some(&mut out, "parentToolCallId", open.parent_call.as_ref().map(|call| json!(call)));
    set_some(&mut out, "resumeSchema", open.answer_schema.as_ref().map(|schema| json!(schema.to_string())));
    out
}

fn subagent(agent: &ActiveSubagent) -> Value {
    let calls: Vec<_> = agent.tool_calls.iter().map(|call| json!({ "name": call.name, "isError": call.is_error })).collect();
    let mut out = json!({
        "agentType": agent.agent_type,
        "task": agent.task,
        "modelId": agent.model,
        "forked": agent.forked,
        "toolCalls": calls,
        "textDelta": agent.text,
        "status": agent.status.as_str(),
    });
    set_some(&mut out, "displayName", agent.name.as_ref().map(|name| json!(name)));
    set_some(&mut out, "durationMs", agent.duration_ms.map(|ms| json!(ms)));
    set_some(&mut out, "result", agent.result.as_ref().map(|text| json!(text)));
    out
}

/// Observational memory is not part of this runtime; the reference's clients still read its resting state.
fn om_progress() -> Value {
    json!({
        "status": "idle", "pendingTokens": 0, "threshold": 30000, "thresholdPercent": 0, "observationTokens": 0,
        "reflectionThreshold": 40000, "reflectionThresholdPercent": 0,
        "buffered": {
            "observations": { "status": "idle", "chunks": 0, "messageTokens": 0, "projectedMessageRemoval": 0, "observationTokens": 0 },
            "reflection": { "status": "idle", "inputObservationTokens": 0, "observationTokens": 0 },
        },
        "generationCount": 0, "stepNumber": 0, "preReflectionTokens": 0,
    })
}
