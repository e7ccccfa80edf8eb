//! Runs that a call of another run starts.

use ac_agent::{ChildProfile, RunErrorKind, RunOrigin};
use ac_core::{Message, ModelId, RunId, ThreadId, Timestamp, ToolCallId, permission::Verdict, tool::ChildRun};
use ac_engine::{Input, Profile, RunSnapshot, StartRun};
use ac_storage::{RunHeader, RunParent, StorageErrorKind, ThreadRecord};
use ac_tools::{SubagentTool, SubmitPlan, ToolSet};
use futures::{FutureExt, future::BoxFuture};
use serde_json::Value;

use super::Session;
use crate::{
    ControllerError, ControllerErrorKind, Subagent,
    subagent::{self, fork_task},
};

/// What a child starts with.
struct Begin {
    profile: Profile,
    child: ChildProfile,
    task: String,
}

impl Session {
    /// Starts the run of a call, on a hidden thread of its own. Doing it again changes nothing: both ids derive from parent and call.
    ///
    /// # Errors
    /// [`ChildRefused`](RunErrorKind::ChildRefused) when no such run can be: the call fails then.
    pub(crate) async fn start_child(
        &self,
        parent: &RunSnapshot,
        run: &RunId,
        call: &ToolCallId,
        asked: &ChildRun,
    ) -> Result<(), ControllerError> {
        if self.shared().runtime.load(run).await?.is_some() {
            return Ok(());
        }
        self.shared().transient.share(&parent.run, run);
        let Begin { mut profile, child, task } = self.begin(parent, call, asked).await?;
        child.keep_in(&mut profile);
        let thread = ThreadId::from(run.as_str());
        if child.forked {
            self.note_fork(run, &child.root).await?;
        }
        if !self.store_child_thread(parent, &thread, call, &child).await? {
            return Ok(());
        }
        let origin =
            RunOrigin { controller: self.shared().config.id.clone(), session: self.key().clone(), resource: self.resource().clone() };
        let start = StartRun {
            run: run.clone(),
            thread,
            parent: Some((parent.run.clone(), call.clone())),
            profile,
            messages: vec![Message::user(ChildProfile::task_message(run), task, child.since)],
            from_queue: false,
        };
        match self.shared().runtime.start(self.host(), origin, start).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == RunErrorKind::Busy => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the thread of a child, a copy of its parent's for a fork. Says whether there is somebody to start a run for.
    async fn store_child_thread(
        &self,
        parent: &RunSnapshot,
        thread: &ThreadId,
        call: &ToolCallId,
        child: &ChildProfile,
    ) -> Result<bool, ControllerError> {
        let mut row = ThreadRecord::new(thread.clone(), self.resource().clone(), child.since);
        row.parent = Some(RunParent { run: parent.run.clone(), call: call.clone() });
        row.hidden = true;
        let kind = if child.forked { "Fork" } else { "Subagent" };
        row.info.title = format!("{kind}: {}", child.name);
        row.info.metadata.insert("parentThreadId".into(), parent.thread.as_str().into());
        if child.forked {
            row.info.metadata.insert("forkedSubagent".into(), true.into());
        }
        let storage = &self.shared().storage;
        let made = if child.forked {
            // Copied in the store, up to the answer that holds the call: that one is no history yet.
            storage.messages().copy(&parent.thread, &row, Some(&parent.message_id())).await.map(drop)
        } else {
            storage.threads().create(&row).await
        };
        match made {
            Err(error) if error.kind() == StorageErrorKind::Exists => Ok(true),
            // Deleted with its parent's thread: nobody waits for it any more.
            Err(error) if error.kind() == StorageErrorKind::Deleted => Ok(false),
            Err(error) if child.forked && error.kind() == StorageErrorKind::NotFound => Ok(false),
            made => Ok(made.map(|()| true)?),
        }
    }

    async fn begin(&self, parent: &RunSnapshot, call: &ToolCallId, asked: &ChildRun) -> Result<Begin, ControllerError> {
        let config = &self.shared().config;
        let now = self.shared().clock.now();
        let mut child = ChildProfile::below(parent, asked.agent.as_str(), asked.task.as_str(), now);
        if child.depth > config.subagents.depth {
            return Err(refused(format!("subagents may be {} deep here; do the task without another one", config.subagents.depth)));
        }
        let Some(kind) = config.subagents.get(&asked.agent) else {
            let by_tool = parent.slots().iter().any(|slot| slot.call == *call && slot.tool == SubagentTool::NAME);
            if by_tool {
                let known: Vec<&str> = config.subagents.all().iter().map(Subagent::id).collect();
                return Err(refused(format!("there is no subagent type `{}`; there are: {}", asked.agent, known.join(", "))));
            }
            // A tool of the host's hands out its own work: the same model, mode and tools, less the plan.
            let mut profile = bounded(parent, asked.agent.as_str());
            profile.tools.retain(|tool| tool.as_ref() != SubmitPlan::NAME);
            return Ok(Begin { profile, child, task: asked.task.clone() });
        };
        child.name.clone_from(&kind.name);
        child.forked = asked.options.get("forked").and_then(Value::as_bool).unwrap_or(kind.forked);
        if child.forked {
            // Everything that the model reads before the task is as its parent's, so that nothing of it is paid for twice.
            let profile = bounded(parent, parent.profile.agent.as_str());
            let task = fork_task(&asked.task, profile.tools.iter().map(AsRef::as_ref));
            return Ok(Begin { profile, child, task });
        }
        child.tools_of = Some(kind.id.clone());
        let mut profile = bounded(parent, &kind.id);
        profile.instructions.clone_from(&kind.instructions);
        profile.limits.steps = kind.max_steps;
        profile.model = self.child_model(parent, &child, kind, asked.options.get("modelId").and_then(Value::as_str)).await?;
        let tools = config.child_tools(&profile, &child);
        profile.tools = self.offered_to_child(&tools, &profile, kind, child.depth)?;
        Ok(Begin { profile, child, task: asked.task.clone() })
    }

    /// The tools of a constrained child that nothing above it forbids: no rule, and not its mode.
    fn offered_to_child(
        &self,
        tools: &ToolSet,
        profile: &Profile,
        kind: &Subagent,
        depth: u32,
    ) -> Result<Vec<std::sync::Arc<str>>, ControllerError> {
        let config = &self.shared().config;
        let offered = config.mode(&profile.mode).and_then(|prepared| prepared.mode.available_tools.as_deref());
        let names: Vec<std::sync::Arc<str>> = tools
            .definitions()
            .filter(|definition| !matches!(self.decide_in(definition, offered, None).verdict, Verdict::Deny | Verdict::Hidden))
            .filter(|definition| definition.name != SubagentTool::NAME || depth < config.subagents.depth)
            .map(|definition| definition.name.as_str().into())
            .collect();
        if names.is_empty() && !tools.is_empty() {
            let all: Vec<&str> = tools.definitions().map(|definition| definition.name.as_str()).collect();
            let message =
                format!("none of its tools may be used in mode `{}` under the rules of this session: {}", profile.mode, all.join(", "));
            return Err(refused(format!("subagent type `{}` cannot work here: {message}", kind.id)));
        }
        Ok(names)
    }

    /// The call's own, what a person selected for the type, what a person selected for all, the type's, the parent's.
    async fn child_model(
        &self,
        parent: &RunSnapshot,
        child: &ChildProfile,
        kind: &Subagent,
        asked: Option<&str>,
    ) -> Result<ModelId, ControllerError> {
        if let Some(asked) = asked {
            return Ok(asked.into());
        }
        let selected = self.selected_on(&child.root_thread, Some(&kind.id)).await?;
        Ok(selected.or_else(|| kind.model.clone()).unwrap_or_else(|| parent.profile.model.clone()))
    }

    /// Stops the run of a call. Boxed, because the end of one run may be the abort of another.
    pub(crate) fn abort_child(&self, run: RunId) -> BoxFuture<'static, Result<(), ControllerError>> {
        let session = self.clone();
        async move { session.abort_run(&run, false).await.map(drop) }.boxed()
    }

