//! The child from outside: deliveries in, answers out, death and birth.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use ac_testkit::platforms::{Platforms, sign::Delivery};
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
}

#[derive(Default)]
struct State {
    child: Option<Child>,
    input: Option<ChildStdin>,
    /// Counts lives, so that the end of an old pipe is not taken for the end of the new one.
    life: u64,
    next: u64,
    waiting: HashMap<u64, oneshot::Sender<Answered>>,
}

impl Worker {
    pub(crate) fn new(dir: PathBuf, platforms: &Platforms, forgetful: bool) -> Self {
        let urls = ["slack", "telegram", "discord"].map(|platform| (platform, platforms.base_url(platform)));
        Self { dir, urls, forgetful, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether there is a child that takes deliveries.
    pub(crate) fn lives(&self) -> bool {
        let state = self.state();
        state.input.is_some() && !state.waiting.contains_key(&0)
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
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = output.ok_or("the child has no pipe")?;
        let (born, ready) = oneshot::channel();
        let life = {
            let mut state = self.state();
            state.life += 1;
            state.child = Some(child);
            state.input = input;
            state.waiting.insert(0, born);
            state.life
        };
        let shared = self.state.clone();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Ok(answered) = serde_json::from_str::<Answered>(&line)
                    && let Some(waiting) = lock(&shared).waiting.remove(&answered.n)
                {
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
            let input = state.input.as_mut()?;
            writeln!(input, "{line}").and_then(|()| input.flush()).ok()?;
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
