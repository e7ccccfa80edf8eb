//! Events, folded.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::{
    fold::usage,
    parts::{CUT, Names, brief, call_text, result, settled},
};

/// Events that are ours alone, and the view after each event.
const LEFT_OUT: [&str; 3] = ["pending_resolved", "queue_changed", "display_state_changed"];

/// The events of each session, in order; and the texts that were cut by an abort.
pub(super) fn events(lines: &[Value], names: &mut Names) -> (BTreeMap<String, Vec<String>>, BTreeSet<String>) {
    let mut sessions: BTreeMap<String, Session> = BTreeMap::new();
    for line in lines.iter().filter(|line| field(line, "k") == "event") {
        sessions.entry(field(line, "s").to_owned()).or_default().event(line, names);
    }
    for session in sessions.values_mut() {
        at_once(&mut session.lines);
    }
    let cut = sessions.values().flat_map(|session| session.cut.iter().cloned()).collect();
    (sessions.into_iter().map(|(label, session)| (label, session.lines.iter().map(|line| brief(line)).collect())).collect(), cut)
}

/// Which of several calls that go on at once is faster is nobody's promise: what is told of them in a row is put in the order of the calls,
/// what subagents do before the results.
fn at_once(lines: &mut [String]) {
    let key = |line: &String| {
        let mut words = line.split(' ');
        let (what, call) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match what {
            "part" if line.ends_with(" call") => None,
            "part" | "tool_end" | "tool_suspended" => Some((1, call.to_owned())),
            _ if what.starts_with("subagent_") => Some((0, call.to_owned())),
            _ => None,
        }
    };
    for row in lines.chunk_by_mut(|a, b| key(a).is_some() && key(b).is_some()) {
        row.sort_by_key(key);
    }
}

/// What was told of a session so far.
#[derive(Default)]
struct Session {
    lines: Vec<String>,
    /// What is known of each call: the last state that was told.
    calls: HashMap<String, String>,
    /// The parts of each message, by its id: where the line of a text stands.
    texts: HashMap<String, Vec<Option<usize>>>,
    /// Where the text of a subagent is collected.
    subagents: HashMap<String, usize>,
    /// The text that is being told.
    growing: Option<usize>,
    /// Texts that were cut.
    cut: Vec<String>,
}

