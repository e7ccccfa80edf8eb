use serde_json::{Map, Value, json};

use super::{live, part, set, set_some};
use crate::{Message, Part, ResourceId, Role, ThreadId};

/// A message as a history lists it (WIRE 6.1): ordinary parts also for what a person wrote, failed calls as `output-error`, and what is
/// known about the model.
pub fn stored(message: &Message, thread: &ThreadId, resource: &ResourceId) -> Value {
    let at = message.at.as_millis();
    let mut parts: Vec<Value> = message.parts.iter().map(|one| stored_part(one, at)).collect();
    // An answer that the model itself ended has no part about it (SPEC E-13).
    if let (Some(error), None) = (&message.meta.error, message.meta.finish) {
        parts.push(json!({ "type": "error", "error": super::error(error) }));
    }
    let mut content = json!({ "format": 2, "parts": parts });
    let mut out = json!({ "id": message.id });
    match message.role {
        Role::User | Role::Signal => {
            let signal = signal_data(message);
            set(&mut out, "role", json!("signal"));
            set_some(&mut out, "type", signal.get("type").cloned());
            set(&mut content, "metadata", json!({ "signal": signal }));
        }
        Role::System | Role::Assistant => {
            set(&mut out, "role", json!(if message.role == Role::System { "system" } else { "assistant" }));
            set_some(&mut content, "content", message.parts.iter().rev().find_map(Part::as_text).map(|text| json!(text)));
            let metadata = model_metadata(message);
            if !metadata.is_empty() {
                set(&mut content, "metadata", Value::Object(metadata));
            }
        }
    }
    set(&mut out, "content", content);
    set(&mut out, "createdAt", json!(message.at.to_string()));
    set(&mut out, "threadId", json!(thread));
    set(&mut out, "resourceId", json!(resource));
    out
}

/// The signal of a live message, without the words: they are the parts.
fn signal_data(message: &Message) -> Value {
    let mut whole = live(message, None);
    let mut signal = whole.pointer_mut("/content/metadata/signal").map(Value::take).unwrap_or_default();
    if let Value::Object(fields) = &mut signal {
        fields.remove("contents");
    }
    signal
}

/// `provider/name`, in two.
fn model_metadata(message: &Message) -> Map<String, Value> {
    let mut out = Map::new();
    if let Some(model) = &message.meta.model {
        let (provider, name) = model.as_str().split_once('/').unwrap_or(("", model.as_str()));
        out.insert("modelId".into(), json!(name));
        if !provider.is_empty() {
            out.insert("provider".into(), json!(provider));
        }
    }
    out
}

fn stored_part(shown: &Part, at: i64) -> Value {
    let mut out = part(shown);
    match shown {
        Part::Text(_) | Part::File(_) | Part::Reasoning(_) => set(&mut out, "createdAt", json!(at)),
        Part::ToolCall(_) => {
            if let Some(Value::Object(invocation)) = out.get_mut("toolInvocation")
                && invocation.remove("isError") == Some(Value::Bool(true))
            {
                let result = invocation.remove("result").unwrap_or_default();
                let text = result.as_str().map_or_else(|| result.to_string(), str::to_owned);
                invocation.insert("state".into(), json!("output-error"));
                invocation.insert("errorText".into(), json!(text));
            }
        }
        Part::Data(_) | Part::Unknown(_) => {}
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Timestamp, ToolCallState, ToolOutput,
        message::{MessageMeta, ToolCallPart},
    };

    #[test]
    fn a_stored_message_has_ordinary_parts_and_a_signal_without_words() {
        let message = Message::user("m1", "hello", Timestamp::from_millis(0));
        assert_eq!(
            stored(&message, &"t".into(), &"r".into()),
            json!({
                "id": "m1", "role": "signal", "type": "user", "threadId": "t", "resourceId": "r", "createdAt": "1970-01-01T00:00:00.000Z",
                "content": {
                    "format": 2,
                    "parts": [{ "type": "text", "text": "hello", "createdAt": 0 }],
                    "metadata": { "signal": {
                        "id": "m1", "type": "user", "tagName": "user",
                        "createdAt": "1970-01-01T00:00:00.000Z", "acceptedAt": "1970-01-01T00:00:00.000Z",
                    } },
                },
            })
        );
    }

    #[test]
    fn a_failed_call_is_stored_as_an_output_error() {
        let mut call = ToolCallPart::new("c1", "boom", json!({}));
        call.state = ToolCallState::Result { output: ToolOutput::text("boom failed"), is_error: true };
        let mut message = Message::new("m", Role::Assistant, vec![Part::ToolCall(call), Part::text("so")], Timestamp::from_millis(5));
        message.meta = MessageMeta { model: Some("fake/a/b".into()), ..MessageMeta::default() };
        let out = stored(&message, &"t".into(), &"r".into());
        assert_eq!(
            out["content"],
            json!({
                "format": 2, "content": "so", "metadata": { "modelId": "a/b", "provider": "fake" },
                "parts": [
                    { "type": "tool-invocation", "toolInvocation": {
                        "state": "output-error", "toolCallId": "c1", "toolName": "boom", "args": {}, "errorText": "boom failed",
                    } },
                    { "type": "text", "text": "so", "createdAt": 5 },
                ],
            })
        );
    }
}
