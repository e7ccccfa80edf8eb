use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ac_core::CancelToken;
use async_trait::async_trait;

use crate::{WorkspaceError, WorkspaceErrorKind};

/// Where an agent's commands run.
#[async_trait]
pub trait Sandbox: Send + Sync + 'static {
    /// Runs a command to its end. Its standard input is closed.
    ///
    /// When `cancel` fires or the time is up, everything that the command started is ended before this returns. What a command that ended by
    /// itself left running goes on in the background, is named in [`CommandResult::background`] and lives until [`Sandbox::shutdown`].
    ///
    /// # Errors
    /// `Cancelled`, `Spawn`, `Isolation`, or what is wrong with the folder. A command that failed is no error but a result.
    async fn run(&self, request: CommandRequest, sink: Arc<dyn OutputSink>, cancel: CancelToken) -> Result<CommandResult, WorkspaceError>;

    /// Starts a command in the background. Its time limit, if it names one, counts from now; without one it lives until it ends, is
    /// killed, or [`Sandbox::shutdown`].
    ///
    /// # Errors
    /// As [`Sandbox::run`]; `Unsupported` where there is no background, `Denied` when too many run already.
    async fn start(&self, request: CommandRequest) -> Result<ProcessId, WorkspaceError> {
        let _ = request;
        Err(no_background())
    }

    /// What runs in the background, and what ended there lately.
    fn processes(&self) -> Vec<ProcessInfo> {
        Vec::new()
    }

    /// What a process in the background printed until now. Waits up to `wait` for its end.
    ///
    /// # Errors
    /// `NotFound`, `Cancelled`.
    async fn output(&self, id: &ProcessId, wait: Duration, cancel: CancelToken) -> Result<(ProcessInfo, CommandOutput), WorkspaceError> {
        let _ = (id, wait, cancel);
        Err(no_background())
    }

    /// Ends a process in the background with everything that it started, and waits until it is gone.
    ///
    /// # Errors
    /// `NotFound`.
    async fn kill(&self, id: &ProcessId) -> Result<ProcessInfo, WorkspaceError> {
        let _ = id;
        Err(no_background())
    }

    /// How far commands are held, as it is in force and not as it was asked for.
    fn confinement(&self) -> Confinement {
        Confinement::default()
    }

    /// Ends everything that was started here and waits until it is gone.
    async fn shutdown(&self);
}

fn no_background() -> WorkspaceError {
    WorkspaceError::new(WorkspaceErrorKind::Unsupported, "this sandbox runs nothing in the background")
}

/// How far a host wants its commands to be held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isolation {
    /// Not at all.
    Off,
    /// As far as this machine can; [`Sandbox::confinement`] says how far that is.
    #[default]
    Available,
    /// Writes only inside of the workspace and no network unless allowed, or no command runs.
    Required,
}

/// How far commands are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Confinement {
    /// Nothing that a command starts can get away from whoever watches over it.
    pub supervised: bool,
    /// What of the machine's files commands reach.
    pub files: FileLimit,
    /// What of the network commands reach.
    pub network: NetworkLimit,
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = match self.files {
            FileLimit::Open => "files open",
            FileLimit::WriteInside => "writes only inside",
        };
        let network = match self.network {
            NetworkLimit::Open => "network open",
            NetworkLimit::TcpOff => "no TCP",
            NetworkLimit::Off => "no network",
        };
        write!(f, "{files}, {network}, {}", if self.supervised { "supervised" } else { "not supervised" })
    }
}

/// What of the machine's files commands reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileLimit {
    /// Everything that the host's user reaches.
    #[default]
    Open,
    /// They read everything that the host's user reads, and change only the workspace and a folder for temporary files.
    WriteInside,
}

/// What of the network commands reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NetworkLimit {
    /// Everything.
    #[default]
    Open,
    /// No TCP (Landlock); other protocols, name resolution among them, as far as the kernel cannot limit them.
    TcpOff,
    /// Nothing.
    Off,
}

