//! What is told of a child run: in its parent's session, as the activity of a subagent.

use std::sync::Arc;

use ac_core::{EventBody, ModelId, RunId, ToolCallId, event::MessageUpdate};
use ac_tools::SubagentTool;

use crate::{ChildProfile, RunHost, RunRef, shared::Shared};

/// The way from a child run to those who listen to its parent.
pub(crate) struct Upward {
    shared: Arc<Shared>,
    parent: RunId,
    call: ToolCallId,
    model: ModelId,
    child: ChildProfile,
}

impl Upward {
    pub(crate) fn new(shared: Arc<Shared>, (parent, call): (RunId, ToolCallId), model: ModelId, child: ChildProfile) -> Self {
        Self { shared, parent, call, model, child }
    }

    /// What an event of the child is to its parent. `named` knows the tool of a call.
    pub(crate) fn translate(&self, body: EventBody, named: impl Fn(&ToolCallId) -> Option<String>) -> Option<EventBody> {
        let (call, agent_type) = (self.call.clone(), self.child.agent_type.clone());
        // What a subagent of its own does is told as such; its call would say it twice.
        let own = |tool: &str| tool != SubagentTool::NAME;
        match body {
            EventBody::AgentStart => Some(start(call, &self.child, self.model.clone())),
            EventBody::MessageUpdate { update: MessageUpdate::TextDelta(delta), .. } => {
                Some(EventBody::SubagentTextDelta { call, agent_type, delta })
            }
            EventBody::ToolStart { call: sub_call, tool, args } if own(&tool) => {
                Some(EventBody::SubagentToolStart { call, agent_type, sub_call, tool, args })
            }
            EventBody::ToolEnd { call: sub_call, result, is_error, denied, .. } => {
                let tool = named(&sub_call).filter(|tool| own(tool))?;
                Some(EventBody::SubagentToolEnd { call, agent_type, sub_call, tool, result, is_error: is_error || denied })
            }
            // Its last error is told as its end.
            body @ EventBody::Error { retry: Some(_), .. } => Some(body),
            body @ (EventBody::ToolApprovalRequired { .. }
            | EventBody::ToolSuspended { .. }
            | EventBody::ToolSuspensionCancelled { .. }
            | EventBody::PendingResolved { .. }
            | EventBody::SubagentStart { .. }
            | EventBody::SubagentTextDelta { .. }
            | EventBody::SubagentToolStart { .. }
            | EventBody::SubagentToolEnd { .. }
            | EventBody::SubagentEnd { .. }) => Some(body),
            _ => None,
        }
    }

    /// Tells it through the driver of the parent, which keeps the order; where another process has the parent, to the host.
    pub(crate) fn tell(&self, host: &dyn RunHost, run: &RunRef, body: EventBody) {
        let relay = self.shared.live().get(&self.parent).map(|handle| handle.progress().clone());
        match relay {
            Some(relay) => relay.relay(body),
            None => {
                let shown = RunRef { run: self.child.root.clone(), thread: self.child.root_thread.clone(), resource: run.resource.clone() };
                host.tell(&shown, body);
            }
        }
    }
}

/// This is now the subagent of a call.
pub(crate) fn start(call: ToolCallId, child: &ChildProfile, model: ModelId) -> EventBody {
    EventBody::SubagentStart {
        call,
        agent_type: child.agent_type.clone(),
        name: Some(child.name.clone()),
        task: child.task.clone(),
        model,
        forked: child.forked,
    }
}
