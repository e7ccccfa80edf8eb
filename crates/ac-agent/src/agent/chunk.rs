use ac_core::{ErrorInfo, FinishReason, PendingId, RunId, ToolCallId, Usage};
use serde::Serialize;
use serde_json::Value;

/// One piece of what an agent does, in the reference's form: `{"type": "text-delta", "runId": …, "payload": …}`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentChunk {
    /// The run.
    pub run_id: RunId,
    /// What.
    #[serde(flatten)]
    pub body: ChunkBody,
}

/// What an agent does.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", content = "payload", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum ChunkBody {
    /// It writes.
    TextDelta {
        /// What is added.
        text: String,
    },
    /// It thinks.
    ReasoningDelta {
        /// What is added.
        text: String,
    },
    /// It calls a tool.
    ToolCall {
        /// The call.
        tool_call_id: ToolCallId,
        /// The tool.
        tool_name: String,
        /// Its arguments.
        args: Value,
    },
    /// A call has its result.
    ToolResult {
        /// The call.
        tool_call_id: ToolCallId,
        /// The result, or why there is none.
        result: Value,
        /// It failed.
        is_error: bool,
        /// It was not allowed, or stopped.
        denied: bool,
    },
    /// A person is asked whether a call may run.
    ToolCallApproval {
        /// Names the wait.
        pending_id: PendingId,
        /// The call.
        tool_call_id: ToolCallId,
        /// The tool.
        tool_name: String,
        /// Exactly what will run.
        args: Value,
    },
    /// A call waits for an answer.
    ToolCallSuspended {
        /// Names the wait.
        pending_id: PendingId,
        /// The call.
        tool_call_id: ToolCallId,
        /// The tool.
        tool_name: String,
        /// Its arguments.
        args: Value,
        /// What the tool shows: for a plan, the path of its file.
        suspend_payload: Value,
        /// JSON Schema of the answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        resume_schema: Option<Value>,
    },
    /// The run is complete.
    Finish {
        /// Why the model stopped.
        #[serde(skip_serializing_if = "Option::is_none")]
        finish_reason: Option<FinishReason>,
        /// Tokens of the thread.
        usage: Usage,
    },
    /// The run failed.
    Error {
        /// How.
        error: ErrorInfo,
    },
    /// The run was stopped.
    Abort {},
}