impl Session {
    fn tell(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn event(&mut self, event: &Value, names: &mut Names) {
        let kind = field(event, "type");
        let call = field(event, "toolCallId");
        match kind {
            _ if LEFT_OUT.contains(&kind) => {}
            "message_start" => self.message(event.get("message").unwrap_or(&Value::Null)),
            "message_update" => self.update(field(event, "id"), event.get("event").unwrap_or(&Value::Null)),
            "message_end" => {}
            "agent_end" => {
                if let (Some(line), "aborted") = (self.growing.and_then(|at| self.lines.get_mut(at)), field(event, "reason")) {
                    self.cut.push(line.trim_start_matches("text ").to_owned());
                    *line = format!("text {CUT}");
                }
                self.growing = None;
                self.tell(format!("agent_end {}", field(event, "reason")));
            }
            "usage_update" => {
                self.growing = None;
                self.tell(format!("usage {}", usage(event.get("usage"))));
            }
            "tool_start" => self.tell(format!("tool_start {call} {}", call_text(field(event, "toolName"), &args(event)))),
            "tool_end" => {
                let flag = |key: &str| event.get(key) == Some(&Value::Bool(true));
                let how = if flag("denied") {
                    "denied"
                } else if flag("isError") {
                    "error"
                } else {
                    "ok"
                };
                self.tell(format!("tool_end {call} {how} {}", result(event.get("result").unwrap_or(&Value::Null))));
            }
            "tool_suspended" => self.tell(format!("tool_suspended {call} {}", event.get("suspendPayload").unwrap_or(&Value::Null))),
            _ if kind.starts_with("tool_") => self.tell(format!("{kind} {call}")),
            "subagent_text_delta" => {
                self.subagent_text(call, field(event, "textDelta"));
            }
            _ if kind.starts_with("subagent_") => {
                self.subagents.remove(call);
                let mut told = some(event, &SUBAGENT);
                // What is said about a failure is each side's own.
                if let (Value::Object(fields), Some(Value::Bool(true))) = (&mut told, event.get("isError")) {
                    fields.remove("result");
                }
                self.tell(format!("{kind} {call} {told}"));
            }
            "thread_created" => {
                self.tell(format!("{kind} {} {:?}", names.thread(event.pointer("/thread/id")), text_at(event, "/thread/title")))
            }
            "thread_changed" => {
                let previous = names.thread(event.get("previousThreadId"));
                self.tell(format!("{kind} {} from {previous}", names.thread(event.get("threadId"))));
            }
            "thread_deleted" => self.tell(format!("{kind} {}", names.thread(event.get("threadId")))),
            "thread_title_updated" => self.tell(format!("{kind} {} {:?}", names.thread(event.get("threadId")), field(event, "title"))),
            // What is said about an error is each side's own.
            "error" => self.tell("error"),
            _ => self.tell(format!("{kind} {}", some(event, &PLAIN)).trim_end_matches(" {}").to_owned()),
        }
    }

    fn message(&mut self, message: &Value) {
        let parts = message.pointer("/content/parts").and_then(Value::as_array).cloned().unwrap_or_default();
        if field(message, "role") != "assistant" {
            let contents = message.pointer("/content/parts/0/data/contents").unwrap_or(&Value::Null);
            let attributes = message.pointer("/content/parts/0/data/attributes").map(|value| format!(" {value}")).unwrap_or_default();
            let said = contents.as_str().map_or_else(|| contents.to_string(), str::to_owned);
            return self.tell(format!("message {said}{attributes}"));
        }
        let id = field(message, "id").to_owned();
        if parts.is_empty() {
            // What was shown is discarded.
            self.texts.remove(&id);
        }
        for (index, part) in parts.iter().enumerate() {
            self.part(&id, index, part);
        }
    }

    fn update(&mut self, id: &str, update: &Value) {
        let index = update.get("index").and_then(Value::as_u64).and_then(|index| usize::try_from(index).ok());
        match field(update, "type") {
            "part" => self.part(id, index.unwrap_or(0), update.get("part").unwrap_or(&Value::Null)),
            _ => {
                let place = match index {
                    Some(index) => self.texts.get(id).and_then(|texts| texts.get(index).copied().flatten()),
                    None => self.texts.get(id).and_then(|texts| texts.iter().rev().find_map(|place| *place)),
                };
                if index.is_none() {
                    self.growing = place;
                }
                match place.and_then(|place| self.lines.get_mut(place)) {
                    Some(line) => line.push_str(field(update, "delta")),
                    None => self.tell(format!("text without a place {}", field(update, "delta"))),
                }
            }
        }
    }

    /// A part that was told before, as it stands, is not told again: a message may be announced anew.
    fn part(&mut self, id: &str, index: usize, part: &Value) {
        let invocation = part.get("toolInvocation");
        if let Some(invocation) = invocation {
            let call = field(invocation, "toolCallId").to_owned();
            let state = settled(invocation).unwrap_or_else(|| "call".to_owned());
            self.growing = None;
            if self.calls.get(&call) != Some(&state) {
                self.tell(format!("part {call} {state}"));
                self.calls.insert(call, state);
            }
        }
        let texts = self.texts.entry(id.to_owned()).or_default();
        if texts.len() <= index {
            texts.resize(index + 1, None);
        }
        let kind = field(part, "type");
        let known = texts.get(index).copied().flatten();
        if invocation.is_none() && known.is_none() {
            if let Some(place) = texts.get_mut(index) {
                *place = Some(self.lines.len());
            }
            let text = part.get("text").or(part.get("reasoning")).and_then(Value::as_str).unwrap_or_default();
            self.tell(format!("{kind} {text}"));
        }
    }

    fn subagent_text(&mut self, call: &str, delta: &str) {
        match self.subagents.get(call).and_then(|place| self.lines.get_mut(*place)) {
            Some(line) => line.push_str(delta),
            None => {
                self.subagents.insert(call.to_owned(), self.lines.len());
                self.tell(format!("subagent_text {call} {delta}"));
            }
        }
    }
}

const SUBAGENT: [&str; 8] = ["agentType", "task", "modelId", "forked", "subToolName", "subToolArgs", "result", "isError"];
const PLAIN: [&str; 10] =
    ["modeId", "previousModeId", "modelId", "scope", "agentType", "state", "changedKeys", "count", "tasks", "message"];

fn field<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn args(event: &Value) -> Value {
    event.get("args").cloned().unwrap_or_default()
}

fn some(event: &Value, keys: &[&str]) -> Value {
    Value::Object(keys.iter().filter_map(|key| Some(((*key).to_owned(), event.get(*key)?.clone()))).collect())
}
