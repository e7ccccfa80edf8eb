//! Tools: what an agent can do.
//!
//! A tool suspends by value and is resumed by a method of its own: no re-execution, no hidden context. Between the two the process may
//! end; [`Suspend::state`] is all that a tool gets back.

mod context;
mod error;
mod output;
mod state;

use std::sync::Arc;

use async_trait::async_trait;
pub use context::{Capabilities, NoProgress, NoSuspension, ProgressSink, ToolContext, ToolContextParts, ToolProgress};
pub use error::{ToolError, ToolErrorKind};
pub use output::{FileChange, ToolOutput};
use serde::{Deserialize, Serialize};
use serde_json::Value;
pub use state::{SessionState, ThreadState, ThreadValue};

/// Something that a model can ask for.
///
/// ```
/// use ac_core::{Suspend, Tool, ToolCategory, ToolContext, ToolDefinition, ToolEffect, ToolError, ToolOutcome, ToolOutput, ToolResume};
/// use async_trait::async_trait;
/// use serde_json::{Value, json};
///
/// /// Lets a person pick a colour.
/// struct Pick;
///
/// #[async_trait]
/// impl Tool for Pick {
///     fn definition(&self) -> ToolDefinition {
///         ToolDefinition::new("pick", "Lets a person pick a colour.", json!({ "type": "object" }))
///             .category(ToolCategory::Interact)
///             .effect(ToolEffect::ReadOnly)
///     }
///
///     async fn call(&self, _: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
///         let mut question = Suspend::question(json!({ "question": "Which colour?" }));
///         question.answer_schema = Some(json!({ "enum": ["red", "blue"] }));
///         Ok(ToolOutcome::Suspend(question)) // nothing waits meanwhile, no task and no future
///     }
///
///     async fn resume(&self, with: ToolResume, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
///         let colour = with.answer.as_str().unwrap_or_default(); // fits the schema
///         Ok(ToolOutcome::Done(ToolOutput::text(format!("They want it {colour}."))))
///     }
/// }
/// assert_eq!(Pick.definition().name, "pick");
/// ```
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// What it is called, what it does, what it takes. Asked once per run.
    fn definition(&self) -> ToolDefinition;

    /// Does it. `args` fit [`ToolDefinition::input_schema`].
    ///
    /// Watch [`ToolContextParts::cancel`](ToolContextParts): after it fires the call has a moment to end well, then its future is dropped.
    ///
    /// # Errors
    /// The message reaches the model as a failed result, and the run goes on.
    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError>;

    /// Goes on after a person answered. `with.answer` fits [`ToolDefinition::answer_schema`].
    ///
    /// # Errors
    /// As [`Tool::call`]. A tool that never suspends needs no `resume`.
    async fn resume(&self, with: ToolResume, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let _ = (with, cx);
        Err(ToolError::new(ToolErrorKind::Fatal, "this tool does not suspend and so cannot be resumed"))
    }
}

/// What a tool is called, what it does and what it takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// The exposed name: what the model calls and what rules name.
    pub name: String,
    /// What the model reads to decide whether to use it.
    pub description: String,
    /// JSON Schema of the arguments: an object.
    pub input_schema: Value,
    /// JSON Schema of an answer to its suspension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_schema: Option<Value>,
    /// What kind of thing it does; decides the default permission.
    pub category: ToolCategory,
    /// What a crash may do to a call of it.
    pub effect: ToolEffect,
    /// Asks before each call unless yolo, its own rule or a grant allows it.
    #[serde(default)]
    pub requires_approval: bool,
}

impl ToolDefinition {
    /// A definition with the careful defaults: category [`ToolCategory::Other`] (asks), effect [`ToolEffect::Mutating`] (never repeated).
    pub fn new(name: impl Into<String>, description: impl Into<String>, input_schema: Value) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema,
            answer_schema: None,
            category: ToolCategory::Other,
            effect: ToolEffect::Mutating,
            requires_approval: false,
        }
    }

    /// Sets the category.
    #[must_use]
    pub fn category(mut self, category: ToolCategory) -> Self {
        self.category = category;
        self
    }

    /// Sets the effect.
    #[must_use]
    pub fn effect(mut self, effect: ToolEffect) -> Self {
        self.effect = effect;
        self
    }

    /// Sets what an answer must look like.
    #[must_use]
    pub fn answer_schema(mut self, schema: Value) -> Self {
        self.answer_schema = Some(schema);
        self
    }

    /// Asks before each call.
    #[must_use]
    pub fn requires_approval(mut self) -> Self {
        self.requires_approval = true;
        self
    }
}

/// What a crash or a cancellation may do to a call (`R5`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    /// Changes nothing; started again after a crash.
    ReadOnly,
    /// Twice is the same as once; started again after a crash.
    Idempotent,
    /// Changes something. After a crash a person decides whether it runs again.
    #[default]
    Mutating,
}

/// What kind of thing a tool does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolCategory {
    /// Looks at something.
    Read,
    /// Changes files.
    Edit,
    /// Runs something.
    Execute,
    /// Comes from an MCP server.
    Mcp,
    /// Talks to the person.
    Interact,
    /// Anything else.
    #[default]
    Other,
}

impl ToolCategory {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Read, Self::Edit, Self::Execute, Self::Mcp, Self::Interact, Self::Other];

    /// The name in rules and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Execute => "execute",
            Self::Mcp => "mcp",
            Self::Interact => "interact",
            Self::Other => "other",
        }
    }
}

/// How a call went on.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolOutcome {
    /// Finished.
    Done(ToolOutput),
    /// Waits for a person. The wait is stored; any process may answer it.
    Suspend(Suspend),
    /// Goes on as a run of its own, whose end is the result.
    Delegate(ChildRun),
}

/// What a person is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuspendKind {
    /// Anything that is answered by a value.
    #[default]
    Question,
    /// A plan: its decision settles the call, the run's profile and the session's mode in one commit.
    Plan,
}

/// A call that waits for a person.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Suspend {
    /// What it waits for.
    #[serde(default)]
    pub kind: SuspendKind,
    /// Shown to the host.
    pub payload: Value,
    /// The tool's own memory, handed back by [`ToolResume::state`].
    #[serde(default)]
    pub state: Value,
    /// What an answer must look like, where that depends on the call. `None`: as [`ToolDefinition::answer_schema`] says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_schema: Option<Value>,
}

impl Suspend {
    /// A question with no memory.
    pub fn question(payload: Value) -> Self {
        Self { payload, ..Self::default() }
    }
}

/// A person answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResume {
    /// The arguments of the call.
    pub args: Value,
    /// What [`Suspend::state`] held.
    pub state: Value,
    /// What [`Suspend::payload`] held.
    pub payload: Value,
    /// The answer, checked against the answer schema.
    pub answer: Value,
}

/// A run that a call starts, such as a subagent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildRun {
    /// What the child is told.
    pub task: String,
    /// Which agent or subagent type does it.
    pub agent: String,
    /// What the host needs to start it.
    #[serde(default)]
    pub options: Value,
}

/// Tools by exposed name, in the order they were given.
pub type ToolList = Vec<Arc<dyn Tool>>;
