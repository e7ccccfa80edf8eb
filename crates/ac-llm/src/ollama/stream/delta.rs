//! The lines that a stream mostly consists of: a piece of text or of thinking.

use ac_core::ModelEvent;
use serde::Deserialize;

use super::Decoder;
use crate::shape::{NoList, Null, Text, fit};

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    model: Text<'a>,
    #[serde(borrow)]
    message: Message<'a>,
    done: Option<bool>,
    #[serde(default, rename = "error")]
    _error: Null,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    thinking: Text<'a>,
    #[serde(borrow, default)]
    content: Text<'a>,
    #[serde(default, rename = "tool_calls")]
    _calls: NoList,
}

/// Reads a line if it is one of those; says whether it was.
pub(super) fn read(decoder: &mut Decoder, data: &str, out: &mut Vec<ModelEvent>) -> bool {
    let Some(Line { model, message: Message { thinking, content, .. }, done, .. }) = fit(data) else { return false };
    if done == Some(true) {
        return false;
    }
    model.learn(&mut decoder.model);
    decoder.parts.reasoning(thinking.into_string(), out);
    decoder.parts.text(content.into_string(), out);
    true
}
