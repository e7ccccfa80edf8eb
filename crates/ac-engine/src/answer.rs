use ac_core::{ToolOutput, permission::GrantTarget};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Profile;

/// What a person says to a wait (`R6`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// The call may run.
    Approve {
        /// And so may others like it, for the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grant: Option<GrantTarget>,
    },
    /// The call may not run; or the question stays unanswered.
    Decline {
        /// What the model is told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The answer to a question, or the decision on a plan. Checked against the answer schema before it gets here.
    Reply {
        /// It.
        value: Value,
    },
    /// A call in doubt runs again.
    RunAgain,
    /// A call in doubt is recorded as failed.
    RecordFailed,
}

/// How a wait ended; kept, so that the same answer again is recognised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// A person answered.
    Answered(Answer),
    /// The run was aborted, or the call was cancelled.
    Closed,
    /// The same, while the call was in doubt.
    ClosedInDoubt,
    /// A person wrote instead (`R7`).
    Interrupted,
}

/// What follows from the decision on a plan, computed before it is committed: the tool's pure `resume`, and where the run goes.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanReply {
    /// The result of the call.
    pub output: ToolOutput,
    /// The decision was no legal one; the output says why.
    pub is_error: bool,
    /// Approved: the profile of the mode that the run goes on in. `None` when it was rejected.
    pub profile: Option<Box<Profile>>,
}

/// Why an input was refused. The snapshot is untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A report about something that is no longer going on.
    #[error("this is about something that is no longer going on")]
    Stale,
    /// No such wait, or it was never open.
    #[error("nothing waits under this id")]
    NotPending,
    /// Another answer came first.
    #[error("another answer came first")]
    AlreadyResolved,
    /// This wait takes another kind of answer.
    #[error("this wait takes another kind of answer")]
    InvalidAnswer,
    /// The run is being aborted.
    #[error("the run is being aborted")]
    Aborting,
    /// The run is over.
    #[error("the run is over")]
    Finished,
}
