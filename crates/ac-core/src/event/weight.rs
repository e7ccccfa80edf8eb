use std::{collections::BTreeMap, mem::size_of, sync::Arc};

use serde_json::{Map, Value};

use super::{Event, EventBody, MessageUpdate};
use crate::{
    DisplayState, ErrorInfo, Message, Part, ToolCallState, ToolOutput, Usage,
    display::{ActiveSubagent, DisplayMessage, DisplayPart},
    message::{FileSource, Opaque},
};

/// What the counts of an [`Arc`] take.
const SHARED: usize = 16;
/// A piece of a text that grows, without its bytes.
const PIECE: usize = 64;

impl Event {
    /// About how many bytes of memory keeping the event takes. What it adds to the view counts with it; of a view itself only what it does
    /// not share with `before`, the view that was told before it.
    ///
    /// Looking costs in proportion to what the event says, never to the thread or to the message that it goes on with.
    pub fn weight(&self, before: Option<&DisplayState>) -> usize {
        SHARED + size_of::<Self>() + body(&self.body, before)
    }
}

/// What a body keeps outside of itself. What the view takes from it is counted twice, since the view has a form of its own.
fn body(body: &EventBody, before: Option<&DisplayState>) -> usize {
    match body {
        EventBody::AgentStart
        | EventBody::MessageEnd { .. }
        | EventBody::ToolInputEnd { .. }
        | EventBody::PendingResolved { .. }
        | EventBody::CommandExit { .. }
        | EventBody::ModeChanged { .. }
        | EventBody::ModelChanged { .. }
        | EventBody::ThreadChanged { .. }
        | EventBody::ThreadDeleted { .. }
        | EventBody::FollowUpQueued { .. } => 0,
        EventBody::AgentEnd { error, .. } => error.as_ref().map_or(0, failure),
        EventBody::Error { error, .. } => failure(error),
        EventBody::MessageStart { message } => 2 * whole(message),
        EventBody::MessageUpdate { update, .. } => match update {
            MessageUpdate::TextDelta(delta) | MessageUpdate::ReasoningDelta { delta, .. } => grown(delta),
            MessageUpdate::Part { part, .. } => 2 * self::part(part),
        },
        EventBody::ToolInputDelta { delta, .. } | EventBody::SubagentTextDelta { delta, .. } => grown(delta),
        EventBody::ShellOutput { output, .. } => grown(output),
        EventBody::ToolInputStart { tool, .. } => 2 * tool.len(),
        EventBody::ToolStart { tool, args, .. } | EventBody::ToolApprovalRequired { tool, args, .. } => 2 * (tool.len() + json(args)),
        EventBody::ToolSuspended { tool, args, payload, answer_schema, .. } => {
            2 * (tool.len() + json(args) + json(payload) + answer_schema.as_ref().map_or(0, json))
        }
        EventBody::ToolSuspensionCancelled { tool, reason, .. } => tool.len() + reason.len(),
        EventBody::ToolUpdate { partial, .. } => 2 * json(partial),
        EventBody::ToolEnd { result, changed, .. } => {
            let changed =
                changed.iter().map(|file| 3 * 24 + file.path.len() + file.operation.len() + file.diff.as_ref().map_or(0, String::len));
            2 * json(result) + changed.sum::<usize>()
        }
        EventBody::UsageUpdate { usage, total } => raw(usage) + 2 * raw(total) + size_of::<Usage>(),
        EventBody::Info { message } => message.len(),
        EventBody::SubagentModelChanged { agent_type, .. } => agent_type.as_ref().map_or(0, String::len),
        EventBody::ThreadCreated { thread } => size_of_val(thread.as_ref()) + thread.title.len() + fields(&thread.metadata),
        EventBody::ThreadTitleUpdated { title, .. } => title.len(),
        EventBody::StateChanged { state, changed } => fields(state) + changed.iter().map(|key| 24 + key.len()).sum::<usize>(),
        EventBody::QueueChanged { items } => items.iter().map(|item| size_of_val(item) + item.text.len()).sum(),
        EventBody::TaskUpdated { tasks } => {
            tasks.iter().map(|task| size_of_val(task) + task.id.len() + task.content.len() + task.active_form.len()).sum()
        }
        EventBody::GoalEvaluation { payload } => json(payload),
        EventBody::SubagentStart { agent_type, name, task, .. } => {
            size_of::<ActiveSubagent>() + 2 * (agent_type.len() + name.as_ref().map_or(0, String::len) + task.len())
        }
        EventBody::SubagentToolStart { agent_type, tool, args, .. } => agent_type.len() + 2 * tool.len() + json(args),
        EventBody::SubagentToolEnd { agent_type, tool, result, .. } => agent_type.len() + tool.len() + json(result),
        EventBody::SubagentEnd { agent_type, result, .. } => agent_type.len() + 2 * result.len(),
        EventBody::DisplayStateChanged { state } => SHARED + size_of::<DisplayState>() + view(state, before),
    }
}

