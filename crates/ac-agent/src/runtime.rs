//! Runs of one process: started, taken over, answered, parked.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ac_core::{CancelToken, Clock, ErrorInfo, Ids, ModelError, OwnerId, PendingId, RunId, ToolCallId, event::EndReason};
use ac_engine::{Answer, Effect, Input, Outcome, Phase, Refusal, RunSnapshot, StartRun};
use ac_llm::retry;
use ac_storage::{Lease, RunHeader, RunRecord, RunStage, Storage, Stored};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::TaskTracker;

use crate::{
    Accepted, RunError, RunErrorKind, RunHandle, RunHost, RunOrigin, RunStatus, RuntimeSettings, answer,
    commit::{Mark, Patience},
    driver::{Command, Driver, MAILBOX, Start},
    gate::{Schemas, failure},
    record,
};

/// Everything that moves runs in one process on one store.
#[derive(Clone)]
pub struct Runtime {
    shared: Arc<Shared>,
}

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
    tasks: TaskTracker,
}

impl Runtime {
    /// A runtime that owns nothing yet. `owner` must be new for each process life.
    pub fn new(storage: Arc<dyn Storage>, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>, owner: OwnerId, settings: RuntimeSettings) -> Self {
        let shared = Shared {
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
        };
        Self { shared: Arc::new(shared) }
    }

