//! The machine as a diagram: places, and the moves between them.
//!
//! The code of the steps stands for itself; this table is what the documentation draws and what the tests measure their coverage by. A
//! move that the machine makes and the table does not name fails a test, and so does one that no test makes.

use std::fmt;

use ac_core::SuspendKind;

use crate::{Answer, Input, Phase, RunSnapshot, Slot, SlotStatus};

/// Where a run or one of its calls is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The run: the next dispatch asks the model.
    Ready,
    /// The run: the model is asked.
    Sampling,
    /// The run: calls are worked on.
    Tools,
    /// The run: over, with something left in the outbox.
    Finished,
    /// The run: over.
    Closed,
    /// A call: may it run?
    AwaitingApproval,
    /// A call: decided, not started.
    Queued,
    /// A call: going on.
    Running,
    /// A call: asks.
    Question,
    /// A call: a plan to be decided.
    Plan,
    /// A call: answered, not started again.
    Answered,
    /// A call: going on after an answer.
    Resuming,
    /// A call: goes on as a run of its own.
    Child,
    /// A call: its process died.
    InDoubt,
    /// A call: has its result.
    Done,
}

impl Place {
    /// Where the run is.
    pub fn of_run(run: &RunSnapshot) -> Self {
        match &run.phase {
            Phase::Ready => Self::Ready,
            Phase::Sampling => Self::Sampling,
            Phase::Tools { .. } => Self::Tools,
            Phase::Finished { .. } if run.is_closed() => Self::Closed,
            Phase::Finished { .. } => Self::Finished,
        }
    }

    /// Where a call is.
    pub fn of_slot(slot: &Slot) -> Self {
        match &slot.status {
            SlotStatus::AwaitingApproval { .. } => Self::AwaitingApproval,
            SlotStatus::Queued => Self::Queued,
            SlotStatus::Running => Self::Running,
            SlotStatus::Suspended { suspend, .. } if suspend.kind == SuspendKind::Plan => Self::Plan,
            SlotStatus::Suspended { .. } => Self::Question,
            SlotStatus::Resuming { started: false, .. } => Self::Answered,
            SlotStatus::Resuming { started: true, .. } => Self::Resuming,
            SlotStatus::Child { .. } => Self::Child,
            SlotStatus::InDoubt { .. } => Self::InDoubt,
            SlotStatus::Done => Self::Done,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The name of an input in the table; an answer goes by what it says.
pub fn trigger(input: &Input) -> &'static str {
    match input {
        Input::Dispatch => "Dispatch",
        Input::Sampled { .. } => "Sampled",
        Input::SampleFailed { .. } => "SampleFailed",
        Input::SampleStopped { .. } => "SampleStopped",
        Input::ToolDone { .. } => "ToolDone",
        Input::ToolSuspended { .. } => "ToolSuspended",
        Input::ToolDelegated { .. } => "ToolDelegated",
        Input::ToolInterrupted { .. } => "ToolInterrupted",
        Input::ChildFinished { .. } => "ChildFinished",
        Input::Answer { answer, .. } => match answer {
            Answer::Approve { .. } => "Approve",
            Answer::Decline { .. } => "Decline",
            Answer::Reply { .. } => "Reply",
            Answer::RunAgain => "RunAgain",
            Answer::RecordFailed => "RecordFailed",
        },
        Input::Message { decline: true, .. } => "Message",
        Input::Message { decline: false, .. } => "Inject",
        Input::Withdraw { .. } => "Withdraw",
        Input::Abort { .. } => "Abort",
        Input::CancelCall { .. } => "CancelCall",
        Input::Recover { .. } => "Recover",
        Input::Applied { .. } => "Applied",
    }
}
