use ac_core::{Decision, PendingId, RunId, Suspend, Timestamp, ToolCallId, ToolCategory, ToolEffect, event::PendingKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One call of the open step. Its arguments and its result stand in the step's message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slot {
    /// The call.
    pub call: ToolCallId,
    /// The tool, as exposed.
    pub tool: String,
    /// What was decided about it and why.
    pub decision: Decision,
    /// What a crash may do to it.
    pub effect: ToolEffect,
    /// What kind of thing it does.
    pub category: ToolCategory,
    /// What an answer must look like, unless the suspension says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_schema: Option<Value>,
    /// Hash of the definition that was shown. A tool that changed meanwhile does not run under the old approval.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub definition: String,
    /// How often it was started or resumed.
    #[serde(default)]
    pub attempt: u32,
    /// How often it waited for a person; the `n` of its latest [`PendingId`].
    #[serde(default)]
    pub waits: u32,
    /// A person stopped this call, and not the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// How far it is.
    pub status: SlotStatus,
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum SlotStatus {
    /// A person is asked whether it may run.
    AwaitingApproval {
        /// Since when.
        since: Timestamp,
    },
    /// Decided, not started: safe to start after any crash.
    Queued,
    /// Started by the owner of this epoch.
    Running,
    /// Waits for an answer.
    Suspended {
        /// For what.
        suspend: Suspend,
        /// Since when.
        since: Timestamp,
    },
    /// Answered.
    Resuming {
        /// What the tool gets.
        resume: ResumeData,
        /// The owner of this epoch started it.
        started: bool,
    },
    /// Goes on as a run of its own.
    Child {
        /// That run.
        run: RunId,
    },
    /// It ran when its owner died. A person decides.
    InDoubt {
        /// Set when it was being resumed: the answer is kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resume: Option<ResumeData>,
        /// Since when.
        since: Timestamp,
    },
    /// It has its result.
    Done,
}

/// What a resumed tool gets back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResumeData {
    /// Its own memory.
    pub state: Value,
    /// What it had shown.
    pub payload: Value,
    /// The answer.
    pub answer: Value,
}

/// An open wait: what `pending()` lists.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait<'a> {
    /// Its name.
    pub id: PendingId,
    /// What it is for.
    pub kind: PendingKind,
    /// The call.
    pub slot: &'a Slot,
    /// Since when.
    pub since: Timestamp,
}
