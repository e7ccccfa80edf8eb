//! The stream half.

mod delta;

use ac_core::{
    FinishReason, ModelError, ModelEvent, Part, Usage,
    message::{FilePart, FileSource},
    model::Finish,
};
use serde_json::{Map, Value};

use super::partial;
use crate::{
    decode::{Decode, Flow, Setup, take_text},
    parts::{Handle, Parts},
};

/// Chunks in, events out. Only the first candidate is read.
pub struct Decoder {
    setup: Setup,
    parts: Parts,
    /// A call whose arguments come in pieces.
    partial: Option<(Handle, Value)>,
    usage: Option<Value>,
    /// The counts as text, where the last chunk that had some was of the common kind.
    counts: String,
    finish: Option<String>,
    /// Old models say how they finished in every chunk, so the first time is not the end.
    repeats: bool,
    explanation: Option<String>,
    chunks: bool,
    id: Option<String>,
    model: Option<String>,
}

impl Decoder {
    pub(crate) fn new(setup: Setup) -> Self {
        Self {
            parts: setup.parts(),
            setup,
            partial: None,
            usage: None,
            counts: String::new(),
            finish: None,
            repeats: false,
            explanation: None,
            chunks: false,
            id: None,
            model: None,
        }
    }

    fn chunk(&mut self, mut chunk: Value, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if crate::error::is_error(&chunk) {
            return Err(self.setup.in_answer(&chunk));
        }
        if self.id.is_none() {
            self.id = take_text(&mut chunk, "responseId");
        }
        if self.model.is_none() {
            self.model = take_text(&mut chunk, "modelVersion");
        }
        // Each count is of the whole answer so far.
        if let Some(usage @ Value::Object(_)) = chunk.get_mut("usageMetadata").map(Value::take) {
            self.usage = Some(usage);
            self.counts.clear();
        }
        if let Some(feedback) = chunk.get_mut("promptFeedback") {
            self.chunks = true;
            if let Some(reason) = take_text(feedback, "blockReason") {
                self.finish = Some(format!("promptFeedback:{reason}"));
                self.explanation = take_text(feedback, "blockReasonMessage");
            }
        }
        if let Some(Value::Array(candidates)) = chunk.get_mut("candidates") {
            self.chunks = true;
            for candidate in candidates {
                if candidate.get("index").and_then(Value::as_u64).unwrap_or(0) == 0 {
                    self.candidate(candidate, out);
                }
            }
        }
        Ok(())
    }

    fn candidate(&mut self, candidate: &mut Value, out: &mut Vec<ModelEvent>) {
        if let Some(Value::Array(parts)) = candidate.get_mut("content").and_then(|content| content.get_mut("parts")).map(Value::take) {
            for part in parts {
                self.part(part, out);
            }
        }
        if let Some(reason) = take_text(candidate, "finishReason").filter(|reason| reason != "FINISH_REASON_UNSPECIFIED") {
            if reason != "STOP" {
                self.explanation = take_text(candidate, "finishMessage");
            }
            self.finished(reason);
        }
    }

    fn finished(&mut self, reason: String) {
        self.repeats = self.finish.is_some();
        self.finish = Some(reason);
    }

    fn part(&mut self, mut part: Value, out: &mut Vec<ModelEvent>) {
        let signature = take_text(&mut part, "thoughtSignature").or_else(|| take_text(&mut part, "thought_signature"));
        if let Some(call) = part.get_mut("functionCall").map(Value::take) {
            return self.call(call, signature, out);
        }
        if let Some(Value::String(text)) = part.get_mut("text").map(Value::take) {
            let thought = part.get("thought").and_then(Value::as_bool).unwrap_or(false);
            match signature {
                None if thought => drop(self.parts.reasoning(text, out)),
                None => drop(self.parts.text(text, out)),
                // A signature belongs to this very part, even to an empty one, so it is merged with no other.
                Some(signature) => {
                    let handle = if thought { self.parts.begin_reasoning() } else { self.parts.begin_text() };
                    self.parts.append(handle, text, out);
                    self.parts.set_opaque(handle, "thoughtSignature", signature.into());
                    self.parts.close(handle, out);
                }
            }
            return;
        }
        if let Value::Object(fields) = &mut part {
            if let Some(signature) = signature {
                fields.insert("thoughtSignature".into(), signature.into());
            } else {
                fields.remove("thoughtSignature");
                fields.remove("thought_signature");
            }
        }
        if let Some(file) = inline_file(&part) {
            let file = self.parts.with_opaque(file, part);
            self.parts.whole(Part::File(file), out);
            return;
        }
        let known = ["executableCode", "codeExecutionResult", "toolCall", "toolResponse"];
        let name = known.iter().find(|name| part.get(**name).is_some()).copied().unwrap_or("part").to_owned();
        if part.as_object().is_some_and(|fields| !fields.is_empty()) {
            self.parts.own(&name, part, out);
        }
    }

