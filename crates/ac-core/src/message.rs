//! Messages: what a thread consists of.
//!
//! There is exactly one assistant message per step of a run; its id derives from run and step and never changes. The result of a tool
//! call is part of the message that holds the call (rule `R4`: each call gets exactly one result). Providers that want results as
//! messages of their own get them split when the request is built.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{ErrorInfo, FinishReason, MessageId, ModelId, RunId, Timestamp, ToolCallId, ToolOutput};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// The host, to the model.
    System,
    /// A person.
    User,
    /// The model.
    Assistant,
    /// Something that happened: a notification, a note of the host.
    Signal,
}

/// One message of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Unique in its thread.
    pub id: MessageId,
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
    /// When it was made.
    pub at: Timestamp,
    /// What else is known about it.
    #[serde(default, skip_serializing_if = "MessageMeta::is_empty")]
    pub meta: MessageMeta,
}

impl Message {
    /// A message with these parts and nothing else known.
    pub fn new(id: impl Into<MessageId>, role: Role, parts: Vec<Part>, at: Timestamp) -> Self {
        Self { id: id.into(), role, parts, at, meta: MessageMeta::default() }
    }

    /// A person's message of plain text.
    pub fn user(id: impl Into<MessageId>, text: impl Into<String>, at: Timestamp) -> Self {
        Self::new(id, Role::User, vec![Part::text(text)], at)
    }

    /// All visible text, joined without separators.
    pub fn text(&self) -> String {
        self.parts.iter().filter_map(Part::as_text).collect()
    }

    /// The tool calls in it, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCallPart> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The call with this id.
    pub fn tool_call_mut(&mut self, id: &ToolCallId) -> Option<&mut ToolCallPart> {
        self.parts.iter_mut().find_map(|part| match part {
            Part::ToolCall(call) if call.id == *id => Some(call),
            _ => None,
        })
    }
}

/// What is known about a message besides its words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct MessageMeta {
    /// The run that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The model that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelId>,
    /// Why the model stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReason>,
    /// The error that cut it short. Never sent back to a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// The person who wrote it, where several speak (SPEC C-49).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,
    /// Attributes that a model sees with a signal (`delivery`, `source`, `priority`).
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub attributes: Map<String, Value>,
    /// What the host keeps with it.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub host: Map<String, Value>,
    /// What kind of signal it is, for [`Role::Signal`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<Box<SignalInfo>>,
}

impl MessageMeta {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What kind of signal a message is (WIRE 6.1).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SignalInfo {
    /// `notification`, `reactive`, `state`, … .
    pub kind: String,
    /// The name of the element in which a model reads it.
    pub tag: String,
    /// What programs read of it; models do not.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// It is put into the thread and makes no run go on: a run whose model is done ends, and takes it along.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub quiet: bool,
}

impl Message {
    /// Whether a run that is done goes on for the sake of this message.
    pub fn prompts(&self) -> bool {
        !(self.role == Role::Signal && self.meta.signal.as_ref().is_some_and(|info| info.quiet))
    }
}

/// The person who wrote a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// Never empty.
    pub id: String,
    /// How the person is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub avatar_url: Option<String>,
}

/// One piece of a message.
///
/// A part of a kind that this version does not know is kept as [`Part::Unknown`] and written back unchanged; a part of a known kind with
/// a body that does not fit is an error, never silently dropped.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Part {
    /// Visible text.
    Text(TextPart),
    /// What the model thought.
    Reasoning(ReasoningPart),
    /// A picture, a document, any file.
    File(FilePart),
    /// A request to act, and its result once there is one.
    ToolCall(ToolCallPart),
    /// Something of the host's or a provider's own.
    Data(DataPart),
    /// From a newer version.
    Unknown(Value),
}

impl Part {
    /// Visible text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextPart { text: text.into(), opaque: None })
    }

    /// The text of a text part.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(part) => Some(&part.text),
            _ => None,
        }
    }
}