/// The lists of pointers that a view does not share with the one before it. What they point to came with events.
fn view(state: &DisplayState, before: Option<&DisplayState>) -> usize {
    fn list<T>(now: &Arc<T>, before: Option<&Arc<T>>, weight: impl FnOnce(&T) -> usize) -> usize {
        if before.is_some_and(|before| Arc::ptr_eq(now, before)) { 0 } else { SHARED + weight(now) }
    }
    fn map<K, V>(map: &BTreeMap<K, V>) -> usize {
        // A node of such a map is two thirds full.
        map.len() * (size_of::<K>() + size_of::<V>()) * 3 / 2
    }
    let message = state.current_message.as_ref().map_or(0, |message| {
        let before = before.and_then(|before| before.current_message.as_ref());
        list(message, before, |message| size_of::<DisplayMessage>() + message.parts.len() * size_of::<DisplayPart>())
    });
    message
        + list(&state.active_tools, before.map(|before| &before.active_tools), map)
        + list(&state.tool_input_buffers, before.map(|before| &before.tool_input_buffers), map)
        + list(&state.pending_approvals, before.map(|before| &before.pending_approvals), |open| open.len() * size_of::<usize>())
        + list(&state.pending_suspensions, before.map(|before| &before.pending_suspensions), map)
        + list(&state.active_subagents, before.map(|before| &before.active_subagents), map)
        + list(&state.modified_files, before.map(|before| &before.modified_files), map)
}

/// A text that comes in: in the event, and in the text that it goes on.
fn grown(text: &str) -> usize {
    2 * text.len() + PIECE
}

fn whole(message: &Message) -> usize {
    let meta = &message.meta;
    let known = fields(&meta.attributes) + fields(&meta.host) + meta.signal.as_ref().map_or(0, |signal| fields(&signal.metadata));
    size_of::<Message>() + message.parts.iter().map(part).sum::<usize>() + known
}

fn part(part: &Part) -> usize {
    let own = |opaque: &Option<Opaque>| opaque.as_ref().map_or(0, |opaque| json(&opaque.value));
    size_of::<Part>()
        + match part {
            Part::Text(text) => text.text.len() + own(&text.opaque),
            Part::Reasoning(text) => text.text.len() + own(&text.opaque),
            Part::File(file) => {
                let source = match &file.source {
                    FileSource::Base64(data) => data.len(),
                    FileSource::Url(url) => url.len(),
                };
                file.media_type.len() + source + file.name.as_ref().map_or(0, String::len) + own(&file.opaque)
            }
            Part::ToolCall(call) => {
                let state = match &call.state {
                    ToolCallState::Call => 0,
                    ToolCallState::Result { output, .. } => result(output),
                    ToolCallState::OutputDenied { reason } => reason.len(),
                };
                call.name.len() + json(&call.args) + call.raw.as_ref().map_or(0, String::len) + state + own(&call.opaque)
            }
            Part::Data(data) => data.name.len() + json(&data.data) + own(&data.opaque),
            Part::Unknown(value) => json(value),
        }
}

fn result(output: &ToolOutput) -> usize {
    json(&output.value) + output.model.iter().flatten().map(part).sum::<usize>()
}

fn failure(error: &ErrorInfo) -> usize {
    error.code.len() + error.message.len()
}

fn raw(usage: &Usage) -> usize {
    usage.raw.as_ref().map_or(0, json)
}

/// What a value keeps outside of itself.
fn json(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| size_of::<Value>() + json(item)).sum(),
        Value::Object(map) => fields(map),
    }
}

fn fields(map: &Map<String, Value>) -> usize {
    map.iter().map(|(key, value)| (size_of::<String>() + size_of::<Value>()) * 3 / 2 + key.len() + json(value)).sum()
}

#[cfg(test)]
mod tests;
