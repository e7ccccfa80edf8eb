//! The request half.

use ac_core::{
    ModelError, ModelRequest,
    message::{FilePart, FileSource},
    model::ToolChoice,
};
use serde_json::{Map, Value, json};

use crate::{
    history::{Answer, Call, Content, Said, Turn, own, turns},
    media::{Media, decode_text, described, media},
    name::{CallIds, tool_name},
    profile::Profile,
    request::{WireRequest, add_options, number, with},
    schema,
};

/// Makes the request.
///
/// # Errors
/// None so far; the signature is that of every adapter.
pub fn build(profile: &Profile, request: &ModelRequest) -> Result<WireRequest, ModelError> {
    let name = profile.model_names.name(request.model.as_str());
    let mut body = Map::new();
    body.insert("model".into(), name.into());
    body.insert("max_tokens".into(), request.max_output_tokens.unwrap_or_else(|| longest(name)).into());
    let mut system = match request.instructions.as_deref().filter(|text| !text.trim().is_empty()) {
        Some(text) => vec![json!({"type": "text", "text": text})],
        None => vec![],
    };
    let mut messages = messages(profile, request);
    let mut tools = tools(request);
    if profile.cache_marks {
        mark_prefix(&mut system, &mut tools, &mut messages);
    }
    if !system.is_empty() {
        body.insert("system".into(), system.into());
    }
    body.insert("messages".into(), messages.into());
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
        if let Some(choice) = tool_choice(request) {
            body.insert("tool_choice".into(), choice);
        }
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".into(), number(temperature));
    }
    body.insert("stream".into(), true.into());
    add_options(&mut body, profile, request);
    Ok(WireRequest::post(profile, "/messages", body))
}

/// The protocol wants a limit and refuses one that is more than the model can.
fn longest(model: &str) -> u32 {
    match model {
        model if model.contains("claude-3-5") || model.contains("claude-3.5") => 8_192,
        model if model.contains("claude-3-7") => 32_000,
        model if model.contains("claude-3-") || model.contains("claude-2") => 4_096,
        _ => 32_000,
    }
}

