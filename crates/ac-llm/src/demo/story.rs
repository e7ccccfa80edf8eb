use ac_core::{Message, ModelRequest, Part, Role, ToolCallPart, ToolCallState};
use serde_json::Value;

/// What happened since the person gave the task, in order.
#[derive(Debug, Default)]
pub(super) struct Story<'a> {
    /// The person's words.
    pub(super) task: String,
    /// What came after them.
    pub(super) beats: Vec<Beat<'a>>,
}

/// One thing that happened.
#[derive(Debug)]
pub(super) enum Beat<'a> {
    /// The person said something more while the work was going on.
    Said(String),
    /// A call was made.
    Called(&'a ToolCallPart),
}

/// How a call ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) kind: OutcomeKind,
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutcomeKind {
    Done,
    Failed,
    Denied,
}

/// Reads the conversation from its end back to the task: the last message of a person that stands at the beginning or after an answer
/// without open work. A word such as "continue" never is a task of its own.
pub(super) fn read(request: &ModelRequest) -> Story<'_> {
    let messages = &request.messages;
    let mut start = 0;
    let mut resting = true;
    for (at, message) in messages.iter().enumerate() {
        match message.role {
            Role::User if resting && !(at > 0 && goes_on(&message.text())) => {
                start = at;
                resting = false;
            }
            Role::User => resting = false,
            Role::Assistant => resting = rests(message),
            _ => {}
        }
    }
    let mut story = Story::default();
    for (at, message) in messages.iter().enumerate().skip(start) {
        match message.role {
            Role::User if at == start || story.task.is_empty() => story.task = message.text(),
            // Several messages before any work are one task.
            Role::User if story.beats.is_empty() && !goes_on(&message.text()) => {
                story.task.push('\n');
                story.task.push_str(&message.text());
            }
            Role::User if goes_on(&message.text()) => story.beats.push(Beat::Said(String::new())),
            Role::User => story.beats.push(Beat::Said(message.text())),
            Role::Assistant => story.beats.extend(message.tool_calls().map(Beat::Called)),
            _ => {}
        }
    }
    story
}

/// Whether nothing is left to do after this answer: it asked for nothing, or the run was stopped before its calls ran.
fn rests(message: &Message) -> bool {
    let mut calls = message.tool_calls().peekable();
    calls.peek().is_none() || calls.any(|call| matches!(&call.state, ToolCallState::OutputDenied { reason } if stopped(reason)))
}

/// A denial that was nobody's decision about the call itself.
fn stopped(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    reason.contains("abort") || reason.contains("stopped") || reason.contains("nothing was decided")
}

fn goes_on(text: &str) -> bool {
    let words = text.trim().trim_end_matches(['.', '!']).to_ascii_lowercase();
    matches!(words.as_str(), "continue" | "go on" | "carry on" | "resume" | "please continue" | "proceed")
}

/// How a call ended; `None` while it has no result, or when it was stopped before anybody decided about it.
pub(super) fn result(call: &ToolCallPart) -> Option<Outcome> {
    match &call.state {
        ToolCallState::Result { output, is_error } => {
            let failed = *is_error || output.value.get("isError").and_then(Value::as_bool) == Some(true);
            let kind = if failed { OutcomeKind::Failed } else { OutcomeKind::Done };
            let text = match (&output.model, output.value.get("content").and_then(Value::as_str)) {
                (None, Some(content)) => content.to_owned(),
                _ => output.model_text(),
            };
            Some(Outcome { kind, text })
        }
        ToolCallState::OutputDenied { reason } if !stopped(reason) => Some(Outcome { kind: OutcomeKind::Denied, text: reason.clone() }),
        _ => None,
    }
}

/// The string argument of a call.
pub(super) fn arg<'a>(call: &'a ToolCallPart, name: &str) -> &'a str {
    call.args.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The feedback in the result of `submit_plan`, where the person gave some.
pub(super) fn feedback(call: &ToolCallPart) -> Option<String> {
    let ToolCallState::Result { output, .. } = &call.state else { return None };
    let text = output.value.get("submittedPlan")?.get("feedback")?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Whether a message holds any visible text.
pub(super) fn says_something(message: &Message) -> bool {
    message.parts.iter().filter_map(Part::as_text).any(|text| !text.trim().is_empty())
}
