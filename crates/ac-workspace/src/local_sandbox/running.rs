//! A command that runs, and the line to whoever watches over it.

use std::{
    ffi::OsString,
    io,
    os::fd::OwnedFd,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    process::{Child, Command},
    sync::watch,
    task::JoinHandle,
};

use super::{
    capture::{self, Capture},
    family::{self, Family},
};
use crate::{Exit, OutputStream, WorkspaceError, WorkspaceErrorKind as Kind};

/// How much longer than the grace period a supervisor may take before it counts as lost.
const PATIENCE: Duration = Duration::from_millis(1500);

/// What is to be started.
pub(super) struct Start<'a> {
    /// The program and its arguments.
    pub(super) line: Vec<OsString>,
    pub(super) cwd: &'a Path,
    pub(super) env: Vec<(String, OsString)>,
    /// Whether the program is a supervisor that listens to its standard input.
    pub(super) supervised: bool,
    /// Whether the program tells a signal as an exit code.
    pub(super) relayed: bool,
}

impl Start<'_> {
    pub(super) fn spawn(self, capture: Arc<Capture>) -> Result<Running, WorkspaceError> {
        self.try_spawn(capture)
            .map_err(|error| WorkspaceError::new(Kind::Spawn, format!("the command could not be started: {error}")).with_source(error))
    }

    fn try_spawn(self, capture: Arc<Capture>) -> io::Result<Running> {
        let mark = family::mark();
        let mut words = self.line.into_iter();
        let mut command = Command::new(words.next().ok_or(io::ErrorKind::InvalidInput)?);
        command.args(words);
        let line = if self.supervised {
            let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
            ours.set_nonblocking(true)?;
            command.stdin(Stdio::from(OwnedFd::from(theirs)));
            Some(UnixStream::from_std(ours)?)
        } else {
            command.stdin(Stdio::null());
            None
        };
        command.current_dir(self.cwd).env_clear().envs(self.env).env(family::MARK, &mark);
        // The supervisor begins a session of its own, which makes it the leader of a group too.
        if !self.supervised {
            command.process_group(0);
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        // The supervisor's own end of the line went with the command's description.
        drop(command);
        let family = Family::new(child.id().unwrap_or_default(), mark);
        let mut readers = Vec::new();
        if let Some(pipe) = child.stdout.take() {
            readers.push(tokio::spawn(capture::drain(pipe, OutputStream::Stdout, Arc::clone(&capture))));
        }
        if let Some(pipe) = child.stderr.take() {
            readers.push(tokio::spawn(capture::drain(pipe, OutputStream::Stderr, Arc::clone(&capture))));
        }
        let watch = line.map(|line| {
            let (listen, talk) = line.into_split();
            let (tell, told) = watch::channel(Told::default());
            Watch { talk, told, listener: tokio::spawn(listen_to(listen, tell)) }
        });
        Ok(Running { child, family, watch, capture, readers, relayed: self.relayed, over: false })
    }
}

/// A command that was started. Dropped, it ends everything that the command started, without waiting for it.
#[derive(Debug)]
pub(super) struct Running {
    /// The shell, or the supervisor.
    child: Child,
    family: Family,
    watch: Option<Watch>,
    capture: Arc<Capture>,
    readers: Vec<JoinHandle<()>>,
    relayed: bool,
    over: bool,
}

/// The line to a supervisor. When it is dropped, the supervisor ends everything.
#[derive(Debug)]
struct Watch {
    talk: OwnedWriteHalf,
    told: watch::Receiver<Told>,
    listener: JoinHandle<()>,
}

/// What the supervisor said.
#[derive(Debug, Default)]
struct Told {
    exit: Option<Exit>,
    left: Option<Vec<u32>>,
    failed: Option<String>,
    /// Nobody is left, the supervisor included.
    gone: bool,
}

impl Running {
    pub(super) fn capture(&self) -> &Capture {
        &self.capture
    }

    pub(super) fn shared_capture(&self) -> Arc<Capture> {
        Arc::clone(&self.capture)
    }