/// Visible text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TextPart {
    /// The text.
    pub text: String,
    /// What the provider wants back with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// What the model thought.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReasoningPart {
    /// The visible part of it; may be empty.
    pub text: String,
    /// Signature or encrypted content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// Data of one provider that must be sent back unchanged, to the same provider only.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Opaque {
    /// The provider that made it.
    pub provider: Arc<str>,
    /// Its own form.
    pub value: Value,
}

impl std::fmt::Debug for Opaque {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opaque").field("provider", &self.provider).finish_non_exhaustive()
    }
}

/// A file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilePart {
    /// IANA media type.
    pub media_type: String,
    /// Where its bytes are.
    pub source: FileSource,
    /// What the person calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the provider wants back with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// Where the bytes of a file are.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileSource {
    /// Here, as base64.
    Base64(Arc<str>),
    /// Somewhere a provider can fetch it.
    Url(String),
}

impl std::fmt::Debug for FileSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Base64(data) => write!(f, "Base64({} bytes)", data.len()),
            Self::Url(url) => write!(f, "Url({url:?})"),
        }
    }
}

/// Something of the host's or a provider's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataPart {
    /// What it is.
    pub name: String,
    /// Its content.
    pub data: Value,
    /// Set when a provider made it and wants it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// A request of the model to act, and its one result (`R4`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCallPart {
    /// Unique in the thread.
    pub id: ToolCallId,
    /// The tool, as the model named it.
    pub name: String,
    /// The arguments, as parsed. Where they were no JSON, `null`, and `raw` has the text.
    pub args: Value,
    /// The text of arguments that could not be parsed. Such a call is never run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// Found in text rather than in the provider's own form for calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repaired: bool,
    /// A person allowed it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approved: bool,
    /// How far it is.
    #[serde(flatten)]
    pub state: ToolCallState,
    /// What the provider wants back with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

impl ToolCallPart {
    /// A call that nobody looked at yet.
    pub fn new(id: impl Into<ToolCallId>, name: impl Into<String>, args: Value) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            args,
            raw: None,
            repaired: false,
            approved: false,
            state: ToolCallState::Call,
            opaque: None,
        }
    }
}

/// How far a tool call is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ToolCallState {
    /// Asked for; without a result yet.
    Call,
    /// Done, well or badly.
    Result {
        /// What came out.
        output: ToolOutput,
        /// The tool failed; the output says how.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// Not allowed, or stopped.
    OutputDenied {
        /// What the model is told.
        reason: String,
    },
}

impl ToolCallState {
    /// Whether the call has its result.
    pub fn is_settled(&self) -> bool {
        !matches!(self, Self::Call)
    }
}

/// The serde form of [`Part`]: `{"type": "text", …}`.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum KnownPart {
    Text(TextPart),
    Reasoning(ReasoningPart),
    File(FilePart),
    ToolCall(ToolCallPart),
    Data(DataPart),
}

const KNOWN_PARTS: [&str; 5] = ["text", "reasoning", "file", "tool_call", "data"];

impl Serialize for Part {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum Known<'a> {
            Text(&'a TextPart),
            Reasoning(&'a ReasoningPart),
            File(&'a FilePart),
            ToolCall(&'a ToolCallPart),
            Data(&'a DataPart),
        }
        match self {
            Self::Text(part) => Known::Text(part).serialize(serializer),
            Self::Reasoning(part) => Known::Reasoning(part).serialize(serializer),
            Self::File(part) => Known::File(part).serialize(serializer),
            Self::ToolCall(part) => Known::ToolCall(part).serialize(serializer),
            Self::Data(part) => Known::Data(part).serialize(serializer),
            Self::Unknown(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let known = value.get("type").and_then(Value::as_str).is_some_and(|tag| KNOWN_PARTS.contains(&tag));
        if !known {
            return Ok(Self::Unknown(value));
        }
        Ok(match KnownPart::deserialize(value).map_err(serde::de::Error::custom)? {
            KnownPart::Text(part) => Self::Text(part),
            KnownPart::Reasoning(part) => Self::Reasoning(part),
            KnownPart::File(part) => Self::File(part),
            KnownPart::ToolCall(part) => Self::ToolCall(part),
            KnownPart::Data(part) => Self::Data(part),
        })
    }
}

#[cfg(test)]
mod tests;
