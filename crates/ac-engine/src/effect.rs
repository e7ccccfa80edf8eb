use std::sync::Arc;

use ac_core::{ErrorInfo, FinishReason, Message, MessageId, PendingId, ToolCallId, Usage, event::EndReason};
use serde_json::Value;

/// What follows from an input. Exhaustive on purpose: a driver must react to each.
///
/// The order of execution is `R1`: [`Effect::Put`] and [`Effect::AddUsage`] belong to the commit of the step; then the acting effects are
/// started; then the moments are told.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Stored with this commit.
    Put(Arc<Message>),
    /// Added to the thread's tokens with this commit.
    AddUsage(Usage),
    /// Ask the model. From `Dispatch` only.
    Sample {
        /// The step.
        step: u32,
        /// Names this call of the model in what is reported about it.
        attempt: u32,
    },
    /// Start or resume the call, as its slot says. From `Dispatch` only.
    RunTool {
        /// The call.
        call: ToolCallId,
        /// Names this start in what is reported about it.
        attempt: u32,
    },
    /// Judge the last word of the step. From `Dispatch` only.
    Judge {
        /// The step; named in what is reported.
        step: u32,
    },
    /// Nobody wants that verdict any more.
    StopJudge,
    /// Stop the model call.
    StopSample {
        /// Which.
        attempt: u32,
    },
    /// Stop the tool.
    StopTool {
        /// Which call.
        call: ToolCallId,
    },
    /// Tell whoever listens.
    Tell(Moment),
}

/// Something worth telling. The driver makes events of it, with segments and message boundaries.
#[derive(Clone, Debug, PartialEq)]
pub enum Moment {
    /// A message of a person, or a signal, was put into the history.
    Delivered(Arc<Message>),
    /// The open step's message has new parts or changed ones: these indexes of it.
    MessageChanged {
        /// The message as it stands.
        message: Arc<Message>,
        /// What changed; all parts when the model's answer was just taken.
        parts: Vec<usize>,
    },
    /// What was shown of the open step's message is void; the model is asked again.
    MessageRestarted {
        /// The message.
        id: MessageId,
        /// Why.
        error: ErrorInfo,
        /// The try that follows, from 2.
        attempt: u32,
        /// The last there will be.
        of: u32,
    },
    /// No part of the message changes any more. Also said of a message of which nothing was shown.
    MessageDone(MessageId),
    /// A complete call was seen.
    CallSeen(ToolCallId),
    /// A person is asked whether a call may run.
    ApprovalRequired(PendingId),
    /// A call waits for an answer, or is in doubt.
    Suspended(PendingId),
    /// A wait is over: answered, or closed.
    Resolved {
        /// The wait.
        pending: PendingId,
        /// It was closed without an answer, for this reason.
        cancelled: Option<String>,
    },
    /// A call has its result, in the step's message.
    CallEnded(ToolCallId),
    /// The last word was judged; as the host said it.
    Judged(Value),
    /// Tokens of one step.
    Usage(Usage),
    /// What waits in `queued` changed.
    QueueChanged,
    /// A segment ends.
    SegmentEnd {
        /// How.
        reason: EndReason,
        /// Why the model stopped.
        finish: Option<FinishReason>,
        /// What ended the run.
        error: Option<ErrorInfo>,
    },
}
