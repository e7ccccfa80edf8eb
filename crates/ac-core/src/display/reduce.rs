use std::sync::Arc;

use serde_json::Value;

use super::{
    ActiveSubagent, ActiveTool, DisplayMessage, DisplayPart, DisplayState, ModifiedFile, PendingApproval, PendingSuspension, SubagentCall,
    ToolInputBuffer, ToolStatus,
};
use crate::{
    Event, EventBody, Message, Part, SharedText, ThreadId, ToolCallId,
    event::{EndReason, MessageUpdate},
    id::is_within,
};

/// Takes the next event into the view. Pure and total: any sequence of events is legal.
///
/// Cost per event does not depend on the length of the message or of the thread.
pub fn reduce(state: &mut DisplayState, event: &Event) {
    match &event.body {
        EventBody::AgentStart => {
            state.is_running = true;
            state.active_tools = Arc::default();
            state.tool_input_buffers = Arc::default();
            state.current_message = None;
            // A run goes on after one answer; what else it asked still waits.
            drop_approvals(state, |open| !event.run.as_ref().is_some_and(|run| is_within(&open.pending.run, run)));
        }
        EventBody::AgentEnd { reason, .. } => end(state, *reason),
        EventBody::MessageStart { message } => state.current_message = Some(Arc::new(shown(message, event.thread.as_ref()))),
        EventBody::MessageUpdate { id, update } => {
            if let Some(message) = state.current_message.as_mut().filter(|message| message.id == *id) {
                update_message(Arc::make_mut(message), update);
            }
        }
        EventBody::ToolInputStart { call, tool } => {
            let buffers = Arc::make_mut(&mut state.tool_input_buffers);
            buffers.insert(call.clone(), ToolInputBuffer { text: SharedText::new(), tool: tool.clone() });
            let status = ToolStatus::StreamingInput;
            let tools = Arc::make_mut(&mut state.active_tools);
            match tools.get_mut(call) {
                Some(entry) => Arc::make_mut(entry).status = status,
                None => {
                    let args = Value::Object(serde_json::Map::new());
                    tools.insert(call.clone(), Arc::new(new_tool(tool, args, status)));
                }
            }
        }
        EventBody::ToolInputDelta { call, delta } => {
            if state.tool_input_buffers.contains_key(call)
                && let Some(buffer) = Arc::make_mut(&mut state.tool_input_buffers).get_mut(call)
            {
                buffer.text.push_str(delta);
            }
        }
        EventBody::ToolInputEnd { call } => {
            if state.tool_input_buffers.contains_key(call) {
                Arc::make_mut(&mut state.tool_input_buffers).remove(call);
            }
        }
        EventBody::ToolStart { call, tool, args } => {
            let tools = Arc::make_mut(&mut state.active_tools);
            match tools.get_mut(call) {
                Some(entry) => {
                    let entry = Arc::make_mut(entry);
                    entry.name.clone_from(tool);
                    entry.args = Arc::new(args.clone());
                    entry.status = ToolStatus::Running;
                }
                None => {
                    tools.insert(call.clone(), Arc::new(new_tool(tool, args.clone(), ToolStatus::Running)));
                }
            }
        }
        EventBody::ToolApprovalRequired { pending, call, tool, args, parent_call } => {
            drop_approvals(state, |open| open.pending == *pending);
            Arc::make_mut(&mut state.pending_approvals).push(Arc::new(PendingApproval {
                pending: pending.clone(),
                call: call.clone(),
                tool: tool.clone(),
                args: args.clone(),
                parent_call: parent_call.clone(),
            }));
        }
        EventBody::ToolSuspended { pending, kind, call, tool, args, payload, answer_schema, parent_call } => {
            with_tool(state, call, |entry| entry.status = ToolStatus::Suspended);
            Arc::make_mut(&mut state.pending_suspensions).insert(
                call.clone(),
                Arc::new(PendingSuspension {
                    pending: pending.clone(),
                    kind: *kind,
                    call: call.clone(),
                    tool: tool.clone(),
                    args: args.clone(),
                    payload: payload.clone(),
                    answer_schema: answer_schema.clone(),
                    run: pending.run.clone(),
                    parent_call: parent_call.clone(),
                }),
            );
        }
        EventBody::ToolSuspensionCancelled { call, .. } => drop_suspension(state, call, |_| true),
        EventBody::PendingResolved { pending, call } => {
            drop_approvals(state, |open| open.pending == *pending);
            drop_suspension(state, call, |open| open.pending == *pending);
            with_tool(state, call, |entry| {
                if entry.status == ToolStatus::Suspended {
                    entry.status = ToolStatus::Running;
                }
            });
        }
        EventBody::ToolUpdate { call, partial } => with_tool(state, call, |entry| {
            entry.partial_result = Some(match partial {
                Value::String(text) => text.clone(),
                value => value.to_string(),
            });
        }),
        EventBody::ShellOutput { call, output, .. } => with_tool(state, call, |entry| entry.shell_output.push_str(output)),
        EventBody::ToolEnd { call, result, is_error, changed, .. } => {
            drop_approvals(state, |open| open.call == *call);
            drop_suspension(state, call, |_| true);
            with_tool(state, call, |entry| {
                entry.status = if *is_error { ToolStatus::Error } else { ToolStatus::Completed };
                entry.result = Some(Arc::new(result.clone()));
                entry.is_error = Some(*is_error);
            });
            for change in changed {
                Arc::make_mut(&mut state.modified_files)
                    .entry(change.path.clone())
                    .or_insert_with(|| ModifiedFile { operations: vec![], first_modified: event.at })
                    .operations
                    .push(change.operation.clone());
            }
        }
        EventBody::UsageUpdate { total, .. } => state.token_usage = Arc::new(total.clone()),
        EventBody::FollowUpQueued { count } => state.queued_follow_ups = *count,
        EventBody::QueueChanged { items } => state.queue = items.clone(),
        EventBody::TaskUpdated { tasks } => state.previous_tasks = std::mem::replace(&mut state.tasks, tasks.clone()),
        EventBody::ThreadChanged { .. } => reset(state),
        EventBody::ThreadCreated { .. } => {
            reset(state);
            state.token_usage = Arc::default();
        }
        EventBody::ThreadDeleted { unbound: true, .. } => {
            reset(state);
            state.token_usage = Arc::default();
        }
        EventBody::SubagentStart { call, agent_type, name, task, model, forked } => {
            Arc::make_mut(&mut state.active_subagents).insert(
                call.clone(),
                Arc::new(ActiveSubagent {
                    agent_type: agent_type.clone(),
                    name: name.clone(),
                    task: task.as_str().into(),
                    model: model.clone(),
                    forked: *forked,
                    tool_calls: Arc::default(),
                    text: SharedText::new(),
                    status: ToolStatus::Running,
                    duration_ms: None,
                    result: None,
                }),
            );
        }
        EventBody::SubagentTextDelta { call, delta, .. } => with_subagent(state, call, |agent| agent.text.push_str(delta)),
        EventBody::SubagentToolStart { call, sub_call, tool, .. } => with_subagent(state, call, |agent| {
            Arc::make_mut(&mut agent.tool_calls).push(SubagentCall { id: sub_call.clone(), name: tool.clone(), is_error: false });
        }),
        EventBody::SubagentToolEnd { call, sub_call, is_error, .. } => with_subagent(state, call, |agent| {
            if let Some(entry) = Arc::make_mut(&mut agent.tool_calls).iter_mut().find(|entry| entry.id == *sub_call) {
                entry.is_error = *is_error;
            }
        }),
        EventBody::SubagentEnd { call, result, is_error, duration_ms, .. } => with_subagent(state, call, |agent| {
            agent.status = if *is_error { ToolStatus::Error } else { ToolStatus::Completed };
            agent.duration_ms = Some(*duration_ms);
            agent.result = Some(result.clone());
        }),
        EventBody::MessageEnd { .. }
        | EventBody::CommandExit { .. }
        | EventBody::Info { .. }
        | EventBody::Error { .. }
        | EventBody::ModeChanged { .. }
        | EventBody::ModelChanged { .. }
        | EventBody::SubagentModelChanged { .. }
        | EventBody::ThreadDeleted { unbound: false, .. }
        | EventBody::ThreadTitleUpdated { .. }
        | EventBody::StateChanged { .. }
        | EventBody::GoalEvaluation { .. }
        | EventBody::DisplayStateChanged { .. } => {}
    }
}

