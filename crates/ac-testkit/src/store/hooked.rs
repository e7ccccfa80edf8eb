use std::{fmt, sync::Arc};

use ac_core::{ControllerId, Message, MessageId, OwnerId, RunId, ThreadId, Timestamp};
use ac_storage::{
    Commit, CommitOutcome, Lease, MessageStore, Page, RunHeader, RunRecord, RunStore, SessionId, SessionStore, StateStore, Storage,
    StorageError, StorageErrorKind, Stored, ThreadHead, ThreadRecord, ThreadStore,
    domain::{MessageQuery, OpenRuns, ThreadQuery},
    record::StoredMessage,
};
use async_trait::async_trait;
use serde_json::{Value, value::RawValue};

/// Which method is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is a method of the stores")]
#[non_exhaustive]
pub enum Op {
    CreateThread,
    GetThread,
    UpdateThread,
    ListThreads,
    DeleteThread,
    PutMessage,
    PageMessages,
    GetMessage,
    CopyMessages,
    LoadRun,
    CommitRun,
    ReadHead,
    OpenRuns,
    PruneRuns,
    ReadLease,
    TakeLease,
    ReleaseLease,
    LoadSession,
    SaveSession,
    ListSessions,
    DeleteSession,
    GetState,
    PutState,
    KvGet,
    KvScan,
    KvWrite,
}

impl Op {
    /// Whether it changes anything.
    pub const fn writes(self) -> bool {
        match self {
            Self::CreateThread
            | Self::UpdateThread
            | Self::DeleteThread
            | Self::PutMessage
            | Self::CopyMessages
            | Self::CommitRun
            | Self::PruneRuns
            | Self::TakeLease
            | Self::ReleaseLease
            | Self::SaveSession
            | Self::DeleteSession
            | Self::PutState
            | Self::KvWrite => true,
            Self::GetThread
            | Self::ListThreads
            | Self::PageMessages
            | Self::GetMessage
            | Self::LoadRun
            | Self::ReadHead
            | Self::OpenRuns
            | Self::ReadLease
            | Self::LoadSession
            | Self::ListSessions
            | Self::GetState
            | Self::KvGet
            | Self::KvScan => false,
        }
    }
}

/// A call of a store.
#[derive(Clone, PartialEq, Eq)]
pub struct Call {
    /// The method.
    pub op: Op,
    /// What it is about: ids, version, stage. No content.
    pub about: String,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.op, self.about)
    }
}

/// What happens around each call.
#[async_trait]
pub trait Hook: Send + Sync + 'static {
    /// What `before` wants `after` to know.
    type Note: Send;

    /// Before the call; an error keeps it from being made.
    async fn before(&self, call: &Call) -> Result<Self::Note, StorageError>;

    /// After the call; `failure` is how it failed, if it did. An error is answered in place of a success.
    async fn after(&self, call: Call, note: Self::Note, failure: Option<StorageErrorKind>) -> Result<(), StorageError>;
}

/// A store with a hook around every call.
#[derive(Clone, Debug)]
pub struct HookedStorage<S, H> {
    inner: S,
    hook: Arc<H>,
}

impl<S: Storage, H: Hook> HookedStorage<S, H> {
    /// Puts `hook` around `inner`.
    pub fn new(inner: S, hook: Arc<H>) -> Self {
        Self { inner, hook }
    }

    /// The store itself, without the hook.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// The hook.
    pub fn hook(&self) -> &Arc<H> {
        &self.hook
    }

    async fn around<T>(
        &self,
        op: Op,
        about: String,
        call: impl Future<Output = Result<T, StorageError>> + Send,
    ) -> Result<T, StorageError> {
        around(&*self.hook, Call { op, about }, call, |_| None).await.map_err(Failure::into_error)
    }
}

/// Who made a call fail.
pub(super) enum Failure {
    /// The hook.
    Hook(StorageError),
    /// The store.
    Store(StorageError),
}

impl Failure {
    pub(super) fn into_error(self) -> StorageError {
        match self {
            Self::Hook(error) | Self::Store(error) => error,
        }
    }
}

