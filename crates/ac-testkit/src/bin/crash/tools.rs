//! Tools whose side effects stand in a log that survives everything.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ac_core::{
    Tool, ToolCategory, ToolContext, ToolDefinition, ToolEffect, ToolError, ToolOutcome, ToolOutput,
    tool::{ChildRun, Suspend, ToolResume},
};
use ac_tools::{AskUser, SubmitPlan};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::jobs;

/// A side effect that happened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Deed {
    pub(crate) run: String,
    pub(crate) call: String,
    pub(crate) tool: String,
    pub(crate) attempt: u32,
}

/// What each tool is: name, category, effect.
const WORK: [(&str, ToolCategory, ToolEffect); 6] = [
    ("look", ToolCategory::Read, ToolEffect::ReadOnly),
    // Asks nobody, so that it runs at once.
    ("post", ToolCategory::Interact, ToolEffect::Mutating),
    ("keep", ToolCategory::Interact, ToolEffect::Idempotent),
    ("write", ToolCategory::Edit, ToolEffect::Mutating),
    ("save", ToolCategory::Edit, ToolEffect::Idempotent),
    // Its side effect comes with the answer.
    (CONFIRM, ToolCategory::Interact, ToolEffect::Mutating),
];
const CONFIRM: &str = "confirm";

/// Whether a tool leaves deeds in the log.
pub(crate) fn leaves_deeds(tool: &str) -> bool {
    WORK.iter().any(|(name, ..)| *name == tool)
}

/// Whether a tool must not act twice.
pub(crate) fn is_mutating(tool: &str) -> bool {
    WORK.iter().any(|(name, _, effect)| *name == tool && *effect == ToolEffect::Mutating)
}

/// All tools. `careless` says of each that it changes nothing: the planted fault that repeats.
pub(crate) fn all(log: PathBuf, careless: bool) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = vec![Arc::new(AskUser), Arc::new(SubmitPlan), Arc::new(Delegate)];
    for (name, category, effect) in WORK {
        let effect = if careless { ToolEffect::ReadOnly } else { effect };
        tools.push(Arc::new(Worker { name, category, effect, log: log.clone() }));
    }
    tools
}

struct Worker {
    name: &'static str,
    category: ToolCategory,
    effect: ToolEffect,
    log: PathBuf,
}

impl Worker {
    async fn act(&self, args: &Value, cx: &ToolContext) -> Result<(), ToolError> {
        let half = Duration::from_micros(args.get("wait").and_then(Value::as_u64).unwrap_or_default() * 500);
        let pause = async |pause: Duration| {
            tokio::select! {
                () = tokio::time::sleep(pause) => Ok(()),
                () = cx.cancel.cancelled() => Err(ToolError::failed("stopped")),
            }
        };
        pause(half).await?;
        let deed = Deed { run: cx.run.to_string(), call: cx.call.to_string(), tool: self.name.to_owned(), attempt: cx.attempt };
        append(&self.log, &deed).map_err(|error| ToolError::failed(format!("the log took nothing: {error}")))?;
        pause(half).await
    }
}

/// Adds a line to a log, for good.
pub(crate) fn append(log: &Path, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_string(what)?;
    line.push('\n');
    let mut file = fs::OpenOptions::new().create(true).append(true).open(log)?;
    file.write_all(line.as_bytes())?;
    file.sync_data()
}

#[async_trait]
impl Tool for Worker {
    fn definition(&self) -> ToolDefinition {
        let schema = json!({ "type": "object", "properties": { "wait": { "type": "integer" } } });
        let definition = ToolDefinition::new(self.name, "Works.", schema).category(self.category).effect(self.effect);
        if self.name == CONFIRM { definition.answer_schema(json!({ "type": "string" })) } else { definition }
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        if self.name == CONFIRM {
            return Ok(ToolOutcome::Suspend(Suspend::question(json!({ "question": "Sure?" }))));
        }
        self.act(&args, cx).await?;
        Ok(ToolOutcome::Done(ToolOutput::text("did it")))
    }

    async fn resume(&self, with: ToolResume, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        self.act(&with.args, cx).await?;
        Ok(ToolOutcome::Done(ToolOutput::text(format!("confirmed: {}", with.answer.as_str().unwrap_or_default()))))
    }
}

/// Has the work done by a run of its own.
struct Delegate;

#[async_trait]
impl Tool for Delegate {
    fn definition(&self) -> ToolDefinition {
        let schema = json!({ "type": "object", "properties": { "wait": { "type": "integer" } } });
        ToolDefinition::new("delegate", "Has it done.", schema).category(ToolCategory::Interact).effect(ToolEffect::Idempotent)
    }

    async fn call(&self, _: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        Ok(ToolOutcome::Delegate(ChildRun { task: jobs::TASK.to_owned(), agent: "worker".to_owned(), options: Value::Null }))
    }
}
