//! `ask_user`: a question to the person.

use ac_core::{
    Suspend, Tool, ToolCategory, ToolContext, ToolDefinition, ToolEffect, ToolError, ToolErrorKind, ToolOutcome, ToolOutput, ToolResume,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Asks the person a question and waits for the answer, as long as it takes (SPEC B-1…B-7).
///
/// Without options the answer is text, or a list of texts; the empty text counts. With options it must be one of their labels
/// (`single_select`, the default) or a list of them (`multi_select`), unless the model set `allowFreeText`. The schema that an answer is
/// checked against comes with the suspension.
#[derive(Clone, Copy, Debug, Default)]
pub struct AskUser;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    question: String,
    #[serde(default)]
    options: Option<Vec<Choice>>,
    #[serde(default)]
    selection_mode: Option<SelectionMode>,
    #[serde(default)]
    allow_free_text: Option<bool>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Choice {
    label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum SelectionMode {
    SingleSelect,
    MultiSelect,
}

impl AskUser {
    /// The name under which models know it.
    pub const NAME: &'static str = "ask_user";
}

#[async_trait]
impl Tool for AskUser {
    fn definition(&self) -> ToolDefinition {
        let description = "Ask the user one question and wait for the answer. Use it when a decision is theirs to make or when a fact is missing \
                           that you cannot find out. Give options when the likely answers are few; set selectionMode to multi_select when several \
                           may apply, and allowFreeText when an answer outside of the options is welcome.";
        ToolDefinition::new(Self::NAME, description, input_schema())
            .category(ToolCategory::Interact)
            .effect(ToolEffect::ReadOnly)
            .answer_schema(free_text_schema())
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let args: Args = serde_json::from_value(args).map_err(|error| ToolError::args(format!("ask_user: {error}")).with_source(error))?;
        let options = args.options.unwrap_or_default();
        if options.is_empty() && args.selection_mode.is_some() {
            return Ok(ToolOutcome::Done(refusal("Failed to ask user: selectionMode requires options.")));
        }
        if let Some(reason) = unusable(&args.question, &options) {
            return Ok(ToolOutcome::Done(refusal(reason)));
        }
        let mode = (!options.is_empty()).then(|| args.selection_mode.unwrap_or(SelectionMode::SingleSelect));
        if !cx.can_suspend() {
            return Ok(ToolOutcome::Done(ToolOutput::text(readable(&args.question, &options, mode))));
        }
        let free_text = args.allow_free_text.unwrap_or(mode.is_none());
        let mut payload = json!({ "question": args.question });
        if let (Some(mode), Some(fields)) = (mode, payload.as_object_mut()) {
            fields.insert("options".into(), json!(options));
            fields.insert("selectionMode".into(), json!(mode));
            if free_text {
                fields.insert("allowFreeText".into(), Value::Bool(true));
            }
        }
        let mut suspend = Suspend::question(payload);
        suspend.answer_schema = Some(match mode {
            Some(mode) if !free_text => choice_schema(&options, mode),
            _ => free_text_schema(),
        });
        Ok(ToolOutcome::Suspend(suspend))
    }

    async fn resume(&self, with: ToolResume, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let answer = match &with.answer {
            Value::String(text) => text.clone(),
            Value::Array(texts) => {
                let texts: Option<Vec<&str>> = texts.iter().map(Value::as_str).collect();
                texts.ok_or_else(not_an_answer)?.join(", ")
            }
            _ => return Err(not_an_answer()),
        };
        Ok(ToolOutcome::Done(ToolOutput::new(json!({ "content": format!("User answered: {answer}"), "isError": false }))))
    }
}

fn not_an_answer() -> ToolError {
    ToolError::new(ToolErrorKind::Failed, "the answer was neither a text nor a list of texts; ask again")
}

fn refusal(reason: &str) -> ToolOutput {
    ToolOutput::new(json!({ "content": reason, "isError": true }))
}

/// Why nobody could answer this, if so. Two options of one label could not be told apart.
fn unusable(question: &str, options: &[Choice]) -> Option<&'static str> {
    if question.trim().is_empty() {
        return Some("Failed to ask user: the question is empty.");
    }
    if options.iter().any(|option| option.label.trim().is_empty()) {
        return Some("Failed to ask user: an option has no label.");
    }
    let labels: std::collections::HashSet<&str> = options.iter().map(|option| option.label.as_str()).collect();
    (labels.len() < options.len()).then_some("Failed to ask user: two options have the same label.")
}

fn readable(question: &str, options: &[Choice], mode: Option<SelectionMode>) -> String {
    let mut text = question.to_owned();
    for option in options {
        text.push_str("\n- ");
        text.push_str(&option.label);
        if let Some(description) = &option.description {
            text.push_str(": ");
            text.push_str(description);
        }
    }
    match mode {
        Some(SelectionMode::SingleSelect) => text.push_str("\n(choose one)"),
        Some(SelectionMode::MultiSelect) => text.push_str("\n(choose any number)"),
        None => {}
    }
    text
}

fn input_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "question": { "type": "string", "minLength": 1, "description": "The question, complete in itself." },
            "options": {
                "type": "array",
                "description": "Answers to choose from.",
                "items": {
                    "type": "object",
                    "properties": {
                        "label": { "type": "string", "minLength": 1, "description": "The answer, short." },
                        "description": { "type": "string", "description": "What choosing it means." }
                    },
                    "required": ["label"],
                    "additionalProperties": false
                }
            },
            "selectionMode": {
                "type": "string",
                "enum": ["single_select", "multi_select"],
                "description": "How many options may be chosen; single_select unless given. Needs options."
            },
            "allowFreeText": {
                "type": "boolean",
                "description": "Whether an answer outside of the options is accepted. Without options it always is; with options only when true."
            }
        },
        "required": ["question"],
        "additionalProperties": false
    })
}

const DIALECT: &str = "http://json-schema.org/draft-07/schema#";

fn free_text_schema() -> Value {
    json!({ "$schema": DIALECT, "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
}

/// A single choice may also come as a list of one, as the reference's clients send it.
fn choice_schema(options: &[Choice], mode: SelectionMode) -> Value {
    let labels: Vec<&str> = options.iter().map(|option| option.label.as_str()).collect();
    let one = json!({ "type": "string", "enum": labels });
    let list = match mode {
        SelectionMode::SingleSelect => json!({ "type": "array", "items": one, "minItems": 1, "maxItems": 1 }),
        SelectionMode::MultiSelect => json!({ "type": "array", "items": one, "uniqueItems": true }),
    };
    json!({ "$schema": DIALECT, "anyOf": [one, list] })
}

#[cfg(test)]
mod tests;
