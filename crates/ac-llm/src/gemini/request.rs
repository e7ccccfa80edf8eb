//! The request half.

use ac_core::{
    ModelError, ModelRequest,
    message::{FilePart, FileSource, Opaque},
    model::ToolChoice,
};
use serde_json::{Map, Value, json};

use crate::{
    history::{Answer, Call, Content, Said, Turn, own, turns},
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
    let name = profile.model_names.name(request.model.as_str());
    let mut body = Map::new();
    if let Some(text) = request.instructions.as_deref().filter(|text| !text.is_empty()) {
        body.insert("systemInstruction".into(), json!({"parts": [{"text": text}]}));
    }
    body.insert("contents".into(), contents(profile, request, name).into());
    if !request.tools.is_empty() {
        let tool = |tool: &ac_core::ToolDefinition| {
            let named = json!({"name": tool_name(&tool.name), "description": tool.description});
            with(named, "parameters", schema::gemini(&tool.input_schema))
        };
        let declarations: Vec<Value> = request.tools.iter().map(tool).collect();
        body.insert("tools".into(), vec![with(json!({}), "functionDeclarations", declarations)].into());
        let config = match &request.tool_choice {
            ToolChoice::None => Some(json!({"mode": "NONE"})),
            ToolChoice::Required => Some(json!({"mode": "ANY"})),
            ToolChoice::Tool(name) => Some(json!({"mode": "ANY", "allowedFunctionNames": [tool_name(name)]})),
            _ => None,
        };
        body.extend(config.map(|config| ("toolConfig".to_owned(), json!({"functionCallingConfig": config}))));
    }
    let mut generation = Map::new();
    if let Some(tokens) = request.max_output_tokens {
        generation.insert("maxOutputTokens".into(), tokens.into());
    }
    if let Some(temperature) = request.temperature {
        generation.insert("temperature".into(), number(temperature));
    }
    if !generation.is_empty() {
        body.insert("generationConfig".into(), generation.into());
    }
    add_options(&mut body, profile, request);
    Ok(WireRequest::post(profile, &format!("/models/{name}:streamGenerateContent?alt=sse"), body))
}

/// What a call of another model carries where this one checks signatures: the documented word for "there is none".
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

fn contents(profile: &Profile, request: &ModelRequest, name: &str) -> Vec<Value> {
    // Models up to 2.5 take calls without a signature.
    let checks = !["gemini-1", "gemini-2", "gemma"].iter().any(|old| name.contains(old));
    let mut contents = Vec::with_capacity(request.messages.len());
    let content = |role: &str, parts: Vec<Value>| with(json!({"role": role}), "parts", parts);
    for turn in turns(request.messages.iter().map(AsRef::as_ref), &request.model) {
        match turn {
            Turn::System(text) => contents.push(content("user", vec![json!({"text": format!("<system>{text}</system>")})])),
            Turn::User(said) => contents.push(content("user", said.into_iter().map(user).collect())),
            Turn::Assistant(answer) => {
                let mut parts: Vec<Value> = answer.said.iter().filter_map(|said| part(profile, &answer, said)).collect();
                if checks && let Some(Value::Object(first)) = parts.iter_mut().find(|part| part.get("functionCall").is_some()) {
                    first.entry("thoughtSignature").or_insert_with(|| NO_SIGNATURE.into());
                }
                if parts.is_empty() {
                    continue;
                }
                contents.push(content("model", parts));
                // One content with as many responses as there were calls, in their order; files come after it.
                let results: Vec<Value> = answer.calls().map(|call| result(profile, call)).collect();
                if !results.is_empty() {
                    contents.push(content("user", results));
                }
                let files: Vec<Value> = answer.calls().flat_map(|call| call.files.iter()).map(|part| file(part)).collect();
                if !files.is_empty() {
                    contents.push(content("user", files));
                }
            }
        }
    }
    contents
}

fn user(content: Content<'_>) -> Value {
    match content {
        Content::Text(text) => json!({"text": text}),
        Content::File(part) => file(part),
    }
}

fn file(part: &FilePart) -> Value {
    match &part.source {
        FileSource::Url(url) => json!({"fileData": {"mimeType": part.media_type, "fileUri": url}}),
        FileSource::Base64(data) => json!({"inlineData": {"mimeType": part.media_type, "data": &**data}}),
        _ => json!({"text": format!("[a file that cannot be shown here: {}]", part.media_type)}),
    }
}

fn part(profile: &Profile, answer: &Answer<'_>, said: &Said<'_>) -> Option<Value> {
    let signature = |opaque: Option<&Opaque>| own(opaque.filter(|_| answer.own), &profile.name, "thoughtSignature").cloned();
    let signed = |mut part: Value, opaque: Option<&Opaque>| {
        if let (Some(signature), Value::Object(fields)) = (signature(opaque), &mut part) {
            fields.insert("thoughtSignature".into(), signature);
        }
        part
    };
    match said {
        Said::Text(text) if text.text.is_empty() => {
            signature(text.opaque.as_ref()).map(|signature| json!({"text": "", "thoughtSignature": signature}))
        }
        Said::Text(text) => Some(signed(json!({"text": text.text}), text.opaque.as_ref())),
        // A summary of thoughts is for people; only a signed thought is wanted back.
        Said::Reasoning(thought) => signature(thought.opaque.as_ref())
            .map(|signature| json!({"text": thought.text, "thought": true, "thoughtSignature": signature})),
        Said::File(part) => Some(match part.opaque.as_ref().filter(|opaque| answer.own && opaque.provider == profile.name) {
            Some(opaque) => opaque.value.clone(),
            None => file(part),
        }),
        Said::Own(opaque) => (answer.own && opaque.provider == profile.name).then(|| opaque.value.clone()),
        Said::Call(call) => {
            let args = if call.part.args.is_object() { call.part.args.clone() } else { json!({}) };
            let mut sent = Map::from_iter([("name".to_owned(), tool_name(&call.part.name).into()), ("args".to_owned(), args)]);
            if has_id(profile, call) {
                sent.insert("id".into(), call.part.id.as_str().into());
            }
            Some(signed(json!({"functionCall": sent}), call.part.opaque.as_ref()))
        }
    }
}

/// An id goes back only where the provider itself gave one.
fn has_id(profile: &Profile, call: &Call<'_>) -> bool {
    own(call.part.opaque.as_ref(), &profile.name, "id").is_some()
}

/// The result is told as text: an object with keys such as `$ref` in it is refused.
fn result(profile: &Profile, call: &Call<'_>) -> Value {
    let field = if call.failed { "error" } else { "output" };
    let mut response = json!({"name": tool_name(&call.part.name), "response": {field: call.output}});
    if has_id(profile, call)
        && let Some(fields) = response.as_object_mut()
    {
        fields.insert("id".into(), call.part.id.as_str().into());
    }
    json!({"functionResponse": response})
}
