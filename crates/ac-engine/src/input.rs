use ac_core::{
    Decision, ErrorInfo, Message, Part, PendingId, RunId, Suspend, ThreadId, ToolCallId, ToolCategory, ToolEffect, ToolOutput, Usage,
    model::Finish, tool::ChildRun,
};
use serde_json::{Map, Value};

use crate::{Answer, PlanReply, Profile};

/// What a new run consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct StartRun {
    /// Its id.
    pub run: RunId,
    /// The thread it works on.
    pub thread: ThreadId,
    /// The run and the call that it serves, for a child.
    pub parent: Option<(RunId, ToolCallId)>,
    /// How it works.
    pub profile: Profile,
    /// What it is asked: becomes the first of `queued`.
    pub messages: Vec<Message>,
    /// The follow-up queue item that it starts from: removed through the outbox.
    pub from_queue: bool,
}

/// What happens to a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The owner of the lease asks what to start. The only input whose effects act.
    Dispatch,
    /// The model answered.
    Sampled {
        /// Which attempt.
        attempt: u32,
        /// The parts, in order; tool calls in state `call` with their final ids.
        parts: Vec<Part>,
        /// One for each tool call among the parts, in the same order.
        calls: Vec<CallPlan>,
        /// How the answer ended.
        finish: Finish,
    },
    /// The model did not answer, or not to the end.
    SampleFailed {
        /// Which attempt.
        attempt: u32,
        /// Why.
        error: ErrorInfo,
        /// The driver's policy would try again.
        retry: bool,
        /// What was shown.
        partial: Vec<Part>,
    },
    /// The model was stopped, because of an abort.
    SampleStopped {
        /// Which attempt.
        attempt: u32,
        /// What was shown.
        partial: Vec<Part>,
    },
    /// A call is done.
    ToolDone {
        /// The call.
        call: ToolCallId,
        /// Which attempt.
        attempt: u32,
        /// What came out.
        result: ToolResult,
    },
    /// A call waits for a person.
    ToolSuspended {
        /// The call.
        call: ToolCallId,
        /// Which attempt.
        attempt: u32,
        /// For what.
        suspend: Suspend,
    },
    /// A call goes on as a run of its own.
    ToolDelegated {
        /// The call.
        call: ToolCallId,
        /// Which attempt.
        attempt: u32,
        /// What that run is told.
        child: ChildRun,
    },
    /// A call was stopped; it may have done something.
    ToolInterrupted {
        /// The call.
        call: ToolCallId,
        /// Which attempt.
        attempt: u32,
    },
    /// The child run of a call is over.
    ChildFinished {
        /// The call.
        call: ToolCallId,
        /// What came out.
        result: ToolResult,
        /// What it used, added to the thread's tokens.
        usage: Option<Usage>,
    },
    /// The host judged the run's last word, in [`Phase::Judging`](crate::Phase::Judging).
    Judged {
        /// The step whose answer it is about.
        step: u32,
        /// Goes on with another step; otherwise the run is complete.
        go_on: bool,
        /// Put into the history: what the model reads of the verdict.
        message: Option<Box<Message>>,
        /// Told to whoever listens, as it is; `None` where nothing was judged.
        verdict: Option<Value>,
        /// What judging used, added to the thread's tokens.
        usage: Option<Usage>,
    },
    /// A person answered.
    Answer {
        /// Which wait.
        pending: PendingId,
        /// What.
        answer: Answer,
        /// For the decision on a plan: what follows from it.
        plan: Option<PlanReply>,
        /// Replaces the request context of the run, where the answerer gave one.
        request_context: Option<Map<String, Value>>,
    },
    /// A message for this run.
    Message {
        /// It.
        message: Message,
        /// Declines the approvals that are open now (`R7`): true for a person's `send_message`.
        decline: bool,
    },
    /// A person wrote to the run above this one instead of deciding: the approvals that were open at that moment are declined (`R7`).
    Interrupt {
        /// When.
        at: ac_core::Timestamp,
    },
    /// A message that waits is taken back.
    Withdraw {
        /// Its id.
        message: ac_core::MessageId,
    },
    /// Everything stops.
    Abort {
        /// Go on with what is queued, if a person wrote some of it.
        go_on: bool,
    },
    /// One call stops.
    CancelCall {
        /// The call.
        call: ToolCallId,
    },
    /// A new owner takes the run over (`R5`). A commit of its own.
    Recover {
        /// Above the run's.
        epoch: u64,
    },
    /// The outbox was applied so far.
    Applied {
        /// The last item.
        upto: u64,
    },
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// What the host shows and the model reads.
    pub output: ToolOutput,
    /// It failed.
    pub is_error: bool,
}

/// What was decided about a call before the answer that holds it is committed.
#[derive(Clone, Debug, PartialEq)]
pub struct CallPlan {
    /// The call; its id among the parts.
    pub call: ToolCallId,
    /// What happens to it.
    pub gate: Gate,
    /// Why.
    pub decision: Decision,
    /// From the definition.
    pub effect: ToolEffect,
    /// From the host's resolver, else the definition.
    pub category: ToolCategory,
    /// From the definition.
    pub answer_schema: Option<Value>,
    /// Hash of the definition.
    pub definition: String,
}

/// What happens to a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Gate {
    /// It runs.
    Run,
    /// A person is asked.
    Ask,
    /// It does not run; the model is told the reason.
    Deny {
        /// It.
        reason: String,
    },
    /// It cannot run (an unknown tool, arguments that do not fit, a second plan in one step); the model reads the result.
    Refuse {
        /// It.
        result: ToolResult,
    },
}
