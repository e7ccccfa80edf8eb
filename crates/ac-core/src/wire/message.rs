use serde_json::{Value, json};

use super::{set, set_some};
use crate::{
    Message, Part, Role, ThreadId, ToolCallState,
    message::{FileSource, Opaque, ToolCallPart},
};

/// A message as `message_start` carries it.
///
/// What a person wrote is stored as [`Role::User`] and shown as a signal with one `data-user-message` part (WIRE 6.1).
pub fn live(message: &Message, thread: Option<&ThreadId>) -> Value {
    match message.role {
        Role::User => signal(message, "user", "data-user-message"),
        Role::Signal => signal(message, "notification", "data-signal"),
        Role::System | Role::Assistant => {
            let role = if message.role == Role::System { "system" } else { "assistant" };
            let mut content = json!({ "format": 2, "parts": message.parts.iter().map(part).collect::<Vec<_>>() });
            set_some(&mut content, "metadata", metadata(message));
            let mut out = json!({ "id": message.id, "role": role, "content": content, "createdAt": message.at.to_string() });
            set_some(&mut out, "threadId", thread.map(|thread| json!(thread)));
            out
        }
    }
}

fn metadata(message: &Message) -> Option<Value> {
    let mut out = json!({});
    set_some(&mut out, "modelId", message.meta.model.as_ref().map(|model| json!(model)));
    set_some(&mut out, "stopReason", message.meta.finish.map(|finish| json!(finish)));
    set_some(&mut out, "errorMessage", message.meta.error.as_ref().map(|error| json!(error.message)));
    out.as_object().is_some_and(|map| !map.is_empty()).then_some(out)
}

fn signal(message: &Message, kind: &str, part_type: &str) -> Value {
    let contents = match message.parts.as_slice() {
        [Part::Text(text)] => json!(text.text),
        parts => parts.iter().map(signal_part).collect(),
    };
    // A signal that says what it is keeps its attributes to itself; another one says it in them.
    let info = message.meta.signal.as_ref();
    let said = |key: &str| message.meta.attributes.get(key).cloned().unwrap_or_else(|| json!(kind));
    let mut data = json!({
        "id": message.id,
        "type": info.map_or_else(|| said("type"), |info| json!(info.kind)),
        "tagName": info.map_or_else(|| said("tagName"), |info| json!(info.tag)),
        "contents": contents,
        "createdAt": message.at.to_string(),
        "acceptedAt": message.at.to_string(),
    });
    let attributes: serde_json::Map<_, _> = message
        .meta
        .attributes
        .iter()
        .filter(|(key, _)| info.is_some() || !matches!(key.as_str(), "type" | "tagName"))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    if !attributes.is_empty() {
        set(&mut data, "attributes", Value::Object(attributes));
    }
    if let Some(info) = info.filter(|info| !info.metadata.is_empty()) {
        set(&mut data, "metadata", Value::Object(info.metadata.clone()));
    }
    if let Some(author) = &message.meta.author {
        set(
            &mut data,
            "providerOptions",
            json!({ "mastra": { "author": { "id": author.id, "name": author.name, "avatarUrl": author.avatar_url } } }),
        );
    }
    let content = json!({ "format": 2, "parts": [{ "type": part_type, "data": data }], "metadata": { "signal": data } });
    json!({ "id": message.id, "role": "signal", "content": content, "createdAt": message.at.to_string() })
}

fn signal_part(part: &Part) -> Value {
    match part {
        Part::File(file) => {
            let mut out = json!({ "type": "file", "data": file_data(&file.source), "mediaType": file.media_type });
            set_some(&mut out, "filename", file.name.as_ref().map(|name| json!(name)));
            out
        }
        other => self::part(other),
    }
}

fn file_data(source: &FileSource) -> Value {
    match source {
        FileSource::Base64(data) => json!(data),
        FileSource::Url(url) => json!(url),
    }
}

/// One part (WIRE 6.1).
pub fn part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "type": "text", "text": text.text }),
        Part::Reasoning(reasoning) => {
            let mut detail = json!({ "type": "text", "text": reasoning.text });
            if let Some(Opaque { value: Value::String(signature), .. }) = &reasoning.opaque {
                set(&mut detail, "signature", json!(signature));
            }
            json!({ "type": "reasoning", "reasoning": reasoning.text, "details": [detail] })
        }
        Part::File(file) => {
            let mut out = json!({ "type": "file", "data": file_data(&file.source), "mimeType": file.media_type });
            set_some(&mut out, "filename", file.name.as_ref().map(|name| json!(name)));
            out
        }
        Part::ToolCall(call) => json!({ "type": "tool-invocation", "toolInvocation": invocation(call) }),
        Part::Data(data) => json!({ "type": format!("data-{}", data.name), "data": data.data }),
        Part::Unknown(value) => value.clone(),
    }
}

fn invocation(call: &ToolCallPart) -> Value {
    let mut out = json!({ "state": "call", "toolCallId": call.id, "toolName": call.name, "args": call.args });
    set_some(&mut out, "rawInput", call.raw.as_ref().map(|raw| json!(raw)));
    match &call.state {
        ToolCallState::Call => {}
        ToolCallState::Result { output, is_error } => {
            set(&mut out, "state", json!("result"));
            set(&mut out, "result", output.value.clone());
            if *is_error {
                set(&mut out, "isError", json!(true));
            }
        }
        ToolCallState::OutputDenied { reason } => {
            set(&mut out, "state", json!("output-denied"));
            set(&mut out, "approval", json!({ "id": call.id, "approved": false, "reason": reason }));
        }
    }
    if call.approved && !matches!(call.state, ToolCallState::OutputDenied { .. }) {
        set(&mut out, "approval", json!({ "id": call.id, "approved": true }));
    }
    out
}
