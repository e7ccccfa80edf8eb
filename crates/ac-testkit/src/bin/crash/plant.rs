//! Faults on purpose, and death at a write.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use ac_core::{Message, OwnerId, Part, Role, RunId, ThreadId, Timestamp, ToolCallState};
use ac_storage::{
    Commit, CommitOutcome, Lease, MessageStore, Page, RunHeader, RunRecord, RunStore, SessionStore, StateStore, Storage, StorageError,
    StorageErrorKind, Stored, ThreadHead, ThreadStore, domain::OpenRuns,
};
use ac_testkit::store::{Call, Hook};
use async_trait::async_trait;

/// A fault that the checker must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Plant {
    /// A message that was acknowledged is not stored.
    Lose,
    /// A message is stored twice.
    Double,
    /// What must not happen twice is done again after a crash.
    Repeat,
    /// A call is stored without its result.
    Orphan,
}

impl Plant {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lose => "lose",
            Self::Double => "double",
            Self::Repeat => "repeat",
            Self::Orphan => "orphan",
        }
    }

    /// What this fault makes of the messages of a commit.
    fn spoil(self, put: &[Arc<Message>]) -> Vec<Arc<Message>> {
        let said = |message: &Message| message.role == Role::User;
        match self {
            Self::Repeat => put.to_vec(),
            // The first message of a thread is left alone, so that there is something to go on with.
            Self::Lose => put.iter().filter(|message| !said(message) || message.text().contains(" 0 ")).cloned().collect(),
            Self::Double => put
                .iter()
                .flat_map(|message| {
                    let mut again = Message::clone(message);
                    again.id = format!("{}-again", message.id).into();
                    [Some(message.clone()), said(message).then(|| Arc::new(again))]
                })
                .flatten()
                .collect(),
            Self::Orphan => put
                .iter()
                .map(|message| {
                    let mut message = Message::clone(message);
                    for part in &mut message.parts {
                        if let Part::ToolCall(call) = part {
                            call.state = ToolCallState::Call;
                        }
                    }
                    Arc::new(message)
                })
                .collect(),
        }
    }
}

/// A store that breaks what it is given.
pub(crate) struct Planted<S> {
    pub(crate) inner: S,
    pub(crate) plant: Plant,
}

impl<S: Storage> Storage for Planted<S> {
    fn threads(&self) -> &dyn ThreadStore {
        self.inner.threads()
    }

    fn messages(&self) -> &dyn MessageStore {
        self.inner.messages()
    }

    fn runs(&self) -> &dyn RunStore {
        self
    }

    fn sessions(&self) -> &dyn SessionStore {
        self.inner.sessions()
    }

    fn state(&self) -> &dyn StateStore {
        self.inner.state()
    }
}

#[async_trait]
impl<S: Storage> RunStore for Planted<S> {
    async fn load(&self, run: &RunId) -> Result<Option<Stored<RunRecord>>, StorageError> {
        self.inner.runs().load(run).await
    }

    async fn commit(&self, commit: Commit<'_>) -> Result<CommitOutcome, StorageError> {
        let put = self.plant.spoil(commit.put);
        self.inner.runs().commit(Commit { put: &put, ..commit }).await
    }

    async fn head(&self, thread: &ThreadId) -> Result<Option<Stored<ThreadHead>>, StorageError> {
        self.inner.runs().head(thread).await
    }

    async fn open(&self, query: &OpenRuns) -> Result<Page<RunHeader>, StorageError> {
        self.inner.runs().open(query).await
    }

    async fn prune(&self, before: Timestamp) -> Result<u64, StorageError> {
        self.inner.runs().prune(before).await
    }

    async fn lease(&self, run: &RunId) -> Result<Option<Lease>, StorageError> {
        self.inner.runs().lease(run).await
    }

    async fn take_lease(&self, run: &RunId, lease: &Lease, now: Timestamp) -> Result<bool, StorageError> {
        self.inner.runs().take_lease(run, lease, now).await
    }

    async fn release_lease(&self, run: &RunId, owner: &OwnerId, epoch: u64) -> Result<(), StorageError> {
        self.inner.runs().release_lease(run, owner, epoch).await
    }
}

/// Counts writes, and kills its process at one of them.
#[derive(Debug, Default)]
pub(crate) struct Killer {
    pub(crate) writes: AtomicU64,
    pub(crate) at: Option<u64>,
    pub(crate) after: bool,
}

#[async_trait]
impl Hook for Killer {
    /// Whether to die when the write is made.
    type Note = bool;

    async fn before(&self, call: &Call) -> Result<bool, StorageError> {
        if !call.op.writes() {
            return Ok(false);
        }
        let now = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        if Some(now) != self.at {
            return Ok(false);
        }
        if !self.after {
            die();
        }
        Ok(true)
    }

    async fn after(&self, _: Call, dies: bool, _: Option<StorageErrorKind>) -> Result<(), StorageError> {
        if dies {
            die();
        }
        Ok(())
    }
}

/// Ends this process as a kill from outside would.
fn die() {
    // Nothing to be done if it fails: the run goes on, and is not counted as killed.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}
