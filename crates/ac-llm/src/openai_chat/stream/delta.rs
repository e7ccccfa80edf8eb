//! The chunks that a stream mostly consists of: one choice with a piece of text, of thinking, or of the arguments of calls.

use ac_core::ModelEvent;
use serde::Deserialize;

use super::Decoder;
use crate::shape::{NoList, Null, Text, fit};

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    model: Text<'a>,
    #[serde(borrow)]
    choices: [Choice<'a>; 1],
    #[serde(default, rename = "usage")]
    _usage: Null,
    #[serde(default, rename = "x_groq")]
    _x_groq: Null,
    #[serde(default, rename = "error")]
    _error: Null,
}

#[derive(Deserialize)]
struct Choice<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    delta: Delta<'a>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Text<'a>,
    #[serde(borrow, default)]
    reasoning_content: Text<'a>,
    #[serde(borrow, default)]
    reasoning: Text<'a>,
    #[serde(borrow, default)]
    refusal: Text<'a>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Fragment<'a>>>,
    #[serde(default, rename = "reasoning_details")]
    _reasoning_details: NoList,
    #[serde(default, rename = "function_call")]
    _function_call: Null,
    #[serde(default, rename = "extra_content")]
    _extra_content: Null,
}

#[derive(Deserialize)]
struct Fragment<'a> {
    index: Option<u64>,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
    #[serde(default, rename = "extra_content")]
    _extra_content: Null,
}

#[derive(Default, Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    arguments: Text<'a>,
}

/// Reads a chunk if it is one of those; says whether it was.
pub(super) fn read(decoder: &mut Decoder, data: &str, out: &mut Vec<ModelEvent>) -> bool {
    let Some(Chunk { id, model, choices: [Choice { index, delta, finish_reason }], .. }) = fit(data) else { return false };
    if index.unwrap_or(0) != 0 || !delta.refusal.is_empty() {
        return false;
    }
    id.learn(&mut decoder.id);
    model.learn(&mut decoder.model);
    decoder.chunks = true;
    for (field, text) in [("reasoning_content", delta.reasoning_content), ("reasoning", delta.reasoning)] {
        if !text.is_empty() {
            decoder.thought(field, text.into_string(), out);
            // What a second name says is the same again.
            break;
        }
    }
    if !delta.content.is_empty() {
        decoder.parts.text(delta.content.into_string(), out);
    }
    for Fragment { index, id, function, .. } in delta.tool_calls.unwrap_or_default() {
        let function = function.unwrap_or_default();
        decoder.call(index, id.as_str(), function.name.as_str(), function.arguments.into_string(), out);
    }
    if !finish_reason.is_empty() {
        decoder.finish = Some(finish_reason.into_string());
    }
    true
}
