//! Rows, as the runtime sees them.

use ac_core::{
    ControllerId, MessageId, OwnerId, PendingId, ResourceId, RunId, SessionKey, ThreadId, Timestamp, ToolCallId, Usage, event::ThreadInfo,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A row and its version, for a later compare-and-set.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored<T> {
    /// The version of the row.
    pub version: u64,
    /// The row.
    pub value: T,
}

/// Some of many.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// These.
    pub items: Vec<T>,
    /// Where the next page begins; `None` when there is none.
    pub next: Option<String>,
}

/// A thread: a stored conversation, owned by one resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadRecord {
    /// What everybody may see of it. `updated_at` here is when the row was written; listings show the later of this and the head's.
    pub info: ThreadInfo,
    /// Set for the thread of a child run: never listed, deleted with its parent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunParent>,
    /// The controller that made it. A thread that does not say belongs to any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerId>,
    /// Left out of listings unless asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
}

impl ThreadRecord {
    /// A thread that nobody wrote to.
    pub fn new(id: ThreadId, resource: ResourceId, at: Timestamp) -> Self {
        let info = ThreadInfo { id, resource, title: String::new(), created_at: at, updated_at: at, metadata: serde_json::Map::new() };
        Self { info, parent: None, controller: None, hidden: false }
    }
}

/// Which call of which run a child run serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunParent {
    /// The parent.
    pub run: RunId,
    /// Its call.
    pub call: ToolCallId,
}

/// The one row per thread that every commit of a run goes through (`R1`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadHead {
    /// The run that alone may write to the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_run: Option<RunId>,
    /// The position of the next new message.
    pub next_position: u64,
    /// Tokens used on the thread.
    pub usage: Usage,
    /// When the thread was last written to.
    pub updated_at: Timestamp,
    /// The thread was deleted; nothing can be written any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}

/// How far a run is, as the store must know it to guard the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStage {
    /// It may still move.
    Open,
    /// Its end is decided; its outbox is not empty yet, so it still holds the thread.
    Finished,
    /// Over. It never touches the head again.
    Closed,
}

/// What an open run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunPosture {
    /// Nothing: an owner can move it.
    Moving,
    /// An approval among other things, and nothing moves.
    Approval,
    /// Only answers, and nothing moves.
    Parked,
    /// Nothing any more.
    Finished,
}

/// A run, as a listing shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// The run.
    pub run: RunId,
    /// The controller that started it.
    pub controller: ControllerId,
    /// The session that started it.
    pub session: SessionKey,
    /// The thread it works on.
    pub thread: ThreadId,
    /// The call that it serves, for a child run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunParent>,
    /// How far it is.
    pub stage: RunStage,
    /// What it waits for.
    pub posture: RunPosture,
    /// Its open waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingId>,
    /// The fence: raised by taking the run over, by nothing else.
    pub epoch: u64,
    /// Who wrote this version.
    pub mark: CommitMark,
    /// When.
    pub at: Timestamp,
}

impl RunHeader {
    /// The session that started the run.
    pub fn session_id(&self) -> SessionId {
        SessionId { controller: self.controller.clone(), key: self.session.clone() }
    }
}

/// Recognises a commit as one's own after its outcome got lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitMark {
    /// The process that wrote it.
    pub by: OwnerId,
    /// The epoch it was written in.
    pub epoch: u64,
    /// The committer's own count.
    pub n: u64,
}

/// A run. The body belongs to the engine; the store keeps it as it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// What a listing shows.
    pub header: RunHeader,
    /// The run itself, as JSON.
    pub body: Box<RawValue>,
}

impl PartialEq for RunRecord {
    fn eq(&self, other: &Self) -> bool {
        self.header == other.header && self.body.get() == other.body.get()
    }
}

/// Who moves a run now. Only liveness: the fence is the epoch (`R3`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The process.
    pub owner: OwnerId,
    /// The epoch it took the run in; a lease of an older epoch is void.
    pub epoch: u64,
    /// Until when.
    pub expires: Timestamp,
}

/// A session of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SessionId {
    /// The controller.
    pub controller: ControllerId,
    /// The session.
    pub key: SessionKey,
}

/// A message and where it stands in its thread.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredMessage {
    /// Never changes, and says nothing but the order.
    pub position: u64,
    /// The message.
    pub message: std::sync::Arc<ac_core::Message>,
}

/// Where a page of messages begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageCursor {
    /// A position, exclusive.
    Position(u64),
    /// A message, exclusive.
    Message(MessageId),
}
