//! Copies of threads that forked subagents worked on, and their end (SPEC U-17).

use std::time::Duration;

use ac_core::RunId;
use ac_engine::Phase;
use ac_storage::StorageErrorKind;
use serde::{Deserialize, Serialize};

use super::{Session, record::Change};
use crate::ControllerError;

/// How long the answers that a person gave to a fork are known, so that the same one again is recognised (`R6`).
const ANSWERS: Duration = Duration::from_secs(24 * 60 * 60);

/// A fork that is to be deleted once the run at the top is closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fork {
    /// Its run; its thread has the same id.
    pub(crate) run: RunId,
    /// The run at the top.
    pub(crate) root: RunId,
}

impl Session {
    /// Remembers a fork before it is made, so that none is left behind.
    pub(crate) async fn note_fork(&self, run: &RunId, root: &RunId) -> Result<(), ControllerError> {
        let fork = Fork { run: run.clone(), root: root.clone() };
        self.write(
            |record| {
                if record.forks.contains(&fork) {
                    return Ok(Change::Nothing(()));
                }
                record.forks.push(fork.clone());
                Ok(Change::Write(()))
            },
            |()| {},
        )
        .await
    }

    /// Deletes the forks that nobody needs any more. Costs nothing where there are none.
    pub(crate) async fn sweep_forks(&self) -> Result<(), ControllerError> {
        let mut gone = vec![];
        for fork in &self.view().record.forks {
            if self.is_over(fork).await? {
                match self.shared().storage.threads().delete(&fork.run.as_str().into()).await {
                    // A run that lost its parent still holds it.
                    Err(error) if error.kind() == StorageErrorKind::Conflict => {}
                    deleted => {
                        deleted?;
                        gone.push(fork.clone());
                    }
                }
            }
        }
        if gone.is_empty() {
            return Ok(());
        }
        self.write(
            |record| {
                record.forks.retain(|fork| !gone.contains(fork));
                Ok(Change::Write(()))
            },
            |()| {},
        )
        .await
    }

    async fn is_over(&self, fork: &Fork) -> Result<bool, ControllerError> {
        let runtime = &self.shared().runtime;
        if runtime.load(&fork.root).await?.is_some_and(|(_, root)| !root.is_closed()) {
            return Ok(false);
        }
        let Some((_, run)) = runtime.load(&fork.run).await? else { return Ok(true) };
        let known_long_enough = match run.phase {
            Phase::Finished { at, .. } => {
                let ago = self.shared().clock.now().millis_since(at);
                u128::try_from(ago).is_ok_and(|ago| ago > ANSWERS.as_millis())
            }
            _ => false,
        };
        Ok(run.answers.is_empty() || known_long_enough)
    }

    /// As [`Session::sweep_forks`], by a task of its own.
    pub(crate) fn sweep_forks_soon(&self) {
        if self.view().record.forks.is_empty() {
            return;
        }
        let session = self.clone();
        self.spawn(async move {
            if let Err(error) = session.sweep_forks().await {
                tracing::warn!(code = error.code(), "copies of finished subagents were not deleted; it is tried again");
            }
        });
    }
}
