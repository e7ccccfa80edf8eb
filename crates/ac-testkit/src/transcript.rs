//! A story of what happened, for snapshots.

use std::fmt::{self, Write as _};

use ac_core::{DisplayState, Event, EventBody, event::MessageUpdate, wire};
use ac_storage::record::{RunRecord, StoredMessage};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::server::Exchange;

/// Renders events, requests, the view and stored rows as text that reads like a story.
///
/// Give it what happened in the order in which it should be read. Events pass through [`ac_core::wire`], the form that clients see;
/// text that arrives in pieces is shown as one line with the number of pieces; `display_state_changed` is left out unless asked for.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    text: String,
    with_display_events: bool,
    /// Text that is still growing: the line's beginning, the text, the pieces.
    growing: Option<(String, String, usize)>,
}

impl Transcript {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps `display_state_changed`.
    #[must_use]
    pub fn with_display_events(mut self) -> Self {
        self.with_display_events = true;
        self
    }

    /// A heading.
    pub fn heading(&mut self, title: &str) -> &mut Self {
        let gap = if self.text.is_empty() && self.growing.is_none() { "" } else { "\n" };
        self.line(&format!("{gap}== {title}"))
    }

    /// A line of one's own: what the person does.
    pub fn note(&mut self, note: &str) -> &mut Self {
        self.line(&format!("> {note}"))
    }

    /// An event.
    pub fn event(&mut self, event: &Event) -> &mut Self {
        let run = event.run.as_ref().map(|run| format!("[{run}] ")).unwrap_or_default();
        match &event.body {
            EventBody::DisplayStateChanged { .. } if !self.with_display_events => self,
            EventBody::MessageUpdate { id, update: MessageUpdate::TextDelta(delta) } => {
                self.grow(format!("{run}message_update {id} text"), delta)
            }
            EventBody::MessageUpdate { id, update: MessageUpdate::ReasoningDelta { index, delta } } => {
                self.grow(format!("{run}message_update {id} reasoning {index}"), delta)
            }
            EventBody::ToolInputDelta { call, delta } => self.grow(format!("{run}tool_input_delta {call}"), delta),
            EventBody::MessageStart { message } => {
                let live = wire::live(message, event.thread.as_ref());
                let line = format!("{run}message_start {}", message_line(&live));
                self.line(&line)
            }
            _ => {
                let line = format!("{run}{}", fields(wire::body(event)));
                self.line(&line)
            }
        }
    }

    /// Events, in order.
    pub fn events<'a>(&mut self, events: impl IntoIterator<Item = &'a Event>) -> &mut Self {
        for event in events {
            self.event(event);
        }
        self
    }

    /// A request that reached the model: its model, the names of its tools, its messages.
    pub fn request(&mut self, exchange: &Exchange) -> &mut Self {
        let body = &exchange.body;
        let list = |key: &str| body.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        let tools: Vec<_> = list("tools").iter().filter_map(|tool| Some(tool.pointer("/function/name")?.as_str()?.to_owned())).collect();
        let model = body.get("model").map(bare).unwrap_or_default();
        let mut line = format!("POST {} model={model}", exchange.path);
        if !tools.is_empty() {
            write!(line, " tools={}", tools.join(",")).ok();
        }
        self.line(&line);
        for message in list("messages") {
            self.line(&format!("  {}", request_message(&message)));
        }
        self
    }

    /// Requests, in order.
    pub fn requests<'a>(&mut self, exchanges: impl IntoIterator<Item = &'a Exchange>) -> &mut Self {
        for exchange in exchanges {
            self.request(exchange);
        }
        self
    }

    /// The view: what is in it besides its resting state.
    pub fn display(&mut self, state: &DisplayState) -> &mut Self {
        let resting = wire::display_state(&DisplayState::default());
        let shown = wire::display_state(state);
        let mut changed = Map::new();
        for (key, value) in shown.as_object().into_iter().flatten() {
            if resting.get(key) != Some(value) || key == "isRunning" {
                changed.insert(key.clone(), value.clone());
            }
        }
        for (key, value) in changed {
            let value = if key == "currentMessage" { message_line(&value) } else { value.to_string() };
            self.line(&format!("{key}: {value}"));
        }
        self
    }

    /// Stored messages, one a line.
    pub fn messages<'a>(&mut self, messages: impl IntoIterator<Item = &'a StoredMessage>) -> &mut Self {
        for StoredMessage { position, message } in messages {
            self.line(&format!("{position}: {}", message_line(&wire::live(message, None))));
        }
        self
    }

    /// A stored run: what a listing shows of it.
    pub fn run(&mut self, run: &RunRecord) -> &mut Self {
        self.row("run", &run.header)
    }

    /// Any stored row.
    pub fn row(&mut self, name: &str, row: &impl Serialize) -> &mut Self {
        let value = serde_json::to_value(row).unwrap_or_else(|error| Value::String(format!("cannot be shown: {error}")));
        let line = match value {
            Value::Object(map) => pairs(&map),
            other => other.to_string(),
        };
        self.line(&format!("{name} {line}"))
    }

    fn grow(&mut self, line: String, piece: &str) -> &mut Self {
        match &mut self.growing {
            Some((same, text, pieces)) if *same == line => {
                text.push_str(piece);
                *pieces += 1;
            }
            _ => {
                self.settle();
                self.growing = Some((line, piece.to_owned(), 1));
            }
        }
        self
    }

    fn settle(&mut self) {
        if let Some(line) = self.growing.take().map(grown) {
            self.text.push_str(&line);
        }
    }

    fn line(&mut self, line: &str) -> &mut Self {
        self.settle();
        self.text.push_str(line);
        self.text.push('\n');
        self
    }
}

