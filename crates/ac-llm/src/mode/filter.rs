//! Between a decoder and the reader of its events: makes calls out of text where the mode says so.

use std::collections::BTreeMap;

use ac_core::{
    FinishReason, ModelEvent, ModelRequest, Part,
    message::{TextPart, ToolCallPart},
    model::Finish,
};
use serde_json::Value;

use super::{ToolCallMode, action::asks_in_json, repair};
use crate::profile::Profile;

/// Passes events on, and looks for calls in texts.
///
/// The index of a part is doubled, so that a call that is found in a text has a place right after it.
#[derive(Debug)]
pub(crate) struct Filter {
    how: How,
    offered: Vec<String>,
    texts: BTreeMap<u32, Held>,
    native: bool,
    found: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Pass,
    Action,
    Repair,
}

/// A text that may turn out to be a call.
#[derive(Debug, Default)]
struct Held {
    /// What came and was not told yet; of a constrained answer, everything.
    held: String,
    shape: Shape,
}

/// What a constrained answer is, as far as it came.
#[derive(Debug, Default, PartialEq)]
enum Shape {
    /// Too short to tell, or a call.
    #[default]
    Unknown,
    /// `{"answer": "…`; up to where it was read, and the words that were told.
    Answer { read: usize, words: String, closed: bool },
    /// No JSON at all: told as it comes.
    Plain,
}

impl Filter {
    pub(crate) fn new(profile: &Profile, request: &ModelRequest) -> Self {
        let how = match profile.tool_calls {
            _ if request.tools.is_empty() => How::Pass,
            ToolCallMode::JsonAction if asks_in_json(profile, request) => How::Action,
            ToolCallMode::TextRepair => How::Repair,
            _ => How::Pass,
        };
        Self {
            how,
            offered: request.tools.iter().map(|tool| tool.name.clone()).collect(),
            texts: BTreeMap::new(),
            native: false,
            found: false,
        }
    }

    /// Whether events pass as they are.
    pub(crate) fn is_idle(&self) -> bool {
        self.how == How::Pass
    }

    pub(crate) fn pass(&mut self, events: Vec<ModelEvent>, out: &mut Vec<ModelEvent>) {
        for event in events {
            match event {
                ModelEvent::TextDelta { index, text } => self.more(index, &text, out),
                ModelEvent::PartDone { index, part: Part::Text(part) } => self.done(index, part, out),
                ModelEvent::ReasoningDelta { index, text } => out.push(ModelEvent::ReasoningDelta { index: place(index), text }),
                ModelEvent::ToolInputStart { index, id, name } => {
                    self.native = true;
                    out.push(ModelEvent::ToolInputStart { index: place(index), id, name });
                }
                ModelEvent::ToolInputDelta { index, text } => out.push(ModelEvent::ToolInputDelta { index: place(index), text }),
                ModelEvent::PartDone { index, part } => out.push(ModelEvent::PartDone { index: place(index), part }),
                other => out.push(other),
            }
        }
    }

    /// A finish that knows of the calls that were found.
    pub(crate) fn finish(&self, mut finish: Finish) -> Finish {
        if self.found && finish.reason == FinishReason::Stop {
            finish.reason = FinishReason::ToolCalls;
        }
        finish
    }

    fn more(&mut self, index: u32, text: &str, out: &mut Vec<ModelEvent>) {
        let held = self.texts.entry(index).or_default();
        held.held.push_str(text);
        let tell = match self.how {
            How::Action => held.words(),
            _ => repair::free_of_calls(&mut held.held),
        };
        if !tell.is_empty() {
            out.push(ModelEvent::TextDelta { index: place(index), text: tell });
        }
    }

    fn done(&mut self, index: u32, part: TextPart, out: &mut Vec<ModelEvent>) {
        let held = self.texts.remove(&index).unwrap_or_default();
        let offered = |name: &str| self.offered.iter().any(|tool| tool == name);
        let mut tell = |text: &str, told: usize, whole: String| {
            if let Some(rest) = text.get(told..).filter(|rest| !rest.is_empty()) {
                out.push(ModelEvent::TextDelta { index: place(index), text: rest.to_owned() });
            }
            out.push(ModelEvent::PartDone { index: place(index), part: Part::Text(TextPart { text: whole, opaque: part.opaque.clone() }) });
        };
        let call = match (self.how, held.shape) {
            (How::Action, Shape::Answer { words, .. }) => {
                // Cut off or not, what was told of it is the answer.
                return tell("", 0, words);
            }
            (How::Action, Shape::Plain) => return tell("", 0, part.text),
            (How::Action, Shape::Unknown) => {
                let value: Value = serde_json::from_str(held.held.trim()).unwrap_or_default();
                if let Some(answer) = value
                    .get("answer")
                    .filter(|_| ["action", "tool"].iter().all(|field| value.get(*field).is_none()))
                    .and_then(Value::as_str)
                {
                    return tell(answer, 0, answer.to_owned());
                }
                repair::call(&value, &offered)
            }
            _ if self.native || self.found => None,
            _ => repair::single_call(&part.text, &offered).map(|(before, call)| {
                let told = part.text.len().saturating_sub(held.held.len());
                if !before.is_empty() {
                    tell(before, told, before.to_owned());
                }
                ToolCallPart { repaired: true, ..call }
            }),
        };
        match call {
            Some(call) => {
                self.found = true;
                tell_call(place(index).saturating_add(1), call, out);
            }
            None => tell(&held.held, 0, part.text),
        }
    }
}

