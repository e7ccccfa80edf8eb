//! The chunks that a stream mostly consists of: one candidate with one piece of text or of thinking, and the counts so far.

use ac_core::ModelEvent;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Decoder;
use crate::shape::{Null, Text, fit};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow, default)]
    response_id: Text<'a>,
    #[serde(borrow, default)]
    model_version: Text<'a>,
    #[serde(borrow)]
    candidates: [Candidate<'a>; 1],
    #[serde(borrow)]
    usage_metadata: Option<&'a RawValue>,
    #[serde(default, rename = "promptFeedback")]
    _feedback: Null,
    #[serde(default, rename = "error")]
    _error: Null,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    content: Content<'a>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: [Part<'a>; 1],
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    thought: Option<bool>,
    #[serde(default, rename = "thoughtSignature")]
    _signature: Null,
    #[serde(default, rename = "thought_signature")]
    _signature_of_others: Null,
    #[serde(default, rename = "functionCall")]
    _call: Null,
}

/// Reads a chunk if it is one of those; says whether it was.
pub(super) fn read(decoder: &mut Decoder, data: &str, out: &mut Vec<ModelEvent>) -> bool {
    let Some(Chunk { response_id, model_version, candidates, usage_metadata, .. }) = fit(data) else { return false };
    let [Candidate { index, content: Content { parts: [Part { text, thought, .. }] }, finish_reason }] = candidates;
    if index.unwrap_or(0) != 0 || text.is_empty() || !matches!(finish_reason.as_str(), "" | "STOP") {
        return false;
    }
    response_id.learn(&mut decoder.id);
    model_version.learn(&mut decoder.model);
    if let Some(counts) = usage_metadata.map(RawValue::get).filter(|counts| counts.starts_with('{')) {
        // Each is of the whole answer so far, so only the last one is ever read.
        decoder.usage = None;
        decoder.counts.clear();
        decoder.counts.push_str(counts);
    }
    decoder.chunks = true;
    if thought.unwrap_or(false) {
        decoder.parts.reasoning(text.into_string(), out);
    } else {
        decoder.parts.text(text.into_string(), out);
    }
    if !finish_reason.is_empty() {
        decoder.finished(finish_reason.into_string());
    }
    true
}