    /// Waits until the command and all that it started are gone.
    pub(super) async fn gone(&mut self) {
        match &mut self.watch {
            Some(watch) => {
                watch.told.wait_for(|told| told.gone).await.ok();
            }
            None => {
                while !self.family.members().await.is_empty() {
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
            }
        }
        self.over = true;
    }

    /// Waits for the command itself, not for what it started.
    pub(super) async fn wait(&mut self) -> Result<Exit, WorkspaceError> {
        match self.ended().await? {
            // A shell whose last command was ended by a signal says the same; what is told is right in both cases.
            Exit::Code(code @ 129..=192) if self.relayed => Ok(Exit::Signal(code - 128)),
            exit => Ok(exit),
        }
    }

    async fn ended(&mut self) -> Result<Exit, WorkspaceError> {
        let Some(watch) = &mut self.watch else {
            let status = self.child.wait().await;
            return status.map(exit_of).map_err(|error| WorkspaceError::new(Kind::Spawn, "the command was lost").with_source(error));
        };
        let told = watch.told.wait_for(|told| told.left.is_some() || told.gone).await;
        let (exit, failed) = told.map(|told| (told.exit, told.failed.clone())).unwrap_or_default();
        match exit {
            Some(exit) => Ok(exit),
            None => {
                // Somebody killed the supervisor: what it watched over is found by its mark.
                self.child.start_kill().ok();
                self.family.end(Duration::ZERO, Some(&mut self.child)).await;
                self.over = true;
                let why = failed.unwrap_or_else(|| "the process that watches over it was killed".to_owned());
                Err(WorkspaceError::new(Kind::Spawn, format!("the command was lost: {why}")))
            }
        }
    }

    /// Waits until the pipes are closed or silent.
    pub(super) async fn settle(&mut self, longest: Duration) {
        capture::settle(&mut self.readers, &self.capture, longest).await;
    }

    /// What the command left running when it ended.
    pub(super) async fn left(&mut self) -> Vec<u32> {
        let left = match &self.watch {
            Some(watch) => {
                let told = watch.told.borrow();
                if told.gone { Vec::new() } else { told.left.clone().unwrap_or_default() }
            }
            None => self.family.members().await,
        };
        self.over |= left.is_empty();
        left
    }

    /// Asks everything to end, kills it after the grace period, and returns when nothing is left.
    pub(super) async fn end(&mut self, grace: Duration) {
        let watched = match &mut self.watch {
            Some(watch) => {
                // The command may have stopped it.
                if let Some(pid) = self.child.id().and_then(|pid| rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)) {
                    rustix::process::kill_process(pid, rustix::process::Signal::CONT).ok();
                }
                let order = format!("kill {}\n", grace.as_millis());
                watch.talk.write_all(order.as_bytes()).await.ok();
                tokio::time::timeout(grace + PATIENCE, watch.told.wait_for(|told| told.gone)).await.is_ok()
            }
            None => false,
        };
        if !watched && self.watch.is_some() {
            self.child.start_kill().ok();
        }
        // Also where a supervisor said that nobody is left: it may have been killed itself.
        let grace = if self.watch.is_some() { Duration::ZERO } else { grace };
        self.family.end(grace, Some(&mut self.child)).await;
        self.over = true;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.readers.iter().for_each(JoinHandle::abort);
        if let Some(watch) = &self.watch {
            watch.listener.abort();
        } else if !self.over {
            self.family.kill();
        }
    }
}

async fn listen_to(line: OwnedReadHalf, tell: watch::Sender<Told>) {
    let mut lines = BufReader::new(line).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        tell.send_modify(|told| match word {
            "exit" => told.exit = rest.parse().ok().map(Exit::Code),
            "signal" => told.exit = rest.parse().ok().map(Exit::Signal),
            "left" => told.left = Some(rest.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()),
            "failed" => told.failed = Some(rest.to_owned()),
            _ => {}
        });
    }
    tell.send_modify(|told| told.gone = true);
}

fn exit_of(status: ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}
