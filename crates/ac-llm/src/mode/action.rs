//! Tools as a constrained JSON answer.

use std::sync::Arc;

use ac_core::{
    Message, ModelRequest, Part, Role, ToolDefinition,
    message::{ToolCallPart, ToolCallState},
    model::ToolChoice,
};
use serde_json::{Value, json};

use super::ToolCallMode;
use crate::profile::Profile;

/// Whether this request is to be asked as a constrained answer.
pub(crate) fn asks_in_json(profile: &Profile, request: &ModelRequest) -> bool {
    profile.tool_calls == ToolCallMode::JsonAction && !request.tools.is_empty() && request.tool_choice != ToolChoice::None
}

/// The tools that may be used now.
fn offered(request: &ModelRequest) -> impl Iterator<Item = &ToolDefinition> {
    request.tools.iter().filter(|tool| match &request.tool_choice {
        ToolChoice::Tool(name) => tool.name == *name,
        _ => true,
    })
}

/// What the answer must look like: one of the tools with its arguments, or the final words.
pub(crate) fn schema(request: &ModelRequest) -> Value {
    let mut forms: Vec<Value> = offered(request)
        .map(|tool| {
            json!({
                "type": "object",
                "properties": {"action": {"const": tool.name}, "arguments": crate::schema::inlined(&tool.input_schema)},
                "required": ["action", "arguments"],
                "additionalProperties": false,
            })
        })
        .collect();
    if !matches!(request.tool_choice, ToolChoice::Required | ToolChoice::Tool(_)) {
        forms.push(json!({
            "type": "object",
            "properties": {"answer": {"type": "string"}},
            "required": ["answer"],
            "additionalProperties": false,
        }));
    }
    json!({"anyOf": forms})
}

/// The same request without tools: they are told in the instructions, and calls of the history and their results are text.
pub(crate) fn rewrite(request: &ModelRequest) -> ModelRequest {
    let mut plain = request.clone();
    plain.instructions = Some(instructions(request).into());
    plain.tools = Arc::new([]);
    plain.tool_choice = ToolChoice::Auto;
    let mut taken = vec![];
    plain.messages = request.messages.iter().flat_map(|message| told(message, &mut taken)).collect();
    plain
}

fn instructions(request: &ModelRequest) -> String {
    let mut text = String::new();
    if let Some(own) = request.instructions.as_deref() {
        text.push_str(own);
        text.push_str("\n\n");
    }
    text.push_str(
        "You act through tools. Answer with exactly one JSON object and nothing else.\n\
         To use a tool: {\"action\": \"NAME\", \"arguments\": {…}}. You get its result and answer again.\n\
         When the task is done, or to talk to the person: {\"answer\": \"…\"}. Do what was asked before you answer.\n\
         Look at what exists before you change it, and change no more than was asked. What does not exist yet is made, not looked at. \
         Go on with what a result tells you; never take an action again that failed or whose result you have.\n\nTools:\n",
    );
    for tool in offered(request) {
        text.push_str(&format!("- {}: {} Arguments: {}\n", tool.name, tool.description.trim(), brief(&tool.input_schema)));
    }
    if let Some(tool) = offered(request).next() {
        let example: serde_json::Map<String, Value> = required(&tool.input_schema).map(|name| (name.to_owned(), json!("…"))).collect();
        text.push_str(&format!(
            "\nExamples of an answer:\n{}\n{}\n",
            json!({"action": tool.name, "arguments": example}),
            json!({"answer": "Done: the port is 8080 now."})
        ));
    }
    text
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The properties with their types and descriptions: what a small model needs of a schema, in a fraction of its tokens.
fn brief(schema: &Value) -> String {
    let needed: Vec<&str> = required(schema).collect();
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|properties| !properties.is_empty()) else {
        return "none.".into();
    };
    let told: Vec<String> = properties
        .iter()
        .map(|(name, of)| {
            let kind =
                of.get("type").map_or_else(|| "any".to_owned(), |kind| kind.as_str().map_or_else(|| kind.to_string(), str::to_owned));
            let optional = if needed.contains(&name.as_str()) { "" } else { ", optional" };
            let what = of.get("description").and_then(Value::as_str).map_or_else(String::new, |text| format!(": {}", text.trim()));
            format!("{name} ({kind}{optional}){what}")
        })
        .collect();
    format!("{}.", told.join("; "))
}

/// An action that was taken, and what came of it.
type Taken = (String, String);

/// A message whose calls became text: what was said and the first action are one message of the model, each result is one of the person.
/// Small models walk in circles; an action that brings what it brought before says so.
fn told(message: &Arc<Message>, taken: &mut Vec<Taken>) -> Vec<Arc<Message>> {
    if message.role != Role::Assistant {
        return vec![Arc::clone(message)];
    }
    let mut all = vec![];
    let mut say = |role: Role, text: String, files: Vec<Part>| {
        let mut parts = if text.is_empty() { vec![] } else { vec![Part::text(text)] };
        parts.extend(files);
        if !parts.is_empty() {
            all.push(Arc::new(Message::new(message.id.clone(), role, parts, message.at)));
        }
    };
    let text = message.text();
    let mut calls = message.tool_calls().peekable();
    if calls.peek().is_none() {
        // Written as an answer was asked for, so that the history shows one form only.
        say(Role::Assistant, if text.is_empty() { text } else { json!({"answer": text}).to_string() }, vec![]);
        return all;
    }
    for call in calls {
        let action = json!({"action": call.name, "arguments": call.args}).to_string();
        let (mut result, files) = result(call);
        let this = (action.clone(), result.clone());
        if taken.contains(&this) {
            result.push_str("\nThis is what the same action brought before. Take another one, or answer.");
        } else {
            taken.push(this);
        }
        say(Role::Assistant, action, vec![]);
        say(Role::User, result, files);
    }
    all
}

fn result(call: &ToolCallPart) -> (String, Vec<Part>) {
    match &call.state {
        ToolCallState::Result { output, is_error } => {
            let how = if *is_error { "failed" } else { "returned" };
            let files = output.model.iter().flatten().filter(|part| matches!(part, Part::File(_))).cloned().collect();
            (format!("{} {how}:\n{}", call.name, output.model_text()), files)
        }
        ToolCallState::OutputDenied { reason } => (format!("{} was not run: {reason}", call.name), vec![]),
        _ => (format!("{} did not finish.", call.name), vec![]),
    }
}
