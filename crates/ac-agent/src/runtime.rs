//! Runs of one process: started, taken over, answered, parked.

use std::{sync::Arc, time::Duration};

use ac_core::{Clock, Ids, OwnerId, PendingId, RunId};
use ac_engine::{Answer, Effect, Input, Posture, Refusal, RunSnapshot, StartRun};
use ac_storage::{Lease, RunHeader, RunStage, Storage};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::Instrument as _;

use crate::{
    Accepted, RunError, RunErrorKind, RunHandle, RunHost, RunOrigin, RunStatus, RuntimeSettings,
    ask::{Ask, Command, MAILBOX},
    commit::Mark,
    driver::{Driver, Start},
    progress::ProgressBuffer,
    shared::Shared,
    spans,
};

/// Everything that moves runs in one process on one store.
#[derive(Clone)]
pub struct Runtime {
    shared: Arc<Shared>,
}

impl Runtime {
    /// A runtime that owns nothing yet. `owner` must be new for each process life.
    pub fn new(storage: Arc<dyn Storage>, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>, owner: OwnerId, settings: RuntimeSettings) -> Self {
        Self { shared: Arc::new(Shared::new(storage, clock, ids, owner, settings)) }
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
        // A child begins when it is its turn.
        let at_once = snapshot.outbox.is_empty() && snapshot.parent.is_none();
        let effects = if at_once { snapshot.step(at, Input::Dispatch)? } else { vec![] };
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
            let prepared = ask.prepare(host.as_ref(), &reference, &snapshot, &self.shared.schemas).await?;
            let mut next = snapshot.clone();
            let effects = next.step(self.shared.clock.now(), prepared)?;
            if next == snapshot {
                return Ok(Accepted { repeated: true });
            }
            self.attend_parent(host.as_ref(), &snapshot).await;
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
                // It was closed since it was read: what was said is judged by what is stored now.
                Err(error) if error.kind() == RunErrorKind::Refused(Refusal::Finished) => {}
                Err(error) => return Err(error),
            }
        }
        Err(RunError::new(RunErrorKind::Owned, "the run is passed on all the time; try again"))
    }

    /// Whether another process moves this run.
    ///
    /// # Errors
    /// What the store says.
    pub async fn is_led_elsewhere(&self, header: &RunHeader) -> Result<bool, RunError> {
        Ok(self.live(&header.run).is_none() && self.shared.is_led(&header.run, header.epoch).await?)
    }

    /// Takes a run over (`R5`): recovers it in a commit of its own and drives it. A run that this process drives already is left to it.
    ///
    /// # Errors
    /// [`RunErrorKind::Owned`] when somebody else moves it, [`RunErrorKind::NotFound`], [`RunErrorKind::Refused`] when it is over, and what
    /// the store says.
    pub async fn take_over(&self, host: Arc<dyn RunHost>, run: &RunId) -> Result<RunHandle, RunError> {
        let (_, snapshot, _) = self.shared.read(run).await?;
        self.attend_parent(host.as_ref(), &snapshot).await;
        self.take(host, run, None).await
    }

    /// A child does not go on alone.
    async fn attend_parent(&self, host: &dyn RunHost, snapshot: &RunSnapshot) {
        if let Some((parent, _)) = &snapshot.parent
            && self.live(parent).is_none()
        {
            host.attend(parent).await;
        }
    }

    /// What a run waits for, its child runs included, wherever they are.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn posture(&self, snapshot: &RunSnapshot) -> Result<Posture, RunError> {
        self.shared.posture(snapshot).await
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
        let span = spans::run(&run, &snapshot.thread);
        let status = RunStatus { segment_open: false, posture: snapshot.posture(), outcome: snapshot.outcome().cloned(), ended: false };
        let (tell_status, status) = watch::channel(status);
        let progress = Arc::<ProgressBuffer>::default();
        let handle = RunHandle::new(run.clone(), snapshot.thread.clone(), commands, status, progress.clone());
        let start = Start { origin, snapshot, version, lease, usage, progress };
        let driver = Driver::new(self.shared.clone(), host, start, mailbox, tell_status);
        self.shared.live().insert(run, handle.clone());
        self.shared.tasks.spawn(driver.run(before, effects).instrument(span));
        Ok(handle)
    }
}
