//! What is asked of a run, wherever it is.

use std::fmt;

use ac_core::PendingId;
use ac_engine::{Answer, Input, RunSnapshot};
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::{Accepted, RunError, RunErrorKind, RunHost, answer, gate::Schemas};

/// What a driver is asked by its process.
pub(crate) enum Command {
    /// An input of the machine.
    Input { input: Input, reply: oneshot::Sender<Result<Accepted, RunError>> },
    /// An answer, to be checked and completed first.
    Answer {
        pending: ac_core::PendingId,
        answer: Answer,
        request_context: Option<Map<String, Value>>,
        reply: oneshot::Sender<Result<Accepted, RunError>>,
    },
    /// To leave the run where it is.
    Park,
}

/// Commands that wait for a driver.
pub(crate) const MAILBOX: usize = 64;

/// The driver will not get to it.
pub(crate) fn reject(command: Command) {
    let (Command::Input { reply, .. } | Command::Answer { reply, .. }) = command else { return };
    let _ = reply.send(Err(RunError::new(RunErrorKind::Closed, "the run came to rest at this moment")));
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input { .. } => "Input",
            Self::Answer { .. } => "Answer",
            Self::Park => "Park",
        })
    }
}

/// What somebody wants of a run, until it is settled who moves that run.
#[derive(Clone)]
pub(crate) enum Ask {
    Input(Input),
    Answer { pending: PendingId, answer: Answer, request_context: Option<Map<String, Value>> },
}

impl Ask {
    /// What a driver is asked.
    pub(crate) fn command(&self, reply: oneshot::Sender<Result<Accepted, RunError>>) -> Command {
        match self.clone() {
            Self::Input(input) => Command::Input { input, reply },
            Self::Answer { pending, answer, request_context } => Command::Answer { pending, answer, request_context, reply },
        }
    }

    /// The input that it is for the machine.
    pub(crate) async fn prepare(
        &self,
        host: &dyn RunHost,
        run: &crate::RunRef,
        snapshot: &RunSnapshot,
        schemas: &Schemas,
    ) -> Result<Input, RunError> {
        match self.clone() {
            Self::Input(input) => Ok(input),
            Self::Answer { pending, answer, request_context } => {
                answer::prepare(host, run, snapshot, schemas, pending, answer, request_context).await
            }
        }
    }
}
