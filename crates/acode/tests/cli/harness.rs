use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use serde_json::Value;
use tempfile::TempDir;

/// Nothing here takes so long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(40);

/// A project folder and a data folder of their own.
pub(crate) struct Home {
    dir: TempDir,
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// Checks the exit code; shows everything when it is another.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "--- out\n{}\n--- err\n{}", self.out, self.err);
        self
    }

    /// Standard output as JSON lines.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
    }
}

impl Home {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("project")).unwrap();
        Self { dir }
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.project().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn env(&self) -> Vec<(String, String)> {
        let path = std::env::var("PATH").unwrap_or_default();
        [("PATH", path.as_str()), ("HOME", &self.dir.path().to_string_lossy()), ("AC_NO_PROBE", "1"), ("TERM", "xterm-256color")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acode"));
        command.args(args).arg("--data").arg(self.data()).current_dir(self.project());
        command.env_clear().envs(self.env()).stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::piped());
        command
    }

    /// Runs a command to its end.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str], input: &str) -> Ended {
        let mut live = self.start(args);
        live.send(input);
        live.close_input();
        live.end()
    }

    /// Starts a command with pipes.
    pub(crate) fn start(&self, args: &[&str]) -> Live {
        Live::new(self.command(args))
    }

    /// What waits.
    #[track_caller]
    pub(crate) fn pending(&self) -> Vec<Value> {
        let ended = self.run(&["pending", "--json"], "").exits(0);
        ended.lines().pop().and_then(|row| row.as_array().cloned()).unwrap()
    }

    /// The id of the one thing that waits, and what it is.
    #[track_caller]
    pub(crate) fn waiting(&self) -> (String, String) {
        let rows = self.pending();
        assert_eq!(rows.len(), 1, "{rows:?}");
        (rows[0]["id"].as_str().unwrap().to_owned(), rows[0]["kind"].as_str().unwrap().to_owned())
    }

    /// Starts a command at a pseudo-terminal.
    pub(crate) fn terminal(&self, args: &[&str]) -> Terminal {
        Terminal::new(self, args)
    }
}

/// Collects what is written, for somebody who waits for a text.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<u8>>>);

impl Seen {
    fn collect(mut from: impl Read + Send + 'static) -> (Self, std::thread::JoinHandle<()>) {
        let seen = Self::default();
        let kept = seen.clone();
        let task = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = from.read(&mut buffer) {
                kept.0.lock().unwrap().extend_from_slice(&buffer[..n]);
            }
        });
        (seen, task)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }

    /// Waits until `text` was written after `from`; returns the place behind it.
    #[track_caller]
    fn wait(&self, text: &str, from: usize) -> usize {
        let until = Instant::now() + PATIENCE;
        loop {
            let seen = self.text();
            if let Some(at) = seen.get(from..).and_then(|rest| rest.find(text)) {
                return from + at + text.len();
            }
            assert!(Instant::now() < until, "{text:?} did not come; there is\n{}", seen.get(from..).unwrap_or(&seen));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A command that runs, with pipes.
pub(crate) struct Live {
    child: Child,
    out: Seen,
    err: Seen,
    readers: Vec<std::thread::JoinHandle<()>>,
    read: usize,
}

impl Live {
    pub(crate) fn new(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (out, one) = Seen::collect(child.stdout.take().unwrap());
        let (err, other) = Seen::collect(child.stderr.take().unwrap());
        Self { child, out, err, readers: vec![one, other], read: 0 }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send(&mut self, text: &str) {
        // A process that ended does not read any more.
        let _ = self.child.stdin.as_mut().unwrap().write_all(text.as_bytes());
    }

    pub(crate) fn close_input(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits for a text in what came since the last one.
    #[track_caller]
    pub(crate) fn wait(&mut self, text: &str) -> &mut Self {
        self.read = self.out.wait(text, self.read);
        self
    }

    /// What was shown so far.
    pub(crate) fn shown(&self) -> String {
        self.out.text()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").arg(signal).arg(self.child.id().to_string()).status().unwrap();
        assert!(status.success());
    }

    /// As when the power fails.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        let until = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > until {
                let _ = self.child.kill();
                panic!("it does not end\n--- out\n{}\n--- err\n{}", self.out.text(), self.err.text());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        self.readers.drain(..).for_each(|reader| reader.join().unwrap());
        Ended { code: status.code(), out: self.out.text(), err: self.err.text() }
    }
}

/// A command at a pseudo-terminal.
pub(crate) struct Terminal {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    input: Box<dyn Write + Send>,
    seen: Seen,
    read: usize,
    _master: Box<dyn portable_pty::MasterPty + Send>,
}

impl Terminal {
    fn new(home: &Home, args: &[&str]) -> Self {
        let pair = native_pty_system().openpty(PtySize { rows: 40, cols: 120, pixel_width: 0, pixel_height: 0 }).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_acode"));
        command.args(args);
        command.args([Path::new("--data"), &home.data()]);
        command.cwd(home.project());
        command.env_clear();
        home.env().into_iter().for_each(|(name, value)| command.env(name, value));
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let (seen, _) = Seen::collect(pair.master.try_clone_reader().unwrap());
        let input = pair.master.take_writer().unwrap();
        Self { child, input, seen, read: 0, _master: pair.master }
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    #[track_caller]
    pub(crate) fn wait(&mut self, text: &str) -> &mut Self {
        self.read = self.seen.wait(text, self.read);
        self
    }

    pub(crate) fn shown(&self) -> String {
        self.seen.text()
    }

    #[track_caller]
    pub(crate) fn exits(&mut self, code: u32) {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert_eq!(status.exit_code(), code, "{}", self.seen.text());
                return;
            }
            if Instant::now() > until {
                let _ = self.child.kill();
                panic!("it does not end\n{}", self.seen.text());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
