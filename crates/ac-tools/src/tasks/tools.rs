use ac_core::{
    Tool, ToolCategory, ToolContext, ToolDefinition, ToolEffect, ToolError, ToolOutcome, ToolOutput,
    event::{Task, TaskStatus},
};
use async_trait::async_trait;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{NewTask, TaskList, change, load, state};

/// Lays down the whole task list; what was there before is replaced (SPEC B-21, B-22).
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskWrite;

/// Changes one task (SPEC B-23).
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskUpdate;

/// Marks one task completed (SPEC B-24).
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskComplete;

/// Says how far the tasks are; changes nothing and tells nothing (SPEC B-25).
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskCheck;

impl TaskWrite {
    /// The name under which models know it.
    pub const NAME: &'static str = "task_write";
}

impl TaskUpdate {
    /// The name under which models know it.
    pub const NAME: &'static str = "task_update";
}

impl TaskComplete {
    /// The name under which models know it.
    pub const NAME: &'static str = "task_complete";
}

impl TaskCheck {
    /// The name under which models know it.
    pub const NAME: &'static str = "task_check";
}

#[derive(Deserialize)]
struct Write {
    tasks: Vec<NewTask>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Update {
    id: String,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    status: Option<TaskStatus>,
    #[serde(default)]
    active_form: Option<String>,
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

#[async_trait]
impl Tool for TaskWrite {
    fn definition(&self) -> ToolDefinition {
        let description = "Lay down the task list of this conversation, for work of several steps. Give the whole list each time: what you \
                           leave out is gone. Keep the id of a task that stays. At most one task may be in_progress.";
        let task = json!({
            "type": "object",
            "properties": {
                "id": { "type": "string", "minLength": 1, "description": "Keeps the task recognisable; made from its content when left out." },
                "content": content_schema(),
                "status": status_schema(),
                "activeForm": active_form_schema()
            },
            "required": ["content", "status", "activeForm"],
            "additionalProperties": false
        });
        let list = json!({ "type": "array", "items": task, "description": "All tasks, in order." });
        definition(Self::NAME, description, json!({ "tasks": list }), &["tasks"]).effect(ToolEffect::Idempotent)
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let Write { tasks } = arguments(Self::NAME, args)?;
        change(cx, |list| list.write(tasks.clone())).await.map(ToolOutcome::Done)
    }
}

#[async_trait]
impl Tool for TaskUpdate {
    fn definition(&self) -> ToolDefinition {
        let description =
            "Change one task: its content, its status, its activeForm. Setting it in_progress sets the one that was to pending.";
        let fields = json!({
            "id": id_schema(),
            "content": content_schema(),
            "status": status_schema(),
            "activeForm": active_form_schema()
        });
        definition(Self::NAME, description, fields, &["id"]).effect(ToolEffect::Idempotent)
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let Update { id, content, status, active_form } = arguments(Self::NAME, args)?;
        change(cx, |list| list.update(&id, content.clone(), status, active_form.clone())).await.map(ToolOutcome::Done)
    }
}

#[async_trait]
impl Tool for TaskComplete {
    fn definition(&self) -> ToolDefinition {
        let description = "Mark one task as completed, as soon as it is done.";
        definition(Self::NAME, description, json!({ "id": id_schema() }), &["id"]).effect(ToolEffect::Idempotent)
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let Named { id } = arguments(Self::NAME, args)?;
        change(cx, |list| list.update(&id, None, Some(TaskStatus::Completed), None)).await.map(ToolOutcome::Done)
    }
}

#[async_trait]
impl Tool for TaskCheck {
    fn definition(&self) -> ToolDefinition {
        let description = "See how far the tasks are: counts, and what is still to be done. Use it before you call the work finished.";
        definition(Self::NAME, description, json!({}), &[]).effect(ToolEffect::ReadOnly)
    }

    async fn call(&self, _: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let report = match state(cx) {
            Ok(state) => TaskList::new(load(state.as_ref()).await?.1).report(),
            Err(refusal) => without_thread(refusal),
        };
        Ok(ToolOutcome::Done(ToolOutput::new(report)))
    }
}

/// A refusal in the form of a report, so that whoever reads its fields finds them.
fn without_thread(refusal: ToolOutput) -> Value {
    let mut report = TaskList::new(Vec::<Task>::new()).report();
    if let (Some(fields), Some(said)) = (report.as_object_mut(), refusal.value.as_object()) {
        fields.extend(said.clone());
    }
    report
}

fn arguments<A: DeserializeOwned>(name: &str, args: Value) -> Result<A, ToolError> {
    serde_json::from_value(args).map_err(|error| ToolError::args(format!("{name}: {error}")).with_source(error))
}

fn definition(name: &str, description: &str, fields: Value, required: &[&str]) -> ToolDefinition {
    let mut schema = json!({ "type": "object", "properties": fields, "additionalProperties": false });
    if let (Some(schema), false) = (schema.as_object_mut(), required.is_empty()) {
        schema.insert("required".into(), json!(required));
    }
    ToolDefinition::new(name, description, schema).category(ToolCategory::Interact)
}

fn id_schema() -> Value {
    json!({ "type": "string", "minLength": 1, "description": "The id of the task." })
}

fn content_schema() -> Value {
    json!({ "type": "string", "minLength": 1, "description": "What is to be done, as an order: Fix the login." })
}

fn status_schema() -> Value {
    json!({ "type": "string", "enum": ["pending", "in_progress", "completed"], "description": "How far it is." })
}

fn active_form_schema() -> Value {
    json!({ "type": "string", "minLength": 1, "description": "The same while it is being done: Fixing the login." })
}
