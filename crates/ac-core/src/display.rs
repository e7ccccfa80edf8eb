//! The view: what a client draws, folded from events by a pure function.

mod reduce;

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

pub use reduce::reduce;
use serde_json::Value;

use crate::{
    MessageId, ModelId, Part, PendingId, Role, RunId, SharedText, ThreadId, Timestamp, ToolCallId, Usage,
    event::{PendingKind, QueueItem, Task},
    message::MessageMeta,
};

/// What a client draws of a session (SPEC D-1 to D-20). Copying one copies a pointer for each field, however much there is in it: a copy
/// that is kept costs what it does not share with the ones before and after it.
///
/// ```
/// use ac_core::{DisplayState, Event, display::reduce};
///
/// /// The same state that a session shows, folded from its events.
/// fn fold(events: &[Event]) -> DisplayState {
///     let mut state = DisplayState::default();
///     events.iter().for_each(|event| reduce(&mut state, event));
///     state
/// }
/// assert!(!fold(&[]).is_running);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DisplayState {
    /// A segment is open.
    pub is_running: bool,
    /// The message that was last announced.
    pub current_message: Option<Arc<DisplayMessage>>,
    /// Follow-ups that wait.
    pub queued_follow_ups: usize,
    /// Everything that waits for its turn (ours).
    pub queue: Arc<[QueueItem]>,
    /// Tokens of the thread.
    pub token_usage: Arc<Usage>,
    /// The calls of this segment.
    pub active_tools: Arc<BTreeMap<ToolCallId, Arc<ActiveTool>>>,
    /// Arguments that are arriving.
    pub tool_input_buffers: Arc<BTreeMap<ToolCallId, ToolInputBuffer>>,
    /// Approvals that wait, oldest first. The reference's `pendingApproval` is the first.
    pub pending_approvals: Arc<Vec<Arc<PendingApproval>>>,
    /// Questions, plans and calls in doubt.
    pub pending_suspensions: Arc<BTreeMap<ToolCallId, Arc<PendingSuspension>>>,
    /// Subagents at work.
    pub active_subagents: Arc<BTreeMap<ToolCallId, Arc<ActiveSubagent>>>,
    /// Files that were changed on this thread in this life of the session.
    pub modified_files: Arc<BTreeMap<String, ModifiedFile>>,
    /// The task list.
    pub tasks: Arc<[Task]>,
    /// The task list before its last change.
    pub previous_tasks: Arc<[Task]>,
}

/// A state of nothing. All of them share what is empty, so that ten thousand sessions at rest do not hold a hundred thousand empty maps.
impl Default for DisplayState {
    fn default() -> Self {
        static NOTHING: LazyLock<DisplayState> = LazyLock::new(|| DisplayState {
            is_running: false,
            current_message: None,
            queued_follow_ups: 0,
            queue: Arc::default(),
            token_usage: Arc::default(),
            active_tools: Arc::default(),
            tool_input_buffers: Arc::default(),
            pending_approvals: Arc::default(),
            pending_suspensions: Arc::default(),
            active_subagents: Arc::default(),
            modified_files: Arc::default(),
            tasks: Arc::default(),
            previous_tasks: Arc::default(),
        });
        NOTHING.clone()
    }
}

/// A message as it grows.
#[derive(Clone, Debug, PartialEq)]
pub struct DisplayMessage {
    /// Its id.
    pub id: MessageId,
    /// Its thread.
    pub thread: Option<ThreadId>,
    /// Who speaks.
    pub role: Role,
    /// When it was made.
    pub at: Timestamp,
    /// Its parts.
    pub parts: Vec<DisplayPart>,
    /// What else is known.
    pub meta: Arc<MessageMeta>,
}

impl DisplayMessage {
    /// All visible text so far, joined without separators. Copies it: meant for looking at a message now and then, not at each delta.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                DisplayPart::Text(shown) => text.extend(shown.pieces()),
                DisplayPart::Part(part) => text.extend(part.as_text()),
                DisplayPart::Reasoning(_) => {}
            }
        }
        text
    }
}

