//! Level 2: what the runtime sees.

use std::sync::Arc;

use ac_core::{Message, MessageId, OwnerId, ResourceId, RunId, ThreadId, Timestamp, Usage};
use async_trait::async_trait;
use serde_json::{Map, Value, value::RawValue};

use crate::{
    StorageError,
    record::{Lease, MessageCursor, Page, RunHeader, RunRecord, SessionId, Stored, StoredMessage, ThreadHead, ThreadRecord},
};

/// A complete store. The five may be different objects, but threads, messages and runs must share one atomic commit.
///
/// ```
/// use ac_core::Timestamp;
/// use ac_storage::{MemoryStorage, Storage, StorageError, ThreadRecord, domain::ThreadQuery};
///
/// async fn titles(store: &dyn Storage) -> Result<Vec<String>, StorageError> {
///     let page = store.threads().list(&ThreadQuery { resource: Some("ada".into()), ..ThreadQuery::default() }).await?;
///     Ok(page.items.into_iter().map(|thread| thread.info.title).collect())
/// }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), StorageError> {
/// let store = MemoryStorage::new();
/// store.threads().create(&ThreadRecord::new("t1".into(), "ada".into(), Timestamp::from_millis(0))).await?;
/// assert_eq!(titles(&store).await?, [""]);
/// # Ok(())
/// # }
/// ```
pub trait Storage: Send + Sync + 'static {
    /// Threads.
    fn threads(&self) -> &dyn ThreadStore;
    /// Messages.
    fn messages(&self) -> &dyn MessageStore;
    /// Runs and leases.
    fn runs(&self) -> &dyn RunStore;
    /// Sessions.
    fn sessions(&self) -> &dyn SessionStore;
    /// Thread state: tasks, goals, what a host keeps with a thread.
    fn state(&self) -> &dyn StateStore;
}

impl<S: Storage + ?Sized> Storage for Arc<S> {
    fn threads(&self) -> &dyn ThreadStore {
        (**self).threads()
    }

    fn messages(&self) -> &dyn MessageStore {
        (**self).messages()
    }

    fn runs(&self) -> &dyn RunStore {
        (**self).runs()
    }

    fn sessions(&self) -> &dyn SessionStore {
        (**self).sessions()
    }

    fn state(&self) -> &dyn StateStore {
        (**self).state()
    }
}

/// Threads.
#[async_trait]
pub trait ThreadStore: Send + Sync + 'static {
    /// Inserts a thread and its head.
    ///
    /// # Errors
    /// [`Exists`](crate::StorageErrorKind::Exists) when the id is taken, by whomever;
    /// [`Deleted`](crate::StorageErrorKind::Deleted) when it was.
    async fn create(&self, thread: &ThreadRecord) -> Result<(), StorageError>;

    /// One thread. `info.updated_at` is the latest of row and head.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn get(&self, id: &ThreadId) -> Result<Option<Stored<ThreadRecord>>, StorageError>;

    /// Replaces the row, if it still has version `expect`.
    ///
    /// # Errors
    /// [`Conflict`](crate::StorageErrorKind::Conflict), [`NotFound`](crate::StorageErrorKind::NotFound).
    async fn update(&self, thread: &ThreadRecord, expect: u64) -> Result<(), StorageError>;

    /// Threads that fit, newest first.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn list(&self, query: &ThreadQuery) -> Result<Page<ThreadRecord>, StorageError>;

    /// Deletes the thread with its messages, its closed runs, its state and the threads of its runs' children. The head stays as a
    /// tombstone, so that a late commit fails and re-creates nothing. The thread must have no open run. Deleting twice is fine.
    ///
    /// # Errors
    /// [`Conflict`](crate::StorageErrorKind::Conflict) when a run holds the thread.
    async fn delete(&self, id: &ThreadId) -> Result<(), StorageError>;
}

/// Which threads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadQuery {
    /// Of this resource; `None` is all.
    pub resource: Option<ResourceId>,
    /// Whose metadata hold all of these, equal.
    pub metadata: Map<String, Value>,
    /// Hidden ones too (forks of subagents). Threads of child runs are never listed.
    pub hidden: bool,
    /// [`Page::next`] of the page before.
    pub after: Option<String>,
    /// At most so many; 0 is all.
    pub limit: usize,
}

