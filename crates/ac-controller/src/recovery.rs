//! What a process left behind is found and taken up: runs that nobody moves (`R3`, `R5`), follow-ups that nobody started (`R8`).

use std::sync::Arc;

use ac_agent::RunErrorKind;
use ac_engine::Posture;
use ac_storage::{RunHeader, RunPosture, RunStage, StorageErrorKind, domain::OpenRuns};

use crate::{ControllerError, ControllerErrorKind, Session, controller::Shared, session::SessionRecord};

/// How many rows are read at once.
const PAGE: usize = 256;

/// Takes over the runs of this controller that can move and that nobody else moves. Those that wait for a person go on waiting. One that
/// cannot be taken over keeps no other one from it; the first error is returned when all were tried.
pub(crate) async fn recover(shared: &Arc<Shared>) -> Result<(), ControllerError> {
    let mut query = OpenRuns { limit: PAGE, ..OpenRuns::default() };
    let mut done = Ok(());
    loop {
        let page = match shared.storage.runs().open(&query).await {
            Ok(page) => page,
            Err(error) => {
                done = done.and(Err(error.into()));
                break;
            }
        };
        for header in page.items {
            if can_move(&header) && header.controller == shared.config.id && shared.runtime.live(&header.run).is_none() {
                done = done.and(take_over(shared, &header).await);
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    // A follow-up whose start failed waits for nothing else.
    for session in shared.sessions.values().into_iter().map(|inner| Session::new(inner, shared.clone())) {
        session.pump_waiting();
    }
    done
}

fn cannot_be_read(kind: ControllerErrorKind) -> bool {
    use StorageErrorKind::{Corrupt, NewerSchema};
    matches!(
        kind,
        ControllerErrorKind::NewerSchema
            | ControllerErrorKind::Storage(Corrupt | NewerSchema)
            | ControllerErrorKind::Run(RunErrorKind::Corrupt | RunErrorKind::Storage(Corrupt | NewerSchema))
    )
}

fn can_move(header: &RunHeader) -> bool {
    match header.stage {
        RunStage::Open => header.posture == RunPosture::Moving,
        RunStage::Finished => true,
        RunStage::Closed => false,
    }
}

/// One run, or one session, that cannot be read keeps no other run from going on.
async fn take_over(shared: &Arc<Shared>, header: &RunHeader) -> Result<(), ControllerError> {
    match try_take_over(shared, header).await {
        Err(error) if cannot_be_read(error.kind()) => {
            tracing::error!(run = %header.run, code = error.code(), "a run, or its session, cannot be read; it is left as it is: {error}");
            Ok(())
        }
        other => other,
    }
}

async fn try_take_over(shared: &Arc<Shared>, header: &RunHeader) -> Result<(), ControllerError> {
    // One whose children wait for people waits for people too.
    let snapshot = shared.runtime.load(&header.run).await?.map(|(_, snapshot)| snapshot);
    if let Some(snapshot) = snapshot.filter(|snapshot| snapshot.children().next().is_some())
        && matches!(shared.runtime.posture(&snapshot).await?, Posture::Approval | Posture::Parked)
    {
        return Ok(());
    }
    let session = shared.session(&header.session);
    // The run's host decides by the session's rules: they must be known.
    session.refresh().await?;
    match shared.runtime.take_over(session.host(), &header.run).await {
        Ok(_) => {
            session.watch_end(&header.run, &header.thread);
            Ok(())
        }
        // Somebody else moves it, or it ended meanwhile.
        Err(error) if matches!(error.kind(), RunErrorKind::Owned | RunErrorKind::NotFound | RunErrorKind::Refused(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Starts follow-ups that wait in sessions which nobody has opened in this process: whoever stored them may have died before it could.
async fn wake_queues(shared: &Arc<Shared>) -> Result<(), ControllerError> {
    let sessions = shared.storage.sessions();
    let mut after = None;
    loop {
        let page = sessions.list(&shared.config.id, after.as_deref(), PAGE).await?;
        for id in page.items {
            let stored = match sessions.load(&id).await {
                Err(error) if cannot_be_read(ControllerErrorKind::Storage(error.kind())) => continue,
                other => other?,
            };
            if !stored.is_some_and(|stored| SessionRecord::may_wait(&stored.value)) {
                continue;
            }
            let session = shared.session(&id.key);
            match session.refresh().await {
                Ok(_) => session.pump_waiting(),
                Err(error) if cannot_be_read(error.kind()) => {
                    tracing::error!(session = %id.key, code = error.code(), "a session cannot be read; it is left as it is: {error}");
                }
                Err(error) => return Err(error),
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(()),
        }
    }
}

/// The backstop: looks at all sessions once, and at open runs from time to time, until the controller stops or is gone.
pub(crate) fn spawn_poller(shared: &Arc<Shared>) {
    let (weak, stop, every) = (shared.weak(), shared.stop.clone(), shared.look);
    shared.tasks.spawn(async move {
        let mut woken = false;
        loop {
            let Some(shared) = weak.upgrade() else { return };
            if !woken {
                let waking = tokio::select! {
                    () = stop.cancelled() => return,
                    waking = wake_queues(&shared) => waking,
                };
                woken = waking.inspect_err(warn).is_ok();
            }
            drop(shared);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(every) => {}
            }
            let Some(shared) = weak.upgrade() else { return };
            if let Err(error) = recover(&shared).await {
                warn(&error);
            }
        }
    });
}

fn warn(error: &ControllerError) {
    tracing::warn!(code = error.code(), "looking for what nobody moves failed; it is tried again");
}