    /// The store.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.shared.storage
    }

    /// The time.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    /// Fresh ids.
    pub fn ids(&self) -> &Arc<dyn Ids> {
        &self.shared.ids
    }

    /// This process.
    pub fn owner(&self) -> &OwnerId {
        &self.shared.owner
    }

    /// The driver of a run in this process, if it has one.
    pub fn live(&self, run: &RunId) -> Option<RunHandle> {
        self.shared.live().get(run).cloned()
    }

    /// Starts a run. When this returns, the run and what it was asked are stored.
    ///
    /// # Errors
    /// [`RunErrorKind::Busy`] when another run holds the thread, [`RunErrorKind::Closed`] after [`Runtime::shutdown`], and what the store
    /// says.
    pub async fn start(&self, host: Arc<dyn RunHost>, origin: RunOrigin, start: StartRun) -> Result<RunHandle, RunError> {
        self.shared.check_open()?;
        let at = self.shared.clock.now();
        let mut snapshot = RunSnapshot::start(start, at);
        let before = snapshot.clone();
        let effects = if snapshot.outbox.is_empty() { snapshot.step(at, Input::Dispatch)? } else { vec![] };
        let Some(version) = self.shared.commit(&origin, None, &snapshot, &effects, Mark::Own).await? else {
            return Err(RunError::new(RunErrorKind::Busy, "another run holds this thread; wait for it or send the message to it"));
        };
        self.drive(host, origin, (before, snapshot, version, effects), None, None).await
    }

    /// Answers a wait (`R6`), wherever its run is: by the driver of this process; else by taking the run over; else, where another process
    /// moves it, by committing the answer for that process to find.
    ///
    /// # Errors
    /// [`RunErrorKind::InvalidAnswer`], [`RunErrorKind::Refused`] with the machine's reason, [`RunErrorKind::NotFound`], and what the store
    /// says. Nothing was changed then.
    pub async fn answer(
        &self,
        host: Arc<dyn RunHost>,
        pending: &PendingId,
        answer: Answer,
        request_context: Option<Map<String, Value>>,
    ) -> Result<Accepted, RunError> {
        let ask = Ask::Answer { pending: pending.clone(), answer, request_context };
        self.route(&host, &pending.run, &ask).await
    }

    /// Gives an input (a message, an abort, a cancelled call) to a run, wherever it is; see [`Runtime::answer`].
    ///
    /// # Errors
    /// As [`Runtime::answer`].
    pub async fn deliver(&self, host: Arc<dyn RunHost>, run: &RunId, input: Input) -> Result<Accepted, RunError> {
        self.route(&host, run, &Ask::Input(input)).await
    }

    async fn route(&self, host: &Arc<dyn RunHost>, run: &RunId, ask: &Ask) -> Result<Accepted, RunError> {
        for _ in 0..16 {
            if let Some(handle) = self.live(run) {
                match handle.ask(|reply| ask.command(reply)).await {
                    Err(error) if matches!(error.kind(), RunErrorKind::Closed | RunErrorKind::Owned) => {
                        self.shared.check_open()?;
                        handle.ended().await;
                    }
                    other => return other,
                }
            }
            // A refusal needs no owner: it is found out on the stored snapshot, and nothing is taken over for it.
            let (header, snapshot, version) = self.shared.read(run).await?;
            let origin = RunOrigin::of(&header);
            let reference = crate::RunRef { run: run.clone(), thread: snapshot.thread.clone(), resource: origin.resource.clone() };
            let prepared = ask.prepare(host.as_ref(), &reference, &snapshot).await?;
            let mut next = snapshot.clone();
            let effects = next.step(self.shared.clock.now(), prepared)?;
            if next == snapshot {
                return Ok(Accepted { repeated: true });
            }
            // The driver gets what it is taken over for before it looks around; else it would come to rest at once.
            let (reply, answer) = oneshot::channel();
            match self.take(host.clone(), run, Some(ask.command(reply))).await {
                Ok(handle) => match answer.await {
                    Ok(Err(error)) if matches!(error.kind(), RunErrorKind::Closed | RunErrorKind::Owned) => {
                        self.shared.check_open()?;
                        handle.ended().await;
                    }
                    Ok(other) => return other,
                    // Another caller took it over first; its driver is asked in the next round.
                    Err(_) => {}
                },
                Err(error) if error.kind() == RunErrorKind::Owned => {
                    let mark = Mark::Keep(header.mark.clone());
                    if self.shared.commit(&origin, Some(version), &next, &effects, mark).await?.is_some() {
                        return Ok(Accepted { repeated: false });
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(RunError::new(RunErrorKind::Owned, "the run is passed on all the time; try again"))
    }

    /// Takes a run over (`R5`): recovers it in a commit of its own and drives it. A run that this process drives already is left to it.
    ///
    /// # Errors
    /// [`RunErrorKind::Owned`] when somebody else moves it, [`RunErrorKind::NotFound`], [`RunErrorKind::Refused`] when it is over, and what
    /// the store says.
    pub async fn take_over(&self, host: Arc<dyn RunHost>, run: &RunId) -> Result<RunHandle, RunError> {
        self.take(host, run, None).await
    }

    async fn take(&self, host: Arc<dyn RunHost>, run: &RunId, first: Option<Command>) -> Result<RunHandle, RunError> {
        self.shared.check_open()?;
        let _one_at_a_time = self.shared.taking(run).lock().await;
        if let Some(handle) = self.live(run) {
            return Ok(handle);
        }
        for _ in 0..16 {
            let (header, before, version) = self.shared.read(run).await?;
            if header.stage == RunStage::Closed {
                return Err(Refusal::Finished.into());
            }
            let owned = || RunError::new(RunErrorKind::Owned, "another process moves this run");
            if self.shared.is_led(run, before.epoch).await? {
                return Err(owned());
            }
            let epoch = before.epoch + 1;
            let Some(lease) = self.shared.take_lease(run, epoch).await? else { return Err(owned()) };
            let origin = RunOrigin::of(&header);
            let mut snapshot = before.clone();
            let effects = snapshot.step(self.shared.clock.now(), Input::Recover { epoch })?;
            match self.shared.commit(&origin, Some(version), &snapshot, &effects, Mark::Own).await {
                Ok(Some(version)) => {
                    return self.drive(host, origin, (before, snapshot, version, effects), Some(lease), first).await;
                }
                Ok(None) => self.shared.storage.runs().release_lease(run, &self.shared.owner, epoch).await?,
                Err(error) => return Err(error),
            }
        }
        Err(RunError::new(RunErrorKind::Owned, "the run is passed on all the time; try again"))
    }

    /// A run as it is stored.
    ///
    /// # Errors
    /// [`RunErrorKind::Corrupt`] and what the store says.
    pub async fn load(&self, run: &RunId) -> Result<Option<(RunHeader, RunSnapshot)>, RunError> {
        match self.shared.read(run).await {
            Ok((header, snapshot, _)) => Ok(Some((header, snapshot))),
            Err(error) if error.kind() == RunErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Parks every run and gives the leases back. Takes at most the grace period and what the store needs. Afterwards nothing is started.
    pub async fn shutdown(&self) {
        self.shared.park.cancel();
        self.shared.tasks.close();
        let limit = self.shared.settings.grace * 2 + Duration::from_secs(3);
        if tokio::time::timeout(limit, self.shared.tasks.wait()).await.is_err() {
            tracing::warn!("some runs did not park in time; they are recovered when the store is opened again");
        }
    }

    /// Runs a task that is waited for at shutdown.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let park = self.shared.park.clone();
        self.shared.tasks.spawn(async move {
            tokio::select! {
                () = task => {}
                () = park.cancelled() => {}
            }
        });
    }

    /// Spawns the driver of a run whose last step, from `before` to `snapshot`, was just committed.
    async fn drive(
        &self,
        host: Arc<dyn RunHost>,
        origin: RunOrigin,
        (before, snapshot, version, effects): (RunSnapshot, RunSnapshot, u64, Vec<Effect>),
        lease: Option<Lease>,
        first: Option<Command>,
    ) -> Result<RunHandle, RunError> {
        let run = snapshot.run.clone();
        // The step is stored: from here on nothing may be reported as if it were not. Without a lease the driver starts nothing that acts
        // before it has one.
        let lease = match lease {
            Some(lease) => Some(lease),
            None => self.shared.take_lease(&run, snapshot.epoch).await.ok().flatten(),
        };
        let head = self.shared.storage.runs().head(&snapshot.thread).await.ok().flatten();
        let usage = head.map(|head| head.value.usage).unwrap_or_default();
        let (commands, mailbox) = mpsc::channel(MAILBOX);
        if let Some(first) = first {
            // The mailbox is empty, so there is room.
            let _ = commands.try_send(first);
        }
        let status = RunStatus { segment_open: false, posture: snapshot.posture(), outcome: snapshot.outcome().cloned(), ended: false };
        let (tell_status, status) = watch::channel(status);
        let handle = RunHandle::new(run.clone(), snapshot.thread.clone(), commands, status);
        let start = Start { origin, snapshot, version, lease, usage };
        let driver = Driver::new(self.shared.clone(), host, start, mailbox, tell_status);
        self.shared.live().insert(run, handle.clone());
        self.shared.tasks.spawn(driver.run(before, effects));
        Ok(handle)
    }
}

impl Shared {
    fn live(&self) -> MutexGuard<'_, HashMap<RunId, RunHandle>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The driver of this run is gone.
    pub(crate) fn forget(&self, run: &RunId) {
        self.live().remove(run);
    }

    fn check_open(&self) -> Result<(), RunError> {
        if self.park.is_cancelled() {
            return Err(RunError::new(
                RunErrorKind::Closed,
                "this process is shutting down; the run goes on when the store is opened again",
            ));
        }
        Ok(())
    }

    fn taking(&self, run: &RunId) -> &tokio::sync::Mutex<()> {
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
    async fn is_led(&self, run: &RunId, epoch: u64) -> Result<bool, RunError> {
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

    async fn read(&self, run: &RunId) -> Result<(RunHeader, RunSnapshot, u64), RunError> {
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

/// What somebody wants of a run, until it is settled who moves that run.
#[derive(Clone)]
enum Ask {
    Input(Input),
    Answer { pending: PendingId, answer: Answer, request_context: Option<Map<String, Value>> },
}

impl Ask {
    fn command(&self, reply: oneshot::Sender<Result<Accepted, RunError>>) -> Command {
        match self.clone() {
            Self::Input(input) => Command::Input { input, reply },
            Self::Answer { pending, answer, request_context } => Command::Answer { pending, answer, request_context, reply },
        }
    }

    /// The input that it is for the machine.
    async fn prepare(&self, host: &dyn RunHost, run: &crate::RunRef, snapshot: &RunSnapshot) -> Result<Input, RunError> {
        match self.clone() {
            Self::Input(input) => Ok(input),
            Self::Answer { pending, answer, request_context } => {
                answer::prepare(host, run, snapshot, &mut Schemas::default(), pending, answer, request_context).await
            }
        }
    }
}

/// How the last segment of a run ends.
pub(crate) fn end_of(outcome: &Outcome) -> (EndReason, Option<ErrorInfo>) {
    match outcome {
        Outcome::Complete => (EndReason::Complete, None),
        Outcome::Aborted => (EndReason::Aborted, None),
        Outcome::Error { error } => (EndReason::Error, Some(error.clone())),
    }
}
