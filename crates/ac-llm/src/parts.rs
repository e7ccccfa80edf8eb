//! The parts of an answer while they come in: which index each has, and what it holds so far.

use std::sync::Arc;

use ac_core::{
    ModelEvent, Part, ToolCallPart,
    assemble::tool_call,
    message::{DataPart, FilePart, Opaque, ReasoningPart, TextPart},
};
use serde_json::Value;

use crate::name::ToolNames;

/// A part that was begun.
pub(crate) type Handle = usize;

/// Gives indexes to parts, tells their deltas, and closes each exactly once.
#[derive(Debug)]
pub(crate) struct Parts {
    provider: Arc<str>,
    names: ToolNames,
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    what: What,
    text: String,
    opaque: Option<Value>,
    closed: bool,
}

#[derive(Debug)]
enum What {
    Text,
    Reasoning,
    Call {
        id: String,
        name: String,
        told: bool,
        plain: bool,
    },
    /// A part that came whole.
    Whole,
}

impl Parts {
    pub(crate) fn new(provider: Arc<str>, names: ToolNames) -> Self {
        Self { provider, names, open: Vec::new() }
    }

    fn begin(&mut self, what: What) -> Handle {
        self.open.push(Open { what, text: String::new(), opaque: None, closed: false });
        self.open.len().saturating_sub(1)
    }

    pub(crate) fn begin_text(&mut self) -> Handle {
        self.begin(What::Text)
    }

    pub(crate) fn begin_reasoning(&mut self) -> Handle {
        self.begin(What::Reasoning)
    }

    /// Visible text goes on: in the part that is last, or in a new one.
    pub(crate) fn text(&mut self, text: String, out: &mut Vec<ModelEvent>) -> Option<Handle> {
        self.run_on(text, false, out)
    }

    /// Thinking goes on: in the part that is last, or in a new one.
    pub(crate) fn reasoning(&mut self, text: String, out: &mut Vec<ModelEvent>) -> Option<Handle> {
        self.run_on(text, true, out)
    }

    fn run_on(&mut self, text: String, reasoning: bool, out: &mut Vec<ModelEvent>) -> Option<Handle> {
        if text.is_empty() {
            return None;
        }
        let fits = self
            .open
            .last()
            .is_some_and(|open| !open.closed && matches!((&open.what, reasoning), (What::Text, false) | (What::Reasoning, true)));
        let handle = if fits {
            self.open.len().saturating_sub(1)
        } else if reasoning {
            self.begin_reasoning()
        } else {
            self.begin_text()
        };
        self.append(handle, text, out);
        Some(handle)
    }

    /// More of a part that was begun.
    pub(crate) fn append(&mut self, handle: Handle, text: String, out: &mut Vec<ModelEvent>) {
        let Some(open) = self.open.get_mut(handle).filter(|open| !open.closed && !text.is_empty()) else { return };
        open.text.push_str(&text);
        let index = index(handle);
        match &open.what {
            What::Text => out.push(ModelEvent::TextDelta { index, text }),
            What::Reasoning => out.push(ModelEvent::ReasoningDelta { index, text }),
            What::Call { told: true, .. } => out.push(ModelEvent::ToolInputDelta { index, text }),
            What::Call { .. } | What::Whole => {}
        }
    }

    /// A call begins. It is told as soon as its name is known.
    pub(crate) fn begin_call(&mut self, id: &str, name: &str, out: &mut Vec<ModelEvent>) -> Handle {
        let name = if name.is_empty() { String::new() } else { self.names.original(name) };
        let handle = self.begin(What::Call { id: id.to_owned(), name, told: false, plain: false });
        self.tell(handle, out);
        handle
    }

    /// What a call lacked when it began. Whatever is known stays.
    pub(crate) fn name_call(&mut self, handle: Handle, new_id: &str, new_name: &str, out: &mut Vec<ModelEvent>) {
        let original = if new_name.is_empty() { String::new() } else { self.names.original(new_name) };
        if let Some(Open { what: What::Call { id, name, .. }, .. }) = self.open.get_mut(handle) {
            if id.is_empty() {
                new_id.clone_into(id);
            }
            if name.is_empty() {
                *name = original;
            }
        }
        self.tell(handle, out);
    }

    fn tell(&mut self, handle: Handle, out: &mut Vec<ModelEvent>) {
        if let Some(Open { what: What::Call { id, name, told, .. }, text, .. }) = self.open.get_mut(handle)
            && !*told
            && !name.is_empty()
        {
            *told = true;
            let id = (!id.is_empty()).then(|| id.clone());
            out.push(ModelEvent::ToolInputStart { index: index(handle), id, name: name.clone() });
            if !text.is_empty() {
                out.push(ModelEvent::ToolInputDelta { index: index(handle), text: text.clone() });
            }
        }
    }