fn place(index: u32) -> u32 {
    index.saturating_mul(2)
}

fn tell_call(index: u32, call: ToolCallPart, out: &mut Vec<ModelEvent>) {
    out.push(ModelEvent::ToolInputStart { index, id: None, name: call.name.clone() });
    out.push(ModelEvent::ToolInputDelta { index, text: call.args.to_string() });
    out.push(ModelEvent::PartDone { index, part: Part::ToolCall(call) });
}

impl Held {
    /// The words of an answer that are new. Each byte is read once.
    fn words(&mut self) -> String {
        if self.shape == Shape::Unknown {
            self.shape = recognise(&self.held);
        }
        match &mut self.shape {
            Shape::Unknown => String::new(),
            Shape::Plain => std::mem::take(&mut self.held),
            Shape::Answer { closed: true, .. } => String::new(),
            Shape::Answer { read, words, closed } => {
                let rest = self.held.get(*read..).unwrap_or_default();
                let (end, quote) = readable(rest);
                let raw = rest.get(..end).unwrap_or_default();
                let new = serde_json::from_str::<String>(&format!("\"{raw}\"")).unwrap_or_else(|_| lenient(raw));
                *read = read.saturating_add(end);
                *closed = quote;
                words.push_str(&new);
                new
            }
        }
    }
}

/// The inside of a string that is none in JSON, as well as it can be read: line breaks stand as they are, an escape that does not exist is
/// text, half a character is a character nobody knows.
fn lenient(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let mut chars = after.chars();
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some(same @ ('"' | '\\' | '/')) => out.push(same),
            Some('u') => {
                let digits = |text: &str| text.get(..4).and_then(|digits| u16::from_str_radix(digits, 16).ok());
                let Some(first) = digits(chars.as_str()) else {
                    out.push_str("\\u");
                    rest = chars.as_str();
                    continue;
                };
                let after = chars.as_str().get(4..).unwrap_or_default();
                let second = after.strip_prefix("\\u").and_then(digits).filter(|low| (0xdc00..0xe000).contains(low));
                let pair = second.filter(|_| (0xd800..0xdc00).contains(&first));
                let units = [Some(first), pair];
                out.extend(char::decode_utf16(units.into_iter().flatten()).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
                rest = if pair.is_some() { after.get(6..).unwrap_or_default() } else { after };
                continue;
            }
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out
}

fn recognise(text: &str) -> Shape {
    let mut rest = text.trim_start();
    if rest.is_empty() {
        return Shape::Unknown;
    }
    if !rest.starts_with('{') {
        return Shape::Plain;
    }
    for token in ["{", "\"answer\"", ":", "\""] {
        rest = rest.trim_start();
        match rest.strip_prefix(token) {
            Some(after) => rest = after,
            None => return Shape::Unknown,
        }
    }
    Shape::Answer { read: text.len().saturating_sub(rest.len()), words: String::new(), closed: false }
}

/// How much of the inside of a JSON string can be read now, and whether its closing quote follows. An escape sequence whose end has not
/// come, and the first half of a surrogate pair without the second, wait.
fn readable(text: &str) -> (usize, bool) {
    let mut end = 0;
    while let Some(rest) = text.get(end..) {
        let Some(at) = rest.find(['"', '\\']) else { return (text.len(), false) };
        let here = end.saturating_add(at);
        let Some(escape) = rest.get(at..) else { return (here, false) };
        if escape.starts_with('"') {
            return (here, true);
        }
        let length = match escape.get(1..2) {
            None => return (here, false),
            Some("u") => {
                let high = escape.get(2..4).is_some_and(|digits| {
                    digits.to_ascii_lowercase().starts_with('d') && digits.chars().nth(1).is_some_and(|c| "89abAB".contains(c))
                });
                if high { 12 } else { 6 }
            }
            Some(_) => 2,
        };
        if escape.len() < length || !escape.is_char_boundary(length) {
            return (here, false);
        }
        end = here.saturating_add(length);
    }
    (end, false)
}
