use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ac_core::CancelToken;
use async_trait::async_trait;

use crate::WorkspaceError;

/// Where an agent's commands run.
#[async_trait]
pub trait Sandbox: Send + Sync + 'static {
    /// Runs a command to its end. Its standard input is closed.
    ///
    /// When `cancel` fires or the time is up, everything that the command started is ended before this returns. What a command that ended by
    /// itself left running is reported in [`CommandResult::left_running`] and lives until [`Sandbox::shutdown`].
    ///
    /// # Errors
    /// `Cancelled`, `Spawn`, `Isolation`, or what is wrong with the folder. A command that failed is no error but a result.
    async fn run(&self, request: CommandRequest, sink: Arc<dyn OutputSink>, cancel: CancelToken) -> Result<CommandResult, WorkspaceError>;

    /// Ends everything that was started here and waits until it is gone.
    async fn shutdown(&self);
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
    /// Head and tail with a line between that says what is missing and where it is.
    pub fn text(&self) -> String {
        if self.omitted == 0 {
            return format!("{}{}", self.head, self.tail);
        }
        let place = self.log.as_deref().map(Path::display).map(|path| format!("; all of it is in {path}")).unwrap_or_default();
        format!("{}\n[… {} of {} bytes left out{place} …]\n{}", self.head, self.omitted, self.total, self.tail)
    }
}