/// Makes a call inside the hook. `refused` tells of answers that are failures without being errors.
pub(super) async fn around<T, H: Hook>(
    hook: &H,
    call: Call,
    made: impl Future<Output = Result<T, StorageError>> + Send,
    refused: impl Fn(&T) -> Option<StorageErrorKind> + Send,
) -> Result<T, Failure> {
    let note = hook.before(&call).await.map_err(Failure::Hook)?;
    let outcome = made.await;
    let failure = match &outcome {
        Ok(value) => refused(value),
        Err(error) => Some(error.kind()),
    };
    let replaced = hook.after(call, note, failure).await;
    let value = outcome.map_err(Failure::Store)?;
    replaced.map(|()| value).map_err(Failure::Hook)
}

impl<S: Storage, H: Hook> Storage for HookedStorage<S, H> {
    fn threads(&self) -> &dyn ThreadStore {
        self
    }

    fn messages(&self) -> &dyn MessageStore {
        self
    }

    fn runs(&self) -> &dyn RunStore {
        self
    }

    fn sessions(&self) -> &dyn SessionStore {
        self
    }

    fn state(&self) -> &dyn StateStore {
        self
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Storage, H: Hook> ThreadStore for HookedStorage<S, H> {
    async fn create(&self, thread: &ThreadRecord) -> Result<(), StorageError> {
        self.around(Op::CreateThread, thread.info.id.to_string(), self.inner.threads().create(thread)).await
    }

    async fn get(&self, id: &ThreadId) -> Result<Option<Stored<ThreadRecord>>, StorageError> {
        self.around(Op::GetThread, id.to_string(), self.inner.threads().get(id)).await
    }

    async fn update(&self, thread: &ThreadRecord, expect: u64) -> Result<(), StorageError> {
        self.around(Op::UpdateThread, format!("{} on {expect}", thread.info.id), self.inner.threads().update(thread, expect)).await
    }

    async fn list(&self, query: &ThreadQuery) -> Result<Page<ThreadRecord>, StorageError> {
        let about = query.resource.as_ref().map_or_else(|| "all".to_owned(), ToString::to_string);
        self.around(Op::ListThreads, about, self.inner.threads().list(query)).await
    }

    async fn delete(&self, id: &ThreadId) -> Result<(), StorageError> {
        self.around(Op::DeleteThread, id.to_string(), self.inner.threads().delete(id)).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Storage, H: Hook> MessageStore for HookedStorage<S, H> {
    async fn put(&self, thread: &ThreadId, message: &Message, expect: u64) -> Result<(), StorageError> {
        let about = format!("{thread} {} on {expect}", message.id);
        self.around(Op::PutMessage, about, self.inner.messages().put(thread, message, expect)).await
    }

    async fn page(&self, thread: &ThreadId, query: &MessageQuery) -> Result<Page<StoredMessage>, StorageError> {
        self.around(Op::PageMessages, thread.to_string(), self.inner.messages().page(thread, query)).await
    }

    async fn get(&self, thread: &ThreadId, id: &MessageId) -> Result<Option<StoredMessage>, StorageError> {
        self.around(Op::GetMessage, format!("{thread} {id}"), self.inner.messages().get(thread, id)).await
    }

    async fn copy(&self, from: &ThreadId, to: &ThreadRecord, until: Option<&MessageId>) -> Result<u64, StorageError> {
        self.around(Op::CopyMessages, format!("{from} to {}", to.info.id), self.inner.messages().copy(from, to, until)).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Storage, H: Hook> RunStore for HookedStorage<S, H> {
    async fn load(&self, run: &RunId) -> Result<Option<Stored<RunRecord>>, StorageError> {
        self.around(Op::LoadRun, run.to_string(), self.inner.runs().load(run)).await
    }

    /// `Conflict` and `Unknown` from the hook become outcomes, which is how a store says them here.
    async fn commit(&self, commit: Commit<'_>) -> Result<CommitOutcome, StorageError> {
        let header = &commit.record.header;
        let on = commit.expect.map_or_else(|| "nothing".to_owned(), |version| version.to_string());
        let put = commit.put.iter().map(|message| message.id.as_str()).collect::<Vec<_>>().join(" ");
        let about = format!("{} {:?} {:?} on {on} put [{put}]", header.run, header.stage, header.posture);
        let refused = |outcome: &CommitOutcome| match outcome {
            CommitOutcome::Committed { .. } => None,
            CommitOutcome::Conflict => Some(StorageErrorKind::Conflict),
            CommitOutcome::Unknown => Some(StorageErrorKind::Unknown),
        };
        match around(&*self.hook, Call { op: Op::CommitRun, about }, self.inner.runs().commit(commit), refused).await {
            Err(Failure::Hook(error)) if error.kind() == StorageErrorKind::Unknown => Ok(CommitOutcome::Unknown),
            Err(Failure::Hook(error)) if error.kind() == StorageErrorKind::Conflict => Ok(CommitOutcome::Conflict),
            outcome => outcome.map_err(Failure::into_error),
        }
    }

    async fn head(&self, thread: &ThreadId) -> Result<Option<Stored<ThreadHead>>, StorageError> {
        self.around(Op::ReadHead, thread.to_string(), self.inner.runs().head(thread)).await
    }

    async fn open(&self, query: &OpenRuns) -> Result<Page<RunHeader>, StorageError> {
        let about = match (&query.thread, &query.session) {
            (Some(thread), _) => thread.to_string(),
            (None, Some(session)) => format!("session {}", session.key),
            (None, None) => "all".to_owned(),
        };
        self.around(Op::OpenRuns, about, self.inner.runs().open(query)).await
    }

    async fn prune(&self, before: Timestamp) -> Result<u64, StorageError> {
        self.around(Op::PruneRuns, before.as_millis().to_string(), self.inner.runs().prune(before)).await
    }

    async fn lease(&self, run: &RunId) -> Result<Option<Lease>, StorageError> {
        self.around(Op::ReadLease, run.to_string(), self.inner.runs().lease(run)).await
    }

    /// `Conflict` from the hook becomes "somebody else has it".
    async fn take_lease(&self, run: &RunId, lease: &Lease, now: Timestamp) -> Result<bool, StorageError> {
        let about = format!("{run} by {} in {}", lease.owner, lease.epoch);
        let refused = |taken: &bool| (!taken).then_some(StorageErrorKind::Conflict);
        match around(&*self.hook, Call { op: Op::TakeLease, about }, self.inner.runs().take_lease(run, lease, now), refused).await {
            Err(Failure::Hook(error)) if error.kind() == StorageErrorKind::Conflict => Ok(false),
            outcome => outcome.map_err(Failure::into_error),
        }
    }

    async fn release_lease(&self, run: &RunId, owner: &OwnerId, epoch: u64) -> Result<(), StorageError> {
        self.around(Op::ReleaseLease, format!("{run} by {owner} in {epoch}"), self.inner.runs().release_lease(run, owner, epoch)).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Storage, H: Hook> SessionStore for HookedStorage<S, H> {
    async fn load(&self, id: &SessionId) -> Result<Option<Stored<Box<RawValue>>>, StorageError> {
        self.around(Op::LoadSession, id.key.to_string(), self.inner.sessions().load(id)).await
    }

    async fn save(&self, id: &SessionId, expect: Option<u64>, body: &RawValue) -> Result<u64, StorageError> {
        let on = expect.map_or_else(|| "nothing".to_owned(), |version| version.to_string());
        self.around(Op::SaveSession, format!("{} on {on}", id.key), self.inner.sessions().save(id, expect, body)).await
    }

    async fn list(&self, controller: &ControllerId, after: Option<&str>, limit: usize) -> Result<Page<SessionId>, StorageError> {
        self.around(Op::ListSessions, controller.to_string(), self.inner.sessions().list(controller, after, limit)).await
    }

    async fn delete(&self, id: &SessionId) -> Result<(), StorageError> {
        self.around(Op::DeleteSession, id.key.to_string(), self.inner.sessions().delete(id)).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Storage, H: Hook> StateStore for HookedStorage<S, H> {
    async fn get(&self, thread: &ThreadId, name: &str) -> Result<Option<Stored<Value>>, StorageError> {
        self.around(Op::GetState, format!("{thread} {name}"), self.inner.state().get(thread, name)).await
    }

    async fn put(&self, thread: &ThreadId, name: &str, expect: Option<u64>, value: &Value) -> Result<u64, StorageError> {
        let on = expect.map_or_else(|| "nothing".to_owned(), |version| version.to_string());
        self.around(Op::PutState, format!("{thread} {name} on {on}"), self.inner.state().put(thread, name, expect, value)).await
    }
}
