//! Commands on this machine.

mod capture;
mod environment;
mod family;
mod isolation;
mod place;
mod processes;
mod running;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use ac_core::CancelToken;
use async_trait::async_trait;
use cap_std::{ambient_authority, fs::Dir};

use self::{capture::Capture, isolation::Limits, place::Place, processes::Processes, running::Running};
use crate::{
    CommandOutput, CommandRequest, CommandResult, Confinement, Exit, Isolation, NoSink, OutputSink, ProcessId, ProcessInfo, Sandbox,
    WorkspaceError, WorkspaceErrorKind as Kind,
};

/// Who watches over the processes of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Supervisor {
    /// This program, when it calls [`crate::supervisor::run_if_asked`], else nobody.
    #[default]
    Auto,
    /// Another program that calls [`crate::supervisor::run_if_asked`].
    Program(PathBuf),
    /// Nobody: a process that leaves group and session of its command and clears its environment is not found.
    Off,
}

/// What a [`LocalSandbox`] gives its commands.
#[derive(Clone)]
#[non_exhaustive]
pub struct LocalSandboxOptions {
    /// How long a command may take that names no time.
    pub timeout: Duration,
    /// The longest time that a command may name.
    pub max_timeout: Duration,
    /// How long a command may take to end after it was asked to, before it is killed.
    pub grace: Duration,
    /// Variables of the host that commands see beside `PATH`, `HOME`, `USER`, `LANG`, `LC_ALL`, `LC_CTYPE`, `TZ` and `TMPDIR`. Nothing else
    /// is passed on, so no key is.
    pub pass_env: Vec<String>,
    /// Variables that commands see.
    pub env: std::collections::BTreeMap<String, String>,
    /// Who watches over the processes.
    pub supervisor: Supervisor,
    /// How far commands are held.
    pub isolation: Isolation,
    /// Whether commands may use the network, where that can be limited.
    pub network: bool,
    /// Folders outside of the workspace that commands may change, where that can be limited: caches of build tools, for example.
    pub writable: Vec<PathBuf>,
    /// How many processes may run in the background.
    pub background: usize,
    /// How much of the output's beginning is kept, in bytes.
    pub head: usize,
    /// How much of the output's end is kept, in bytes.
    pub tail: usize,
    /// How much output is told while it comes; the rest is only kept.
    pub stream: usize,
    /// How much of the output goes into the log file of a command.
    pub log: u64,
}

impl Default for LocalSandboxOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(120),
            max_timeout: Duration::from_secs(3600),
            grace: Duration::from_millis(500),
            pass_env: Vec::new(),
            env: std::collections::BTreeMap::new(),
            supervisor: Supervisor::Auto,
            isolation: Isolation::Available,
            network: false,
            writable: Vec::new(),
            background: 16,
            head: 12 << 10,
            tail: 24 << 10,
            stream: 1 << 20,
            log: 64 << 20,
        }
    }
}

impl std::fmt::Debug for LocalSandboxOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The values of the environment may be keys.
        let names: Vec<&String> = self.env.keys().collect();
        f.debug_struct("LocalSandboxOptions").field("timeout", &self.timeout).field("env", &names).finish_non_exhaustive()
    }
}

/// Commands in a folder of this machine, each in a process group of its own, with a filtered environment and closed standard input.
#[derive(Debug)]
pub struct LocalSandbox {
    root: PathBuf,
    dir: Dir,
    options: LocalSandboxOptions,
    /// Goes with the sandbox.
    _place: Option<Place>,
    logs: Option<PathBuf>,
    scratch: Option<PathBuf>,
    limits: Limits,
    processes: Processes,
}

