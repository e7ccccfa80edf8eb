//! One form for both sides.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{
    parts::{Names, brief, call_text, content, given, stored},
    told::events,
};
use crate::scenario::Recording;

/// A recording as lists of short lines, by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded(pub BTreeMap<String, Vec<String>>);

/// Folds a recording.
pub fn fold(recording: &Recording) -> Folded {
    let (_, cut) = events(&recording.events, &mut Names::default());
    let mut names = Names::new(cut);
    let mut out = BTreeMap::new();
    let mut open: BTreeMap<&str, bool> = BTreeMap::new();
    for line in &recording.events {
        match line.get("k").and_then(Value::as_str) {
            Some("result") => {
                let verb = text(line, "do");
                let result = match line.get("r") {
                    None => "ok".to_owned(),
                    Some(state) if verb == "runState" => run_state(state, &open, recording, line),
                    Some(result) => self::result(verb, result, &mut names),
                };
                push(&mut out, format!("result {verb}"), result);
            }
            Some("threw") => push(&mut out, format!("result {}", text(line, "do")), "threw".to_owned()),
            Some("event") => {
                names.meet(line);
                match text(line, "type") {
                    "agent_start" => drop(open.insert(text(line, "s"), true)),
                    "agent_end" => drop(open.insert(text(line, "s"), false)),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    for (session, lines) in events(&recording.events, &mut names).0 {
        out.insert(format!("events {session}"), lines);
    }
    if let Some(error) = recording.last.get("driverError").and_then(Value::as_str) {
        out.insert("driver error".to_owned(), vec![error.to_owned()]);
    }
    let requests = list(&recording.last, "requestsSummary");
    let mut asked: Vec<_> = requests.iter().map(|request| self::request(request, &names)).collect();
    // Which of several subagents asks first is a matter of the moment.
    let begun = recording.events.iter().filter(|line| text(line, "type") == "subagent_start");
    let tasks: BTreeSet<String> = begun.map(|line| brief(&format!("user {}", text(line, "task")))).collect();
    asked.chunk_by_mut(|one, other| side_by_side(one, other, &tasks)).for_each(<[_]>::sort);
    for (request, asked) in requests.iter().zip(asked) {
        out.insert(format!("request {}", request.get("n").cloned().unwrap_or_default()), asked);
    }
    out.insert("unused turns".to_owned(), list(&recording.last, "unusedTurns").iter().map(Value::to_string).collect());
    let sessions = recording.last.get("sessions").and_then(Value::as_object);
    for (label, session) in sessions.into_iter().flatten() {
        last(label, session, &mut names, &mut out);
    }
    out.retain(|_, lines| !lines.is_empty());
    Folded(out)
}

fn push(out: &mut BTreeMap<String, Vec<String>>, field: String, line: String) {
    out.entry(field).or_default().push(line);
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn last(label: &str, session: &Value, names: &mut Names, out: &mut BTreeMap<String, Vec<String>>) {
    for key in ["mode", "model", "state", "grants", "rules"] {
        let value = session.get(key).cloned().unwrap_or_default();
        out.insert(format!("final {label}.{key}"), vec![value.to_string()]);
    }
    out.insert(format!("final {label}.threadId"), vec![names.thread(session.get("threadId"))]);
    out.insert(format!("final {label}.usage"), vec![usage(session.get("usage"))]);
    let running = session.pointer("/run/isRunning").and_then(Value::as_bool).unwrap_or(false);
    out.insert(format!("final {label}.isRunning"), vec![running.to_string()]);
    out.insert(format!("final {label}.messages"), stored(list(session, "messages"), names));
}

/// Prompt, completion, all.
pub(super) fn usage(usage: Option<&Value>) -> String {
    let count = |key: &str| usage.and_then(|usage| usage.get(key)).and_then(Value::as_u64).unwrap_or(0);
    format!("{}+{}={}", count("promptTokens"), count("completionTokens"), count("totalTokens"))
}

fn result(verb: &str, result: &Value, names: &mut Names) -> String {
    let some = |keys: &[&str]| {
        let kept: serde_json::Map<_, _> = keys.iter().filter_map(|key| Some(((*key).to_owned(), result.get(*key)?.clone()))).collect();
        Value::Object(kept).to_string()
    };
    match verb {
        "createSession" => format!("{} {}", names.thread(result.get("threadId")), some(&["mode", "model", "sameAs"])),
        "thread.switch" => format!("{} {}", names.thread(result.get("threadId")), some(&["mode", "model"])),
        "thread.id" => names.thread(Some(result)),
        "thread.delete" => names.thread(result.get("threadId")),
        "thread.create" | "thread.clone" => format!("{} {}", names.thread(result.get("id")), some(&["resourceId", "title"])),
        "thread.list" | "queryThreads" => {
            let threads = result.as_array().into_iter().flatten();
            let threads = threads.map(|thread| format!("{} {:?}", names.thread(thread.get("id")), text(thread, "title")));
            // The order of threads that were touched in the same moment is nobody's promise.
            let mut threads: Vec<_> = threads.collect();
            threads.sort();
            threads.join(", ")
        }
        "thread.messages" | "thread.messagesOf" => stored(result.as_array().map_or(&[], Vec::as_slice), names).join("; "),
        "usage" => usage(Some(result)),
        "display" => {
            let keys = |key: &str| {
                let entries = result.pointer(&format!("/{key}/__map")).and_then(Value::as_array);
                entries.into_iter().flatten().filter_map(|entry| entry.get(0).cloned()).collect::<Value>()
            };
            let asked = result.pointer("/pendingApproval/toolCallId").cloned().unwrap_or_default();
            let shown = some(&["isRunning", "queuedFollowUps", "tasks"]);
            format!("{shown} approval {asked} suspensions {}", keys("pendingSuspensions"))
        }
        "activeRuns" => result.as_array().map_or(0, Vec::len).to_string(),
        _ => result.to_string(),
    }
}

/// Whether something runs is a matter of the moment, and each side has its own speed; it must be what the events told until then.
fn run_state(state: &Value, open: &BTreeMap<&str, bool>, recording: &Recording, line: &Value) -> String {
    let at = line.get("i").and_then(Value::as_u64);
    let asked = recording.events.iter().find(|action| text(action, "k") == "action" && action.get("i").and_then(Value::as_u64) == at);
    let session = asked.map(|action| text(action, "s")).filter(|session| !session.is_empty()).unwrap_or("s");
    let told = open.get(session).copied().unwrap_or(false);
    let flag = |key: &str| state.get(key).and_then(Value::as_bool).unwrap_or(false);
    let mut line = format!("pending {} armed {} queued {}", flag("pending"), flag("armed"), state.get("dsFollow").unwrap_or(&Value::Null));
    for key in ["isRunning", "dsRunning"] {
        if flag(key) != told {
            line.push_str(&format!(" {key} {} which was not told", flag(key)));
        }
    }
    line
}

/// Two subagents at their tasks, equally far: neither waits for the other.
fn side_by_side(one: &[String], other: &[String], tasks: &BTreeSet<String>) -> bool {
    let task = |lines: &[String]| lines.iter().find(|line| tasks.contains(*line)).cloned();
    one.len() == other.len() && task(one).zip(task(other)).is_some_and(|(one, other)| one != other)
}

fn request(request: &Value, names: &Names) -> Vec<String> {
    let mut lines = vec![format!("model {}", text(request, "model"))];
    let mut tools: Vec<&str> = list(request, "tools").iter().filter_map(Value::as_str).collect();
    tools.sort_unstable();
    lines.push(format!("tools {}", tools.join(" ")));
    for message in list(request, "messages") {
        let role = text(message, "role");
        let said = content(message.get("content").unwrap_or(&Value::Null));
        match message.get("tool_call_id").and_then(Value::as_str) {
            Some(id) => lines.push(format!("result {} {said}", given(id))),
            None if role == "assistant" && said.is_empty() => {}
            None if role == "assistant" => lines.push(format!("{role} {}", names.uncut(&said))),
            None => lines.push(format!("{role} {said}")),
        }
        for call in list(message, "tool_calls") {
            let field = |at: usize| call.get(at).and_then(Value::as_str).unwrap_or_default();
            let args = serde_json::from_str(field(2)).unwrap_or_else(|_| json!(field(2)));
            lines.push(format!("call {} {}", given(field(0)), call_text(field(1), &args)));
        }
    }
    lines.iter().map(|line| brief(line)).collect()
}
