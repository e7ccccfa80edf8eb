use std::collections::BTreeMap;
use std::sync::Arc;

use ac_core::{
    ErrorInfo, FinishReason, Message, MessageId, ModeId, PendingId, RunId, ThreadId, Timestamp, ToolCallId, permission::GrantTarget,
    tool::ChildRun,
};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use crate::{Budget, Profile, Resolution, Slot};

/// A run between two inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunSnapshot {
    /// The version of this form, [`RunSnapshot::SCHEMA`]. A snapshot of a newer version does not load; an older one loads for ever.
    #[serde(default = "first_schema", deserialize_with = "known_schema")]
    pub schema: u32,
    /// Its id.
    pub run: RunId,
    /// The thread it works on.
    pub thread: ThreadId,
    /// The run and the call that it serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<(RunId, ToolCallId)>,
    /// The fence: raised by [`Input::Recover`](crate::Input::Recover) alone (`R2`).
    pub epoch: u64,
    /// The open step, from 0.
    pub step: u32,
    /// Model calls so far, retries counted; names the current one.
    pub attempt: u32,
    /// Failed model calls of the open step.
    #[serde(default)]
    pub failures: u32,
    /// How far it is.
    pub phase: Phase,
    /// What is used up since the last message of a person.
    #[serde(default)]
    pub budget: Budget,
    /// Since when it works; `None` while it waits for a person. For the time budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_since: Option<Timestamp>,
    /// Messages that the next commit which starts a step, or ends the run, puts into the history (`R8`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queued: Vec<Arc<Message>>,
    /// How many of `queued`, from the front, the run was started with: an abort does not go on with them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub prompt: usize,
    /// How it works.
    pub profile: Arc<Profile>,
    /// An abort was asked for and is not through yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Cancel>,
    /// The message of the open step, as it was last put.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<Message>>,
    /// Calls of the model so far: each answer adds its own. For ids that are never used again in this run.
    #[serde(default)]
    pub calls: u64,
    /// How each wait ended (`R6`): those of the open step, and of the steps before as far as [`RunSnapshot::REMEMBERED`] waits go.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<PendingId, Resolution>,
    /// The waits of steps before this one are over, and how is no longer known. Whatever is said to one of them came too late.
    #[serde(default, skip_serializing_if = "is_first_step")]
    pub answers_from: u32,
    /// What has to happen outside, in order (`R1b`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outbox: Vec<Outbox>,
    /// The number of the next outbox item.
    pub next_outbox: u64,
    /// Why the model stopped last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReason>,
}

fn is_first_step(step: &u32) -> bool {
    *step == 0
}

const fn first_schema() -> u32 {
    1
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// A newer form may say things that this version would drop without a word, so it is refused.
fn known_schema<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let schema = u32::deserialize(deserializer)?;
    if schema > RunSnapshot::SCHEMA {
        let newest = RunSnapshot::SCHEMA;
        return Err(D::Error::custom(format!(
            "the run was written in form {schema} and this version reads up to {newest}: continue it with the newer version"
        )));
    }
    Ok(schema)
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Phase {
    /// The next `Dispatch` asks the model.
    Ready,
    /// The model is asked.
    Sampling,
    /// The model answered; its calls are worked on.
    Tools {
        /// One for each call, in order.
        slots: Vec<Slot>,
    },
    /// The model gave its last word, and somebody judges whether the work is done ([`Profile::judged`]).
    Judging {
        /// The owner was told to ask.
        asked: bool,
    },
    /// Decided how it ends. Closed once the outbox is empty.
    Finished {
        /// How.
        outcome: Outcome,
        /// When.
        at: Timestamp,
    },
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Outcome {
    /// The model was done.
    Complete,
    /// A person stopped it.
    Aborted,
    /// It failed, or used up its budget (`run.step_limit`, `run.token_limit`, `run.time_limit`, `run.loop`).
    Error {
        /// Why.
        error: ErrorInfo,
    },
}

/// An abort that is not through yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    /// Go on with what is queued, if a person wrote some of it.
    pub go_on: bool,
}

/// Something that has to happen outside the run, once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outbox {
    /// Counts per run, from 1.
    pub n: u64,
    /// What.
    pub action: OutboxAction,
}

/// What has to happen outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum OutboxAction {
    /// The session moves to a mode, unless a person changed it after the decision.
    SetMode {
        /// The target.
        mode: ModeId,
        /// The mode of the run when the plan was decided.
        from: ModeId,
        /// When the plan was decided.
        at: Timestamp,
    },
    /// The session remembers a yes.
    Grant {
        /// For what.
        target: GrantTarget,
        /// Which call it was said about.
        call: ToolCallId,
        /// When.
        at: Timestamp,
    },
    /// The follow-up that became this run leaves the queue.
    RemoveQueued {
        /// Its id.
        id: MessageId,
    },
    /// A child run starts.
    StartChild {
        /// Its id.
        run: RunId,
        /// The call that it serves.
        call: ToolCallId,
        /// What it is told.
        child: ChildRun,
    },
    /// A child run is aborted.
    AbortChild {
        /// Its id.
        run: RunId,
    },
    /// A person wrote to the parent instead of deciding: what asks in the child, and below it, is declined (`R7`).
    InterruptChild {
        /// Its id.
        run: RunId,
        /// When: what asks later is not declined.
        at: Timestamp,
    },
}

/// What a run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Posture {
    /// Nothing: an owner can move it.
    Moving,
    /// An approval, and nothing moves.
    Approval,
    /// Only answers, and nothing moves.
    Parked,
    /// Nothing any more.
    Finished,
}
