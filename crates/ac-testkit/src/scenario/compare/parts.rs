//! How texts, parts and ids are folded.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sha2::{Digest, Sha256};

/// What is told by name: threads by the order in which they came up (ids that the scenario gave stay), and texts that an abort cut, which
/// are as long as the abort was late.
#[derive(Debug, Default)]
pub(super) struct Names {
    threads: BTreeMap<String, usize>,
    cut: BTreeSet<String>,
}

/// Stands for a text that was cut.
pub(super) const CUT: &str = "<cut>";

impl Names {
    pub(super) fn new(cut: BTreeSet<String>) -> Self {
        Self { cut, ..Self::default() }
    }

    pub(super) fn uncut<'a>(&self, text: &'a str) -> &'a str {
        if self.cut.contains(text) { CUT } else { text }
    }

    pub(super) fn thread(&mut self, id: Option<&Value>) -> String {
        match id.and_then(Value::as_str) {
            None => "no thread".to_owned(),
            Some(id) if id.starts_with("<id") => {
                let next = self.threads.len() + 1;
                format!("thread {}", self.threads.entry(id.to_owned()).or_insert(next))
            }
            Some(id) => format!("thread {id}"),
        }
    }

    /// Numbers the threads of an event before the results that come after it.
    pub(super) fn meet(&mut self, event: &Value) {
        if event.get("type").and_then(Value::as_str) == Some("thread_created") {
            self.thread(event.pointer("/thread/id"));
        }
    }
}

/// The longest line that is kept as it is.
const SHORT: usize = 72;

/// A long line becomes its beginning and a hash: enough to compare, and nobody's sentences are copied.
pub(super) fn brief(line: &str) -> String {
    let line = line.replace('\n', "⏎");
    if line.chars().count() <= SHORT {
        return line;
    }
    let hash: String = Sha256::digest(line.as_bytes()).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let start: String = line.chars().take(SHORT / 2).collect();
    format!("{start}…#{hash}")
}

/// What a tool or the runtime told the model. Sentences that each side writes itself are told by what they say.
pub(super) fn wording(text: &str) -> &str {
    const SAYS: [(&str, &str); 13] = [
        ("Subagent \"", "<the subagent failed>"),
        ("Do not call the `subagent` tool", "<not in a fork>"),
        ("Do not call `task_write`", "<not in a fork>"),
        ("Use no subagents", "<not in a fork>"),
        ("Leave the task list alone", "<not in a fork>"),
        ("Submit no plan", "<not in a fork>"),
        ("Tool \"", "<no such tool>"),
        ("There is no tool named \"", "<no such tool>"),
        ("Tool input validation failed", "<arguments do not fit>"),
        ("The arguments of ", "<arguments do not fit>"),
        ("a rule denies this tool", "<denied by a rule>"),
        ("a rule denies this category of tools", "<denied by a rule>"),
        ("Not run: the arguments are not valid JSON", "<arguments do not fit>"),
    ];
    SAYS.iter().find(|(start, _)| text.starts_with(start)).map_or(text, |(_, says)| says)
}

/// Where the words to a fork begin that each side writes itself.
const FORKED: &str = "\n\nDo not call the `subagent` tool";
const FORKED_HERE: &str = "\n\nUse no subagents";

/// The id that a model gave to a call: in a child run it is told with the child's ordinal.
pub(super) fn given(id: &str) -> &str {
    id.split('~').next().unwrap_or(id)
}

/// A result, as one text. What a list of tasks looks like is told by its numbers; the sentences beside them are each side's own.
pub(super) fn result(value: &Value) -> String {
    match value {
        Value::String(text) => wording(text).to_owned(),
        Value::Object(fields) if fields.contains_key("tasks") && fields.contains_key("summary") => {
            let mut told = fields.clone();
            told.remove("content");
            Value::Object(told).to_string()
        }
        Value::Object(fields) => {
            let said = |key: &str| fields.get(key).and_then(Value::as_str).map(wording).filter(|said| said.starts_with('<'));
            match (said("message"), said("content")) {
                (Some(said), _) if fields.get("error") == Some(&Value::Bool(true)) => said.to_owned(),
                (_, Some(said)) => said.to_owned(),
                _ => value.to_string(),
            }
        }
        _ => value.to_string(),
    }
}

/// The content of a message on the wire of a model.
pub(super) fn content(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => result(&value),
            _ => match text.split_once(FORKED).or_else(|| text.split_once(FORKED_HERE)) {
                // What a fork is told besides its task.
                Some((task, _)) => format!("{task} <not in a fork>"),
                None => wording(text).to_owned(),
            },
        },
        other => match other.as_array().map(Vec::as_slice) {
            Some([only]) if only.get("type").and_then(Value::as_str) == Some("text") => {
                self::content(only.get("text").unwrap_or(&Value::Null))
            }
            _ => other.to_string(),
        },
    }
}

pub(super) fn call_text(name: &str, args: &Value) -> String {
    format!("{name} {args}")
}

fn field<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// How an invocation stands: `result ok …`, `result error …`, `denied …`; `None` while it has no result.
pub(super) fn settled(invocation: &Value) -> Option<String> {
    let value = invocation.get("result").cloned().unwrap_or_default();
    match field(invocation, "state") {
        "result" if invocation.get("isError") == Some(&Value::Bool(true)) => Some(format!("error {}", result(&value))),
        "result" => Some(format!("ok {}", result(&value))),
        "output-error" => Some(format!("error {}", wording(field(invocation, "errorText")))),
        "output-denied" => {
            let reason = invocation.pointer("/approval/reason").and_then(Value::as_str).unwrap_or_default();
            Some(format!("denied {}", wording(reason)))
        }
        _ => None,
    }
}

/// Stored messages as lines: which message a part of an assistant stands in does not count.
pub(super) fn stored(messages: &[Value], names: &Names) -> Vec<String> {
    let mut lines = vec![];
    for message in messages {
        let role = field(message, "role");
        for part in message.pointer("/content/parts").and_then(Value::as_array).into_iter().flatten() {
            let line = match field(part, "type") {
                "step-start" => continue,
                "text" if role == "assistant" => format!("{role} {}", names.uncut(field(part, "text"))),
                "text" => format!("{role} {}", field(part, "text")),
                "reasoning" => format!("{role} thinks {}", field(part, "reasoning")),
                "tool-invocation" => {
                    let invocation = part.get("toolInvocation").unwrap_or(&Value::Null);
                    let state = settled(invocation).unwrap_or_else(|| "open".to_owned());
                    format!("call {} {} {state}", field(invocation, "toolCallId"), field(invocation, "toolName"))
                }
                "error" => "error".to_owned(),
                _ => format!("{role} {part}"),
            };
            lines.push(brief(&line));
        }
    }
    lines
}
