//! Events: what a session tells whoever listens.
//!
//! Names and fields are the reference's (SPEC E-32 to E-41), so that existing clients read them; what is ours has new names. The JSON form
//! is made by [`wire`](crate::wire), nowhere else.

mod weight;

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{
    DisplayState, EpochId, ErrorInfo, Message, MessageId, ModeId, ModelId, Part, PendingId, RunId, SessionKey, ThreadId, Timestamp,
    ToolCallId, Usage, tool::FileChange,
};

/// One event of a session.
///
/// ```
/// use ac_core::{Event, EventBody};
///
/// fn tell(event: &Event) {
///     match &event.body {
///         EventBody::ToolStart { tool, args, .. } => println!("{tool} {args}"),
///         EventBody::AgentEnd { reason, .. } => println!("the end: {}", reason.as_str()),
///         _ => {} // there will be more
///     }
/// }
/// # let _ = tell;
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The activation of the session that told it. `seq` counts within it.
    pub epoch: EpochId,
    /// Gapless within the epoch, from 1.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// Whose.
    pub session: SessionKey,
    /// The run it is about.
    pub run: Option<RunId>,
    /// The thread it is about, where it is about one.
    pub thread: Option<ThreadId>,
    /// What happened.
    pub body: EventBody,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventBody {
    /// A segment of a run begins: a start, or going on after an answer.
    AgentStart,
    /// A segment ends.
    AgentEnd {
        /// How.
        reason: EndReason,
        /// Why the model stopped, where the run ended with an answer (ours).
        finish: Option<crate::FinishReason>,
        /// The error that ended it (ours).
        error: Option<ErrorInfo>,
    },
    /// This is now the message: announced, or announced again after a resume or a retry.
    MessageStart {
        /// The whole message as it stands.
        message: Arc<Message>,
    },
    /// A message goes on.
    MessageUpdate {
        /// The message.
        id: MessageId,
        /// How.
        update: MessageUpdate,
    },
    /// No part of the message changes any more in this segment.
    MessageEnd {
        /// The message.
        id: MessageId,
    },
    /// The arguments of a call begin to arrive.
    ToolInputStart {
        /// The call.
        call: ToolCallId,
        /// The tool.
        tool: String,
    },
    /// Argument text.
    ToolInputDelta {
        /// The call.
        call: ToolCallId,
        /// What is added.
        delta: String,
    },
    /// The arguments are complete.
    ToolInputEnd {
        /// The call.
        call: ToolCallId,
    },
    /// A complete call was seen; before any approval.
    ToolStart {
        /// The call.
        call: ToolCallId,
        /// The tool.
        tool: String,
        /// Its arguments.
        args: Value,
    },
    /// A person is asked whether the call may run.
    ToolApprovalRequired {
        /// Names this wait (ours).
        pending: PendingId,
        /// The call.
        call: ToolCallId,
        /// The tool.
        tool: String,
        /// Exactly what will run.
        args: Value,
        /// The call of the parent run, where a subagent asks (ours).
        parent_call: Option<ToolCallId>,
    },
    /// A call waits for a person's answer.
    ToolSuspended {
        /// Names this wait (ours).
        pending: PendingId,
        /// What it waits for (ours).
        kind: PendingKind,
        /// The call.
        call: ToolCallId,
        /// The tool.
        tool: String,
        /// Its arguments.
        args: Value,
        /// What the tool shows.
        payload: Value,
        /// JSON Schema of the answer.
        answer_schema: Option<Value>,
        /// The call of the parent run, where a subagent asks (ours).
        parent_call: Option<ToolCallId>,
    },
    /// A wait is over without an answer.
    ToolSuspensionCancelled {
        /// The call.
        call: ToolCallId,
        /// The tool.
        tool: String,
        /// Why.
        reason: String,
    },
    /// A wait was answered (ours). The view takes the prompt away.
    PendingResolved {
        /// The wait.
        pending: PendingId,
        /// The call.
        call: ToolCallId,
    },
    /// Progress of a call.
    ToolUpdate {
        /// The call.
        call: ToolCallId,
        /// What it has so far.
        partial: Value,
    },
    /// A call has its result.
    ToolEnd {
        /// The call.
        call: ToolCallId,
        /// The result, or the reason of a denial.
        result: Value,
        /// The tool failed.
        is_error: bool,
        /// It was not allowed, or stopped.
        denied: bool,
        /// Files that the call changed (ours).
        changed: Vec<FileChange>,
    },
    /// Output of a command.
    ShellOutput {
        /// The call.
        call: ToolCallId,
        /// The text.
        output: String,
        /// From standard error.
        stderr: bool,
    },
    /// A command ended.
    CommandExit {
        /// The call.
        call: ToolCallId,
        /// Its exit code.
        exit_code: i32,
    },
    /// Tokens of one step.
    UsageUpdate {
        /// This step.
        usage: Usage,
        /// The thread so far (what the view shows).
        total: Usage,
    },
    /// Something worth saying.
    Info {
        /// What.
        message: String,
    },
    /// Something failed.
    Error {
        /// What.
        error: ErrorInfo,
        /// Set when the same model call is tried again: which attempt follows, of how many.
        retry: Option<Retry>,
    },
    /// The session is in another mode.
    ModeChanged {
        /// The new one.
        mode: ModeId,
        /// The old one.
        previous: ModeId,
    },
    /// The session uses another model.
    ModelChanged {
        /// The new one.
        model: ModelId,
        /// Whether it is remembered on the thread.
        scope: Option<ModelScope>,
        /// The mode it is for.
        mode: Option<ModeId>,
    },
    /// A subagent type uses another model.
    SubagentModelChanged {
        /// The model.
        model: ModelId,
        /// The type; `None` is the default of all.
        agent_type: Option<String>,
    },
    /// A thread was made, and the session is bound to it.
    ThreadCreated {
        /// The thread.
        thread: Box<ThreadInfo>,
    },
    /// The session is bound to another thread.
    ThreadChanged {
        /// The new one.
        thread: ThreadId,
        /// The old one.
        previous: Option<ThreadId>,
    },
    /// A thread is gone.
    ThreadDeleted {
        /// The thread.
        thread: ThreadId,
        /// Whether the session was bound to it and is now bound to none.
        unbound: bool,
    },
    /// A thread has another title.
    ThreadTitleUpdated {
        /// The thread.
        thread: ThreadId,
        /// The title.
        title: String,
    },
    /// The host's state changed.
    StateChanged {
        /// All of it.
        state: Arc<Map<String, Value>>,
        /// The keys that were set.
        changed: Vec<String>,
    },
    /// The follow-up queue changed.
    FollowUpQueued {
        /// How many wait.
        count: usize,
    },
    /// What waits for its turn: messages for the open run and follow-ups (ours).
    QueueChanged {
        /// In the order in which they are delivered.
        items: Arc<[QueueItem]>,
    },
    /// The task list changed.
    TaskUpdated {
        /// All of it.
        tasks: Arc<[Task]>,
    },
    /// A goal was judged.
    GoalEvaluation {
        /// The verdict, as SPEC and WIRE describe it.
        payload: Value,
    },
    /// A subagent begins, or goes on in another segment: this is now the subagent of the call.
    SubagentStart {
        /// The call of the parent.
        call: ToolCallId,
        /// Its type.
        agent_type: String,
        /// What people call it; for the view.
        name: Option<String>,
        /// What it was told.
        task: String,
        /// Its model.
        model: ModelId,
        /// A copy of the parent's thread.
        forked: bool,
    },
    /// A subagent writes.
    SubagentTextDelta {
        /// The call of the parent.
        call: ToolCallId,
        /// Its type.
        agent_type: String,
        /// What is added.
        delta: String,
    },
    /// A subagent calls a tool.
    SubagentToolStart {
        /// The call of the parent.
        call: ToolCallId,
        /// Its type.
        agent_type: String,
        /// The call of the subagent (ours).
        sub_call: ToolCallId,
        /// The tool.
        tool: String,
        /// Its arguments.
        args: Value,
    },
    /// A tool call of a subagent ends.
    SubagentToolEnd {
        /// The call of the parent.
        call: ToolCallId,
        /// Its type.
        agent_type: String,
        /// The call of the subagent (ours).
        sub_call: ToolCallId,
        /// The tool.
        tool: String,
        /// The result.
        result: Value,
        /// It failed.
        is_error: bool,
    },
    /// A subagent ends.
    SubagentEnd {
        /// The call of the parent.
        call: ToolCallId,
        /// Its type.
        agent_type: String,
        /// What it said last.
        result: String,
        /// It failed.
        is_error: bool,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
    /// The view after the event before it. Never leads to another one.
    DisplayStateChanged {
        /// A shared snapshot.
        state: Arc<DisplayState>,
    },
}

/// How a segment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The run is done.
    Complete,
    /// A person stopped it.
    Aborted,
    /// It failed, or used up its budget.
    Error,
    /// It waits for a person, or the process stops.
    Suspended,
}