/// A part as it grows.
#[derive(Clone, Debug, PartialEq)]
pub enum DisplayPart {
    /// Text that may still grow.
    Text(SharedText),
    /// Thinking that may still grow.
    Reasoning(SharedText),
    /// Anything else.
    Part(Arc<Part>),
}

/// A call of this segment.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveTool {
    /// The tool.
    pub name: String,
    /// Its arguments; an empty object while they arrive.
    pub args: Arc<Value>,
    /// How far it is.
    pub status: ToolStatus,
    /// Progress.
    pub partial_result: Option<String>,
    /// The result.
    pub result: Option<Arc<Value>>,
    /// It failed.
    pub is_error: Option<bool>,
    /// What its commands wrote.
    pub shell_output: SharedText,
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ToolStatus {
    /// Its arguments arrive.
    StreamingInput,
    /// Seen; waiting for approval or at work.
    Running,
    /// Waiting for a person's answer (ours; the reference shows an error here, SPEC D-5).
    Suspended,
    /// Done.
    Completed,
    /// Failed, or cut off.
    Error,
}

impl ToolStatus {
    /// The name on the wire. A suspended call is `running` there, as the reference knows no such state.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StreamingInput => "streaming_input",
            Self::Running | Self::Suspended => "running",
            Self::Completed => "completed",
            Self::Error => "error",
        }
    }
}

/// Arguments that are arriving.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolInputBuffer {
    /// The JSON text so far.
    pub text: SharedText,
    /// The tool.
    pub tool: String,
}

/// An approval that waits.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingApproval {
    /// Names the wait.
    pub pending: PendingId,
    /// The call.
    pub call: ToolCallId,
    /// The tool.
    pub tool: String,
    /// Exactly what will run.
    pub args: Value,
    /// The call of the parent run, where a subagent asks (ours).
    pub parent_call: Option<ToolCallId>,
}

/// A question, a plan or a call in doubt.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingSuspension {
    /// Names the wait.
    pub pending: PendingId,
    /// What it is.
    pub kind: PendingKind,
    /// The call.
    pub call: ToolCallId,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub args: Value,
    /// What the tool shows.
    pub payload: Value,
    /// JSON Schema of the answer.
    pub answer_schema: Option<Value>,
    /// The run that waits.
    pub run: RunId,
    /// The call of the parent run, where a subagent asks (ours).
    pub parent_call: Option<ToolCallId>,
}

/// A subagent at work.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveSubagent {
    /// Its type.
    pub agent_type: String,
    /// What people call it.
    pub name: Option<String>,
    /// What it was told.
    pub task: Arc<str>,
    /// Its model.
    pub model: ModelId,
    /// A copy of the parent's thread.
    pub forked: bool,
    /// Its calls, by their own id: name and whether it failed.
    pub tool_calls: Arc<Vec<SubagentCall>>,
    /// What it wrote.
    pub text: SharedText,
    /// How far it is: `running`, then `completed` or `error`.
    pub status: ToolStatus,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// What it said last.
    pub result: Option<String>,
}

/// A call of a subagent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubagentCall {
    /// Its id.
    pub id: ToolCallId,
    /// The tool.
    pub name: String,
    /// It failed.
    pub is_error: bool,
}

/// A file that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModifiedFile {
    /// What was done, in order.
    pub operations: Vec<String>,
    /// When it was first changed.
    pub first_modified: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_nothing_share_what_is_empty_until_something_comes_in() {
        let (mut one, other) = (DisplayState::default(), DisplayState::default());
        assert!(Arc::ptr_eq(&one.modified_files, &other.modified_files) && Arc::ptr_eq(&one.token_usage, &other.token_usage));
        assert!(Arc::ptr_eq(&one.queue, &other.queue) && Arc::ptr_eq(&one.tasks, &other.tasks));
        Arc::make_mut(&mut one.token_usage).input = 1;
        assert_eq!((one.token_usage.input, other.token_usage.input, DisplayState::default().token_usage.input), (1, 0, 0));
    }
}
