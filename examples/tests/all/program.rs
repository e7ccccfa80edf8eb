use std::{
    io::{Read, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Nothing here takes so long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(40);

/// An example that runs, with pipes.
pub(crate) struct Program {
    child: Child,
    input: Option<ChildStdin>,
    seen: Arc<Mutex<Vec<u8>>>,
    readers: Vec<JoinHandle<()>>,
    read: usize,
}

/// Where cargo puts examples: beside the folder of this test.
fn binary(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let found = own.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(found.exists(), "{} is not built; `cargo test -p examples` builds it", found.display());
    found
}

impl Program {
    pub(crate) fn command(name: &str, args: &[&str]) -> Command {
        let mut command = Command::new(binary(name));
        command.args(args);
        command
    }

    pub(crate) fn start(name: &str, args: &[&str]) -> Self {
        Self::spawn(Self::command(name, args))
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let seen = Arc::<Mutex<Vec<u8>>>::default();
        let readers = vec![collect(child.stdout.take().unwrap(), seen.clone()), collect(child.stderr.take().unwrap(), seen.clone())];
        Self { input: child.stdin.take(), child, seen, readers, read: 0 }
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    /// Waits for a text in what came since the last one.
    #[track_caller]
    pub(crate) fn waits_for(&mut self, text: &str) -> &mut Self {
        let until = Instant::now() + PATIENCE;
        loop {
            let shown = self.shown();
            if let Some(at) = shown.get(self.read..).and_then(|rest| rest.find(text)) {
                self.read += at + text.len();
                return self;
            }
            assert!(Instant::now() < until, "{text:?} did not come; there is\n{shown}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for a line with a text in it.
    #[track_caller]
    pub(crate) fn line_with(&mut self, text: &str) -> String {
        self.waits_for(text).waits_for("\n");
        self.shown().lines().find(|line| line.contains(text)).unwrap().to_owned()
    }

    pub(crate) fn says(&mut self, text: &str) {
        self.input.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// The person goes away.
    pub(crate) fn hangs_up(&mut self) {
        self.input = None;
    }

    /// As Ctrl-C does.
    pub(crate) fn interrupts(&self) {
        assert!(Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap().success());
    }

    /// As when the power fails.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// All that it showed, once it ended well.
    #[track_caller]
    pub(crate) fn ends_well(self) -> String {
        self.ends(Some(0))
    }

    /// All that it showed, once it ended with this code.
    #[track_caller]
    pub(crate) fn ends(mut self, code: Option<i32>) -> String {
        let until = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > until {
                let _ = self.child.kill();
                panic!("it does not end; there is\n{}", self.shown());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        self.readers.drain(..).for_each(|reader| reader.join().unwrap());
        assert_eq!(status.code(), code, "{}", self.shown());
        self.shown()
    }
}

fn collect(mut from: impl Read + Send + 'static, seen: Arc<Mutex<Vec<u8>>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            seen.lock().unwrap().extend_from_slice(&buffer[..n]);
        }
    })
}
