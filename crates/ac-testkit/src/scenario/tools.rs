//! The tools that scenarios name.

use std::{sync::Arc, time::Duration};

use ac_core::{Tool, ToolCategory, ToolContext, ToolDefinition, ToolEffect, ToolError, ToolErrorKind, ToolOutcome, ToolOutput};
use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::{ScenarioError, ScenarioErrorKind};

/// Their names.
const NAMES: [&str; 7] = ["echo", "add", "boom", "write_file", "slow", "req_approval", "setstate"];

/// Changes the state of the session that a call belongs to.
#[async_trait]
pub(super) trait StateDesk: Send + Sync + 'static {
    /// Sets keys; answers all of the state.
    async fn patch(&self, patch: Map<String, Value>) -> Result<Map<String, Value>, String>;
}

struct TestTool(&'static str);

/// The tools of these names.
pub(super) fn named(names: &[String]) -> Result<Vec<Arc<dyn Tool>>, ScenarioError> {
    names
        .iter()
        .map(|name| match NAMES.iter().find(|known| *known == name) {
            Some(known) => Ok(Arc::new(TestTool(known)) as Arc<dyn Tool>),
            None => {
                let message = format!("no test tool is called `{name}`; known: {}", NAMES.join(", "));
                Err(ScenarioError::new(ScenarioErrorKind::UnknownTool, message))
            }
        })
        .collect()
}

#[async_trait]
impl Tool for TestTool {
    fn definition(&self) -> ToolDefinition {
        let text = json!({ "type": "string" });
        let number = json!({ "type": "number" });
        let (description, fields, effect) = match self.0 {
            "echo" => ("Says the text back.", json!({ "text": text }), ToolEffect::ReadOnly),
            "add" => ("Adds two numbers.", json!({ "a": number, "b": number }), ToolEffect::ReadOnly),
            "boom" => ("Fails.", json!({}), ToolEffect::ReadOnly),
            "write_file" => ("Pretends to write a file.", json!({ "path": text, "content": text }), ToolEffect::Idempotent),
            "slow" => ("Takes its time.", json!({ "ms": number }), ToolEffect::ReadOnly),
            "req_approval" => ("Asks before it says x back.", json!({ "x": text }), ToolEffect::ReadOnly),
            _ => ("Changes the session's state.", json!({ "patch": { "type": "object" } }), ToolEffect::Idempotent),
        };
        let required: Vec<&str> = fields.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
        let mut schema = json!({ "type": "object", "properties": fields });
        if let (Value::Object(schema), false) = (&mut schema, required.is_empty()) {
            schema.insert("required".to_owned(), json!(required));
        }
        let definition = ToolDefinition::new(self.0, description, schema).category(ToolCategory::Other).effect(effect);
        if self.0 == "req_approval" { definition.requires_approval() } else { definition }
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let arg = |name: &str| args.get(name).cloned().unwrap_or_default();
        let output = match self.0 {
            "echo" => json!({ "echoed": arg("text") }),
            "add" => json!({ "sum": sum(&arg("a"), &arg("b")) }),
            "boom" => return Err(ToolError::failed("boom failed")),
            "write_file" => json!({ "ok": true, "path": arg("path") }),
            "slow" => {
                let millis = arg("ms").as_f64().unwrap_or_default().max(0.0);
                let aborted = tokio::select! {
                    () = tokio::time::sleep(Duration::from_secs_f64(millis / 1000.0)) => false,
                    () = cx.cancel.cancelled() => true,
                };
                json!({ "slept": arg("ms"), "aborted": aborted })
            }
            "req_approval" => json!({ "x": arg("x") }),
            _ => {
                let patch = arg("patch").as_object().cloned().unwrap_or_default();
                let state = cx.capability::<dyn StateDesk>()?.patch(patch).await;
                Value::Object(state.map_err(|why| ToolError::new(ToolErrorKind::Failed, why))?)
            }
        };
        Ok(ToolOutcome::Done(ToolOutput::new(output)))
    }
}

/// Whole numbers stay whole.
fn sum(a: &Value, b: &Value) -> Value {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => json!(a.saturating_add(b)),
        _ => json!(a.as_f64().unwrap_or_default() + b.as_f64().unwrap_or_default()),
    }
}
