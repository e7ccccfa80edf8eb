//! The driver: one task per run that this process moves.
//!
//! It holds the snapshot, gives inputs to the machine, commits (`R1`), starts what the machine asks for, and tells. Model calls are polled
//! here; tools run as tasks of a set that the driver owns.

mod alarm;
mod children;
mod commit;
mod judge;
mod sample;
mod tools;

use std::{
    collections::HashMap,
    pin::{Pin, pin},
    sync::Arc,
};

use ac_core::{CancelToken, RunId, ToolCallId, event::EndReason};
use ac_engine::{Input, Posture, RunSnapshot};
use ac_storage::Lease;
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc, oneshot, watch},
    task::JoinSet,
    time::{Instant, Sleep},
};

use self::children::Turnstile;
use crate::{
    Accepted, ChildProfile, RunError, RunErrorKind, RunHost, RunRef, RunStatus,
    ask::{Command, reject},
    history::History,
    progress::ProgressBuffer,
    record::RunOrigin,
    sampling::{Sampled, Sampling},
    shared::Shared,
    teller::Teller,
    upward::Upward,
};

/// Whether the driver goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Go {
    On,
    /// The run is closed, or parked, or another process has it.
    End,
}

/// A tool at work.
struct Working {
    attempt: u32,
    cancel: CancelToken,
    /// When its time to end well is over.
    kill_at: Option<Instant>,
    abort: tokio::task::AbortHandle,
}

pub(crate) struct Driver {
    shared: Arc<Shared>,
    host: Arc<dyn RunHost>,
    origin: RunOrigin,
    run: RunRef,
    snapshot: RunSnapshot,
    version: u64,
    lease: Option<Lease>,
    history: Option<History>,
    teller: Teller,
    commands: mpsc::Receiver<Command>,
    status: watch::Sender<RunStatus>,
    /// Fires when the process stops: the run is parked.
    park: CancelToken,
    /// Parent of the tokens of everything in flight.
    cancel: CancelToken,
    sampling: Option<Sampling>,
    judging: Option<judge::Judging>,
    /// The model is not asked again before this.
    backoff: Option<Instant>,
    /// The model call was told to stop; what it showed is reported next.
    stopped: bool,
    tools: JoinSet<tools::Report>,
    working: HashMap<ToolCallId, Working>,
    progress: Arc<ProgressBuffer>,
    /// What children wait for that this process does not move, as the store said last.
    resting: HashMap<RunId, Posture>,
    /// Why children were not started.
    refused: HashMap<RunId, String>,
    /// The turn of a run that serves another.
    turnstile: Turnstile,
    /// The last outbox item that was applied.
    applied: u64,
    /// Nothing new is started any more.
    parking: bool,
    /// When the lease is renewed next, and when the store is looked at next. Kept here, because whatever else happens meanwhile must not
    /// put them off: a long answer comes in many small pieces.
    renew_at: Instant,
    poll_at: Instant,
    /// Rings no later than the first thing that is due. It is set when it rings, not with each piece of an answer.
    alarm: Pin<Box<Sleep>>,
}

/// What a driver starts from.
pub(crate) struct Start {
    pub(crate) origin: RunOrigin,
    pub(crate) snapshot: RunSnapshot,
    pub(crate) version: u64,
    pub(crate) lease: Option<Lease>,
    pub(crate) usage: ac_core::Usage,
    pub(crate) progress: Arc<ProgressBuffer>,
}

