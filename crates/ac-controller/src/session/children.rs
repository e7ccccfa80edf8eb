//! Runs that a call of another run starts.

use ac_agent::{RunErrorKind, RunOrigin};
use ac_core::{Message, MessageId, RunId, ThreadId, ToolCallId, tool::ChildRun};
use ac_engine::{Profile, RunSnapshot, StartRun};
use ac_storage::{RunParent, StorageErrorKind, ThreadRecord};

use futures::{FutureExt, future::BoxFuture};

use super::Session;
use crate::ControllerError;

/// Not offered to a child run: a plan is for the person who talks to the parent.
const SUBMIT_PLAN: &str = "submit_plan";

impl Session {
    /// Starts the run of a call, on a hidden thread of its own. Doing it again changes nothing: both ids derive from parent and call.
    pub(crate) async fn start_child(
        &self,
        parent: &RunSnapshot,
        run: &RunId,
        call: &ToolCallId,
        child: &ChildRun,
    ) -> Result<(), ControllerError> {
        let thread = ThreadId::from(run.as_str());
        let now = self.shared().clock.now();
        let mut row = ThreadRecord::new(thread.clone(), self.resource().clone(), now);
        row.parent = Some(RunParent { run: parent.run.clone(), call: call.clone() });
        row.hidden = true;
        match self.shared().storage.threads().create(&row).await {
            Ok(()) => {}
            Err(error) if error.kind() == StorageErrorKind::Exists => {}
            // Deleted with its parent's thread: nobody waits for it any more.
            Err(error) if error.kind() == StorageErrorKind::Deleted => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        if self.shared().runtime.load(run).await?.is_some() {
            return Ok(());
        }
        self.shared().transient.share(parent.run.as_str(), run.as_str());
        let task = Message::user(MessageId::from(format!("{run}/task")), child.task.clone(), now);
        let origin =
            RunOrigin { controller: self.shared().config.id.clone(), session: self.key().clone(), resource: self.resource().clone() };
        let start = StartRun {
            run: run.clone(),
            thread,
            parent: Some((parent.run.clone(), call.clone())),
            profile: child_profile(&parent.profile, child),
            messages: vec![task],
            from_queue: false,
        };
        match self.shared().runtime.start(self.host(), origin, start).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == RunErrorKind::Busy => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Session {
    /// Stops the run of a call. Boxed, because the end of one run may be the abort of another.
    pub(crate) fn abort_child(&self, run: RunId) -> BoxFuture<'static, Result<(), ControllerError>> {
        let session = self.clone();
        async move { session.abort_run(&run, false).await.map(drop) }.boxed()
    }
}

/// A child never has more than its parent: the same model, mode and tools, less the plan.
fn child_profile(parent: &Profile, child: &ChildRun) -> Profile {
    let mut profile = parent.clone();
    profile.agent = child.agent.as_str().into();
    profile.tools.retain(|tool| tool.as_ref() != SUBMIT_PLAN);
    profile
}
