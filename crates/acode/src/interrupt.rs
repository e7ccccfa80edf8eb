//! Ctrl-C, and being told to end.

use std::time::{Duration, Instant};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc::{Receiver, channel},
};

use crate::exit::{Exit, Failure};

/// A second Ctrl-C within this time leaves.
const AGAIN: Duration = Duration::from_secs(2);
/// How long leaving may take before the process ends anyway. Nothing is lost: what was told was stored before.
const GRACE: Duration = Duration::from_secs(3);

/// What the person, or the system, wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// The first Ctrl-C: stop what is going on.
    Stop,
    /// The second within two seconds: leave.
    Leave,
    /// The system ends the process: leave, and let what goes on be continued later.
    End,
}

/// Interrupts, as they come.
#[derive(Debug)]
pub(crate) struct Interrupts(Receiver<Interrupt>);

impl Interrupts {
    /// Listens from now on.
    ///
    /// # Errors
    /// When the system does not let it.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        let (tell, told) = channel(4);
        tokio::spawn(async move {
            let mut last: Option<Instant> = None;
            loop {
                let what = tokio::select! {
                    Some(()) = interrupt.recv() => {
                        let again = last.is_some_and(|last| last.elapsed() < AGAIN);
                        last = Some(Instant::now());
                        if again { Interrupt::Leave } else { Interrupt::Stop }
                    }
                    Some(()) = terminate.recv() => Interrupt::End,
                    Some(()) = hang_up.recv() => Interrupt::End,
                    else => return,
                };
                if what != Interrupt::Stop {
                    // A plain thread: it must also end a process whose executor is stuck.
                    let code = if what == Interrupt::Leave { Exit::Aborted } else { Exit::Waiting };
                    std::thread::spawn(move || {
                        std::thread::sleep(GRACE);
                        std::process::exit(code.code().into());
                    });
                }
                // A full queue means that nobody minds the ones before; they say the same.
                let _ = tell.try_send(what);
            }
        });
        Ok(Self(told))
    }

    /// Does this, unless an interrupt comes first: then it is given up. For what is not yet a run, so that there is nothing to abort.
    ///
    /// # Errors
    /// As `work`; that it was given up.
    pub(crate) async fn or<T>(&mut self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            _ = self.next() => Err(Failure { exit: Exit::Aborted, code: "aborted".into(), message: "stopped before anything was done".into() }),
            done = work => done,
        }
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> Interrupt {
        match self.0.recv().await {
            Some(interrupt) => interrupt,
            None => std::future::pending().await,
        }
    }
}