impl EndReason {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Aborted => "aborted",
            Self::Error => "error",
            Self::Suspended => "suspended",
        }
    }
}

/// How a message goes on.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MessageUpdate {
    /// Appended to the last text part.
    TextDelta(String),
    /// Appended to the reasoning at this index.
    ReasoningDelta {
        /// Which part.
        index: usize,
        /// What is added.
        delta: String,
    },
    /// The part at this index, inserted or replaced.
    Part {
        /// Which.
        index: usize,
        /// The part.
        part: Box<Part>,
    },
}

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PendingKind {
    /// May this call run?
    Approval,
    /// A tool asks.
    Question,
    /// A plan to be decided.
    Plan,
    /// A call that was running when the process died, and that must not run twice by itself.
    InDoubt,
}

impl PendingKind {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Question => "question",
            Self::Plan => "plan",
            Self::InDoubt => "in_doubt",
        }
    }
}

/// A model call is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The attempt that follows, from 2.
    pub attempt: u32,
    /// The last attempt there will be.
    pub of: u32,
    /// The wait before it, in milliseconds.
    pub delay_ms: u64,
}

/// How long a chosen model lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelScope {
    /// In memory only, never written.
    Global,
    /// Remembered on the thread, for its mode.
    Thread,
}

/// A thread, as events and listings show it.
///
/// ```
/// use ac_core::event::ThreadInfo;
///
/// fn line(thread: &ThreadInfo) -> String {
///     let title = if thread.title.is_empty() { thread.id.as_str() } else { &thread.title };
///     format!("{title} ({})", thread.updated_at)
/// }
/// # let _ = line;
/// ```
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ThreadInfo {
    /// Its id.
    pub id: ThreadId,
    /// Its owner.
    pub resource: crate::ResourceId,
    /// Empty when nobody named it.
    pub title: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When something was last written to it.
    pub updated_at: Timestamp,
    /// Settings and tags.
    pub metadata: Map<String, Value>,
}