impl LocalSandbox {
    /// Commands in this folder.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, WorkspaceError> {
        Self::open_with(folder, LocalSandboxOptions::default())
    }

    /// Commands in this folder.
    ///
    /// # Errors
    /// When it cannot be opened, when there is no place for logs, `Isolation` when commands must be held farther than this machine can.
    pub fn open_with(folder: impl AsRef<Path>, options: LocalSandboxOptions) -> Result<Self, WorkspaceError> {
        let folder = folder.as_ref();
        let fail = |error| WorkspaceError::from_io(folder, error);
        let root = folder.canonicalize().map_err(fail)?;
        let dir = Dir::open_ambient_dir(&root, ambient_authority()).map_err(fail)?;
        let (logged, limited) = (options.log > 0, options.isolation != Isolation::Off);
        let place = if logged || limited { Some(Place::make().map_err(fail)?) } else { None };
        let logs = place.as_ref().filter(|_| logged).map(Place::logs);
        let scratch = place.as_ref().filter(|_| limited).map(Place::files);
        let limits = Limits::find(&options, &root, scratch.as_deref())?;
        Ok(Self { root, dir, options, _place: place, logs, scratch, limits, processes: Processes::default() })
    }

    /// The folder of the commands' logs. It goes with the sandbox.
    pub fn logs(&self) -> Option<&Path> {
        self.logs.as_deref()
    }

    /// The folder of a command, which must lie inside.
    fn cwd(&self, path: &Path) -> Result<PathBuf, WorkspaceError> {
        let rel = match path.strip_prefix(&self.root) {
            Ok(rel) if rel.as_os_str().is_empty() => Path::new("."),
            Ok(rel) => rel,
            Err(_) if path.as_os_str().is_empty() => Path::new("."),
            Err(_) => path,
        };
        let fail = |error| WorkspaceError::from_io(path, error);
        if rel.has_root() {
            return Err(WorkspaceError::escape(path));
        }
        self.dir.open_dir(rel).map_err(fail)?;
        Ok(self.root.join(self.dir.canonicalize(rel).map_err(fail)?))
    }

    fn spawn(&self, request: &CommandRequest, sink: Arc<dyn OutputSink>) -> Result<Running, WorkspaceError> {
        let cwd = self.cwd(&request.cwd)?;
        let capture = Capture::new(&self.options, self.logs(), sink)?;
        let mut env: Vec<(String, OsString)> = environment::inherited(&self.options.pass_env);
        env.extend(self.scratch.as_ref().map(|folder| ("TMPDIR".to_owned(), folder.into())));
        let given = self.options.env.iter().chain(&request.env);
        env.extend(given.map(|(name, value)| (name.clone(), value.into())));
        let (line, supervised) = self.limits.wrap(&request.command, &cwd);
        running::Start { line, cwd: &cwd, env, supervised, relayed: self.limits.relays() }.spawn(capture)
    }
}

#[async_trait]
impl Sandbox for LocalSandbox {
    async fn run(&self, request: CommandRequest, sink: Arc<dyn OutputSink>, cancel: CancelToken) -> Result<CommandResult, WorkspaceError> {
        if cancel.is_cancelled() {
            return Err(WorkspaceError::cancelled());
        }
        let started = Instant::now();
        let timeout = request.timeout.unwrap_or(self.options.timeout).min(self.options.max_timeout);
        // Dropped with this future, it ends everything that it started.
        let mut running = self.spawn(&request, sink)?;
        let exit = tokio::select! {
            exit = running.wait() => exit?,
            () = tokio::time::sleep(timeout) => {
                running.end(self.options.grace).await;
                Exit::TimedOut
            }
            () = cancel.cancelled() => {
                running.end(self.options.grace).await;
                return Err(WorkspaceError::cancelled());
            }
        };
        // Whoever inherited the pipes keeps them open: what came until now is the output, the rest is drained aside.
        running.settle(Duration::from_millis(700)).await;
        let took = started.elapsed();
        let left_running = running.left().await;
        if left_running.is_empty() {
            let output = running.capture().finish();
            return Ok(CommandResult { exit, output, took, left_running, background: None });
        }
        running.capture().hush();
        let output = running.capture().snapshot();
        let background = self.processes.adopt(running, request.command, Some(exit), None, self.options.grace);
        Ok(CommandResult { exit, output, took, left_running, background: Some(background) })
    }

    async fn start(&self, request: CommandRequest) -> Result<ProcessId, WorkspaceError> {
        let most = self.options.background;
        if self.processes.running() >= most {
            return Err(WorkspaceError::new(Kind::Denied, format!("{most} processes run in the background already; end one first")));
        }
        let running = self.spawn(&request, Arc::new(NoSink))?;
        Ok(self.processes.adopt(running, request.command, None, request.timeout, self.options.grace))
    }

    fn processes(&self) -> Vec<ProcessInfo> {
        self.processes.list()
    }

    async fn output(&self, id: &ProcessId, wait: Duration, cancel: CancelToken) -> Result<(ProcessInfo, CommandOutput), WorkspaceError> {
        self.processes.output(id, wait, &cancel).await
    }

    async fn kill(&self, id: &ProcessId) -> Result<ProcessInfo, WorkspaceError> {
        self.processes.kill(id).await
    }

    fn confinement(&self) -> Confinement {
        self.limits.confinement
    }

    async fn shutdown(&self) {
        self.processes.shutdown().await;
    }
}

#[cfg(test)]
mod tests;
