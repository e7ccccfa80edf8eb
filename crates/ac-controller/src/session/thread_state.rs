//! What tools keep with a thread.

use std::sync::Arc;

use ac_agent::RunRef;
use ac_core::{
    EventBody, ThreadId, ToolError, ToolErrorKind,
    event::Task,
    tool::{ThreadState, ThreadValue},
};
use ac_storage::{StorageError, StorageErrorKind};
use ac_tools::tasks;
use async_trait::async_trait;
use serde_json::Value;

use super::Session;
use crate::{AgentController, ControllerError, ControllerErrorKind, controller::Shared, feed::About};

/// Names that tools may read and never write: a goal is the person's, and nothing that a model says changes it.
const HOSTS: [&str; 2] = [super::goal::STATE, super::inbox::STATE];

/// The state of the thread of a run, lent to its tools.
pub(crate) struct Keeper {
    session: Session,
    run: RunRef,
}

impl Session {
    /// What the tools of a run keep with its thread.
    pub(crate) fn keeper(&self, run: &RunRef) -> Arc<dyn ThreadState> {
        Arc::new(Keeper { session: self.clone(), run: run.clone() })
    }

    /// The task list of a thread of the resource; of the bound one, where none is given. Read from the store.
    ///
    /// # Errors
    /// [`ThreadNotFound`](ControllerErrorKind::ThreadNotFound), also for one of somebody else; when the store does not answer.
    pub async fn tasks(&self, thread: Option<&ThreadId>) -> Result<Vec<Task>, ControllerError> {
        let Some(thread) = thread.cloned().or_else(|| self.thread_id()) else { return Ok(vec![]) };
        self.shared().owned_thread(&thread, self.resource()).await?;
        self.shared().tasks(&thread).await
    }
}

impl AgentController {
    /// The task list of a thread, without making a session.
    ///
    /// # Errors
    /// When the store does not answer, or what it has is no list of tasks.
    pub async fn tasks(&self, thread: &ThreadId) -> Result<Vec<Task>, ControllerError> {
        self.shared().tasks(thread).await
    }
}

impl Shared {
    pub(crate) async fn tasks(&self, thread: &ThreadId) -> Result<Vec<Task>, ControllerError> {
        let stored = self.storage.state().get(thread, tasks::STATE).await?;
        tasks::read_tasks(stored.as_ref().map(|stored| &stored.value)).map_err(|error| {
            ControllerError::new(ControllerErrorKind::Storage(StorageErrorKind::Corrupt), error.to_string()).with_source(error)
        })
    }
}

#[async_trait]
impl ThreadState for Keeper {
    async fn get(&self, name: &str) -> Result<Option<ThreadValue>, ToolError> {
        let stored = self.session.shared().storage.state().get(&self.run.thread, name).await.map_err(failed)?;
        Ok(stored.map(|stored| ThreadValue { version: stored.version, value: stored.value }))
    }

    async fn put(&self, name: &str, expect: Option<u64>, value: &Value) -> Result<bool, ToolError> {
        if HOSTS.contains(&name) {
            return Err(ToolError::new(ToolErrorKind::Denied, format!("`{name}` belongs to the host; keep this under another name")));
        }
        let list = if name == tasks::STATE { Some(tasks::read_tasks(Some(value))?) } else { None };
        // One write at a time, so that lists are told in the order in which they were written.
        let _turn = self.session.inner().keeping().lock().await;
        match self.session.shared().storage.state().put(&self.run.thread, name, expect, value).await {
            Ok(_) => {}
            Err(error) if error.kind() == StorageErrorKind::Conflict => return Ok(false),
            Err(error) => return Err(failed(error)),
        }
        if let Some(list) = list {
            let about = About { run: Some(self.run.run.clone()), thread: Some(self.run.thread.clone()) };
            self.session.tell(about, EventBody::TaskUpdated { tasks: list.into() });
        }
        Ok(true)
    }
}

fn failed(error: StorageError) -> ToolError {
    ToolError::failed("what is kept with this thread cannot be reached now; try again").with_source(error)
}