/// Messages.
#[async_trait]
pub trait MessageStore: Send + Sync + 'static {
    /// Stores a message on a thread that has no open run, if its head still has version `expect`. Storing the same message again is
    /// fine and changes nothing.
    ///
    /// # Errors
    /// [`Conflict`](crate::StorageErrorKind::Conflict) when the head moved or a run holds the thread;
    /// [`NotFound`](crate::StorageErrorKind::NotFound), [`Deleted`](crate::StorageErrorKind::Deleted).
    async fn put(&self, thread: &ThreadId, message: &Message, expect: u64) -> Result<(), StorageError>;

    /// Some messages, in the order of their positions (or the reverse). [`Page::next`] is the position of the last one, as a number for
    /// [`MessageCursor::Position`]. A thread that is not there has none.
    ///
    /// # Errors
    /// [`NotFound`](crate::StorageErrorKind::NotFound) when the cursor names a message that the thread does not have.
    async fn page(&self, thread: &ThreadId, query: &MessageQuery) -> Result<Page<StoredMessage>, StorageError>;

    /// One message.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn get(&self, thread: &ThreadId, id: &MessageId) -> Result<Option<StoredMessage>, StorageError>;

    /// Makes the thread `to` with copies of the messages of `from`, oldest first, up to and without `until`; says how many. Ids are kept:
    /// they are unique per thread. The thread comes into being with all of its messages: before that, and for ever where the process dies
    /// over it, there is no such thread.
    ///
    /// # Errors
    /// [`Exists`](crate::StorageErrorKind::Exists) when the id of `to` is taken, [`NotFound`](crate::StorageErrorKind::NotFound) without
    /// `from` or `until`, [`Deleted`](crate::StorageErrorKind::Deleted) when either thread was. There is no new thread then.
    async fn copy(&self, from: &ThreadId, to: &ThreadRecord, until: Option<&MessageId>) -> Result<u64, StorageError>;
}

/// Which messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageQuery {
    /// Beyond this one, in the direction of the query.
    pub after: Option<MessageCursor>,
    /// From the newest to the oldest.
    pub newest_first: bool,
    /// At most so many; 0 is all.
    pub limit: usize,
}

/// One atomic step of a run (`R1`): record, thread head and messages.
#[derive(Clone, Debug)]
pub struct Commit<'a> {
    /// The version of the record that this step was made on; `None` starts the run.
    pub expect: Option<u64>,
    /// The new record.
    pub record: &'a RunRecord,
    /// Messages, in order. A message with a new id gets the next position. One with a known id is replaced where it stands if a model
    /// wrote it; any other message is insert-only.
    pub put: &'a [Arc<Message>],
    /// Added to the thread's usage.
    pub usage: Option<&'a Usage>,
}

/// What became of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitOutcome {
    /// It is durable; the record has this version now.
    Committed {
        /// For the next commit.
        version: u64,
    },
    /// Nothing was written: the record has another version, or another run holds the thread. Read again.
    Conflict,
    /// It may have been written. Read back and look for the own [`CommitMark`](crate::CommitMark).
    Unknown,
}