/// A segment ends. A call that was cut off shows as an error; one that waits for a person goes on waiting.
fn end(state: &mut DisplayState, reason: EndReason) {
    state.is_running = false;
    // Only a run that parks leaves waits behind.
    if reason != EndReason::Suspended {
        state.pending_approvals = Arc::default();
        state.pending_suspensions = Arc::default();
    }
    state.active_subagents = Arc::default();
    let cut_off = |entry: &ActiveTool| matches!(entry.status, ToolStatus::Running | ToolStatus::StreamingInput);
    if state.active_tools.values().any(|entry| cut_off(entry)) {
        for entry in Arc::make_mut(&mut state.active_tools).values_mut().filter(|entry| cut_off(entry)) {
            Arc::make_mut(entry).status = ToolStatus::Error;
        }
    }
}

/// What belongs to a thread goes when the thread does (SPEC D-17).
fn reset(state: &mut DisplayState) {
    let kept = DisplayState { is_running: state.is_running, token_usage: std::mem::take(&mut state.token_usage), ..Default::default() };
    *state = kept;
}

fn new_tool(name: &str, args: Value, status: ToolStatus) -> ActiveTool {
    ActiveTool {
        name: name.to_owned(),
        args: Arc::new(args),
        status,
        partial_result: None,
        result: None,
        is_error: None,
        shell_output: SharedText::new(),
    }
}

