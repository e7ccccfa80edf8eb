//! The child from outside: deliveries in, answers out, death and birth.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
};

use ac_testkit::platforms::{Platforms, sign::Delivery};
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::oneshot;

use crate::{
    Failure,
    work::{Answered, Sent},
};

/// The child, whichever life it is in.
pub(crate) struct Worker {
    dir: PathBuf,
    urls: [(&'static str, String); 3],
    forgetful: bool,
    state: Arc<Mutex<State>>,
    /// How often the child said that it gets the processor.
    beats: Arc<AtomicU64>,
}

#[derive(Default)]
struct State {
    child: Option<Child>,
    /// To the thread that writes: the pipe of a child that is stopped fills up.
    input: Option<mpsc::Sender<String>>,
    /// Counts lives, so that the end of an old pipe is not taken for the end of the new one.
    life: u64,
    next: u64,
    waiting: HashMap<u64, oneshot::Sender<Answered>>,
    slowest: Slowest,
}

/// The slowest answers to platforms, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slowest {
    /// By the clock.
    pub(crate) clock: u64,
    /// Without the time in which the child did not get the processor.
    pub(crate) own: u64,
}

/// A child that was stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopped {
    life: u64,
    pid: Pid,
}

impl Worker {
    pub(crate) fn new(dir: PathBuf, platforms: &Platforms, forgetful: bool) -> Self {
        let urls = ["slack", "telegram", "discord"].map(|platform| (platform, platforms.base_url(platform)));
        Self { dir, urls, forgetful, state: Arc::default(), beats: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether there is a child that takes deliveries.
    pub(crate) fn lives(&self) -> bool {
        let state = self.state();
        state.input.is_some() && !state.waiting.contains_key(&0)
    }

    /// How often any life said that it gets the processor, ten times a second at most.
    pub(crate) fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }

    pub(crate) fn slowest(&self) -> Slowest {
        self.state().slowest
    }

    /// Begins a life; returns when the child takes deliveries.
    pub(crate) async fn start(&self) -> Result<(), Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("work").arg("--dir").arg(&self.dir);
        for (platform, url) in &self.urls {
            command.arg(format!("--{platform}")).arg(url);
        }
        if self.forgetful {
            command.arg("--forgetful");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?;
        let (pipe, output) = (child.stdin.take().ok_or("the child has no pipe")?, child.stdout.take().ok_or("the child has no pipe")?);
        let (born, ready) = oneshot::channel();
        let (input, lines) = mpsc::channel::<String>();
        let life = {
            let mut state = self.state();
            state.life += 1;
            state.child = Some(child);
            state.input = Some(input);
            state.waiting.insert(0, born);
            state.life
        };
        thread::spawn(move || {
            let mut pipe = pipe;
            for line in lines {
                // Whoever sent it hears from the other pipe that the child is gone.
                if writeln!(pipe, "{line}").and_then(|()| pipe.flush()).is_err() {
                    return;
                }
            }
        });
        let (shared, beats) = (self.state.clone(), self.beats.clone());
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let Ok(answered) = serde_json::from_str::<Answered>(&line) else { continue };
                if answered.beat {
                    beats.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                let mut state = lock(&shared);
                if answered.status == 200 {
                    state.slowest.clock = state.slowest.clock.max(answered.millis);
                    state.slowest.own = state.slowest.own.max(answered.millis.saturating_sub(answered.stopped));
                }
                if let Some(waiting) = state.waiting.remove(&answered.n) {
                    let _ = waiting.send(answered);
                }
            }
            let mut state = lock(&shared);
            if state.life == life {
                // Whoever waits for an answer of this life waits in vain.
                state.waiting.clear();
                state.input = None;
            }
        });
        ready.await.map_err(|_| "the child ended before it was ready")?;
        Ok(())
    }

    /// Ends a life as a kill from outside does.
    pub(crate) fn kill(&self) -> Result<(), Failure> {
        let child = self.state().child.take();
        if let Some(mut child) = child {
            child.kill()?;
            child.wait()?;
        }
        let mut state = self.state();
        state.input = None;
        state.waiting.clear();
        Ok(())
    }

    /// Takes the processor away from the child.
    pub(crate) fn stop(&self) -> Option<Stopped> {
        let state = self.state();
        let pid = Pid::from_child(state.child.as_ref()?);
        kill_process(pid, Signal::STOP).ok()?;
        Some(Stopped { life: state.life, pid })
    }

    /// Gives it back, if the child still lives.
    pub(crate) fn go_on(&self, stopped: Stopped) -> bool {
        let state = self.state();
        state.life == stopped.life && state.child.is_some() && kill_process(stopped.pid, Signal::CONT).is_ok()
    }

    /// Gives it back, whoever took it.
    pub(crate) fn wake(&self) {
        if let Some(child) = &self.state().child {
            let _ = kill_process(Pid::from_child(child), Signal::CONT);
        }
    }

    /// Lets the child come to rest and end.
    pub(crate) fn finish(&self) -> Result<bool, Failure> {
        let child = {
            let mut state = self.state();
            state.input = None;
            state.child.take()
        };
        Ok(match child {
            Some(mut child) => child.wait()?.success(),
            None => false,
        })
    }

    /// One delivery; `None` when the child died over it.
    pub(crate) async fn deliver(&self, delivery: &Delivery) -> Option<Answered> {
        let answer = {
            let mut state = self.state();
            state.next += 1;
            let n = state.next;
            let line = serde_json::to_string(&Sent { n, delivery: delivery.clone() }).ok()?;
            state.input.as_ref()?.send(line).ok()?;
            let (waiting, answer) = oneshot::channel();
            state.waiting.insert(n, waiting);
            answer
        };
        answer.await.ok()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
