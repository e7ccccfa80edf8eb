//! Processes in the background: those that were started so, and what ended commands left running.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ac_core::CancelToken;
use tokio::{sync::watch, task::JoinHandle};

use super::{capture::Capture, running::Running};
use crate::{CommandOutput, Exit, ProcessId, ProcessInfo, ProcessState, WorkspaceError, WorkspaceErrorKind as Kind};

/// How many ended ones are remembered. The oldest go first.
const REMEMBERED: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Processes(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last: u64,
    known: BTreeMap<u64, Process>,
}

#[derive(Debug)]
struct Process {
    command: String,
    started: Instant,
    capture: Arc<Capture>,
    state: watch::Receiver<ProcessState>,
    stop: CancelToken,
    task: JoinHandle<()>,
}

impl Process {
    fn info(&self, number: u64) -> ProcessInfo {
        ProcessInfo { id: id(number), command: self.command.clone(), state: *self.state.borrow(), age: self.started.elapsed() }
    }
}

fn id(number: u64) -> ProcessId {
    ProcessId::new(format!("p{number}"))
}

impl Processes {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many still run.
    pub(super) fn running(&self) -> usize {
        self.lock().known.values().filter(|process| *process.state.borrow() == ProcessState::Running).count()
    }

    /// Takes a process over. `exit` is known of a command that ended and left something running. `lifetime` limits how long it may go on.
    pub(super) fn adopt(
        &self,
        mut running: Running,
        command: String,
        exit: Option<Exit>,
        lifetime: Option<Duration>,
        grace: Duration,
    ) -> ProcessId {
        let (tell, state) = watch::channel(ProcessState::Running);
        let (stop, capture, started) = (CancelToken::new(), running.shared_capture(), Instant::now());
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let whole = async {
                let exit = match exit {
                    Some(exit) => exit,
                    None => running.wait().await.unwrap_or(Exit::Code(-1)),
                };
                running.gone().await;
                exit
            };
            let late = async {
                match lifetime {
                    Some(lifetime) => tokio::time::sleep(lifetime).await,
                    None => std::future::pending().await,
                }
            };
            let ended = tokio::select! {
                exit = whole => Ok(exit),
                () = late => Err(Exit::TimedOut),
                () = stopped.cancelled() => Err(Exit::Signal(15)),
            };
            let exit = match ended {
                Ok(exit) => exit,
                Err(exit) => {
                    running.end(grace).await;
                    exit
                }
            };
            running.settle(Duration::from_millis(200)).await;
            tell.send_replace(ProcessState::Exited(exit));
        });
        let mut all = self.lock();
        all.last += 1;
        let number = all.last;
        all.known.insert(number, Process { command, started, capture, state, stop, task });
        let over: Vec<u64> =
            all.known.iter().filter(|(_, process)| *process.state.borrow() != ProcessState::Running).map(|(number, _)| *number).collect();
        for number in over.iter().take(over.len().saturating_sub(REMEMBERED)) {
            all.known.remove(number);
        }
        id(number)
    }

    pub(super) fn list(&self) -> Vec<ProcessInfo> {
        self.lock().known.iter().map(|(number, process)| process.info(*number)).collect()
    }

    fn find<T>(&self, wanted: &ProcessId, take: impl FnOnce(u64, &Process) -> T) -> Result<T, WorkspaceError> {
        let all = self.lock();
        let number = wanted.as_str().strip_prefix('p').and_then(|number| number.parse().ok());
        match number.and_then(|number| Some((number, all.known.get(&number)?))) {
            Some((number, process)) => Ok(take(number, process)),
            None => {
                let known: Vec<String> = all.known.keys().map(|number| format!("p{number}")).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Err(WorkspaceError::new(Kind::NotFound, format!("there is no process `{}`; known are: {known}", wanted.as_str())))
            }
        }
    }

    pub(super) async fn output(
        &self,
        wanted: &ProcessId,
        wait: Duration,
        cancel: &CancelToken,
    ) -> Result<(ProcessInfo, CommandOutput), WorkspaceError> {
        let mut state = self.find(wanted, |_, process| process.state.clone())?;
        if !wait.is_zero() {
            tokio::select! {
                _ = state.wait_for(|state| *state != ProcessState::Running) => {}
                () = tokio::time::sleep(wait) => {}
                () = cancel.cancelled() => return Err(WorkspaceError::cancelled()),
            }
        }
        self.find(wanted, |number, process| (process.info(number), process.capture.snapshot()))
    }

    pub(super) async fn kill(&self, wanted: &ProcessId) -> Result<ProcessInfo, WorkspaceError> {
        let mut state = self.find(wanted, |_, process| {
            process.stop.cancel();
            process.state.clone()
        })?;
        // The end is bounded by the grace period and what follows it.
        state.wait_for(|state| *state != ProcessState::Running).await.ok();
        self.find(wanted, |number, process| process.info(number))
    }

    /// Ends all and forgets them.
    pub(super) async fn shutdown(&self) {
        let known = std::mem::take(&mut self.lock().known);
        for process in known.values() {
            process.stop.cancel();
        }
        for process in known.into_values() {
            process.task.await.ok();
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        // Each task owns its process and ends it when it is dropped.
        for process in self.0.get_mut().unwrap_or_else(PoisonError::into_inner).known.values() {
            process.task.abort();
        }
    }
}
