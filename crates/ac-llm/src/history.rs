//! What a model is told of the conversation: the stored messages, made into a legal request.
//!
//! The stored form holds a call and its result in one part. Every adapter takes the turns of this module, which are the same for all:
//! results stand right after the message with their calls, each call has exactly one (`R4`), and what only people or hosts look at is
//! left out, and so are texts without words, which some providers refuse.

use std::sync::Arc;

use ac_core::{
    Message, ModelId, ModelRequest, Part, Role, ToolCallPart, ToolCallState,
    message::{FilePart, Opaque, ReasoningPart, TextPart},
};

/// One turn.
pub(crate) enum Turn<'a> {
    /// The host speaks.
    System(String),
    /// A person, or something that happened.
    User(Vec<Content<'a>>),
    /// A model spoke.
    Assistant(Answer<'a>),
}

/// What a model said, its calls and their results in it.
pub(crate) struct Answer<'a> {
    pub(crate) said: Vec<Said<'a>>,
    /// The model that is asked now wrote it, as far as one can tell. Signatures are bound to the model that made them.
    pub(crate) own: bool,
}

impl<'a> Answer<'a> {
    /// The calls in it, in order.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call<'a>> {
        self.said.iter().filter_map(|said| match said {
            Said::Call(call) => Some(call),
            _ => None,
        })
    }
}

/// What a person sent.
pub(crate) enum Content<'a> {
    Text(String),
    File(&'a FilePart),
}

/// A piece of what a model said.
pub(crate) enum Said<'a> {
    Text(&'a TextPart),
    Reasoning(&'a ReasoningPart),
    File(&'a FilePart),
    /// A part of the provider's own that it wants back.
    Own(&'a Opaque),
    Call(Call<'a>),
}

/// A call with its result.
pub(crate) struct Call<'a> {
    pub(crate) part: &'a ToolCallPart,
    /// What the model reads of the result.
    pub(crate) output: String,
    pub(crate) files: Vec<&'a FilePart>,
    pub(crate) failed: bool,
}

/// Told where a stored call has no result. Rule R4 keeps that from happening; a thread written by something else may still hold one.
const NO_RESULT: &str = "No result: the call did not finish.";

/// The turns of `messages`, to be sent to `model`.
pub(crate) fn turns<'a>(messages: impl IntoIterator<Item = &'a Message>, model: &ModelId) -> Vec<Turn<'a>> {
    messages
        .into_iter()
        .filter_map(|message| match message.role {
            Role::System => Some(Turn::System(message.text())).filter(|_| !message.text().trim().is_empty()),
            Role::Assistant => {
                let said: Vec<_> = message.parts.iter().filter_map(said).collect();
                let own = message.meta.model.as_ref().is_none_or(|writer| writer == model);
                (!said.is_empty()).then_some(Turn::Assistant(Answer { said, own }))
            }
            // A role of a later version is something that happened.
            _ => Some(Turn::User(content(message))).filter(|turn| !matches!(turn, Turn::User(content) if content.is_empty())),
        })
        .collect()
}

/// What goes back of opaque data: it is the provider's own, and has this field.
pub(crate) fn own<'a>(opaque: Option<&'a Opaque>, provider: &str, field: &str) -> Option<&'a serde_json::Value> {
    opaque.filter(|opaque| &*opaque.provider == provider)?.value.get(field)
}

/// The same conversation without any provider's thinking and signatures.
pub(crate) fn without_thinking(request: &ModelRequest) -> ModelRequest {
    let mut plain = request.clone();
    for message in &mut plain.messages {
        let has = |part: &Part| match part {
            Part::Reasoning(_) => true,
            Part::Text(part) => part.opaque.is_some(),
            Part::ToolCall(part) => part.opaque.is_some(),
            _ => false,
        };
        if message.parts.iter().any(has) {
            let message = Arc::make_mut(message);
            message.parts.retain(|part| !matches!(part, Part::Reasoning(_)));
            for part in &mut message.parts {
                match part {
                    Part::Text(part) => part.opaque = None,
                    Part::ToolCall(part) => part.opaque = None,
                    _ => {}
                }
            }
        }
    }
    plain
}

fn said(part: &Part) -> Option<Said<'_>> {
    match part {
        Part::Text(text) => (!text.text.trim().is_empty() || text.opaque.is_some()).then_some(Said::Text(text)),
        Part::Reasoning(reasoning) => Some(Said::Reasoning(reasoning)),
        Part::File(file) => Some(Said::File(file)),
        Part::ToolCall(call) => Some(Said::Call(with_result(call))),
        Part::Data(data) => data.opaque.as_ref().map(Said::Own),
        _ => None,
    }
}

fn with_result(part: &ToolCallPart) -> Call<'_> {
    match &part.state {
        ToolCallState::Result { output, is_error } => {
            let files = output.model.iter().flatten().filter_map(|part| match part {
                Part::File(file) => Some(file),
                _ => None,
            });
            Call { part, output: output.model_text(), files: files.collect(), failed: *is_error }
        }
        ToolCallState::OutputDenied { reason } => Call { part, output: reason.clone(), files: vec![], failed: false },
        _ => Call { part, output: NO_RESULT.into(), files: vec![], failed: true },
    }
}

fn content(message: &Message) -> Vec<Content<'_>> {
    let mut content: Vec<Content<'_>> = Vec::new();
    let text = message.text();
    if !text.trim().is_empty() {
        content.push(Content::Text(marked(message, text)));
    }
    content.extend(message.parts.iter().filter_map(|part| match part {
        Part::File(file) => Some(Content::File(file)),
        _ => None,
    }));
    content
}

/// A signal, and a person's message with attributes, is shown as an element: `<user delivery="while-active">…</user>`. What comes from
/// elsewhere cannot end the element of a signal.
fn marked(message: &Message, mut text: String) -> String {
    let tag = match &message.meta.signal {
        _ if message.role == Role::User => "user",
        Some(info) if is_name(&info.tag) => info.tag.as_str(),
        _ => "signal",
    };
    if message.role == Role::Signal {
        text = text.replace(&format!("</{tag}"), &format!("&lt;/{tag}"));
    }
    if message.role == Role::User && message.meta.attributes.is_empty() {
        return text;
    }
    let mut element = format!("<{tag}");
    for (name, value) in &message.meta.attributes {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let value = value.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
        element.push_str(&format!(" {name}=\"{value}\""));
    }
    format!("{element}>{text}</{tag}>")
}

fn is_name(tag: &str) -> bool {
    tag.starts_with(|c: char| c.is_ascii_alphabetic()) && tag.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}
