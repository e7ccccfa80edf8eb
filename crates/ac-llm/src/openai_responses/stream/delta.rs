//! The events that a stream mostly consists of: a piece of text, of thinking, or of the input of a call.

use ac_core::ModelEvent;
use serde::Deserialize;

use super::Decoder;
use crate::shape::{Text, fit};

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    output_index: u64,
    content_index: Option<u64>,
    summary_index: Option<u64>,
    #[serde(borrow)]
    delta: Text<'a>,
}

/// Reads an event if it is one of those; says whether it was.
pub(super) fn read(decoder: &mut Decoder, data: &str, out: &mut Vec<ModelEvent>) -> bool {
    let Some(Event { kind, output_index: at, content_index, summary_index, delta }) = fit(data) else { return false };
    let (content, summary) = (content_index.unwrap_or(0), summary_index.unwrap_or(0));
    match kind.as_str() {
        "response.output_text.delta" => decoder.text(at, content, delta.into_string(), out),
        "response.reasoning_summary_text.delta" => decoder.reasoning(at, (true, summary), delta.into_string(), out),
        "response.reasoning_text.delta" | "response.reasoning.delta" => decoder.reasoning(at, (false, content), delta.into_string(), out),
        "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
            decoder.call_input(at, delta.into_string(), out);
        }
        _ => return false,
    }
    true
}
