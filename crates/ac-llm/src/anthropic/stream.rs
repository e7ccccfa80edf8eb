//! The stream half.

mod delta;

use std::collections::BTreeMap;

use ac_core::{FinishReason, ModelError, ModelEvent, Usage, model::Finish};
use serde_json::{Map, Value, json};

use crate::{
    decode::{Decode, Flow, Setup, take_text},
    parts::{Handle, Parts},
};

/// Message events in, events out.
pub struct Decoder {
    setup: Setup,
    parts: Parts,
    blocks: BTreeMap<u64, Block>,
    /// `message_start` merged with `message_delta`; what comes later wins.
    usage: Map<String, Value>,
    stop: Option<String>,
    details: Option<Value>,
    done: bool,
    id: Option<String>,
    model: Option<String>,
}

enum Block {
    Text(Handle),
    Thinking(Handle),
    /// `input` as it stood in the start of the block: the arguments of a gateway that sends no deltas.
    Call(Handle, Option<Value>),
    /// A block of the provider's own, collected as it is.
    Own {
        block: Value,
        input: String,
    },
}

impl Decoder {
    pub(crate) fn new(setup: Setup) -> Self {
        Self {
            parts: setup.parts(),
            setup,
            blocks: BTreeMap::new(),
            usage: Map::new(),
            stop: None,
            details: None,
            done: false,
            id: None,
            model: None,
        }
    }

    fn message(&mut self, message: &mut Value) {
        if self.id.is_none() {
            self.id = take_text(message, "id");
        }
        if self.model.is_none() {
            self.model = take_text(message, "model");
        }
        self.count(message.get_mut("usage"));
    }

    fn count(&mut self, usage: Option<&mut Value>) {
        if let Some(Value::Object(usage)) = usage.map(Value::take) {
            self.usage.extend(usage.into_iter().filter(|(_, value)| !value.is_null()));
        }
    }

    fn start(&mut self, index: u64, mut block: Value, out: &mut Vec<ModelEvent>) {
        let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
        let opened = match kind {
            "text" => {
                let part = self.parts.begin_text();
                self.parts.append(part, take_text(&mut block, "text").unwrap_or_default(), out);
                if let Some(citations @ Value::Array(list)) = block.get("citations")
                    && !list.is_empty()
                {
                    self.parts.set_opaque(part, "citations", citations.clone());
                }
                Block::Text(part)
            }
            "thinking" => {
                let part = self.parts.begin_reasoning();
                self.parts.append(part, take_text(&mut block, "thinking").unwrap_or_default(), out);
                if let Some(signature) = take_text(&mut block, "signature") {
                    self.parts.set_opaque(part, "signature", signature.into());
                }
                Block::Thinking(part)
            }
            "redacted_thinking" => {
                let part = self.parts.begin_reasoning();
                self.parts.set_opaque(part, "redacted", block.get_mut("data").map(Value::take).unwrap_or_default());
                Block::Thinking(part)
            }
            "tool_use" => {
                let (id, name) = (take_text(&mut block, "id").unwrap_or_default(), take_text(&mut block, "name").unwrap_or_default());
                let part = self.parts.begin_call(&id, &name, out);
                Block::Call(part, block.get_mut("input").map(Value::take).filter(|input| !is_empty(input)))
            }
            _ => Block::Own { block, input: String::new() },
        };
        // A gateway that starts an index anew closes what was there.
        if let Some(before) = self.blocks.insert(index, opened) {
            self.close(before, out);
        }
    }

