//! The script: what the model answers, in order.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One answer of the model.
///
/// Its JSON form is that of the golden scenarios (`turns[]`), so a scenario file deserialises into a script; [`Reply::reset`] and
/// [`Turn::raw`] are this kit's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Turn {
    /// Which requests it answers; the first turn that is not used up and fits is taken.
    #[serde(rename = "match", skip_serializing_if = "Match::is_any")]
    pub when: Match,
    /// What is said, in order.
    pub parts: Vec<TurnPart>,
    /// Why the model stopped; by default `tool_calls` after a tool part, else `stop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// Tokens, in the provider's own form; by default 10 for the prompt and 5 for the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
    /// Milliseconds before each piece.
    pub delay: u64,
    /// Whether it answers more than once.
    pub repeat: Repeat,
    /// How it fails, after its parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Reply>,
    /// Sent as the body in place of parts, byte for byte: a recorded stream.
    #[serde(skip)]
    pub raw: Option<Raw>,
}

/// Which requests a turn answers: those that fit everything given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Match {
    /// The model asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Stands somewhere in the JSON text of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// Stands nowhere in the JSON text of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_contains: Option<String>,
    /// The role of the last message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_role: Option<String>,
}

/// Whether a turn answers more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Repeat {
    /// Once, or for ever.
    Forever(bool),
    /// So many times.
    Times(u32),
}

impl Default for Repeat {
    fn default() -> Self {
        Self::Forever(false)
    }
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnPart {
    /// Visible text, one event per piece.
    Text(Vec<String>),
    /// Thinking, one event per piece.
    Reasoning(Vec<String>),
    /// A request to act.
    Tool(ToolPart),
    /// Milliseconds of silence.
    Delay(u64),
}

/// A request to act.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolPart {
    /// The call's id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub args: Value,
    /// The text sent as arguments in place of `args`, legal JSON or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// In how many pieces the arguments arrive; 0 and 1 mean one.
    pub split: usize,
}

/// How a turn fails.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reply {
    /// Answers with this HTTP status before anything is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The body of that answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Headers of that answer.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Says its parts, then closes the connection without an end.
    pub cut: bool,
    /// Says its parts, then resets the connection.
    pub reset: bool,
    /// Says its parts, then nothing more until the client leaves. A turn that fails thus and has no parts never answers at all.
    pub hang: bool,
}

/// A body sent as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw {
    /// Its content type.
    pub content_type: String,
    /// Its bytes.
    pub body: Vec<u8>,
}

impl Match {
    fn is_any(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a request fits.
    pub fn fits(&self, body: &Value, text: &str) -> bool {
        let last = || body.get("messages")?.as_array()?.last()?.get("role")?.as_str();
        self.model.as_deref().is_none_or(|model| body.get("model").and_then(Value::as_str) == Some(model))
            && self.contains.as_deref().is_none_or(|part| text.contains(part))
            && self.not_contains.as_deref().is_none_or(|part| !text.contains(part))
            && self.last_role.as_deref().is_none_or(|role| last() == Some(role))
    }
}

impl Turn {
    /// Says `text` in one piece.
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().then_text(text)
    }

    /// Says these pieces of text, one event each.
    pub fn chunks<S: Into<String>>(pieces: impl IntoIterator<Item = S>) -> Self {
        Self::default().then(TurnPart::Text(pieces.into_iter().map(Into::into).collect()))
    }

    /// Thinks.
    pub fn reasoning(text: impl Into<String>) -> Self {
        Self::default().then(TurnPart::Reasoning(vec![text.into()]))
    }

    /// Calls a tool.
    pub fn tool(id: impl Into<String>, name: impl Into<String>, args: Value) -> Self {
        Self::default().then_tool(id, name, args)
    }

    /// Fails with an HTTP status and an error body of the provider's form.
    pub fn error(status: u16, message: impl Into<String>) -> Self {
        let body = json!({ "error": { "message": message.into(), "type": "scripted" } });
        Self { error: Some(Reply { status: Some(status), body: Some(body), ..Reply::default() }), ..Self::default() }
    }

    /// Never answers.
    pub fn hang() -> Self {
        Self::default().then_hang()
    }

    /// Sends recorded bytes.
    pub fn raw(content_type: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self { raw: Some(Raw { content_type: content_type.into(), body: body.into() }), ..Self::default() }
    }

    /// Then a part.
    #[must_use]
    pub fn then(mut self, part: TurnPart) -> Self {
        self.parts.push(part);
        self
    }