impl Driver {
    pub(crate) fn new(
        shared: Arc<Shared>,
        host: Arc<dyn RunHost>,
        start: Start,
        commands: mpsc::Receiver<Command>,
        status: watch::Sender<RunStatus>,
    ) -> Self {
        let Start { origin, snapshot, version, lease, usage, progress } = start;
        let run = RunRef { run: snapshot.run.clone(), thread: snapshot.thread.clone(), resource: origin.resource.clone() };
        let upward = snapshot.parent.clone().zip(ChildProfile::of(&snapshot.profile));
        let upward = upward.map(|(parent, child)| Upward::new(shared.clone(), parent, snapshot.profile.model.clone(), child));
        let parent_call = snapshot.parent.as_ref().map(|(_, call)| call.clone());
        let teller = Teller::new(host.clone(), run.clone(), parent_call, upward, usage, snapshot.message.clone());
        let turnstile = Turnstile::new(snapshot.parent.as_ref().map(|(parent, _)| shared.places(parent)));
        let park = shared.park.child();
        let (renew_at, poll_at) = (Instant::now() + shared.settings.lease / 3, Instant::now() + shared.settings.poll);
        Self {
            shared,
            host,
            origin,
            run,
            snapshot,
            version,
            lease,
            history: None,
            teller,
            commands,
            status,
            park,
            cancel: CancelToken::new(),
            sampling: None,
            judging: None,
            backoff: None,
            stopped: false,
            tools: JoinSet::new(),
            working: HashMap::new(),
            progress,
            resting: HashMap::new(),
            refused: HashMap::new(),
            turnstile,
            applied: 0,
            parking: false,
            renew_at,
            poll_at,
            alarm: Box::pin(tokio::time::sleep_until(poll_at)),
        }
    }

    /// Moves the run until it is closed, parked or lost. `first` is what follows from the commit that it was
    /// started by, made on `before`.
    pub(crate) async fn run(mut self, before: RunSnapshot, first: Vec<ac_engine::Effect>) {
        self.poke_parent();
        if self.react(&before, first).await == Go::End {
            return self.end().await;
        }
        loop {
            self.publish();
            let go = match self.advance().await {
                Ok(Go::On) => self.wait().await,
                Ok(Go::End) => Go::End,
                Err(error) => self.trouble(&error).await,
            };
            if go == Go::End {
                break;
            }
        }
        self.end().await;
    }

    /// Does what can be done without waiting for anybody: applies the outbox, dispatches, notices that nothing moves any more.
    async fn advance(&mut self) -> Result<Go, RunError> {
        if self.park.is_cancelled() {
            return Ok(self.park().await);
        }
        // First, because it may be what ends the run.
        if self.stopped && self.report_stopped().await? == Go::End {
            return Ok(Go::End);
        }
        while let Some(last) = self.snapshot.outbox.last().map(|item| item.n) {
            self.apply_outbox().await?;
            if self.feed(Some(Input::Applied { upto: last })).await? == Go::End {
                return Ok(Go::End);
            }
        }
        if self.snapshot.is_closed() {
            return Ok(Go::End);
        }
        if self.has_children() && self.look_at_children(false).await? == Go::End {
            return Ok(Go::End);
        }
        // A step that was ended, or tried successfully, leaves nothing to wait for.
        if self.snapshot.failures == 0 {
            self.backoff = None;
        }
        // While the model answers there is nothing to dispatch.
        if self.backoff.is_none() && self.sampling.is_none() && self.judging.is_none() && self.feed(None).await? == Go::End {
            return Ok(Go::End);
        }
        if self.in_flight() || !self.snapshot.outbox.is_empty() {
            return Ok(Go::On);
        }
        match self.posture() {
            Posture::Approval | Posture::Parked => self.rest().await,
            Posture::Moving | Posture::Finished => Ok(Go::On),
        }
    }

    fn in_flight(&self) -> bool {
        self.sampling.is_some() || self.judging.is_some() || !self.working.is_empty() || self.backoff.is_some()
    }

