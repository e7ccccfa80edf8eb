//! Commands on this machine.

mod capture;
mod environment;
mod family;

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use ac_core::CancelToken;
use async_trait::async_trait;
use cap_std::{ambient_authority, fs::Dir};
use tokio::{
    process::{Child, Command},
    task::JoinHandle,
};

use self::{capture::Capture, family::Family};
use crate::{CommandRequest, CommandResult, Exit, OutputSink, OutputStream, Sandbox, WorkspaceError, WorkspaceErrorKind as Kind};

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
    logs: Option<tempfile::TempDir>,
    options: LocalSandboxOptions,
    /// What ended commands left running, and the tasks that still drain their pipes.
    left: Mutex<Vec<Left>>,
}

#[derive(Debug)]
struct Left {
    family: Family,
    readers: Vec<JoinHandle<()>>,
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
    /// When it cannot be opened, or when there is no place for logs.
    pub fn open_with(folder: impl AsRef<Path>, options: LocalSandboxOptions) -> Result<Self, WorkspaceError> {
        let folder = folder.as_ref();
        let fail = |error| WorkspaceError::from_io(folder, error);
        let root = folder.canonicalize().map_err(fail)?;
        let dir = Dir::open_ambient_dir(&root, ambient_authority()).map_err(fail)?;
        let logs = match options.log {
            0 => None,
            _ => Some(tempfile::Builder::new().prefix("command-logs-").tempdir().map_err(fail)?),
        };
        Ok(Self { root, dir, logs, options, left: Mutex::default() })
    }

    /// The folder of the commands' logs. It goes with the sandbox.
    pub fn logs(&self) -> Option<&Path> {
        self.logs.as_ref().map(tempfile::TempDir::path)
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

    fn spawn(&self, request: &CommandRequest) -> Result<(Child, Family), WorkspaceError> {
        let cwd = self.cwd(&request.cwd)?;
        let mark = family::mark();
        let mut command = Command::new("/bin/sh");
        command
            .arg("-c")
            .arg(&request.command)
            .current_dir(cwd)
            .env_clear()
            .envs(environment::inherited(&self.options.pass_env))
            .envs(&self.options.env)
            .envs(&request.env)
            .env(family::MARK, &mark)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let child = command
            .spawn()
            .map_err(|error| WorkspaceError::new(Kind::Spawn, format!("the shell could not be started: {error}")).with_source(error))?;
        let family = Family::new(child.id().unwrap_or_default(), mark);
        Ok((child, family))
    }
}

/// How the wait for a command ended.
enum Ended {
    Exited(std::io::Result<std::process::ExitStatus>),
    TimedOut,
    Cancelled,
}

#[async_trait]
impl Sandbox for LocalSandbox {
    async fn run(&self, request: CommandRequest, sink: Arc<dyn OutputSink>, cancel: CancelToken) -> Result<CommandResult, WorkspaceError> {
        if cancel.is_cancelled() {
            return Err(WorkspaceError::cancelled());
        }
        let started = Instant::now();
        let timeout = request.timeout.unwrap_or(self.options.timeout).min(self.options.max_timeout);
        let capture = Arc::new(Capture::new(&self.options, self.logs(), sink)?);
        let (mut child, family) = self.spawn(&request)?;
        // From here on a dropped future must not leave anything behind.
        let mut guard = family::Guard::new(family.clone());
        let mut readers = Vec::new();
        if let Some(pipe) = child.stdout.take() {
            readers.push(tokio::spawn(capture::drain(pipe, OutputStream::Stdout, Arc::clone(&capture))));
        }
        if let Some(pipe) = child.stderr.take() {
            readers.push(tokio::spawn(capture::drain(pipe, OutputStream::Stderr, Arc::clone(&capture))));
        }
        let ended = tokio::select! {
            status = child.wait() => Ended::Exited(status),
            () = tokio::time::sleep(timeout) => Ended::TimedOut,
            () = cancel.cancelled() => Ended::Cancelled,
        };
        let exit = match ended {
            Ended::Exited(Ok(status)) => exit_of(status),
            Ended::Exited(Err(error)) => {
                family.end(self.options.grace, Some(&mut child)).await;
                return Err(WorkspaceError::new(Kind::Spawn, "the command was lost").with_source(error));
            }
            Ended::TimedOut => {
                family.end(self.options.grace, Some(&mut child)).await;
                Exit::TimedOut
            }
            Ended::Cancelled => {
                family.end(self.options.grace, Some(&mut child)).await;
                guard.disarm();
                return Err(WorkspaceError::cancelled());
            }
        };
        // Whoever inherited the pipes keeps them open: what came until now is the output, the rest is drained aside.
        capture::settle(&mut readers, &capture, Duration::from_millis(700)).await;
        let left_running = family.members().await;
        guard.disarm();
        if left_running.is_empty() {
            for reader in &readers {
                reader.abort();
            }
        } else {
            self.left.lock().unwrap_or_else(PoisonError::into_inner).push(Left { family, readers });
        }
        Ok(CommandResult { exit, output: capture.finish(), took: started.elapsed(), left_running })
    }

    async fn shutdown(&self) {
        let left = std::mem::take(&mut *self.left.lock().unwrap_or_else(PoisonError::into_inner));
        for Left { family, readers } in left {
            family.end(self.options.grace, None).await;
            for reader in readers {
                reader.abort();
            }
        }
    }
}

impl Drop for LocalSandbox {
    fn drop(&mut self) {
        for left in self.left.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            left.family.kill();
            left.readers.iter().for_each(JoinHandle::abort);
        }
    }
}

fn exit_of(status: std::process::ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}

#[cfg(test)]
mod tests;