/// Something that waits for its turn.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct QueueItem {
    /// The id of the message it becomes.
    pub id: MessageId,
    /// Where it waits.
    pub kind: QueueKind,
    /// The thread it is for.
    pub thread: ThreadId,
    /// Its text, possibly cut.
    pub text: String,
}

/// Where an item waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueKind {
    /// For the next step of the open run.
    Message,
    /// For a run of its own.
    FollowUp,
}

/// An item of the task list (SPEC B-20).
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Unique in its list.
    pub id: String,
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: TaskStatus,
    /// The same in the present participle.
    pub active_form: String,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not begun.
    Pending,
    /// At most one at a time.
    InProgress,
    /// Done.
    Completed,
}

/// How an event is treated by a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventClass {
    /// Each one matters.
    Durable,
    /// One of many; snapshots of a burst are shared (SPEC E-3).
    Coalesced,
    /// A snapshot.
    Snapshot,
}

impl EventBody {
    /// The name on the wire.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::AgentStart => "agent_start",
            Self::AgentEnd { .. } => "agent_end",
            Self::MessageStart { .. } => "message_start",
            Self::MessageUpdate { .. } => "message_update",
            Self::MessageEnd { .. } => "message_end",
            Self::ToolInputStart { .. } => "tool_input_start",
            Self::ToolInputDelta { .. } => "tool_input_delta",
            Self::ToolInputEnd { .. } => "tool_input_end",
            Self::ToolStart { .. } => "tool_start",
            Self::ToolApprovalRequired { .. } => "tool_approval_required",
            Self::ToolSuspended { .. } => "tool_suspended",
            Self::ToolSuspensionCancelled { .. } => "tool_suspension_cancelled",
            Self::PendingResolved { .. } => "pending_resolved",
            Self::ToolUpdate { .. } => "tool_update",
            Self::ToolEnd { .. } => "tool_end",
            Self::ShellOutput { .. } => "shell_output",
            Self::CommandExit { .. } => "command_exit",
            Self::UsageUpdate { .. } => "usage_update",
            Self::Info { .. } => "info",
            Self::Error { .. } => "error",
            Self::ModeChanged { .. } => "mode_changed",
            Self::ModelChanged { .. } => "model_changed",
            Self::SubagentModelChanged { .. } => "subagent_model_changed",
            Self::ThreadCreated { .. } => "thread_created",
            Self::ThreadChanged { .. } => "thread_changed",
            Self::ThreadDeleted { .. } => "thread_deleted",
            Self::ThreadTitleUpdated { .. } => "thread_title_updated",
            Self::StateChanged { .. } => "state_changed",
            Self::FollowUpQueued { .. } => "follow_up_queued",
            Self::QueueChanged { .. } => "queue_changed",
            Self::TaskUpdated { .. } => "task_updated",
            Self::GoalEvaluation { .. } => "goal_evaluation",
            Self::SubagentStart { .. } => "subagent_start",
            Self::SubagentTextDelta { .. } => "subagent_text_delta",
            Self::SubagentToolStart { .. } => "subagent_tool_start",
            Self::SubagentToolEnd { .. } => "subagent_tool_end",
            Self::SubagentEnd { .. } => "subagent_end",
            Self::DisplayStateChanged { .. } => "display_state_changed",
        }
    }

    /// How a bus treats it.
    pub const fn class(&self) -> EventClass {
        match self {
            Self::MessageUpdate { .. } | Self::ToolInputDelta { .. } | Self::ShellOutput { .. } => EventClass::Coalesced,
            Self::DisplayStateChanged { .. } => EventClass::Snapshot,
            _ => EventClass::Durable,
        }
    }
}