    /// Nothing moves: gives the lease back and looks once more, so that an answer that was committed meanwhile is not missed (`R3`).
    async fn rest(&mut self) -> Result<Go, RunError> {
        // Whoever waits for the end of the segment sees it, however fast somebody answers.
        self.suspend();
        if let Ok(command) = self.commands.try_recv() {
            return self.command(command).await;
        }
        self.release().await;
        self.turnstile.leave();
        let before = self.version;
        if self.sync().await? == Go::End {
            return Ok(Go::End);
        }
        let posture = self.posture();
        if self.version != before || posture == Posture::Moving {
            return Ok(Go::On);
        }
        self.suspend();
        self.publish();
        // Who has children waits for them here: what they do next opens the next segment.
        if posture == Posture::Parked && !self.has_children() {
            // Whoever sent a command meanwhile is answered before the task ends.
            self.commands.close();
            while let Some(command) = self.commands.recv().await {
                reject(command);
            }
            return Ok(Go::End);
        }
        Ok(Go::On)
    }

    /// Waits for whatever comes next and reacts to it. The pieces of an answer are taken as they come: they change nothing but the view,
    /// so there is nothing else to look at between them.
    async fn wait(&mut self) -> Go {
        let (park, progress) = (self.park.clone(), self.progress.clone());
        let (mut parked, mut reported) = (pin!(park.cancelled()), pin!(progress.ready()));
        loop {
            let due = self.due();
            if self.alarm.deadline() > due {
                self.alarm.as_mut().reset(due);
            }
            let next = tokio::select! {
                biased;
                () = parked.as_mut() => return Go::On,
                command = self.commands.recv() => Next::Command(command),
                Some(report) = self.tools.join_next_with_id(), if !self.tools.is_empty() => Next::Tool(report),
                () = reported.as_mut() => Next::Progress,
                place = children::place(self.turnstile.waits_at()) => Next::Place(place),
                () = self.alarm.as_mut() => Next::Alarm,
                // After the clock: a model that is always ready starves nobody.
                sampled = sampled(&mut self.sampling) => Next::Sampled(sampled),
                judged = judge::judged(&mut self.judging) => Next::Judged(judged),
            };
            let pieces = matches!(next, Next::Sampled(_)).then_some(self.version);
            let go = match self.take(next).await {
                Ok(go) => go,
                Err(error) => self.trouble(&error).await,
            };
            if go == Go::End || pieces != Some(self.version) || self.sampling.is_none() {
                return go;
            }
        }
    }

    async fn take(&mut self, next: Next) -> Result<Go, RunError> {
        match next {
            Next::Command(Some(command)) => self.command(command).await,
            // Every handle is gone; the run goes on all the same.
            Next::Command(None) => {
                self.commands = mpsc::channel(1).1;
                Ok(Go::On)
            }
            Next::Tool(report) => self.tool_reported(report).await,
            Next::Progress => {
                self.tell_progress();
                Ok(Go::On)
            }
            Next::Place(place) => {
                self.turnstile.take(place);
                Ok(Go::On)
            }
            Next::Sampled(sampled) => self.sampled(sampled).await,
            Next::Judged(judgement) => self.judged(judgement).await,
            Next::Alarm => self.alarm().await,
        }
    }

    fn tell_progress(&mut self) {
        for body in self.progress.take() {
            self.teller.tell(body);
        }
    }

    async fn command(&mut self, command: Command) -> Result<Go, RunError> {
        match command {
            Command::Park => Ok(self.park().await),
            Command::Input { input, reply } => self.answer_command(input, reply).await,
            Command::Answer { pending, answer, request_context, reply } => {
                let prepared = crate::answer::prepare(
                    self.host.as_ref(),
                    &self.run,
                    &self.snapshot,
                    &self.shared.schemas,
                    pending,
                    answer,
                    request_context,
                )
                .await;
                match prepared {
                    Ok(input) => self.answer_command(input, reply).await,
                    Err(error) => {
                        let _ = reply.send(Err(error));
                        Ok(Go::On)
                    }
                }
            }
        }
    }