/// Names a process in the background.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(String);

impl ProcessId {
    /// From its text.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A process in the background.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// Its name.
    pub id: ProcessId,
    /// What was run.
    pub command: String,
    /// Whether it still runs.
    pub state: ProcessState,
    /// How long ago it was started, or found to be left running.
    pub age: Duration,
}

impl ProcessInfo {
    /// A process that runs.
    pub fn new(id: ProcessId, command: impl Into<String>, age: Duration) -> Self {
        Self { id, command: command.into(), state: ProcessState::Running, age }
    }
}

/// Whether a process still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessState {
    /// It, or something that it started, does.
    Running,
    /// It does not.
    Exited(Exit),
}

impl fmt::Debug for dyn Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sandbox")
    }
}

/// A command to run.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandRequest {
    /// Given to `sh -c`.
    pub command: String,
    /// Where, relative to the workspace folder.
    pub cwd: PathBuf,
    /// How long at most. `None`: as the sandbox says.
    pub timeout: Option<Duration>,
    /// Environment variables on top of those of the sandbox.
    pub env: BTreeMap<String, String>,
}

impl CommandRequest {
    /// A command in the workspace folder.
    pub fn new(command: impl Into<String>) -> Self {
        Self { command: command.into(), cwd: PathBuf::from("."), timeout: None, env: BTreeMap::new() }
    }
}

impl fmt::Debug for CommandRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values of the environment may be keys.
        let names: Vec<&String> = self.env.keys().collect();
        f.debug_struct("CommandRequest")
            .field("command", &self.command)
            .field("cwd", &self.cwd)
            .field("timeout", &self.timeout)
            .field("env", &names)
            .finish()
    }
}

/// Which pipe something came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Takes output while it comes.
pub trait OutputSink: Send + Sync + 'static {
    /// Takes it and returns at once.
    fn output(&self, stream: OutputStream, text: &str);
}

/// Takes no output.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl OutputSink for NoSink {
    fn output(&self, _: OutputStream, _: &str) {}
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It took too long and was ended.
    TimedOut,
}

impl Exit {
    /// As a shell tells it: the code, 128 and the signal, 124 for a time-out.
    pub fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
            Self::TimedOut => 124,
        }
    }

    /// Whether the command said that it succeeded.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandResult {
    /// How it ended.
    pub exit: Exit,
    /// What it printed, both pipes in the order in which it came.
    pub output: CommandOutput,
    /// How long it took.
    pub took: Duration,
    /// Processes that it started and that still run.
    pub left_running: Vec<u32>,
    /// The name under which they go on in the background, if there are any.
    pub background: Option<ProcessId>,
}

impl CommandResult {
    /// A command that ended and left nothing running.
    pub fn new(exit: Exit, output: CommandOutput, took: Duration) -> Self {
        Self { exit, output, took, left_running: Vec::new(), background: None }
    }
}

/// What a command printed: head and tail of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandOutput {
    /// The beginning; all of it when nothing is left out.
    pub head: String,
    /// The end, when something is left out between.
    pub tail: String,
    /// Bytes in all.
    pub total: u64,
    /// Bytes between head and tail.
    pub omitted: u64,
    /// Where all of it, up to the limit of the log, can be read.
    pub log: Option<PathBuf>,
}

impl CommandOutput {
    /// All that was printed, with nothing left out.
    pub fn whole(text: impl Into<String>) -> Self {
        let head = text.into();
        Self { total: head.len() as u64, head, ..Self::default() }
    }

    /// Head and tail with a line between that says what is missing and where it is.
    pub fn text(&self) -> String {
        if self.omitted == 0 {
            return format!("{}{}", self.head, self.tail);
        }
        let place = self.log.as_deref().map(Path::display).map(|path| format!("; all of it is in {path}")).unwrap_or_default();
        format!("{}\n[… {} of {} bytes left out{place} …]\n{}", self.head, self.omitted, self.total, self.tail)
    }
}
