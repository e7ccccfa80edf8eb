use std::sync::Arc;

use ac_core::{RunId, ThreadId};
use ac_engine::{Outcome, Posture};
use tokio::sync::{mpsc, oneshot, watch};

use crate::{RunError, RunErrorKind, ask::Command, progress::ProgressBuffer};

/// What a person said was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The same was said before; nothing changed.
    pub repeated: bool,
}

/// How a run that this process drives stands.
#[derive(Clone, Debug, PartialEq)]
pub struct RunStatus {
    /// Between `agent_start` and `agent_end`.
    pub segment_open: bool,
    /// What the run waits for, its child runs included: one whose children wait for people waits for people.
    pub posture: Posture,
    /// How it ended, if it did.
    pub outcome: Option<Outcome>,
    /// The driver is gone: the run is closed, parked, or moved by another process.
    pub ended: bool,
}

/// A run that this process drives.
#[derive(Clone, Debug)]
pub struct RunHandle {
    run: RunId,
    thread: ThreadId,
    commands: mpsc::Sender<Command>,
    status: watch::Receiver<RunStatus>,
    progress: Arc<ProgressBuffer>,
}

impl RunHandle {
    pub(crate) fn new(
        run: RunId,
        thread: ThreadId,
        commands: mpsc::Sender<Command>,
        status: watch::Receiver<RunStatus>,
        progress: Arc<ProgressBuffer>,
    ) -> Self {
        Self { run, thread, commands, status, progress }
    }

    /// Where what children tell goes.
    pub(crate) fn progress(&self) -> &Arc<ProgressBuffer> {
        &self.progress
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The thread it works on.
    pub fn thread(&self) -> &ThreadId {
        &self.thread
    }

    /// How it stands now.
    pub fn status(&self) -> RunStatus {
        self.status.borrow().clone()
    }

    /// How it stands, as it changes.
    pub fn watch(&self) -> watch::Receiver<RunStatus> {
        self.status.clone()
    }

    /// Waits until the open segment ends, or the driver does: the run is over, or only a person's answer moves it on (SPEC S-9, S-11). A
    /// run that waits for an approval has an open segment.
    pub async fn settled(&self) -> RunStatus {
        let mut status = self.status.clone();
        let settled = |status: &RunStatus| status.ended || (!status.segment_open && status.posture != Posture::Moving);
        match status.wait_for(settled).await {
            Ok(status) => status.clone(),
            Err(_) => self.status(),
        }
    }

    /// Waits until nothing moves the run but a person, approvals included.
    pub async fn resting(&self) -> RunStatus {
        let mut status = self.status.clone();
        match status.wait_for(|status| status.ended || status.posture != Posture::Moving).await {
            Ok(status) => status.clone(),
            Err(_) => self.status(),
        }
    }

    /// Waits until the driver is gone.
    pub async fn ended(&self) {
        // An error means that the driver's side is dropped, which is the same.
        let _ = self.status.clone().wait_for(|status| status.ended).await;
    }

    /// Leaves the run where it is: what is in flight is stopped, what waits for people goes on waiting, and whoever answers drives it with a
    /// host of their own. Returns when the driver is gone.
    pub async fn park(&self) {
        // Who is gone needs no telling.
        let _ = self.commands.send(Command::Park).await;
        self.ended().await;
    }

    /// Asks the driver; [`RunErrorKind::Closed`] when it is gone.
    pub(crate) async fn ask<T>(&self, command: impl Fn(oneshot::Sender<Result<T, RunError>>) -> Command) -> Result<T, RunError> {
        let gone = || RunError::new(RunErrorKind::Closed, "the run came to rest at this moment");
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}
