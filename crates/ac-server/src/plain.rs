//! What of an event a client of the reference sees: its types and its fields, nothing of ours (`?events=all` shows everything).

use ac_core::{DisplayState, Event, EventBody, Role, event::PendingKind, wire};
use serde_json::{Map, Value, json};

/// The body as the reference would send it; `None` for what it would not.
pub(crate) fn body(event: &Event) -> Option<Value> {
    let drop: &[&str] = match &event.body {
        EventBody::PendingResolved { .. } | EventBody::QueueChanged { .. } | EventBody::Error { retry: Some(_), .. } => return None,
        // Nothing of the reference's could answer it.
        EventBody::ToolSuspended { kind: PendingKind::InDoubt, .. } => return None,
        EventBody::AgentEnd { .. } => &["finishReason", "error"],
        EventBody::Error { .. } => &["errorType", "retryable"],
        EventBody::ToolApprovalRequired { .. } => &["pendingId", "parentToolCallId"],
        EventBody::ToolSuspended { .. } => &["pendingId", "kind", "parentToolCallId"],
        EventBody::SubagentToolStart { .. } | EventBody::SubagentToolEnd { .. } => &["subToolCallId"],
        EventBody::MessageStart { message } if message.role == Role::Assistant => {
            let mut out = wire::body(event);
            if let Some(Value::Object(content)) = out.pointer_mut("/message/content") {
                content.remove("metadata");
            }
            return Some(out);
        }
        EventBody::DisplayStateChanged { state } => return Some(state_changed(state)),
        _ => &[],
    };
    let mut out = wire::body(event);
    if let Value::Object(fields) = &mut out {
        fields.retain(|key, _| !drop.contains(&key.as_str()));
    }
    Some(out)
}

/// `display_state_changed`.
pub(crate) fn state_changed(state: &DisplayState) -> Value {
    let mut view = wire::display_state(state);
    if let Some(Value::Object(waits)) = view.get_mut("pendingSuspensions") {
        for (call, open) in state.pending_suspensions.iter() {
            if open.kind == PendingKind::InDoubt {
                waits.remove(call.as_str());
            }
        }
    }
    json!({ "type": "display_state_changed", "displayState": view })
}

/// The view with everything that the reference has no place for.
pub(crate) fn full_state(state: &DisplayState) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("type".into(), json!("display_state_changed"));
    out.insert("displayState".into(), wire::display_state(state));
    let pending = state
        .pending_approvals
        .iter()
        .map(|open| json!({ "id": open.pending, "kind": "approval", "toolCallId": open.call, "toolName": open.tool, "args": open.args }))
        .chain(state.pending_suspensions.values().map(|open| {
            json!({
                "id": open.pending, "kind": open.kind.as_str(), "toolCallId": open.call, "toolName": open.tool, "args": open.args,
                "payload": open.payload, "answerSchema": open.answer_schema,
            })
        }));
    out.insert("pending".into(), pending.collect());
    let queue = state.queue.iter().map(|item| json!({ "id": item.id, "kind": item.kind, "threadId": item.thread, "text": item.text }));
    out.insert("queue".into(), queue.collect());
    out
}