fn tools(request: &ModelRequest) -> Vec<Value> {
    if !request.tools.is_empty() {
        let tool = |tool: &ac_core::ToolDefinition| {
            let named = json!({"name": tool_name(&tool.name), "description": tool.description});
            with(named, "input_schema", schema::object(&tool.input_schema))
        };
        return request.tools.iter().map(tool).collect();
    }
    // A history with calls is refused without tools, so the tools that were called are told, and none may be.
    let mut names: Vec<&str> = request.messages.iter().flat_map(|message| message.tool_calls()).map(|call| call.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let tool = |name: &str| json!({"name": tool_name(name), "input_schema": schema::object(&Value::Null)});
    names.into_iter().map(tool).collect()
}

fn tool_choice(request: &ModelRequest) -> Option<Value> {
    if request.tools.is_empty() {
        return Some(json!({"type": "none"}));
    }
    match &request.tool_choice {
        ToolChoice::None => Some(json!({"type": "none"})),
        ToolChoice::Required => Some(json!({"type": "any"})),
        ToolChoice::Tool(name) => Some(json!({"type": "tool", "name": tool_name(name)})),
        _ => None,
    }
}

/// A prefix that stays the same is read from the cache up to a mark: tools and system once, then the conversation up to its end and up to
/// where the request before this one ended. Four marks are allowed; three are used.
fn mark_prefix(system: &mut [Value], tools: &mut [Value], messages: &mut [Value]) {
    let mark = |block: Option<&mut Value>| {
        if let Some(Value::Object(fields)) = block
            && !matches!(fields.get("type").and_then(Value::as_str), Some("thinking" | "redacted_thinking"))
        {
            fields.insert("cache_control".into(), json!({"type": "ephemeral"}));
        }
    };
    // The order of the prefix is tools, system, messages: a mark on the system covers the tools.
    mark(if system.is_empty() { tools.last_mut() } else { system.last_mut() });
    let of_user = messages.iter_mut().rev().filter(|message| message.get("role").and_then(Value::as_str) == Some("user"));
    for message in of_user.take(2) {
        if let Some(Value::Array(content)) = message.get_mut("content") {
            mark(content.last_mut());
        }
    }
}

fn messages(profile: &Profile, request: &ModelRequest) -> Vec<Value> {
    let mut all: Vec<(&'static str, Vec<Value>)> = Vec::new();
    let mut say = |role: &'static str, blocks: Vec<Value>| match all.last_mut() {
        _ if blocks.is_empty() => {}
        // Roles must alternate.
        Some((last, before)) if *last == role => before.extend(blocks),
        _ => all.push((role, blocks)),
    };
    for turn in turns(request.messages.iter().map(AsRef::as_ref), &request.model) {
        match turn {
            Turn::System(text) => say("user", text_block(format!("<system>{text}</system>")).into_iter().collect()),
            Turn::User(content) => say("user", content.into_iter().filter_map(user).collect()),
            Turn::Assistant(answer) => {
                let blocks: Vec<Value> = answer.said.iter().filter_map(|said| block(profile, &answer, said)).collect();
                // Thinking that nothing follows was cut off, and is refused.
                let only_thought =
                    blocks.iter().all(|block| matches!(block.get("type").and_then(Value::as_str), Some("thinking" | "redacted_thinking")));
                if only_thought {
                    continue;
                }
                say("assistant", blocks);
                say("user", answer.calls().map(result).collect());
            }
        }
    }
    if all.first().is_some_and(|(role, _)| *role == "assistant") {
        all.insert(0, ("user", vec![json!({"type": "text", "text": "(The conversation goes on.)"})]));
    }
    all.into_iter().map(|(role, content)| with(json!({"role": role}), "content", content)).collect()
}

/// A block of blank text is refused.
fn text_block(text: String) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

fn user(content: Content<'_>) -> Option<Value> {
    match content {
        Content::Text(text) => text_block(text),
        Content::File(part) => Some(file(part)),
    }
}

fn file(part: &FilePart) -> Value {
    let (media, media_type) = media(part);
    let source = match (&part.source, media) {
        (FileSource::Url(url), Media::Picture | Media::Pdf) => json!({"type": "url", "url": url}),
        (FileSource::Base64(data), Media::Picture | Media::Pdf) => json!({"type": "base64", "media_type": media_type, "data": &**data}),
        (FileSource::Base64(data), Media::Text) => match decode_text(data) {
            Some(text) => json!({"type": "text", "media_type": "text/plain", "data": text}),
            None => return json!({"type": "text", "text": described(part)}),
        },
        _ => return json!({"type": "text", "text": described(part)}),
    };
    let kind = if media == Media::Picture { "image" } else { "document" };
    let mut block = json!({"type": kind, "source": source});
    if let (Some(name), "document", Some(fields)) = (&part.name, kind, block.as_object_mut()) {
        fields.insert("title".into(), name.clone().into());
    }
    block
}

fn block(profile: &Profile, answer: &Answer<'_>, said: &Said<'_>) -> Option<Value> {
    match said {
        Said::Text(part) => {
            let mut block = text_block(part.text.clone())?;
            if let (Some(citations), Some(fields)) = (own(part.opaque.as_ref(), &profile.name, "citations"), block.as_object_mut()) {
                fields.insert("citations".into(), citations.clone());
            }
            Some(block)
        }
        // Signed by the model that thought it, and of use to no other. Without a signature it is refused.
        Said::Reasoning(part) if answer.own => match own(part.opaque.as_ref(), &profile.name, "redacted") {
            Some(data) => Some(json!({"type": "redacted_thinking", "data": data})),
            None => {
                let signature =
                    own(part.opaque.as_ref(), &profile.name, "signature").filter(|value| value.as_str().is_some_and(|s| !s.is_empty()))?;
                Some(json!({"type": "thinking", "thinking": part.text, "signature": signature}))
            }
        },
        Said::Own(opaque) => (opaque.provider == profile.name).then(|| opaque.value.clone()),
        Said::Call(call) => Some(json!({
            "type": "tool_use",
            "id": CallIds::Plain.legal(call.part.id.as_str()),
            "name": tool_name(&call.part.name),
            "input": if call.part.args.is_object() { call.part.args.clone() } else { json!({}) },
        })),
        _ => None,
    }
}

fn result(call: &Call<'_>) -> Value {
    let id = CallIds::Plain.legal(call.part.id.as_str());
    let content: Value = if call.files.is_empty() {
        call.output.as_str().into()
    } else {
        text_block(call.output.clone()).into_iter().chain(call.files.iter().map(|part| file(part))).collect()
    };
    let mut block = json!({"type": "tool_result", "tool_use_id": id, "content": content});
    if call.failed
        && let Some(fields) = block.as_object_mut()
    {
        fields.insert("is_error".into(), true.into());
    }
    block
}