    /// A person wrote instead of deciding: what the run of a call asked then is declined, and what its own children asked (`R7`).
    pub(crate) fn interrupt_child(&self, run: RunId, at: Timestamp) -> BoxFuture<'static, Result<(), ControllerError>> {
        let session = self.clone();
        async move {
            match session.shared().runtime.deliver(session.host(), &run, Input::Interrupt { at }).await {
                Ok(_) => Ok(()),
                Err(error) if matches!(error.kind(), RunErrorKind::NotFound | RunErrorKind::Refused(_)) => Ok(()),
                Err(error) => Err(error.into()),
            }
        }
        .boxed()
    }

    /// Drives the parent of a run that goes on here, unless somebody has it already.
    pub(crate) async fn attend(&self, parent: &RunId) {
        match self.shared().runtime.take_over(self.host(), parent).await {
            Ok(handle) => self.watch_end(parent, handle.thread()),
            Err(error) => tracing::debug!(run = %parent, code = error.code(), "the run above goes on elsewhere: {error}"),
        }
    }

    /// A run and the open runs below it.
    pub(crate) async fn family(&self, header: RunHeader, snapshot: RunSnapshot) -> Result<Vec<(RunHeader, RunSnapshot)>, ControllerError> {
        let mut family = vec![(header, snapshot)];
        let mut next = 0;
        while let Some((_, snapshot)) = family.get(next) {
            next += 1;
            let children: Vec<RunId> = snapshot.children().map(|(_, run)| run.clone()).collect();
            for run in children {
                family.extend(self.shared().runtime.load(&run).await?.filter(|(_, child)| !child.is_finished()));
            }
        }
        Ok(family)
    }
}

/// A child never has more than its parent: the same mode, context and options, and what is left of the tokens.
fn bounded(parent: &RunSnapshot, agent: &str) -> Profile {
    let mut profile = parent.profile.as_ref().clone();
    profile.agent = agent.into();
    // The goal is the conversation's, and its judge reads what the parent makes of this.
    profile.judged = false;
    profile.limits.tokens = profile.limits.tokens.map(|tokens| tokens.saturating_sub(parent.budget.tokens));
    profile
}

fn refused(message: String) -> ControllerError {
    ControllerError::new(ControllerErrorKind::Run(RunErrorKind::ChildRefused), message)
}

/// Whether a tool only says why it is not there: nobody has to allow that.
pub(crate) fn only_says_why(profile: &Profile, tool: &str) -> bool {
    subagent::notice(tool).is_some() && ChildProfile::of(profile).is_some_and(|child| child.forked)
}
