//! `subagent`: work that is handed to a run of its own, and what that run comes to.

use ac_core::{Tool, ToolCategory, ToolContext, ToolDefinition, ToolEffect, ToolError, ToolOutcome, ToolOutput, tool::ChildRun};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

/// Hands a task to a subagent (SPEC U-2).
///
/// The call itself does nothing but say which run is wanted; who drives the parent starts it, and its end is the result of the call. That
/// run is stored like any other, so it survives the process, and whatever it asks is asked in the parent's session.
#[derive(Clone, Debug)]
pub struct SubagentTool {
    definition: ToolDefinition,
}

/// One type of subagent, as the model sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubagentKind {
    /// What the model calls it by.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// It works on a copy of the conversation unless the call says otherwise.
    pub forked: bool,
}

/// What a call asks for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    agent_type: String,
    task: String,
    #[serde(default)]
    model_id: Option<String>,
    #[serde(default)]
    forked: Option<bool>,
}

impl SubagentTool {
    /// The name under which models know it.
    pub const NAME: &'static str = "subagent";

    /// The tool for these types; `None` where there are none, as a tool that nothing fits would only mislead (SPEC K-47).
    pub fn new(kinds: &[SubagentKind]) -> Option<Self> {
        if kinds.is_empty() {
            return None;
        }
        let mut description =
            "Hand a task to a subagent and wait for its result. It works in a conversation of its own and reports once, so say in \
                               the task everything it has to know. Calls of one step work side by side.\nTypes:"
                .to_owned();
        for kind in kinds {
            description.push_str(&format!("\n- {} ({}): {}", kind.id, kind.name, kind.description));
            if kind.forked {
                description.push_str(" Knows this conversation.");
            }
        }
        let definition = ToolDefinition::new(Self::NAME, description, input_schema(kinds))
            .category(ToolCategory::Other)
            // The call only asks for a run, whose id derives from it: asked twice is one run.
            .effect(ToolEffect::Idempotent);
        Some(Self { definition })
    }
}

#[async_trait]
impl Tool for SubagentTool {
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    async fn call(&self, args: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let args: Args = serde_json::from_value(args).map_err(|error| ToolError::args(format!("subagent: {error}")).with_source(error))?;
        let mut options = serde_json::Map::new();
        if let Some(model) = args.model_id.filter(|model| !model.is_empty()) {
            options.insert("modelId".into(), model.into());
        }
        if let Some(forked) = args.forked {
            options.insert("forked".into(), forked.into());
        }
        Ok(ToolOutcome::Delegate(ChildRun { task: args.task, agent: args.agent_type, options: Value::Object(options) }))
    }
}

fn input_schema(kinds: &[SubagentKind]) -> Value {
    let ids: Vec<&str> = kinds.iter().map(|kind| kind.id.as_str()).collect();
    json!({
        "type": "object",
        "properties": {
            "agentType": { "type": "string", "enum": ids, "description": "Which type of subagent." },
            "task": { "type": "string", "minLength": 1, "description": "What it is to do, complete in itself." },
            "modelId": { "type": "string", "description": "Another model than the one that is set up for it." },
            "forked": { "type": "boolean", "description": "Work on a copy of this conversation, with your own instructions, model and tools." }
        },
        "required": ["agentType", "task"],
        "additionalProperties": false
    })
}

/// A subagent is done: what it said is the result.
pub fn completed(said: &str) -> ToolOutput {
    ToolOutput::new(json!({ "content": said, "isError": false }))
}

/// A subagent was stopped. That is no failure (SPEC U-14).
pub fn aborted(said: &str) -> ToolOutput {
    let mut content = "[Aborted by user]".to_owned();
    push_partial(&mut content, said);
    ToolOutput::new(json!({ "content": content, "isError": false }))
}

/// A subagent failed (SPEC U-15). The call did not: the model reads what happened and goes on.
pub fn failed(name: &str, reason: &str, said: &str) -> ToolOutput {
    let mut content = format!("Subagent \"{name}\" failed: {reason}");
    push_partial(&mut content, said);
    ToolOutput::new(json!({ "content": content, "isError": true }))
}

fn push_partial(content: &mut String, said: &str) {
    if !said.is_empty() {
        content.push_str("\n\nPartial output:\n");
        content.push_str(said);
    }
}

#[cfg(test)]
mod tests;