fn grown((line, text, pieces): (String, String, usize)) -> String {
    let times = if pieces == 1 { String::new() } else { format!(" ({pieces} pieces)") };
    format!("{line} {}{times}\n", Value::String(text))
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        self.growing.clone().map(grown).map_or(Ok(()), |line| f.write_str(&line))
    }
}

/// `type key=value …`.
fn fields(body: Value) -> String {
    let Value::Object(mut map) = body else { return body.to_string() };
    let name = map.remove("type").map(|name| bare(&name)).unwrap_or_default();
    let pairs = pairs(&map);
    if pairs.is_empty() { name } else { format!("{name} {pairs}") }
}

fn pairs(map: &Map<String, Value>) -> String {
    map.iter().map(|(key, value)| format!("{key}={}", bare(value))).collect::<Vec<_>>().join(" ")
}

/// Plain words without quotes, everything else as JSON.
fn bare(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() && !text.contains([' ', '"', '\n', '=']) => text.clone(),
        other => other.to_string(),
    }
}

/// `id role: part, part`.
fn message_line(live: &Value) -> String {
    let text = |key: &str| live.get(key).map(bare).unwrap_or_default();
    let parts = live.pointer("/content/parts").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let parts: Vec<_> = parts.iter().map(part).collect();
    let mut line = format!("{} {}: {}", text("id"), text("role"), if parts.is_empty() { "(empty)".to_owned() } else { parts.join(", ") });
    if let Some(Value::Object(meta)) = live.pointer("/content/metadata")
        && !meta.contains_key("signal")
    {
        write!(line, " ({})", pairs(meta)).ok();
    }
    line
}

fn part(part: &Value) -> String {
    let get = |pointer: &str| part.pointer(pointer);
    match part.get("type").and_then(Value::as_str).unwrap_or_default() {
        "text" => get("/text").map(ToString::to_string).unwrap_or_default(),
        "reasoning" => format!("reasoning {}", get("/reasoning").map(ToString::to_string).unwrap_or_default()),
        "data-user-message" => get("/data/contents").map(ToString::to_string).unwrap_or_default(),
        "tool-invocation" => {
            let of = |key: &str| get(&format!("/toolInvocation/{key}")).map(bare).unwrap_or_default();
            let mut line = format!("{} {}({}) {}", of("toolCallId"), of("toolName"), of("args"), of("state"));
            for key in ["result", "isError", "approval"] {
                if let Some(value) = get(&format!("/toolInvocation/{key}")) {
                    write!(line, " {key}={}", bare(value)).ok();
                }
            }
            line
        }
        _ => part.to_string(),
    }
}

fn request_message(message: &Value) -> String {
    let role = message.get("role").map(bare).unwrap_or_default();
    let mut line = match message.get("tool_call_id") {
        Some(call) => format!("{role} {}:", bare(call)),
        None => format!("{role}:"),
    };
    if let Some(content) = message.get("content").filter(|content| !content.is_null()) {
        write!(line, " {content}").ok();
    }
    for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let get = |pointer: &str| call.pointer(pointer).map(bare).unwrap_or_default();
        let args = call.pointer("/function/arguments").and_then(Value::as_str).unwrap_or_default();
        write!(line, " {} {}({args})", get("/id"), get("/function/name")).ok();
    }
    line
}

#[cfg(test)]
mod tests;
