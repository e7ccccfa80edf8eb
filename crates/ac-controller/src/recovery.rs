//! Runs that nobody moves are found and taken over (`R3`, `R5`).

use std::sync::Arc;

use ac_agent::RunErrorKind;
use ac_engine::Posture;
use ac_storage::{RunHeader, RunPosture, RunStage, StorageErrorKind, domain::OpenRuns};

use crate::{ControllerError, ControllerErrorKind, Session, controller::Shared};

/// How many open runs are read at once.
const PAGE: usize = 256;

/// Takes over the runs of this controller that can move and that nobody else moves. Those that wait for a person go on waiting.
pub(crate) async fn recover(shared: &Arc<Shared>) -> Result<(), ControllerError> {
    let mut query = OpenRuns { limit: PAGE, ..OpenRuns::default() };
    loop {
        let page = shared.storage.runs().open(&query).await?;
        for header in page.items {
            if can_move(&header) && header.controller == shared.config.id && shared.runtime.live(&header.run).is_none() {
                take_over(shared, &header).await?;
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    // A follow-up whose start failed waits for nothing else.
    for session in shared.sessions.values().into_iter().map(|inner| Session::new(inner, shared.clone())) {
        if let Some(thread) = session.thread_id().filter(|_| session.has_follow_ups()) {
            session.pump_soon(&thread);
        }
    }
    Ok(())
}

fn cannot_be_read(kind: ControllerErrorKind) -> bool {
    use StorageErrorKind::{Corrupt, NewerSchema};
    matches!(kind, ControllerErrorKind::NewerSchema | ControllerErrorKind::Storage(Corrupt | NewerSchema))
}

fn can_move(header: &RunHeader) -> bool {
    match header.stage {
        RunStage::Open => header.posture == RunPosture::Moving,
        RunStage::Finished => true,
        RunStage::Closed => false,
    }
}

async fn take_over(shared: &Arc<Shared>, header: &RunHeader) -> Result<(), ControllerError> {
    // One whose children wait for people waits for people too.
    let snapshot = shared.runtime.load(&header.run).await.ok().flatten().map(|(_, snapshot)| snapshot);
    if let Some(snapshot) = snapshot.filter(|snapshot| snapshot.children().next().is_some())
        && shared.runtime.posture(&snapshot).await.is_ok_and(|posture| matches!(posture, Posture::Approval | Posture::Parked))
    {
        return Ok(());
    }
    let session = shared.session(&header.session);
    // The run's host decides by the session's rules: they must be known.
    match session.refresh().await {
        Ok(_) => {}
        // One session that cannot be read keeps no other one's runs from going on.
        Err(error) if cannot_be_read(error.kind()) => {
            tracing::error!(run = %header.run, code = error.code(), "the session of a run cannot be read; the run is left as it is: {error}");
            return Ok(());
        }
        Err(error) => return Err(error),
    }
    match shared.runtime.take_over(session.host(), &header.run).await {
        Ok(_) => {
            session.watch_end(&header.run, &header.thread);
            Ok(())
        }
        Err(error) => match error.kind() {
            // Somebody else moves it, or it ended meanwhile.
            RunErrorKind::Owned | RunErrorKind::NotFound | RunErrorKind::Refused(_) => Ok(()),
            // One run that cannot be read keeps no other one from going on.
            RunErrorKind::Corrupt => {
                tracing::error!(run = %header.run, "a stored run cannot be read; it is left as it is");
                Ok(())
            }
            _ => Err(error.into()),
        },
    }
}

/// The backstop: looks from time to time, until the controller stops or is gone.
pub(crate) fn spawn_poller(shared: &Arc<Shared>) {
    let (weak, stop, every) = (shared.weak(), shared.stop.clone(), shared.look);
    shared.tasks.spawn(async move {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(every) => {}
            }
            let Some(shared) = weak.upgrade() else { return };
            if let Err(error) = recover(&shared).await {
                tracing::warn!(code = error.code(), "looking for runs that nobody moves failed; it is tried again");
            }
        }
    });
}