    /// Then text.
    #[must_use]
    pub fn then_text(self, text: impl Into<String>) -> Self {
        self.then(TurnPart::Text(vec![text.into()]))
    }

    /// Then a call.
    #[must_use]
    pub fn then_tool(self, id: impl Into<String>, name: impl Into<String>, args: Value) -> Self {
        self.then(TurnPart::Tool(ToolPart { id: id.into(), name: name.into(), args, ..ToolPart::default() }))
    }

    /// Then a call whose arguments are this text, legal JSON or not.
    #[must_use]
    pub fn then_raw_tool(self, id: impl Into<String>, name: impl Into<String>, raw: impl Into<String>) -> Self {
        self.then(TurnPart::Tool(ToolPart { id: id.into(), name: name.into(), raw: Some(raw.into()), ..ToolPart::default() }))
    }

    /// Then silence.
    #[must_use]
    pub fn then_pause(self, pause: Duration) -> Self {
        self.then(TurnPart::Delay(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Then the connection closes without an end.
    #[must_use]
    pub fn then_cut(mut self) -> Self {
        self.error.get_or_insert_default().cut = true;
        self
    }

    /// Then the connection is reset.
    #[must_use]
    pub fn then_reset(mut self) -> Self {
        self.error.get_or_insert_default().reset = true;
        self
    }

    /// Then nothing more, until the client leaves.
    #[must_use]
    pub fn then_hang(mut self) -> Self {
        self.error.get_or_insert_default().hang = true;
        self
    }

    /// Why the model stopped.
    #[must_use]
    pub fn finish(mut self, reason: impl Into<String>) -> Self {
        self.finish = Some(reason.into());
        self
    }

    /// Tokens of prompt and answer.
    #[must_use]
    pub fn tokens(mut self, prompt: u64, completion: u64) -> Self {
        self.usage = Some(usage(prompt, completion));
        self
    }

    /// A pause before each piece.
    #[must_use]
    pub fn slowly(mut self, pause: Duration) -> Self {
        self.delay = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// A header of an error's answer, for example `Retry-After`.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.error.get_or_insert_default().headers.insert(name.into(), value.into());
        self
    }

    /// Answers every request that fits, for ever.
    #[must_use]
    pub fn forever(mut self) -> Self {
        self.repeat = Repeat::Forever(true);
        self
    }

    /// Answers `n` requests.
    #[must_use]
    pub fn times(mut self, n: u32) -> Self {
        self.repeat = Repeat::Times(n);
        self
    }

    /// Answers only requests that fit.
    #[must_use]
    pub fn when(mut self, when: Match) -> Self {
        self.when = when;
        self
    }

    /// Answers only requests whose JSON text holds `text`.
    #[must_use]
    pub fn when_contains(mut self, text: impl Into<String>) -> Self {
        self.when.contains = Some(text.into());
        self
    }

    /// Answers only requests whose last message has this role.
    #[must_use]
    pub fn when_last_role(mut self, role: impl Into<String>) -> Self {
        self.when.last_role = Some(role.into());
        self
    }

    /// How many requests it may answer.
    pub(super) fn budget(&self) -> u32 {
        match self.repeat {
            Repeat::Forever(true) => u32::MAX,
            Repeat::Forever(false) => 1,
            Repeat::Times(n) => n,
        }
    }

    pub(super) fn finish_reason(&self) -> &str {
        let acts = self.parts.iter().any(|part| matches!(part, TurnPart::Tool(_)));
        self.finish.as_deref().unwrap_or(if acts { "tool_calls" } else { "stop" })
    }

    pub(super) fn usage_or_default(&self) -> Value {
        self.usage.clone().unwrap_or_else(|| usage(10, 5))
    }
}

impl ToolPart {
    pub(super) fn text(&self) -> String {
        self.raw.clone().unwrap_or_else(|| if self.args.is_null() { "{}".to_owned() } else { self.args.to_string() })
    }

    /// The argument text in `split` pieces, cut between characters.
    pub(super) fn pieces(&self) -> Vec<String> {
        let text: Vec<char> = self.text().chars().collect();
        let size = text.len().div_ceil(self.split.max(1)).max(1);
        text.chunks(size).map(|piece| piece.iter().collect()).collect()
    }
}

fn usage(prompt: u64, completion: u64) -> Value {
    json!({ "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt.saturating_add(completion) })
}
