//! What goes over the pipe, and what is remembered of it.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use ac_controller::Answer;
use ac_core::{PendingId, event::PendingKind};
use serde::{Deserialize, Serialize};

/// A line on the pipe. Shorter than a pipe's buffer, so a kill cuts none.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub(crate) enum Line {
    /// A message was acknowledged.
    Said {
        job: String,
        step: usize,
        how: How,
        text: String,
        message: String,
        thread: String,
        run: Option<String>,
    },
    /// A person is about to delete a thread, which holds these runs: steps of them are in its history, or they are open.
    Deleting {
        job: String,
        thread: String,
        runs: Vec<String>,
    },
    /// A thread is deleted.
    Deleted {
        thread: String,
    },
    /// A thread is copied, with so many messages.
    Cloned {
        from: String,
        to: String,
        messages: usize,
    },
    /// A session-wide grant was given, and all of them were taken back.
    Granted {
        job: String,
    },
    Revoked {
        job: String,
    },
    /// A person is about to abort.
    Aborting {
        job: String,
    },
    /// A step that leaves nothing to check is done.
    Stepped {
        job: String,
        step: usize,
    },
    /// A person is about to answer.
    Answering {
        id: PendingId,
        answer: Answer,
    },
    /// An answer was acknowledged.
    Answered {
        job: String,
        id: PendingId,
        kind: PendingKind,
        tool: String,
        answer: Answer,
    },
    /// Something was not as promised.
    Complaint {
        text: String,
    },
    /// All jobs are done, after so many writes.
    Done {
        writes: u64,
    },
}

/// How a message was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum How {
    /// Sent, injected or steered: in order among themselves.
    Direct,
    /// As a follow-up: in order among themselves.
    FollowUp,
}

/// Says a line on the pipe, in one piece.
pub(crate) fn tell(line: &Line) {
    let Ok(mut text) = serde_json::to_string(line) else { return };
    text.push('\n');
    let mut out = io::stdout().lock();
    // The parent is gone: so is the need to say anything.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Everything that came over the pipe in all lives.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    pub(crate) lines: Vec<Line>,
}

impl Journal {
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let text = if path.exists() { fs::read_to_string(path)? } else { String::new() };
        let lines = text.lines().map(serde_json::from_str).collect::<Result<_, _>>().map_err(io::Error::other)?;
        Ok(Self { lines })
    }

    /// Whether a step of a job is known to be done.
    pub(crate) fn stepped(&self, of: &str, at: usize) -> bool {
        self.lines.iter().any(|line| match line {
            Line::Said { job, step, .. } | Line::Stepped { job, step } => job == of && *step == at,
            _ => false,
        })
    }

    /// The acknowledged answers of a job.
    pub(crate) fn answers<'a>(&'a self, of: &'a str) -> impl DoubleEndedIterator<Item = (&'a PendingId, &'a Answer)> {
        self.lines.iter().filter_map(move |line| match line {
            Line::Answered { job, id, answer, .. } if job == of => Some((id, answer)),
            _ => None,
        })
    }

    /// Threads that somebody tried to delete, with the runs that were open on them.
    pub(crate) fn deleting(&self) -> impl Iterator<Item = (&str, &str, &[String])> {
        self.lines.iter().filter_map(|line| match line {
            Line::Deleting { job, thread, runs } => Some((job.as_str(), thread.as_str(), runs.as_slice())),
            _ => None,
        })
    }

    /// Whether a grant of a job is known to hold: given, and not taken back since.
    pub(crate) fn granted(&self, of: &str) -> bool {
        let last = self.lines.iter().rfind(|line| matches!(line, Line::Granted { job } | Line::Revoked { job } if job == of));
        matches!(last, Some(Line::Granted { .. }))
    }

    /// Whether anybody tried to abort what the job does.
    pub(crate) fn aborted(&self, of: &str) -> bool {
        self.lines.iter().any(|line| matches!(line, Line::Aborting { job } if job == of))
    }
}

/// A number that follows from what it is given, and looks like any other.
pub(crate) fn dice(seed: u64, about: &str) -> u64 {
    // FNV-1a, then a finaliser: the last bytes of the text must reach all bits.
    let mut hash = about.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}
