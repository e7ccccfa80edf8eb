//! Looking at sessions without making them.

use std::sync::Arc;

use ac_core::{ResourceId, RunId, SessionKey, ThreadId};
use ac_storage::{RunStage, SessionId, Storage, domain::OpenRuns};

use crate::{AgentController, ControllerError, Cursor, Pending, Session, Subscription, session::Inner};

/// How many open runs are read at once.
const PAGE: usize = 256;

/// A run that is not over: it moves, or it waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActiveRun {
    /// The run.
    pub run: RunId,
    /// Whose thread it works on.
    pub resource: ResourceId,
    /// The thread.
    pub thread: ThreadId,
}

impl AgentController {
    /// Where everything is kept.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.shared().storage
    }

    /// The session of a key, if it began in this process: if somebody created it here.
    pub fn live_session(&self, key: &SessionKey) -> Option<Session> {
        self.session(key).filter(|session| session.inner().is_opened())
    }

    /// The session of a key, to be looked at. Where it did not begin in this process, it shows what is stored, as the session would begin,
    /// and nothing is made: no record, no thread, no entry. What is written through such a handle is not seen by the session itself, so a
    /// host that wants to change something uses [`AgentController::create_session`].
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn read_session(&self, key: &SessionKey) -> Result<Session, ControllerError> {
        let shared = self.shared();
        shared.check_open()?;
        if let Some(live) = self.live_session(key) {
            return Ok(live);
        }
        let id = SessionId { controller: self.id().clone(), key: key.clone() };
        let session = Session::new(Inner::new(id, shared), shared.clone());
        session.look().await?;
        Ok(session)
    }

    /// The events of a session, also of one that did not begin yet: then there are none until it does. Nothing is stored for it.
    pub fn listen(&self, key: &SessionKey, after: Option<Cursor>) -> Subscription {
        let session = self.shared().session(key);
        match after {
            Some(after) => session.subscribe_after(after),
            None => session.subscribe(),
        }
    }

    /// Lets go of what [`AgentController::listen`] made for a session that never began and that nobody listens to any more. Anything else
    /// stays as it is.
    pub fn forget(&self, key: &SessionKey) {
        // Whoever is about to begin it holds a handle of its own.
        self.shared().sessions.remove_if(key, |inner| {
            !inner.is_opened() && Arc::strong_count(inner) == 1 && inner.feed().readers() == 0 && Arc::strong_count(inner.feed()) == 1
        });
    }

    /// Whether there is a session of this key: it began in this process, or something of it is stored.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn has_session(&self, key: &SessionKey) -> Result<bool, ControllerError> {
        let id = SessionId { controller: self.id().clone(), key: key.clone() };
        Ok(self.live_session(key).is_some() || self.storage().sessions().load(&id).await?.is_some())
    }

    /// What waits for a person in any session of a resource, oldest first.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn pending_of(&self, resource: &ResourceId) -> Result<Vec<Pending>, ControllerError> {
        self.shared().pending_of(resource).await
    }

    /// What waits for a person on a thread, whichever session started it.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn pending_on(&self, thread: &ThreadId) -> Result<Vec<Pending>, ControllerError> {
        self.shared().pending_on(thread).await
    }

    /// The runs of this controller that are not over; those of subagents are part of their parents'.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn active_runs(&self) -> Result<Vec<ActiveRun>, ControllerError> {
        let mut query = OpenRuns { limit: PAGE, ..OpenRuns::default() };
        let mut out = vec![];
        loop {
            let page = self.storage().runs().open(&query).await?;
            let ours = page
                .items
                .into_iter()
                .filter(|header| header.controller == *self.id() && header.parent.is_none() && header.stage == RunStage::Open);
            out.extend(ours.map(|header| ActiveRun { run: header.run, resource: header.session.resource, thread: header.thread }));
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(out),
            }
        }
    }
}
