use std::sync::{Arc, Mutex, PoisonError};

use ac_core::{
    Decision, EventBody, Grant, ModelError, ModelId, ModelProvider, RunId, ToolDefinition, Usage,
    event::{EndReason, MessageUpdate},
    permission::{Circumstances, GrantWidth, Subject, decide, judge},
    tool::Capabilities,
};
use ac_engine::{Outbox, OutboxAction, Profile, RunSnapshot};
use ac_tools::ToolSet;
use async_trait::async_trait;

use super::{Agent, AgentChunk, AgentStream, ChunkBody, stream::ChunkQueue};
use crate::{RunError, RunErrorKind, RunHost, RunRef};

/// Serves one run of a bare agent. Who reads may change: each answer has a stream of its own.
pub(super) struct AgentHost {
    agent: Agent,
    run: RunId,
    queue: Mutex<Arc<ChunkQueue>>,
    usage: Mutex<Usage>,
    grants: Mutex<Vec<Grant>>,
}

impl AgentHost {
    pub(super) fn new(agent: Agent, run: RunId) -> Self {
        Self { agent, run, queue: Mutex::default(), usage: Mutex::default(), grants: Mutex::default() }
    }

    /// From now on chunks go to a new stream.
    pub(super) fn attach(&self) -> AgentStream {
        let queue = Arc::new(ChunkQueue::default());
        let old = std::mem::replace(&mut *self.queue.lock().unwrap_or_else(PoisonError::into_inner), queue.clone());
        old.close();
        AgentStream::new(self.run.clone(), queue)
    }

    /// Nothing follows until somebody answers.
    pub(super) fn close(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).close();
    }
}

#[async_trait]
impl RunHost for AgentHost {
    fn provider(&self, _: &ModelId) -> Result<Arc<dyn ModelProvider>, ModelError> {
        Ok(self.agent.inner.provider.clone())
    }

    fn tools(&self, _: &Profile) -> Arc<ToolSet> {
        self.agent.inner.tools.clone()
    }

    async fn decide(&self, run: &RunRef, _: &Profile, definition: &ToolDefinition, args: &serde_json::Value) -> Decision {
        let inner = &self.agent.inner;
        let call = judge(inner.call_rules.as_deref(), &inner.rules, &definition.name, args, &self.capabilities(run)).await;
        let (tool, category, requires_approval) = (&definition.name, definition.category, definition.requires_approval);
        let subject = Subject { tool, category, requires_approval, call };
        let grants = self.grants.lock().unwrap_or_else(PoisonError::into_inner);
        decide(subject, &Circumstances { rules: &inner.rules, grants: &grants, defaults: &inner.defaults, yolo: false, visible: None })
    }

    fn capabilities(&self, _: &RunRef) -> Capabilities {
        Capabilities::new()
    }

    async fn plan_target(&self, profile: &Profile) -> Result<Profile, RunError> {
        Ok(profile.clone())
    }

    async fn apply(&self, _: &RunSnapshot, item: &Outbox) -> Result<(), RunError> {
        match &item.action {
            OutboxAction::Grant { target, at, .. } => {
                let grant = Grant { id: item.n.to_string(), target: target.clone(), width: GrantWidth::Session, at: *at };
                self.grants.lock().unwrap_or_else(PoisonError::into_inner).push(grant);
                Ok(())
            }
            OutboxAction::SetMode { .. } | OutboxAction::RemoveQueued { .. } => Ok(()),
            OutboxAction::StartChild { .. } => {
                Err(RunError::new(RunErrorKind::ChildRefused, "a bare agent has no subagents; use a session"))
            }
            OutboxAction::AbortChild { .. } | OutboxAction::InterruptChild { .. } => Ok(()),
        }
    }

    fn tell(&self, _: &RunRef, body: EventBody) {
        let body = match body {
            EventBody::MessageUpdate { update: MessageUpdate::TextDelta(text), .. } => ChunkBody::TextDelta { text },
            EventBody::MessageUpdate { update: MessageUpdate::ReasoningDelta { delta, .. }, .. } => {
                ChunkBody::ReasoningDelta { text: delta }
            }
            EventBody::ToolStart { call, tool, args } => ChunkBody::ToolCall { tool_call_id: call, tool_name: tool, args },
            EventBody::ToolEnd { call, result, is_error, denied, .. } => {
                ChunkBody::ToolResult { tool_call_id: call, result, is_error, denied }
            }
            EventBody::ToolApprovalRequired { pending, call, tool, args, .. } => {
                self.push(ChunkBody::ToolCallApproval { pending_id: pending, tool_call_id: call, tool_name: tool, args });
                return;
            }
            EventBody::ToolSuspended { pending, call, tool, args, payload, answer_schema, .. } => ChunkBody::ToolCallSuspended {
                pending_id: pending,
                tool_call_id: call,
                tool_name: tool,
                args,
                suspend_payload: payload,
                resume_schema: answer_schema,
            },
            EventBody::UsageUpdate { total, .. } => {
                *self.usage.lock().unwrap_or_else(PoisonError::into_inner) = total;
                return;
            }
            EventBody::Error { error, retry: None } => ChunkBody::Error { error },
            EventBody::AgentEnd { reason, finish, .. } => return self.end(reason, finish),
            _ => return,
        };
        self.push(body);
    }
}

impl AgentHost {
    fn push(&self, body: ChunkBody) {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        queue.push(AgentChunk { run_id: self.run.clone(), body });
    }

    fn end(&self, reason: EndReason, finish: Option<ac_core::FinishReason>) {
        match reason {
            EndReason::Complete => {
                let usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner).clone();
                self.push(ChunkBody::Finish { finish_reason: finish, usage });
            }
            EndReason::Aborted => self.push(ChunkBody::Abort {}),
            EndReason::Error | EndReason::Suspended => {}
        }
        self.close();
    }
}
