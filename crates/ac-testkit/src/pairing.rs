//! Whether a request to a model is a legal history: every call has exactly one result, right after it (`R4`).

use std::collections::BTreeSet;

use serde_json::Value;

/// What is wrong with the `messages` of a Chat Completions request; nothing when each assistant message with `tool_calls` is followed
/// at once by one `tool` message per call and by no other.
pub fn chat(body: &Value) -> Vec<String> {
    let Some(messages) = body.get("messages").and_then(Value::as_array) else {
        return vec!["the request has no list of messages".to_owned()];
    };
    let mut wrong = Vec::new();
    let mut open = BTreeSet::new();
    let mut given = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        if role == "tool" {
            let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
            if open.remove(id) {
                given.insert(id);
            } else if given.contains(id) {
                wrong.push(format!("message {at}: a second result of call `{id}`"));
            } else {
                wrong.push(format!("message {at}: a result of `{id}`, which the message before it did not call"));
            }
            continue;
        }
        unanswered(at, &mut open, &mut wrong);
        given.clear();
        for call in calls(message) {
            let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
            if id.is_empty() {
                wrong.push(format!("message {at}: a call without an id"));
            } else if !open.insert(id) {
                wrong.push(format!("message {at}: two calls with the id `{id}`"));
            }
            if role != "assistant" {
                wrong.push(format!("message {at}: a `{role}` message calls a tool"));
            }
        }
    }
    unanswered(messages.len(), &mut open, &mut wrong);
    wrong
}

fn calls(message: &Value) -> &[Value] {
    message.get("tool_calls").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn unanswered(at: usize, open: &mut BTreeSet<&str>, wrong: &mut Vec<String>) {
    for id in std::mem::take(open) {
        wrong.push(format!("message {at}: call `{id}` has no result before it"));
    }
}

#[cfg(test)]
mod tests;
