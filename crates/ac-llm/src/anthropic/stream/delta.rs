//! The events that a stream mostly consists of: a piece of text, of thinking, or of the input of a call.

use ac_core::ModelEvent;
use serde::Deserialize;

use super::{Block, Decoder};
use crate::shape::{Text, fit};

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    index: u64,
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    thinking: Text<'a>,
    #[serde(borrow, default)]
    partial_json: Text<'a>,
}

/// Reads an event if it is one of those; says whether it was.
pub(super) fn read(decoder: &mut Decoder, data: &str, out: &mut Vec<ModelEvent>) -> bool {
    let Some(Event { kind, index, delta }) = fit::<Event<'_>>(data) else { return false };
    if kind.as_str() != "content_block_delta" {
        return false;
    }
    let (part, text) = match (delta.kind.as_str(), decoder.blocks.get(&index)) {
        ("text_delta", Some(Block::Text(part))) => (*part, delta.text),
        ("thinking_delta", Some(Block::Thinking(part))) => (*part, delta.thinking),
        ("input_json_delta", Some(Block::Call(part, _))) => (*part, delta.partial_json),
        _ => return false,
    };
    decoder.parts.append(part, text.into_string(), out);
    true
}