    fn delta(&mut self, index: u64, mut delta: Value, out: &mut Vec<ModelEvent>) {
        let Some(block) = self.blocks.get_mut(&index) else { return };
        match (delta.get("type").and_then(Value::as_str).unwrap_or_default(), block) {
            ("text_delta", Block::Text(part)) => self.parts.append(*part, take_text(&mut delta, "text").unwrap_or_default(), out),
            ("thinking_delta", Block::Thinking(part)) => {
                self.parts.append(*part, take_text(&mut delta, "thinking").unwrap_or_default(), out);
            }
            ("signature_delta", Block::Thinking(part)) => {
                // It could come in pieces, though none was ever seen to.
                if let (Some(more), Some(Value::Object(opaque))) = (take_text(&mut delta, "signature"), self.parts.opaque(*part)) {
                    match opaque.entry("signature").or_insert_with(|| "".into()) {
                        Value::String(signature) => signature.push_str(&more),
                        other => *other = more.into(),
                    }
                }
            }
            ("input_json_delta", Block::Call(part, _)) => {
                self.parts.append(*part, take_text(&mut delta, "partial_json").unwrap_or_default(), out);
            }
            ("citations_delta", Block::Text(part)) => {
                if let (Some(citation), Some(Value::Object(opaque))) =
                    (delta.get_mut("citation").map(Value::take), self.parts.opaque(*part))
                    && let Value::Array(list) = opaque.entry("citations").or_insert_with(|| json!([]))
                {
                    list.push(citation);
                }
            }
            ("input_json_delta", Block::Own { input, .. }) => {
                input.push_str(delta.get("partial_json").and_then(Value::as_str).unwrap_or_default());
            }
            (_, Block::Own { block: Value::Object(fields), .. }) => {
                // Texts of such a block grow, anything else is set.
                let Value::Object(delta) = delta else { return };
                for (name, value) in delta.into_iter().filter(|(name, _)| name != "type") {
                    match (fields.get_mut(&name), value) {
                        (Some(Value::String(text)), Value::String(more)) => text.push_str(&more),
                        (_, value) => drop(fields.insert(name, value)),
                    }
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, block: Block, out: &mut Vec<ModelEvent>) {
        match block {
            Block::Text(part) | Block::Thinking(part) => self.parts.close(part, out),
            Block::Call(part, input) => {
                if let Some(input) = input.filter(|_| self.parts.so_far(part).is_empty()) {
                    self.parts.append(part, input.to_string(), out);
                }
                self.parts.close(part, out);
            }
            Block::Own { mut block, input } => {
                if let (Ok(input), Value::Object(fields)) = (serde_json::from_str::<Value>(&input), &mut block) {
                    fields.insert("input".into(), input);
                }
                let kind = block.get("type").and_then(Value::as_str).unwrap_or("block").to_owned();
                self.parts.own(&kind, block, out);
            }
        }
    }

    fn reason(&self) -> FinishReason {
        match self.stop.as_deref() {
            Some("end_turn" | "stop_sequence") => FinishReason::Stop,
            Some("tool_use") => FinishReason::ToolCalls,
            Some("max_tokens" | "model_context_window_exceeded") => FinishReason::Length,
            Some("pause_turn") => FinishReason::Pause,
            Some("refusal") => FinishReason::Refusal,
            Some(_) => FinishReason::Other,
            None if self.parts.has_calls() => FinishReason::ToolCalls,
            None => FinishReason::Stop,
        }
    }
}

impl Decode for Decoder {
    fn event(&mut self, _name: Option<&str>, data: &str, out: &mut Vec<ModelEvent>) -> Result<Flow, ModelError> {
        if data.trim() == "[DONE]" {
            return Ok(Flow::Stop);
        }
        if delta::read(self, data, out) {
            return Ok(Flow::Continue);
        }
        let mut event = self.setup.json(data)?;
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        match event.get("type").and_then(Value::as_str).unwrap_or_default() {
            "content_block_delta" => self.delta(index, event.get_mut("delta").map(Value::take).unwrap_or_default(), out),
            "content_block_start" => self.start(index, event.get_mut("content_block").map(Value::take).unwrap_or_default(), out),
            "content_block_stop" => {
                if let Some(block) = self.blocks.remove(&index) {
                    self.close(block, out);
                }
            }
            "message_start" => {
                if let Some(message) = event.get_mut("message") {
                    self.message(message);
                }
            }
            "message_delta" => {
                if let Some(delta) = event.get_mut("delta") {
                    if let Some(reason) = take_text(delta, "stop_reason") {
                        self.stop = Some(reason);
                    }
                    if let Some(details @ Value::Object(_)) = delta.get_mut("stop_details").map(Value::take) {
                        self.details = Some(details);
                    }
                }
                self.count(event.get_mut("usage"));
            }
            "message_stop" => {
                self.done = true;
                return Ok(Flow::Stop);
            }
            "error" => return Err(self.setup.in_answer(&event)),
            "" if crate::error::is_error(&event) => return Err(self.setup.in_answer(&event)),
            _ => {}
        }
        Ok(Flow::Continue)
    }

    fn document(&mut self, mut document: Value, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let Some(Value::Array(content)) = document.get_mut("content").map(Value::take) else {
            return Err(self.setup.origin.protocol("the answer is JSON but no message (it has no `content`); check the base URL"));
        };
        self.message(&mut document);
        for (index, block) in (0..).zip(content) {
            self.start(index, block, out);
        }
        self.stop = take_text(&mut document, "stop_reason");
        self.details = document.get_mut("stop_details").map(Value::take).filter(Value::is_object);
        self.done = true;
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<Finish, ModelError> {
        if !self.ended() {
            return Err(self.setup.origin.truncated());
        }
        for (_, block) in std::mem::take(&mut self.blocks) {
            self.close(block, out);
        }
        self.parts.close_all(out);
        let mut finish = Finish::new(self.reason());
        finish.raw_reason = self.stop.take();
        finish.usage = (!self.usage.is_empty()).then(|| usage(std::mem::take(&mut self.usage)));
        finish.response_id = self.id.take();
        finish.model = self.model.take();
        finish.explanation = self.details.take().and_then(|details| {
            ["explanation", "message", "category"].iter().find_map(|field| details.get(*field)?.as_str().map(str::to_owned))
        });
        Ok(finish)
    }

    fn ended(&self) -> bool {
        self.done || self.stop.is_some()
    }
}

fn is_empty(input: &Value) -> bool {
    match input {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// The wire's input leaves cache reads and writes out; ours counts them.
fn usage(raw: Map<String, Value>) -> Usage {
    let count = |field: &str| raw.get(field).and_then(Value::as_u64);
    let (read, written) = (count("cache_read_input_tokens"), count("cache_creation_input_tokens"));
    let input = count("input_tokens").unwrap_or(0).saturating_add(read.unwrap_or(0)).saturating_add(written.unwrap_or(0));
    let mut usage = Usage::new(input, count("output_tokens").unwrap_or(0));
    usage.cached_input = read;
    usage.cache_write = written;
    usage.reasoning = raw.get("output_tokens_details").and_then(|details| details.get("thinking_tokens")).and_then(Value::as_u64);
    usage.raw = Some(Value::Object(raw));
    usage
}

#[cfg(test)]
mod tests;
