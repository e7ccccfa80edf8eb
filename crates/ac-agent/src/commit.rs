//! One atomic commit, and what became of it.

use ac_core::Usage;
use ac_engine::{Effect, RunSnapshot};
use ac_storage::{Commit, CommitMark, CommitOutcome, StorageErrorKind};

use crate::{
    RunError, RunErrorKind,
    patience::{TRIES, WAIT, may_pass},
    record,
    record::RunOrigin,
    shared::Shared,
};

/// By which an owner recognises its own commit after the reply was lost.
pub(crate) enum Mark {
    /// The owner commits.
    Own,
    /// Somebody else does, and leaves the owner's mark as it was. The inputs that others commit are recognised by their content.
    Keep(CommitMark),
}

impl Shared {
    /// Commits a step. `None` is a conflict; an unknown outcome is looked up until it is known, and never taken for a conflict.
    pub(crate) async fn commit(
        &self,
        origin: &RunOrigin,
        expect: Option<u64>,
        next: &RunSnapshot,
        effects: &[Effect],
        mark: Mark,
    ) -> Result<Option<u64>, RunError> {
        let mut put = vec![];
        let mut usage = None::<Usage>;
        for effect in effects {
            match effect {
                Effect::Put(message) => put.push(message.clone()),
                Effect::AddUsage(more) => usage.get_or_insert_default().add(more),
                _ => {}
            }
        }
        let own = matches!(mark, Mark::Own);
        let mark = match mark {
            Mark::Own => CommitMark { by: self.owner.clone(), epoch: next.epoch, n: self.count() },
            Mark::Keep(mark) => mark,
        };
        let record = record::record(next, origin, mark, self.clock.now())?;
        let commit = Commit { expect, record: &record, put: &put, usage: usage.as_ref() };
        for try_again in 0..TRIES {
            if try_again > 0 {
                tokio::time::sleep(WAIT).await;
                // The reply was lost. Only reading back tells whether the step is stored.
                match self.storage.runs().load(&next.run).await {
                    Ok(Some(stored)) if own && stored.value.header.mark == record.header.mark => {
                        return Ok(Some(expect.unwrap_or(0) + 1));
                    }
                    Ok(stored) if stored.as_ref().map(|stored| stored.version) != expect => return Ok(None),
                    Ok(_) => {}
                    Err(error) => {
                        tracing::debug!(run = %next.run, "cannot read back: {error}");
                        continue;
                    }
                }
            }
            match self.storage.runs().commit(commit.clone()).await {
                Ok(CommitOutcome::Committed { version }) => return Ok(Some(version)),
                // After a lost reply a conflict may be with the own commit: read back first.
                Ok(CommitOutcome::Conflict) if try_again == 0 => return Ok(None),
                Ok(CommitOutcome::Conflict | CommitOutcome::Unknown) => {}
                Err(error) if may_pass(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(RunError::new(
            RunErrorKind::Storage(StorageErrorKind::Unknown),
            "the store does not say whether the last step was stored; the run is recovered when it answers again",
        ))
    }
}
