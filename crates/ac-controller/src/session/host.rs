//! A session as the host of its runs.

use std::sync::Arc;

use ac_agent::{ChildProfile, JudgeContext, Judgement, RunError, RunErrorKind, RunHost, RunRef};
use ac_core::{
    Decision, EventBody, ModelError, ModelId, ModelProvider, RunId, ThreadId, ToolDefinition,
    event::EndReason,
    permission::{CallVerdict, Reason, Verdict},
    tool::Capabilities,
};
use ac_engine::{Outbox, OutboxAction, Profile, RunSnapshot};
use ac_tools::ToolSet;
use async_trait::async_trait;
use serde_json::{Map, Value};

use super::{
    Session,
    children::only_says_why,
    run::{THREAD_KEY, UNATTENDED_KEY},
};
use crate::{ControllerError, ControllerErrorKind, feed::About};

struct Host(Session);

impl Session {
    /// What the runs of this session work for.
    pub(crate) fn host(&self) -> Arc<dyn RunHost> {
        Arc::new(Host(self.clone()))
    }

    /// What a run works for. One on this session's thread may be another session's: that one's rules hold for it, that one hears of it and
    /// answers it, whoever says something to it.
    pub(crate) async fn host_of(&self, run: &RunId) -> Result<Arc<dyn RunHost>, ControllerError> {
        let Some((header, _)) = self.shared().runtime.load(run).await? else { return Ok(self.host()) };
        if header.controller != self.shared().config.id {
            let message = format!("a run of the controller `{}` holds this thread; say it there", header.controller);
            return Err(ControllerError::new(ControllerErrorKind::Run(RunErrorKind::Owned), message));
        }
        if header.session == *self.key() {
            return Ok(self.host());
        }
        Ok(self.shared().session(&header.session).host())
    }
}

#[async_trait]
impl RunHost for Host {
    fn provider(&self, model: &ModelId) -> Result<Arc<dyn ModelProvider>, ModelError> {
        self.0.shared().config.router.provider(model)
    }

    fn tools(&self, profile: &Profile) -> Arc<ToolSet> {
        let config = &self.0.shared().config;
        match ChildProfile::of(profile) {
            Some(child) => config.child_tools(profile, &child),
            None => config.tools(&profile.mode).clone(),
        }
    }

    async fn decide(&self, run: &RunRef, profile: &Profile, definition: &ToolDefinition, args: &Value) -> Decision {
        // Another process may have laid down rules, or this one may not have read those of the session yet. Where they cannot be read,
        // nobody can tell what is denied.
        let call = match self.0.refresh().await {
            Ok(_) => self.0.judge_call(&definition.name, args, &self.capabilities(run)).await,
            Err(error) => {
                tracing::warn!(run = %run.run, code = error.code(), "the rules of the session cannot be read: {error}");
                Some(CallVerdict::Unclear)
            }
        };
        let mut decision = self.0.decide_in(definition, Some(&profile.tools), call);
        // Where nobody can be asked, the run was started as one that does not ask. What may be denied is then denied.
        if decision.verdict == Verdict::Ask && profile.host.get(UNATTENDED_KEY).and_then(Value::as_bool) == Some(true) {
            decision = match decision.reason {
                Reason::CallUnclear => Decision { verdict: Verdict::Deny, reason: Reason::CallUnclear },
                _ => Decision { verdict: Verdict::Allow, reason: Reason::Yolo },
            };
        } else if decision.verdict == Verdict::Ask && only_says_why(profile, &definition.name) {
            decision = Decision { verdict: Verdict::Allow, reason: Reason::Default };
        }
        decision
    }

    fn capabilities(&self, run: &RunRef) -> Capabilities {
        let ours = Capabilities::new().with(self.0.keeper(run)).with(self.0.lent_state());
        match &self.0.shared().config.lend {
            Some(lend) => lend(run, ours),
            None => ours,
        }
    }

    /// The target of the run's own mode, not of one that the person chose meanwhile (SPEC B-15).
    async fn plan_target(&self, profile: &Profile) -> Result<Profile, RunError> {
        let config = &self.0.shared().config;
        let target = config.plan_target(&profile.mode);
        let Some(prepared) = config.mode(&target) else {
            return Err(RunError::new(RunErrorKind::InvalidAnswer, format!("the plan leads to mode `{target}`, which does not exist")));
        };
        let thread = profile.host.get(THREAD_KEY).and_then(Value::as_str).map(ThreadId::from);
        // What another process stored of the session counts too.
        self.0.refresh().await?;
        let mut next = profile.clone();
        next.model = self.0.model_on(&self.0.view(), thread.as_ref(), &target).unwrap_or_else(|| profile.model.clone());
        next.mode = target;
        next.instructions = prepared.instructions.clone();
        next.tools = self.0.visible_tools(prepared);
        Ok(next)
    }

    async fn apply(&self, snapshot: &RunSnapshot, item: &Outbox) -> Result<(), RunError> {
        match &item.action {
            OutboxAction::StartChild { run, call, child } => self.0.start_child(snapshot, run, call, child).await?,
            OutboxAction::AbortChild { run } => self.0.abort_child(run.clone()).await?,
            OutboxAction::InterruptChild { run, at } => self.0.interrupt_child(run.clone(), *at).await?,
            _ => self.0.apply_item(snapshot, item).await?,
        }
        Ok(())
    }

    fn request_context(&self, run: &RunRef, profile: &Profile) -> Map<String, Value> {
        self.0.shared().transient.join(&run.run, &profile.request_context)
    }

    async fn judges(&self, run: &RunRef) -> Result<bool, RunError> {
        Ok(self.0.has_active_goal(run).await?)
    }

    async fn judge(&self, snapshot: &RunSnapshot, cx: JudgeContext) -> Judgement {
        self.0.judge_goal(snapshot, &cx).await
    }

    async fn attend(&self, parent: &RunId) {
        self.0.attend(parent).await;
    }

    fn tell(&self, run: &RunRef, body: EventBody) {
        let about = About { run: Some(run.run.clone()), thread: Some(run.thread.clone()) };
        match body {
            EventBody::QueueChanged { items } => self.0.feed().waiting(about, &items),
            body => {
                let complete = matches!(body, EventBody::AgentEnd { reason: EndReason::Complete, .. });
                let over = matches!(body, EventBody::AgentEnd { reason, .. } if reason != EndReason::Suspended);
                self.0.tell(about, body);
                if over {
                    self.0.watch_end(&run.run, &run.thread);
                }
                if complete {
                    self.0.name_soon(&run.thread);
                }
            }
        }
    }
}
