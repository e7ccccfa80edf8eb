//! The request half.

use ac_core::{
    ModelError, ModelRequest,
    message::{FilePart, FileSource},
};
use serde_json::{Map, Value, json};

use crate::{
    history::{Content, Said, Turn, turns},
    media::{Media, described, media},
    name::tool_name,
    profile::Profile,
    request::{WireRequest, add_options, number, with},
    schema,
};

/// Makes the request.
///
/// # Errors
/// None so far; the signature is that of every adapter.
pub fn build(profile: &Profile, request: &ModelRequest) -> Result<WireRequest, ModelError> {
    let mut body = Map::new();
    body.insert("model".into(), profile.model_names.name(request.model.as_str()).into());
    body.insert("messages".into(), messages(request).into());
    if !request.tools.is_empty() {
        let tool = |tool: &ac_core::ToolDefinition| {
            let function = json!({"name": tool_name(&tool.name), "description": tool.description});
            with(json!({"type": "function"}), "function", with(function, "parameters", schema::object(&tool.input_schema)))
        };
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
    }
    let mut options = Map::new();
    if let Some(tokens) = request.max_output_tokens {
        options.insert("num_predict".into(), tokens.into());
    }
    if let Some(temperature) = request.temperature {
        options.insert("temperature".into(), number(temperature));
    }
    if !options.is_empty() {
        body.insert("options".into(), options.into());
    }
    body.insert("stream".into(), true.into());
    add_options(&mut body, profile, request);
    Ok(WireRequest::post(profile, "/api/chat", body))
}

fn messages(request: &ModelRequest) -> Vec<Value> {
    let mut messages = Vec::with_capacity(request.messages.len());
    if let Some(text) = request.instructions.as_deref().filter(|text| !text.is_empty()) {
        messages.push(json!({"role": "system", "content": text}));
    }
    for turn in turns(request.messages.iter().map(AsRef::as_ref), &request.model) {
        match turn {
            Turn::System(text) => messages.push(json!({"role": "system", "content": text})),
            Turn::User(content) => {
                let (mut text, mut images) = (String::new(), vec![]);
                for piece in &content {
                    match piece {
                        Content::Text(more) => text.push_str(more),
                        Content::File(part) => match image(part) {
                            Some(image) => images.push(image),
                            None => say(&mut text, part),
                        },
                    }
                }
                messages.push(with_images(json!({"role": "user", "content": text}), images));
            }
            Turn::Assistant(answer) => {
                let text: String = answer
                    .said
                    .iter()
                    .filter_map(|said| if let Said::Text(part) = said { Some(part.text.as_str()) } else { None })
                    .collect();
                let calls: Vec<Value> = answer
                    .calls()
                    .map(|call| {
                        let args = if call.part.args.is_object() { call.part.args.clone() } else { json!({}) };
                        json!({"function": {"name": tool_name(&call.part.name), "arguments": args}})
                    })
                    .collect();
                if text.is_empty() && calls.is_empty() {
                    continue;
                }
                let mut message = json!({"role": "assistant", "content": text});
                if let (Value::Object(fields), false) = (&mut message, calls.is_empty()) {
                    fields.insert("tool_calls".into(), calls.into());
                }
                messages.push(message);
                for call in answer.calls() {
                    let mut output = call.output.to_string();
                    call.files.iter().filter(|part| image(part).is_none()).for_each(|part| say(&mut output, part));
                    let message = json!({"role": "tool", "tool_name": tool_name(&call.part.name), "content": output});
                    messages.push(with_images(message, call.files.iter().filter_map(|part| image(part)).collect()));
                }
            }
        }
    }
    messages
}

fn image(part: &FilePart) -> Option<Value> {
    match &part.source {
        FileSource::Base64(data) if media(part).0 == Media::Picture => Some((&**data).into()),
        _ => None,
    }
}

/// A line for a file that is not given.
fn say(text: &mut String, part: &FilePart) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&described(part));
}

fn with_images(mut message: Value, images: Vec<Value>) -> Value {
    if let (Value::Object(fields), false) = (&mut message, images.is_empty()) {
        fields.insert("images".into(), images.into());
    }
    message
}