    /// The input of this call is no JSON but text.
    pub(crate) fn plain_input(&mut self, handle: Handle) {
        if let Some(Open { what: What::Call { plain, .. }, .. }) = self.open.get_mut(handle) {
            *plain = true;
        }
    }

    /// Whether this call has an id, and which.
    pub(crate) fn call_id(&self, handle: Handle) -> Option<&str> {
        match self.open.get(handle) {
            Some(Open { what: What::Call { id, .. }, .. }) => Some(id).filter(|id| !id.is_empty()).map(String::as_str),
            _ => None,
        }
    }

    /// What a part holds so far.
    pub(crate) fn so_far(&self, handle: Handle) -> &str {
        self.open.get(handle).map_or("", |open| &open.text)
    }

    /// What the provider wants back with a part.
    pub(crate) fn opaque(&mut self, handle: Handle) -> Option<&mut Value> {
        self.open.get_mut(handle).map(|open| open.opaque.get_or_insert_with(|| Value::Object(serde_json::Map::new())))
    }

    /// Sets one field of what the provider wants back with a part.
    pub(crate) fn set_opaque(&mut self, handle: Handle, field: &str, value: Value) {
        if let Some(Value::Object(fields)) = self.opaque(handle) {
            fields.insert(field.to_owned(), value);
        }
    }

    /// A piece of the provider's own comes whole. It goes back as it is.
    pub(crate) fn own(&mut self, name: &str, data: Value, out: &mut Vec<ModelEvent>) {
        let opaque = Some(Opaque { provider: Arc::clone(&self.provider), value: data.clone() });
        self.whole(Part::Data(DataPart { name: name.to_owned(), data, opaque }), out);
    }

    /// A file with what the provider wants back with it.
    pub(crate) fn with_opaque(&self, file: FilePart, value: Value) -> FilePart {
        FilePart { opaque: Some(Opaque { provider: Arc::clone(&self.provider), value }), ..file }
    }

    /// A part that is no text, thinking or call comes whole.
    pub(crate) fn whole(&mut self, part: Part, out: &mut Vec<ModelEvent>) {
        let handle = self.begin(What::Whole);
        if let Some(open) = self.open.get_mut(handle) {
            open.closed = true;
        }
        out.push(ModelEvent::PartDone { index: index(handle), part });
    }

    /// A part is complete. A call without a name never was one.
    pub(crate) fn close(&mut self, handle: Handle, out: &mut Vec<ModelEvent>) {
        let Some(open) = self.open.get_mut(handle).filter(|open| !open.closed) else { return };
        open.closed = true;
        let text = std::mem::take(&mut open.text);
        let opaque = open.opaque.take().map(|value| Opaque { provider: Arc::clone(&self.provider), value });
        let part = match &open.what {
            What::Text if text.is_empty() && opaque.is_none() => return,
            What::Reasoning if text.is_empty() && opaque.is_none() => return,
            What::Text => Part::Text(TextPart { text, opaque }),
            What::Reasoning => Part::Reasoning(ReasoningPart { text, opaque }),
            What::Call { id, name, plain, .. } if !name.is_empty() => {
                let mut call = if *plain { ToolCallPart::new(id.as_str(), name, Value::String(text)) } else { tool_call(id, name, &text) };
                call.opaque = opaque;
                Part::ToolCall(call)
            }
            What::Call { .. } | What::Whole => return,
        };
        out.push(ModelEvent::PartDone { index: index(handle), part });
    }

    /// The answer is complete, and so is every part.
    pub(crate) fn close_all(&mut self, out: &mut Vec<ModelEvent>) {
        for handle in 0..self.open.len() {
            self.close(handle, out);
        }
    }

    /// Whether there is a call.
    pub(crate) fn has_calls(&self) -> bool {
        self.open.iter().any(|open| matches!(&open.what, What::Call { name, .. } if !name.is_empty()))
    }

    /// The thinking that came last, whatever came after it.
    pub(crate) fn latest_reasoning(&self) -> Option<Handle> {
        self.open.iter().rposition(|open| !open.closed && matches!(open.what, What::Reasoning))
    }

    /// The part that was begun last, if it is thinking.
    pub(crate) fn last_reasoning(&self) -> Option<Handle> {
        let last = self.open.len().checked_sub(1)?;
        self.open.get(last).filter(|open| !open.closed && matches!(open.what, What::Reasoning)).map(|_| last)
    }
}

/// More parts than fit are impossible: each costs a byte of a bounded answer.
fn index(handle: Handle) -> u32 {
    u32::try_from(handle).unwrap_or(u32::MAX)
}
