use agent_controller::{
    controller::SystemClock,
    core::{Clock as _, RunId, event::PendingKind},
    engine::{Input, Posture},
    storage::{RunPosture, RunStage, StorageError, domain::OpenRuns},
};

use super::App;
use crate::exit::Failure;

/// How many open runs are read at once.
const PAGE: usize = 256;

impl App {
    /// Takes care of what a process that died left behind: its leases are void, because the store has one opener; and where it leaves a call
    /// in doubt and nothing else to do, that is written down, so that `pending` lists it and it can be decided. What can still move is moved
    /// by whoever goes on with that conversation, and by no list.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn clear_up(&self) -> Result<(), Failure> {
        let failed = |error: StorageError| Failure::failed(error.code(), error.to_string());
        let runs = self.storage().runs();
        let mut query = OpenRuns { limit: PAGE, ..OpenRuns::default() };
        loop {
            let page = runs.open(&query).await.map_err(failed)?;
            for header in page.items {
                if let Some(lease) = runs.lease(&header.run).await.map_err(failed)? {
                    runs.release_lease(&header.run, &lease.owner, lease.epoch).await.map_err(failed)?;
                }
                let moving = header.stage == RunStage::Open && header.posture == RunPosture::Moving;
                if moving
                    && self.only_doubts(&header.run).await?
                    && let Some(handle) = self.session(&header.thread).await?.take_over().await?
                {
                    handle.resting().await;
                }
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Whether a recovery of this run would start nothing, and leave a call in doubt.
    async fn only_doubts(&self, run: &RunId) -> Result<bool, Failure> {
        let Some(mut snapshot) = self.snapshot(run).await? else { return Ok(false) };
        let epoch = snapshot.epoch + 1;
        if snapshot.step(SystemClock.now(), Input::Recover { epoch }).is_err() {
            return Ok(false);
        }
        let rests = matches!(snapshot.posture(), Posture::Approval | Posture::Parked);
        Ok(rests && snapshot.waits().iter().any(|wait| wait.kind == PendingKind::InDoubt))
    }
}