    async fn answer_command(&mut self, input: Input, reply: oneshot::Sender<Result<Accepted, RunError>>) -> Result<Go, RunError> {
        let fed = self.feed_input(Some(input)).await;
        // Whoever asked sees the run as it is after what it said.
        self.publish();
        match fed {
            Ok((go, moved)) => {
                let answered = if go == Go::End && !moved {
                    Err(RunError::new(RunErrorKind::Owned, "another process moves this run; try again"))
                } else {
                    Ok(Accepted { repeated: !moved })
                };
                let _ = reply.send(answered);
                Ok(go)
            }
            Err(error) => {
                let fatal = !matches!(error.kind(), RunErrorKind::Refused(_));
                let echo = RunError::new(error.kind(), error.to_string());
                let _ = reply.send(Err(error));
                if fatal { Err(echo) } else { Ok(Go::On) }
            }
        }
    }

    /// A child may be over; another process may have stored something: an answer, a message, an abort.
    async fn poll_store(&mut self) -> Result<Go, RunError> {
        self.poll_at = Instant::now() + self.shared.settings.poll;
        if self.sync().await? == Go::End {
            return Ok(Go::End);
        }
        self.look_at_children(true).await
    }

    /// The store failed. What was not committed did not happen; the run is left to be recovered, and whoever listens is told.
    async fn trouble(&mut self, error: &RunError) -> Go {
        tracing::warn!(run = %self.snapshot.run, code = error.code(), "the run stops here: {error}");
        self.stop_work().await;
        self.teller.tell(ac_core::EventBody::Error { error: error.into(), retry: None });
        self.teller.end_segment(EndReason::Suspended, None, None);
        Go::End
    }

    /// The process stops: tools get their time to end, what they did is stored, and the run is left where it is.
    async fn park(&mut self) -> Go {
        self.parking = true;
        self.sampling = None;
        self.judging = None;
        let deadline = Instant::now() + self.shared.settings.grace;
        while !self.working.is_empty() {
            let report = tokio::select! {
                report = self.tools.join_next_with_id() => report,
                () = tokio::time::sleep_until(deadline) => None,
            };
            let Some(report) = report else { break };
            if !matches!(self.tool_reported(report).await, Ok(Go::On)) {
                break;
            }
        }
        self.stop_work().await;
        self.teller.end_segment(EndReason::Suspended, None, None);
        Go::End
    }

    /// Drops the model call and every tool.
    async fn stop_work(&mut self) {
        self.sampling = None;
        self.judging = None;
        self.cancel.cancel();
        self.tools.shutdown().await;
        self.working.clear();
        self.tell_progress();
    }

    async fn end(mut self) {
        self.commands.close();
        self.stop_work().await;
        self.release().await;
        self.shared.forget(&self.snapshot.run);
        while let Some(command) = self.commands.recv().await {
            reject(command);
        }
        self.publish();
        self.status.send_modify(|status| status.ended = true);
        match &self.snapshot.parent {
            // Whoever had the parent lost it meanwhile: somebody has to take the result.
            Some((parent, _)) if self.snapshot.is_finished() && self.shared.live().get(parent).is_none() => self.host.attend(parent).await,
            _ => self.poke_parent(),
        }
    }

    fn publish(&self) {
        let status = RunStatus {
            segment_open: self.teller.in_segment(),
            posture: self.posture(),
            outcome: self.snapshot.outcome().cloned(),
            ended: false,
        };
        let modified = self.status.send_if_modified(|old| {
            let changed = *old != status;
            *old = status;
            changed
        });
        if modified {
            self.poke_parent();
        }
    }
}

enum Next {
    Command(Option<Command>),
    Tool(Result<(tokio::task::Id, tools::Report), tokio::task::JoinError>),
    Progress,
    Place(OwnedSemaphorePermit),
    Sampled(Sampled),
    Judged(crate::Judgement),
    Alarm,
}

async fn sampled(sampling: &mut Option<Sampling>) -> Sampled {
    match sampling {
        Some(sampling) => sampling.next().await,
        None => std::future::pending().await,
    }
}