// What an event leaves as it is stays shared with the views before it.

fn drop_approvals(state: &mut DisplayState, over: impl Fn(&PendingApproval) -> bool) {
    if state.pending_approvals.iter().any(|open| over(open)) {
        Arc::make_mut(&mut state.pending_approvals).retain(|open| !over(open));
    }
}

fn drop_suspension(state: &mut DisplayState, call: &ToolCallId, over: impl FnOnce(&PendingSuspension) -> bool) {
    if state.pending_suspensions.get(call).is_some_and(|open| over(open)) {
        Arc::make_mut(&mut state.pending_suspensions).remove(call);
    }
}

fn with_tool(state: &mut DisplayState, call: &ToolCallId, change: impl FnOnce(&mut ActiveTool)) {
    if state.active_tools.contains_key(call)
        && let Some(entry) = Arc::make_mut(&mut state.active_tools).get_mut(call)
    {
        change(Arc::make_mut(entry));
    }
}

fn with_subagent(state: &mut DisplayState, call: &ToolCallId, change: impl FnOnce(&mut ActiveSubagent)) {
    if state.active_subagents.contains_key(call)
        && let Some(entry) = Arc::make_mut(&mut state.active_subagents).get_mut(call)
    {
        change(Arc::make_mut(entry));
    }
}

fn shown(message: &Message, thread: Option<&ThreadId>) -> DisplayMessage {
    DisplayMessage {
        id: message.id.clone(),
        thread: thread.cloned(),
        role: message.role,
        at: message.at,
        parts: message.parts.iter().map(shown_part).collect(),
        meta: Arc::new(message.meta.clone()),
    }
}

fn shown_part(part: &Part) -> DisplayPart {
    match part {
        Part::Text(text) => DisplayPart::Text(text.text.as_str().into()),
        Part::Reasoning(text) => DisplayPart::Reasoning(text.text.as_str().into()),
        part => DisplayPart::Part(Arc::new(part.clone())),
    }
}

fn update_message(message: &mut DisplayMessage, update: &MessageUpdate) {
    match update {
        MessageUpdate::TextDelta(delta) => {
            let last = message.parts.iter_mut().rev().find_map(|part| match part {
                DisplayPart::Text(text) => Some(text),
                _ => None,
            });
            match last {
                Some(text) => text.push_str(delta),
                None => message.parts.push(DisplayPart::Text(delta.as_str().into())),
            }
        }
        MessageUpdate::ReasoningDelta { index, delta } => {
            if let Some(DisplayPart::Reasoning(text)) = message.parts.get_mut(*index) {
                text.push_str(delta);
            }
        }
        MessageUpdate::Part { index, part } => {
            let part = shown_part(part);
            match message.parts.get_mut(*index) {
                Some(slot) => *slot = part,
                None => message.parts.push(part),
            }
        }
    }
}

#[cfg(test)]
mod tests;
