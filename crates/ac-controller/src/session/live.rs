use ac_agent::{RunErrorKind, RunHandle};

use super::Session;
use crate::ControllerError;

impl Session {
    /// The run of the bound thread, where this process moves it: for hosts that wait until only a person can move it
    /// ([`RunHandle::resting`]).
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn live_run(&self) -> Result<Option<RunHandle>, ControllerError> {
        Ok(self.current_run().await?.and_then(|run| self.shared().runtime.live(&run)))
    }

    /// Goes on with the run of the bound thread that nobody moves (`R5`): what [`AgentController::init`](crate::AgentController::init)
    /// does for all of them. `None` where there is none, where it waits for a person, and where somebody else still has its lease.
    ///
    /// # Errors
    /// When the store does not answer, or the run cannot be read.
    pub async fn take_over(&self) -> Result<Option<RunHandle>, ControllerError> {
        self.check_alive()?;
        let Some(run) = self.current_run().await? else { return Ok(None) };
        let moves = match self.shared().runtime.load(&run).await? {
            Some((_, snapshot)) => {
                let posture = self.shared().runtime.posture(&snapshot).await?;
                matches!(posture, ac_engine::Posture::Moving | ac_engine::Posture::Finished)
            }
            None => false,
        };
        if !moves {
            return Ok(None);
        }
        let thread = self.bound_thread().await?;
        match self.shared().runtime.take_over(self.host_of(&run).await?, &run).await {
            Ok(handle) => {
                self.watch_end(&run, &thread);
                Ok(Some(handle))
            }
            Err(error) => match error.kind() {
                RunErrorKind::Owned | RunErrorKind::NotFound | RunErrorKind::Refused(_) => Ok(None),
                _ => Err(error.into()),
            },
        }
    }
}
