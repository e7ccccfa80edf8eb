//! The request half.

use ac_core::{
    ModelError, ModelRequest,
    message::{FilePart, FileSource},
    model::ToolChoice,
};
use serde_json::{Map, Value, json};

use crate::{
    history::{Answer, Call, Content, Said, Turn, own, turns},
    media::{Media, described, media},
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
    if let Some(text) = request.instructions.as_deref().filter(|text| !text.is_empty()) {
        body.insert("instructions".into(), text.into());
    }
    body.insert("input".into(), input(profile, request).into());
    if !request.tools.is_empty() {
        let tool = |tool: &ac_core::ToolDefinition| {
            let named = json!({"type": "function", "name": tool_name(&tool.name), "description": tool.description, "strict": false});
            with(named, "parameters", schema::object(&tool.input_schema))
        };
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
        let choice = match &request.tool_choice {
            ToolChoice::None => Some("none".into()),
            ToolChoice::Required => Some("required".into()),
            ToolChoice::Tool(name) => Some(json!({"type": "function", "name": tool_name(name)})),
            _ => None,
        };
        body.extend(choice.map(|choice| ("tool_choice".to_owned(), choice)));
    }
    if let Some(tokens) = request.max_output_tokens {
        body.insert("max_output_tokens".into(), tokens.into());
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".into(), number(temperature));
    }
    body.insert("store".into(), false.into());
    if reasons(name) {
        body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    }
    body.insert("stream".into(), true.into());
    add_options(&mut body, profile, request);
    Ok(WireRequest::post(profile, "/responses", body))
}

/// Asking a model that does not reason for its encrypted reasoning is refused.
fn reasons(model: &str) -> bool {
    let model = model.rsplit('/').next().unwrap_or(model);
    let model = model.strip_prefix("ft:").unwrap_or(model);
    !["gpt-4", "gpt-3", "gpt-5-chat", "chatgpt", "davinci", "babbage"].iter().any(|prefix| model.starts_with(prefix))
}

fn input(profile: &Profile, request: &ModelRequest) -> Vec<Value> {
    let mut input = Vec::with_capacity(request.messages.len());
    for turn in turns(request.messages.iter().map(AsRef::as_ref), &request.model) {
        match turn {
            Turn::System(text) => input.push(json!({"type": "message", "role": "system", "content": text})),
            Turn::User(content) => {
                let content: Vec<Value> = content.into_iter().map(user).collect();
                input.push(with(json!({"type": "message", "role": "user"}), "content", content));
            }
            Turn::Assistant(answer) => {
                let first = input.len();
                for said in &answer.said {
                    item(profile, &answer, said, &mut input);
                }
                // Reasoning without the item that it led to is refused.
                while input.len() > first && input.last().is_some_and(|item| item.get("type").and_then(Value::as_str) == Some("reasoning"))
                {
                    input.pop();
                }
                input.extend(answer.calls().map(|call| result(profile, call)));
            }
        }
    }
    input
}

fn user(content: Content<'_>) -> Value {
    match content {
        Content::Text(text) => json!({"type": "input_text", "text": text}),
        Content::File(part) => file(part),
    }
}

fn file(part: &FilePart) -> Value {
    let (media, media_type) = media(part);
    match (&part.source, media) {
        (FileSource::Url(url), Media::Picture) => json!({"type": "input_image", "image_url": url}),
        (FileSource::Base64(data), Media::Picture) => {
            json!({"type": "input_image", "image_url": format!("data:{media_type};base64,{data}")})
        }
        (FileSource::Url(url), Media::Pdf | Media::Office | Media::Text) => json!({"type": "input_file", "file_url": url}),
        (FileSource::Base64(data), Media::Pdf | Media::Office | Media::Text) => {
            let data = format!("data:{media_type};base64,{data}");
            json!({"type": "input_file", "filename": part.name.as_deref().unwrap_or("file"), "file_data": data})
        }
        _ => json!({"type": "input_text", "text": described(part)}),
    }
}

fn item(profile: &Profile, answer: &Answer<'_>, said: &Said<'_>, input: &mut Vec<Value>) {
    match said {
        Said::Text(part) if !part.text.is_empty() => {
            let mut item = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": part.text}]});
            if let (Some(phase), Some(fields)) = (own(part.opaque.as_ref(), &profile.name, "phase"), item.as_object_mut()) {
                fields.insert("phase".into(), phase.clone());
            }
            input.push(item);
        }
        // Without its encrypted content a reasoning item is a reference to something that was not stored.
        Said::Reasoning(part) if answer.own => {
            if let Some(item) =
                own(part.opaque.as_ref(), &profile.name, "item").filter(|item| item.get("encrypted_content").is_some_and(Value::is_string))
            {
                input.push(item.clone());
            }
        }
        Said::Own(opaque) if opaque.provider == profile.name => input.push(opaque.value.clone()),
        Said::Call(call) => {
            let id = CallIds::Any.legal(call.part.id.as_str());
            input.push(if is_custom(profile, call) {
                json!({"type": "custom_tool_call", "call_id": id, "name": tool_name(&call.part.name), "input": call.part.args})
            } else {
                let arguments = if call.part.args.is_null() { "{}".to_owned() } else { call.part.args.to_string() };
                json!({"type": "function_call", "call_id": id, "name": tool_name(&call.part.name), "arguments": arguments})
            });
        }
        _ => {}
    }
}

fn is_custom(profile: &Profile, call: &Call<'_>) -> bool {
    call.part.args.is_string() && own(call.part.opaque.as_ref(), &profile.name, "custom").is_some()
}

fn result(profile: &Profile, call: &Call<'_>) -> Value {
    let output: Value = if call.files.is_empty() {
        call.output.as_str().into()
    } else {
        let text = (!call.output.is_empty()).then(|| json!({"type": "input_text", "text": call.output}));
        text.into_iter().chain(call.files.iter().map(|part| file(part))).collect()
    };
    let kind = if is_custom(profile, call) { "custom_tool_call_output" } else { "function_call_output" };
    json!({"type": kind, "call_id": CallIds::Any.legal(call.part.id.as_str()), "output": output})
}
