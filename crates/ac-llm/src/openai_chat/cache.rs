//! Marks for models that read a prefix from a cache only up to where the request says so: Claude behind a gateway that speaks Chat
//! Completions.

use serde_json::{Value, json};

use crate::profile::Profile;

/// Marks the system text and the ends of this request and of the one before it. Four marks are allowed; three are used.
///
/// Other models behind the same gateway are cached without being asked, and some gateways pass the field on to whom it is unknown: only
/// Claude gets it.
pub(super) fn mark(profile: &Profile, model: &str, messages: &mut [Value]) {
    if !profile.cache_marks || !model.to_ascii_lowercase().contains("claude") {
        return;
    }
    if let Some(first) = messages.first_mut().filter(|message| role(message) == "system") {
        mark_message(first);
    }
    // What the model is answered with: a person's message, or results, of which the last one counts.
    let mut ends: Vec<usize> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        match (role(message), ends.last_mut()) {
            ("user" | "tool", Some(last)) if *last + 1 == at => *last = at,
            ("user" | "tool", _) => ends.push(at),
            _ => {}
        }
    }
    for at in ends.into_iter().rev().take(2) {
        if let Some(message) = messages.get_mut(at) {
            mark_message(message);
        }
    }
}

fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

fn mark_message(message: &mut Value) {
    let ephemeral = json!({"type": "ephemeral"});
    let tool = role(message) == "tool";
    let Some(fields) = message.as_object_mut() else { return };
    if tool {
        // A result is a plain text for the gateway, so the mark stands beside it.
        fields.insert("cache_control".into(), ephemeral);
        return;
    }
    match fields.get_mut("content") {
        Some(content @ Value::String(_)) => {
            let text = content.take();
            *content = json!([{"type": "text", "text": text, "cache_control": ephemeral}]);
        }
        Some(Value::Array(parts)) => {
            let text = |part: &&mut Value| part.get("type").and_then(Value::as_str) == Some("text");
            if let Some(Value::Object(part)) = parts.iter_mut().rev().find(text) {
                part.insert("cache_control".into(), ephemeral);
            }
        }
        _ => {}
    }
}