    fn call(&mut self, mut call: Value, signature: Option<String>, out: &mut Vec<ModelEvent>) {
        let name = take_text(&mut call, "name").unwrap_or_default();
        let id = take_text(&mut call, "id").unwrap_or_default();
        let pieces = call.get_mut("partialArgs").map(Value::take);
        let more = call.get("willContinue").and_then(Value::as_bool).unwrap_or(false);
        if !name.is_empty() {
            self.settle(out);
            let handle = self.parts.begin_call(&id, &name, out);
            if let Some(signature) = signature {
                self.parts.set_opaque(handle, "thoughtSignature", signature.into());
            }
            if !id.is_empty() {
                self.parts.set_opaque(handle, "id", true.into());
            }
            let args = call.get_mut("args").map(Value::take).filter(|args| !args.is_null());
            if !more && pieces.is_none() {
                self.parts.append(handle, args.unwrap_or_else(|| Value::Object(Map::new())).to_string(), out);
                self.parts.close(handle, out);
                return;
            }
            self.partial = Some((handle, args.unwrap_or(Value::Null)));
        }
        if let (Some(Value::Array(pieces)), Some((_, args))) = (pieces, &mut self.partial) {
            pieces.iter().for_each(|piece| partial::apply(args, piece));
        }
        if !more {
            self.settle(out);
        }
    }

    /// The call whose arguments came in pieces is complete.
    fn settle(&mut self, out: &mut Vec<ModelEvent>) {
        if let Some((handle, args)) = self.partial.take() {
            let args = if args.is_null() { Value::Object(Map::new()) } else { args };
            self.parts.append(handle, args.to_string(), out);
            self.parts.close(handle, out);
        }
    }

    fn reason(&self) -> FinishReason {
        match self.finish.as_deref() {
            Some(blocked) if blocked.starts_with("promptFeedback:") => FinishReason::ContentFilter,
            Some("STOP") | None if self.parts.has_calls() => FinishReason::ToolCalls,
            Some("STOP") | None => FinishReason::Stop,
            Some("MAX_TOKENS") => FinishReason::Length,
            Some("SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" | "MODEL_ARMOR") => {
                FinishReason::ContentFilter
            }
            Some("MALFORMED_FUNCTION_CALL") => FinishReason::Error,
            Some(_) => FinishReason::Other,
        }
    }
}

fn inline_file(part: &Value) -> Option<FilePart> {
    let data = part.get("inlineData").or_else(|| part.get("inline_data"))?;
    let media_type = data.get("mimeType").or_else(|| data.get("mime_type"))?.as_str()?.to_owned();
    let source = FileSource::Base64(data.get("data")?.as_str()?.into());
    Some(FilePart { media_type, source, name: None, opaque: None })
}

impl Decode for Decoder {
    fn event(&mut self, _name: Option<&str>, data: &str, out: &mut Vec<ModelEvent>) -> Result<Flow, ModelError> {
        if data.trim() == "[DONE]" {
            return Ok(Flow::Stop);
        }
        if delta::read(self, data, out) {
            return Ok(Flow::Continue);
        }
        let chunk = self.setup.json(data)?;
        self.chunk(chunk, out)?;
        Ok(Flow::Continue)
    }

    /// One chunk, or a list of all of them where server-sent events were not asked for.
    fn document(&mut self, document: Value, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let whole = !document.is_array();
        match document {
            Value::Array(chunks) => chunks.into_iter().try_for_each(|chunk| self.chunk(chunk, out))?,
            chunk => self.chunk(chunk, out)?,
        }
        if !self.chunks {
            return Err(self.setup.origin.protocol("the answer is JSON but no content (it has no `candidates`); check the base URL"));
        }
        if whole && self.finish.is_none() {
            self.finish = Some("STOP".into());
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<Finish, ModelError> {
        if self.finish.is_none() {
            return Err(self.setup.origin.truncated());
        }
        self.settle(out);
        self.parts.close_all(out);
        let mut finish = Finish::new(self.reason());
        finish.raw_reason = self.finish.take();
        let counts = std::mem::take(&mut self.counts);
        finish.usage = self.usage.take().or_else(|| serde_json::from_str(&counts).ok()).and_then(usage);
        finish.response_id = self.id.take();
        finish.model = self.model.take();
        finish.explanation = self.explanation.take();
        Ok(finish)
    }

    /// Old models finish in every chunk, so one that was lost may have held more words.
    fn lost(&mut self) {
        self.finish = None;
    }

    fn ended(&self) -> bool {
        self.finish.is_some() && !self.repeats
    }
}

/// The wire's output leaves thoughts out; ours counts them.
fn usage(raw: Value) -> Option<Usage> {
    let count = |field: &str| raw.get(field).and_then(Value::as_u64);
    let thoughts = count("thoughtsTokenCount");
    let (input, written) = (count("promptTokenCount"), count("candidatesTokenCount"));
    if input.is_none() && written.is_none() && thoughts.is_none() {
        return None;
    }
    let mut usage = Usage::new(input.unwrap_or(0), written.unwrap_or(0).saturating_add(thoughts.unwrap_or(0)));
    usage.total = count("totalTokenCount").unwrap_or(usage.total);
    usage.cached_input = count("cachedContentTokenCount");
    usage.reasoning = thoughts;
    usage.raw = Some(raw);
    Some(usage)
}
