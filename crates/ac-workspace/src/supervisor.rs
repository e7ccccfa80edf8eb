//! A process between the host and a command, so that nothing the command starts can get away.
//!
//! A process that leaves group and session of its command and lets its parent die belongs to nobody that the host knows. The supervisor is
//! what the kernel calls a child subreaper: such orphans become its children, so it finds and ends all of them. It ends them also when the
//! host dies, because then its standard input is closed.
//!
//! The supervisor is the host's own program, started again: a host calls [`run_if_asked`] as the first thing in `main`. One that does not is
//! served by process group, session and a mark in the environment, which a process can get away from on purpose.

#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod linux;

use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(target_os = "linux")]
pub(crate) use confine::can;

static ANSWERS: AtomicBool = AtomicBool::new(false);

/// The argument by which a program is asked to supervise.
pub(crate) const ASK: &str = "--ac-supervise-command";

/// Becomes a supervisor, and does not return, when this process was started as one; otherwise notes that this program can be one. To be
/// called first in `main`, before threads, runtimes and argument parsers.
pub fn run_if_asked() {
    #[cfg(target_os = "linux")]
    {
        let mut arguments = std::env::args_os().skip(1);
        if arguments.next().is_some_and(|first| first == ASK) {
            std::process::exit(linux::supervise(arguments));
        }
    }
    ANSWERS.store(true, Ordering::Relaxed);
}

/// Whether this program calls [`run_if_asked`].
pub(crate) fn answers() -> bool {
    ANSWERS.load(Ordering::Relaxed)
}