/// Runs and their leases.
#[async_trait]
pub trait RunStore: Send + Sync + 'static {
    /// A run. Also the way from a wait to its run: a [`PendingId`](ac_core::PendingId) names it.
    ///
    /// # Errors
    /// [`Corrupt`](crate::StorageErrorKind::Corrupt), or when the store does not answer.
    async fn load(&self, run: &RunId) -> Result<Option<Stored<RunRecord>>, StorageError>;

    /// Writes record, head and messages as one (`R1`). The head follows from the stages: a start needs a head without active run and sets
    /// it; a step of an open or finished run needs to be the active run; reaching [`Closed`](crate::RunStage::Closed) clears it, and
    /// gives the run's lease back, whoever holds it; a step of a run that was closed before leaves the head alone, so it can put no
    /// messages and add no usage, and it stays closed.
    ///
    /// # Errors
    /// [`NotFound`](crate::StorageErrorKind::NotFound) without the thread, [`Deleted`](crate::StorageErrorKind::Deleted) when it was
    /// deleted, [`Exists`](crate::StorageErrorKind::Exists) when a message of that id that no model wrote is stored with other words,
    /// [`Conflict`](crate::StorageErrorKind::Conflict) when a closed run wants what it cannot (trying again does not help),
    /// [`Full`](crate::StorageErrorKind::Full), [`Unavailable`](crate::StorageErrorKind::Unavailable). Nothing was written then.
    async fn commit(&self, commit: Commit<'_>) -> Result<CommitOutcome, StorageError>;

    /// The head of a thread.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn head(&self, thread: &ThreadId) -> Result<Option<Stored<ThreadHead>>, StorageError>;

    /// Runs that are not closed, in a stable order.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn open(&self, query: &OpenRuns) -> Result<Page<RunHeader>, StorageError>;

    /// Deletes closed runs that ended before `before` and whose parent is closed or gone. Returns how many.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn prune(&self, before: Timestamp) -> Result<u64, StorageError>;

    /// The lease of a run.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn lease(&self, run: &RunId) -> Result<Option<Lease>, StorageError>;

    /// Takes or renews the lease if nobody else holds one that is valid at `now` and of this or a newer epoch. Returns whether it did.
    /// The same owner's own lease of a newer epoch is not pushed aside while it is valid.
    ///
    /// # Errors
    /// When the store does not answer; then the lease is not held.
    async fn take_lease(&self, run: &RunId, lease: &Lease, now: Timestamp) -> Result<bool, StorageError>;

    /// Gives the lease back, if `owner` holds it in `epoch`.
    ///
    /// # Errors
    /// When the store does not answer; the lease then expires by itself.
    async fn release_lease(&self, run: &RunId, owner: &OwnerId, epoch: u64) -> Result<(), StorageError>;
}

/// Which open runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenRuns {
    /// Of this thread; `None` is all.
    pub thread: Option<ThreadId>,
    /// That this session started; `None` is all. Costs as much as that session has open runs, however many there are in all.
    pub session: Option<SessionId>,
    /// [`Page::next`] of the page before.
    pub after: Option<String>,
    /// At most so many; 0 is all.
    pub limit: usize,
}

/// Sessions. The body belongs to the controller; the store keeps it as it is.
#[async_trait]
pub trait SessionStore: Send + Sync + 'static {
    /// A session.
    ///
    /// # Errors
    /// [`Corrupt`](crate::StorageErrorKind::Corrupt), or when the store does not answer.
    async fn load(&self, id: &SessionId) -> Result<Option<Stored<Box<RawValue>>>, StorageError>;

    /// Writes a session, if it still has version `expect` (`None`: it does not exist). Returns the new version.
    ///
    /// # Errors
    /// [`Conflict`](crate::StorageErrorKind::Conflict).
    async fn save(&self, id: &SessionId, expect: Option<u64>, body: &RawValue) -> Result<u64, StorageError>;

    /// Sessions of a controller, in a stable order.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn list(&self, controller: &ac_core::ControllerId, after: Option<&str>, limit: usize) -> Result<Page<SessionId>, StorageError>;

    /// Deletes a session. Its threads stay.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn delete(&self, id: &SessionId) -> Result<(), StorageError>;
}

/// State that belongs to a thread, by name. Deleted with the thread.
#[async_trait]
pub trait StateStore: Send + Sync + 'static {
    /// A value.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn get(&self, thread: &ThreadId, name: &str) -> Result<Option<Stored<Value>>, StorageError>;

    /// Writes a value, if it still has version `expect` (`None`: it does not exist). Returns the new version.
    ///
    /// # Errors
    /// [`Conflict`](crate::StorageErrorKind::Conflict), [`Deleted`](crate::StorageErrorKind::Deleted),
    /// [`NotFound`](crate::StorageErrorKind::NotFound) without the thread: state that no deletion would reach is not kept.
    async fn put(&self, thread: &ThreadId, name: &str, expect: Option<u64>, value: &Value) -> Result<u64, StorageError>;
}
