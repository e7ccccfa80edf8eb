//! The one fold from model events to the parts of a message.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    Part, ToolCallPart,
    message::{ReasoningPart, TextPart},
    model::{Finish, ModelEvent},
};

/// Folds the events of one answer into parts.
///
/// Cost per event is constant: deltas are appended, nothing is copied or scanned.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    open: BTreeMap<u32, OpenPart>,
    finish: Option<Finish>,
}

#[derive(Clone, Debug)]
enum OpenPart {
    Text(String),
    Reasoning(String),
    ToolInput { id: Option<String>, name: String, text: String },
    Done(Part),
}

impl Assembler {
    /// An answer of which nothing is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event.
    pub fn push(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::TextDelta { index, text } => match self.open.entry(index).or_insert_with(|| OpenPart::Text(String::new())) {
                OpenPart::Text(open) => open.push_str(&text),
                other => append_to_other(other, &text),
            },
            ModelEvent::ReasoningDelta { index, text } => {
                match self.open.entry(index).or_insert_with(|| OpenPart::Reasoning(String::new())) {
                    OpenPart::Reasoning(open) => open.push_str(&text),
                    other => append_to_other(other, &text),
                }
            }
            ModelEvent::ToolInputStart { index, id, name } => {
                self.open.entry(index).or_insert(OpenPart::ToolInput { id, name, text: String::new() });
            }
            ModelEvent::ToolInputDelta { index, text } => {
                if let Some(OpenPart::ToolInput { text: open, .. }) = self.open.get_mut(&index) {
                    open.push_str(&text);
                }
            }
            ModelEvent::PartDone { index, part } => {
                self.open.insert(index, OpenPart::Done(part));
            }
            ModelEvent::Finish(finish) => self.finish = Some(finish),
        }
    }

    /// Whether any text or thinking was shown, or a tool call begun.
    pub fn has_content(&self) -> bool {
        self.open.values().any(|part| match part {
            OpenPart::Text(text) | OpenPart::Reasoning(text) => !text.is_empty(),
            OpenPart::ToolInput { .. } => true,
            OpenPart::Done(_) => true,
        })
    }

    /// How the answer ended, once it has.
    pub fn finish(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    /// The parts of a complete answer, in order. Empty texts are left out unless the provider wants something back with them.
    pub fn into_parts(self) -> (Vec<Part>, Option<Finish>) {
        let parts = self.open.into_values().filter_map(|part| close(part, true)).collect();
        (parts, self.finish)
    }

    /// What may be kept of an answer that was cut: text and thinking. A tool call that was not complete is dropped, never run.
    pub fn into_partial(self) -> Vec<Part> {
        self.open.into_values().filter_map(|part| close(part, false)).filter(|part| !matches!(part, Part::ToolCall(_))).collect()
    }
}

/// A provider that reuses an index for another kind of part breaks its contract; what it said is still kept.
fn append_to_other(part: &mut OpenPart, text: &str) {
    match part {
        OpenPart::Text(open) | OpenPart::Reasoning(open) | OpenPart::ToolInput { text: open, .. } => open.push_str(text),
        OpenPart::Done(_) => {}
    }
}

fn close(part: OpenPart, complete: bool) -> Option<Part> {
    match part {
        OpenPart::Text(text) => (!text.is_empty()).then_some(Part::Text(TextPart { text, opaque: None })),
        OpenPart::Reasoning(text) => (!text.is_empty()).then_some(Part::Reasoning(ReasoningPart { text, opaque: None })),
        OpenPart::ToolInput { id, name, text } => complete.then(|| Part::ToolCall(tool_call(id.as_deref().unwrap_or(""), &name, &text))),
        OpenPart::Done(Part::Text(text)) if text.text.is_empty() && text.opaque.is_none() => None,
        OpenPart::Done(Part::Reasoning(text)) if text.text.is_empty() && text.opaque.is_none() => None,
        OpenPart::Done(part) => Some(part),
    }
}

/// A call from the JSON text of its arguments. No text means no arguments (`{}`); text that is no JSON is kept in
/// [`ToolCallPart::raw`], and the call is answered as an error instead of being run.
pub fn tool_call(id: &str, name: &str, arguments: &str) -> ToolCallPart {
    let text = arguments.trim();
    if text.is_empty() {
        return ToolCallPart::new(id, name, Value::Object(serde_json::Map::new()));
    }
    match serde_json::from_str(text) {
        Ok(args) => ToolCallPart::new(id, name, args),
        Err(_) => ToolCallPart { raw: Some(arguments.to_owned()), ..ToolCallPart::new(id, name, Value::Null) },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::FinishReason;

    fn text(index: u32, text: &str) -> ModelEvent {
        ModelEvent::TextDelta { index, text: text.into() }
    }

    #[test]
    fn parts_come_out_in_the_order_of_their_index() {
        let mut answer = Assembler::new();
        for event in [
            ModelEvent::ToolInputStart { index: 2, id: Some("c".into()), name: "t".into() },
            text(1, "he"),
            ModelEvent::ToolInputDelta { index: 2, text: "{\"a\":".into() },
            text(1, "llo"),
            ModelEvent::ReasoningDelta { index: 0, text: "hm".into() },
            ModelEvent::ToolInputDelta { index: 2, text: "1}".into() },
            ModelEvent::Finish(Finish::new(FinishReason::ToolCalls)),
        ] {
            answer.push(event);
        }
        assert_eq!(answer.finish().unwrap().reason, FinishReason::ToolCalls);
        let (parts, _) = answer.into_parts();
        assert_eq!(
            parts,
            [
                Part::Reasoning(ReasoningPart { text: "hm".into(), opaque: None }),
                Part::text("hello"),
                Part::ToolCall(ToolCallPart::new("c", "t", json!({"a": 1}))),
            ]
        );
    }

    #[test]
    fn a_cut_answer_keeps_its_text_and_drops_its_calls() {
        let mut answer = Assembler::new();
        answer.push(text(0, "I will"));
        answer.push(ModelEvent::ToolInputStart { index: 1, id: None, name: "rm".into() });
        answer.push(ModelEvent::ToolInputDelta { index: 1, text: "{}".into() });
        assert!(answer.has_content());
        assert_eq!(answer.into_partial(), [Part::text("I will")]);
    }

    #[test]
    fn arguments_that_are_no_json_are_kept_as_text() {
        assert_eq!(tool_call("c", "t", "").args, json!({}));
        let cut = tool_call("c", "t", "{\"a\":");
        assert_eq!((cut.args, cut.raw.as_deref()), (Value::Null, Some("{\"a\":")));
    }
}
