//! What everything that moves runs in one process shares: the store, the time, who runs here.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ac_core::{CancelToken, Clock, Ids, ModelError, OwnerId, RunId, ToolCallId};
use ac_engine::{Input, Outcome, Phase, RunSnapshot};
use ac_llm::retry;
use ac_storage::{Lease, RunHeader, RunRecord, Storage, Stored};
use tokio_util::task::TaskTracker;

use crate::{RunError, RunErrorKind, RunHandle, RuntimeSettings, gate::failure, patience::Patience, record};

/// Shared by a runtime and its drivers.
pub(crate) struct Shared {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) owner: OwnerId,
    pub(crate) settings: RuntimeSettings,
    /// Fires when the process stops.
    pub(crate) park: CancelToken,
    commits: AtomicU64,
    live: Mutex<HashMap<RunId, RunHandle>>,
    /// One taking over at a time, for each part of the runs, so that two callers of this process do not fence one another.
    taking: [tokio::sync::Mutex<()>; 16],
    pub(crate) tasks: TaskTracker,
}

impl Shared {
    /// Nothing runs yet.
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        owner: OwnerId,
        settings: RuntimeSettings,
    ) -> Self {
        Self {
            storage,
            clock,
            ids,
            owner,
            settings,
            park: CancelToken::new(),
            commits: AtomicU64::new(0),
            live: Mutex::default(),
            taking: Default::default(),
            tasks: TaskTracker::new(),
        }
    }

    /// The drivers of this process.
    pub(crate) fn live(&self) -> MutexGuard<'_, HashMap<RunId, RunHandle>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The driver of this run is gone.
    pub(crate) fn forget(&self, run: &RunId) {
        self.live().remove(run);
    }

    /// Refuses work once the process stops.
    pub(crate) fn check_open(&self) -> Result<(), RunError> {
        if self.park.is_cancelled() {
            return Err(RunError::new(
                RunErrorKind::Closed,
                "this process is shutting down; the run goes on when the store is opened again",
            ));
        }
        Ok(())
    }

    /// What one taking over of this run waits at for another.
    pub(crate) fn taking(&self, run: &RunId) -> &tokio::sync::Mutex<()> {
        let place = run.as_str().bytes().fold(0usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        let [first, ..] = &self.taking;
        self.taking.get(place % self.taking.len()).unwrap_or(first)
    }

    /// Counts the commits of this process.
    pub(crate) fn count(&self) -> u64 {
        self.commits.fetch_add(1, Ordering::Relaxed)
    }

    /// How long to wait before a model call is tried again, after `tries` of at most `attempts` failed; `None` when that is no use.
    pub(crate) fn retry(&self, run: &RunId, error: &ModelError, tries: u32, attempts: u32) -> Option<Duration> {
        let mut policy = self.settings.retry;
        policy.attempts = attempts;
        // Jitter has to differ between runs that failed together, and to be the same in every transcript of one run.
        let spread = run.as_str().bytes().fold(tries, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
        retry::next(&policy, error, tries, f64::from(spread % 1000) / 1000.0)
    }

    /// Takes or renews the lease of a run.
    pub(crate) async fn take_lease(&self, run: &RunId, epoch: u64) -> Result<Option<Lease>, RunError> {
        let now = self.clock.now();
        let lasts = i64::try_from(self.settings.lease.as_millis()).unwrap_or(i64::MAX);
        let lease = Lease { owner: self.owner.clone(), epoch, expires: now.plus_millis(lasts) };
        let taken = {
            let mut patience = Patience::default();
            loop {
                match self.storage.runs().take_lease(run, &lease, now).await {
                    Err(error) if patience.allows(&error).await => {}
                    other => break other?,
                }
            }
        };
        Ok(taken.then_some(lease))
    }

    /// Whether another process moves the run: its lease is of the run's own epoch, and lasts.
    pub(crate) async fn is_led(&self, run: &RunId, epoch: u64) -> Result<bool, RunError> {
        let now = self.clock.now();
        let lease = self.storage.runs().lease(run).await?;
        Ok(lease.is_some_and(|lease| lease.owner != self.owner && lease.epoch >= epoch && lease.expires > now))
    }

    /// The row of a run.
    pub(crate) async fn load_row(&self, run: &RunId) -> Result<Option<Stored<RunRecord>>, RunError> {
        let mut patience = Patience::default();
        loop {
            match self.storage.runs().load(run).await {
                Err(error) if patience.allows(&error).await => {}
                other => return Ok(other?),
            }
        }
    }

    /// A run as it is stored, and the version of its row.
    pub(crate) async fn read(&self, run: &RunId) -> Result<(RunHeader, RunSnapshot, u64), RunError> {
        let stored = self.load_row(run).await?;
        let stored = stored.ok_or_else(|| RunError::new(RunErrorKind::NotFound, "there is no such run"))?;
        let snapshot = record::snapshot(&stored.value)?;
        Ok((stored.value.header, snapshot, stored.version))
    }

    /// The input that the end of a child run is, once it has ended. Its record is read, so that a lost notification costs a poll and never
    /// a result.
    pub(crate) async fn child_finished(&self, call: &ToolCallId, child: &RunId) -> Result<Option<Input>, RunError> {
        let (_, snapshot, _) = match self.read(child).await {
            Ok(found) => found,
            Err(error) if error.kind() == RunErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let Phase::Finished { outcome, .. } = &snapshot.phase else { return Ok(None) };
        let text = self.last_text(&snapshot).await?;
        let result = match outcome {
            Outcome::Complete => ac_engine::ToolResult { output: ac_core::ToolOutput::text(text), is_error: false },
            Outcome::Aborted => failure(&format!("The subagent was stopped. What it said: {text}")),
            Outcome::Error { error } => failure(&format!("The subagent failed: {}. What it said: {text}", error.message)),
        };
        let usage = self.storage.runs().head(&snapshot.thread).await?.map(|head| head.value.usage);
        Ok(Some(Input::ChildFinished { call: call.clone(), result, usage }))
    }

    async fn last_text(&self, snapshot: &RunSnapshot) -> Result<String, RunError> {
        let query = ac_storage::domain::MessageQuery { newest_first: true, limit: 8, ..Default::default() };
        let page = self.storage.messages().page(&snapshot.thread, &query).await?;
        let last = page.items.into_iter().find(|stored| stored.message.role == ac_core::Role::Assistant);
        Ok(last.map(|stored| stored.message.text()).unwrap_or_default())
    }
}
