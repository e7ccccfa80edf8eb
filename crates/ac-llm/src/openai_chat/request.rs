//! The request half.

use ac_core::{
    ModelError, ModelRequest, ToolDefinition,
    message::{FilePart, FileSource},
    model::ToolChoice,
};
use serde_json::{Map, Value, json};

use super::cache;
use crate::{
    history::{Answer, Content, Said, Turn, own, turns},
    media::{Media, decode_text, described, media},
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
    let model = profile.model_names.name(request.model.as_str());
    body.insert("model".into(), model.into());
    let mut messages = messages(profile, request);
    cache::mark(profile, model, &mut messages);
    body.insert("messages".into(), messages.into());
    if !request.tools.is_empty() {
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
        if let Some(choice) = tool_choice(&request.tool_choice) {
            body.insert("tool_choice".into(), choice);
        }
    }
    if let Some(tokens) = request.max_output_tokens {
        body.insert(profile.chat.max_tokens.into(), tokens.into());
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".into(), number(temperature));
    }
    body.insert("stream".into(), true.into());
    if profile.chat.usage_option {
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
    add_options(&mut body, profile, request);
    Ok(WireRequest::post(profile, "/chat/completions", body))
}

fn tool(definition: &ToolDefinition) -> Value {
    let function = json!({"name": tool_name(&definition.name), "description": definition.description});
    with(json!({"type": "function"}), "function", with(function, "parameters", schema::object(&definition.input_schema)))
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Tool(name) => Some(json!({"type": "function", "function": {"name": tool_name(name)}})),
        _ => None,
    }
}

fn messages(profile: &Profile, request: &ModelRequest) -> Vec<Value> {
    let mut messages = Vec::with_capacity(request.messages.len().saturating_add(1));
    if let Some(text) = request.instructions.as_deref().filter(|text| !text.is_empty()) {
        messages.push(json!({"role": "system", "content": text}));
    }
    for turn in turns(request.messages.iter().map(AsRef::as_ref), &request.model) {
        match turn {
            Turn::System(text) => messages.push(json!({"role": "system", "content": text})),
            Turn::User(content) => messages.push(with(json!({"role": "user"}), "content", user(content))),
            Turn::Assistant(answer) => assistant(profile, &answer, &mut messages),
        }
    }
    messages
}

fn user(content: Vec<Content<'_>>) -> Value {
    let mut content = content;
    if let [Content::Text(text)] = content.as_mut_slice() {
        return std::mem::take(text).into();
    }
    content
        .into_iter()
        .map(|piece| match piece {
            Content::Text(text) => json!({"type": "text", "text": text}),
            Content::File(part) => file(part),
        })
        .collect()
}

fn file(part: &FilePart) -> Value {
    let (media, media_type) = media(part);
    match (&part.source, media) {
        (FileSource::Url(url), Media::Picture) => json!({"type": "image_url", "image_url": {"url": url}}),
        (FileSource::Base64(data), Media::Picture) => {
            json!({"type": "image_url", "image_url": {"url": format!("data:{media_type};base64,{data}")}})
        }
        (FileSource::Base64(data), Media::Audio) => {
            let format = media_type.trim_start_matches("audio/");
            let format = if format == "mpeg" { "mp3" } else { format.trim_start_matches("x-") };
            json!({"type": "input_audio", "input_audio": {"data": &**data, "format": format}})
        }
        (FileSource::Base64(data), Media::Text) => json!({"type": "text", "text": decode_text(data).unwrap_or_else(|| described(part))}),
        (FileSource::Base64(data), Media::Pdf) => {
            let data = format!("data:{media_type};base64,{data}");
            json!({"type": "file", "file": {"filename": part.name.as_deref().unwrap_or("file"), "file_data": data}})
        }
        _ => json!({"type": "text", "text": described(part)}),
    }
}

/// The message, a message for each result, and the files of results, which no result can hold.
fn assistant(profile: &Profile, answer: &Answer<'_>, messages: &mut Vec<Value>) {
    let mut message = Map::from_iter([("role".to_owned(), Value::from("assistant"))]);
    let (mut text, mut calls, mut results, mut files) = (String::new(), vec![], vec![], vec![]);
    let mut reasoning: Option<(String, String)> = None;
    for said in &answer.said {
        match said {
            Said::Text(part) => text.push_str(&part.text),
            Said::Reasoning(part) => {
                if let Some(Value::Object(fields)) =
                    part.opaque.as_ref().filter(|opaque| opaque.provider == profile.name).map(|opaque| &opaque.value)
                {
                    for (name, value) in fields {
                        match (name.as_str(), value) {
                            ("field", Value::String(field)) if profile.chat.replay_reasoning => {
                                reasoning.get_or_insert_with(|| (field.clone(), String::new())).1.push_str(&part.text);
                            }
                            ("field", _) => {}
                            (_, Value::Array(more)) => match message.entry(name.as_str()).or_insert_with(|| json!([])) {
                                Value::Array(list) => list.extend(more.iter().cloned()),
                                other => *other = value.clone(),
                            },
                            _ => drop(message.insert(name.clone(), value.clone())),
                        }
                    }
                }
            }
            Said::Call(call) => {
                let id = profile.call_ids().legal(call.part.id.as_str());
                let mut sent = json!({"id": id, "type": "function", "function": {
                    "name": tool_name(&call.part.name),
                    "arguments": if call.part.args.is_null() { "{}".to_owned() } else { call.part.args.to_string() },
                }});
                if let (Some(extra), Some(fields)) = (own(call.part.opaque.as_ref(), &profile.name, "extra_content"), sent.as_object_mut())
                {
                    fields.insert("extra_content".into(), extra.clone());
                }
                calls.push(sent);
                results.push(json!({"role": "tool", "tool_call_id": id, "content": call.output}));
                files.extend(call.files.iter().map(|part| file(part)));
            }
            Said::File(_) | Said::Own(_) => {}
        }
    }
    if text.is_empty() && calls.is_empty() {
        return;
    }
    message.insert("content".into(), if text.is_empty() { Value::Null } else { text.into() });
    if let Some((field, text)) = reasoning {
        message.insert(field, text.into());
    }
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into());
    }
    messages.push(Value::Object(message));
    messages.extend(results);
    if !files.is_empty() {
        files.insert(0, json!({"type": "text", "text": "Files that the tools returned:"}));
        messages.push(with(json!({"role": "user"}), "content", files));
    }
}
