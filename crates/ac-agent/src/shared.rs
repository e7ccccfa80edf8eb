//! What everything that moves runs in one process shares: the store, the time, who runs here.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ac_core::{CancelToken, Clock, Ids, ModelError, OwnerId, RunId};
use ac_engine::RunSnapshot;
use ac_llm::retry;
use ac_storage::{Lease, RunHeader, RunRecord, Storage, Stored};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::{RunError, RunErrorKind, RunHandle, RuntimeSettings, gate::Schemas, patience::Patience, record};

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
    /// What arguments and answers are checked against.
    pub(crate) schemas: Schemas,
    /// The places of the children of each run.
    places: Mutex<HashMap<RunId, Weak<Semaphore>>>,
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
            schemas: Schemas::default(),
            places: Mutex::default(),
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

    /// The places of the children of a run.
    pub(crate) fn places(&self, parent: &RunId) -> Arc<Semaphore> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = places.get(parent).and_then(Weak::upgrade) {
            return known;
        }
        places.retain(|_, places| places.strong_count() > 0);
        let fresh = Arc::new(Semaphore::new(self.settings.children.max(1)));
        places.insert(parent.clone(), Arc::downgrade(&fresh));
        fresh
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
}
