//! The stream half.

mod delta;

use ac_core::{FinishReason, ModelError, ModelEvent, Usage, model::Finish};
use serde_json::{Map, Value};

use crate::{
    decode::{Decode, Flow, Setup},
    error::is_error,
    parts::{Handle, Parts},
};

/// Chunks in, events out. Only the first of several choices is read.
pub struct Decoder {
    setup: Setup,
    parts: Parts,
    calls: Vec<Call>,
    refusal: String,
    usage: Option<Value>,
    finish: Option<String>,
    done: bool,
    chunks: bool,
    id: Option<String>,
    model: Option<String>,
}

struct Call {
    /// The wire's own index, where it has one.
    index: Option<u64>,
    part: Handle,
}

impl Decoder {
    pub(crate) fn new(setup: Setup) -> Self {
        Self {
            parts: setup.parts(),
            setup,
            calls: vec![],
            refusal: String::new(),
            usage: None,
            finish: None,
            done: false,
            chunks: false,
            id: None,
            model: None,
        }
    }

    fn chunk(&mut self, mut chunk: Value, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let failed = is_error(&chunk).then(|| self.setup.in_answer(&chunk));
        let Some(fields) = chunk.as_object_mut() else {
            return Err(self.setup.origin.protocol("an event of the stream is no JSON object"));
        };
        if self.id.is_none() {
            self.id = text(fields.get_mut("id"));
        }
        if self.model.is_none() {
            self.model = text(fields.get_mut("model"));
        }
        // Repeated by some with more each time; the last one counts, never the sum.
        if let Some(usage @ Value::Object(_)) = fields.get_mut("usage").map(Value::take) {
            self.usage = Some(usage);
        } else if let Some(usage @ Value::Object(_)) = fields.get_mut("x_groq").and_then(|groq| groq.get_mut("usage")).map(Value::take) {
            self.usage.get_or_insert(usage);
        }
        if let Some(Value::Array(choices)) = fields.get_mut("choices") {
            self.chunks = true;
            for choice in choices {
                if choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0
                    && let Some(choice) = choice.as_object_mut()
                {
                    self.choice(choice, out);
                }
            }
        } else if failed.is_none() && fields.contains_key("detail") {
            return Err(self.setup.in_answer(&chunk));
        }
        failed.map_or(Ok(()), Err)
    }

    fn choice(&mut self, choice: &mut Map<String, Value>, out: &mut Vec<ModelEvent>) {
        // One server sends both in every choice; the delta is what is new.
        let said = match choice.get_mut("delta").map(Value::take) {
            Some(Value::Object(delta)) => Some(delta),
            _ => match choice.get_mut("message").map(Value::take) {
                Some(Value::Object(message)) => Some(message),
                _ => None,
            },
        };
        if let Some(mut said) = said {
            self.delta(&mut said, out);
        }
        if let Some(reason) = text(choice.get_mut("finish_reason")) {
            self.finish = Some(reason);
        }
    }

    fn delta(&mut self, delta: &mut Map<String, Value>, out: &mut Vec<ModelEvent>) {
        self.reasoning(delta, out);
        match delta.get_mut("content").map(Value::take) {
            Some(Value::String(text)) => drop(self.parts.text(text, out)),
            Some(Value::Array(list)) => list.into_iter().for_each(|piece| self.piece(piece, out)),
            _ => {}
        }
        if let Some(refusal) = text(delta.get_mut("refusal")) {
            self.refusal.push_str(&refusal);
        }
        if let Some(Value::Array(calls)) = delta.get_mut("tool_calls") {
            for call in calls {
                self.fragment(call, out);
            }
        }
        if let Some(call @ Value::Object(_)) = delta.get_mut("function_call")
            && let function = call.take()
            && (function.get("name").and_then(Value::as_str).is_some_and(|name| !name.is_empty()) || !self.calls.is_empty())
            && delta.get("tool_calls").and_then(Value::as_array).is_none_or(Vec::is_empty)
        {
            self.fragment(&mut serde_json::json!({"index": 0, "function": function}), out);
        }
        if let Some(extra @ Value::Object(_)) = delta.get_mut("extra_content").map(Value::take) {
            self.message_extra("extra_content", extra);
        }
    }

    /// Thinking, under any of its names. What several of them say at once is the same, so only the first is read.
    fn reasoning(&mut self, delta: &mut Map<String, Value>, out: &mut Vec<ModelEvent>) {
        let mut told = None;
        for field in ["reasoning_content", "reasoning"] {
            if told.is_none()
                && let Some(text) = text(delta.get_mut(field))
            {
                told = self.thought(field, text, out);
            }
        }
        let Some(Value::Array(details)) = delta.get_mut("reasoning_details").map(Value::take) else { return };
        for detail in details {
            let text = ["text", "summary"].into_iter().find_map(|field| detail.get(field).and_then(Value::as_str)).unwrap_or_default();
            if told.is_none() {
                self.parts.reasoning(text.to_owned(), out);
            }
            // A signature can come alone, after the text of the answer began.
            let part = self.parts.latest_reasoning().unwrap_or_else(|| self.parts.begin_reasoning());
            if let Some(Value::Object(opaque)) = self.parts.opaque(part)
                && let Value::Array(list) = opaque.entry("reasoning_details").or_insert_with(|| Value::Array(vec![]))
            {
                merge_detail(list, detail);
            }
        }
    }

    /// Thinking that came in `field`.
    fn thought(&mut self, field: &str, text: String, out: &mut Vec<ModelEvent>) -> Option<Handle> {
        let part = self.parts.reasoning(text, out)?;
        if self.parts.opaque(part).is_some_and(|opaque| opaque.get("field").and_then(Value::as_str) != Some(field)) {
            self.parts.set_opaque(part, "field", field.into());
        }
        Some(part)
    }

    /// A piece of a content list (Mistral).
    fn piece(&mut self, mut piece: Value, out: &mut Vec<ModelEvent>) {
        if let Some(Value::Array(thoughts)) = piece.get_mut("thinking") {
            for thought in thoughts {
                if let Some(text) = text(thought.get_mut("text")) {
                    self.parts.reasoning(text, out);
                }
            }
        } else if let Some(text) = text(piece.get_mut("thinking")) {
            self.parts.reasoning(text, out);
        } else if let Some(text) = text(piece.get_mut("text")) {
            self.parts.text(text, out);
        }
    }

    fn fragment(&mut self, fragment: &mut Value, out: &mut Vec<ModelEvent>) {
        let index = fragment.get("index").and_then(Value::as_u64);
        let id = text(fragment.get_mut("id")).unwrap_or_default();
        let extra = fragment.get_mut("extra_content").map(Value::take).filter(Value::is_object);
        let mut function = fragment.get_mut("function").map(Value::take).unwrap_or_default();
        let name = text(function.get_mut("name")).unwrap_or_default();
        let arguments = match function.get_mut("arguments").map(Value::take) {
            Some(Value::String(text)) => text,
            Some(Value::Null) | None => String::new(),
            // Some gateways send the object itself.
            Some(whole) => whole.to_string(),
        };
        if let (Some(part), Some(extra)) = (self.call(index, &id, &name, arguments, out), extra) {
            self.parts.set_opaque(part, "extra_content", extra);
        }
    }

    /// A piece of a call: the beginning of one, or more of its arguments.
    fn call(&mut self, index: Option<u64>, id: &str, name: &str, arguments: String, out: &mut Vec<ModelEvent>) -> Option<Handle> {
        let part = match self.known(index, id, name) {
            Some(part) => {
                self.parts.name_call(part, id, name, out);
                part
            }
            None if id.is_empty() && name.is_empty() && arguments.is_empty() => return None,
            None => {
                let part = self.parts.begin_call(id, name, out);
                self.calls.push(Call { index, part });
                part
            }
        };
        self.parts.append(part, arguments, out);
        Some(part)
    }

    /// The call that a fragment goes on with, if it does not begin one.
    fn known(&self, index: Option<u64>, id: &str, name: &str) -> Option<Handle> {
        let call = match index {
            Some(_) => self.calls.iter().rfind(|call| call.index == index)?,
            None if !id.is_empty() => return self.calls.iter().map(|call| call.part).rfind(|part| self.parts.call_id(*part) == Some(id)),
            // Without index and id a name begins a call, and bare arguments belong to the last one.
            None if !name.is_empty() => return None,
            None => self.calls.last()?,
        };
        let part = call.part;
        match self.parts.call_id(part) {
            // A new id at a used index is a new call.
            Some(known) if !id.is_empty() && known != id => None,
            // So is a name after complete arguments where ids are missing or empty.
            _ if id.is_empty() && !name.is_empty() && is_complete(self.parts.so_far(part)) => None,
            _ => Some(part),
        }
    }

    /// What a gateway wants back with the message as a whole goes with its first call, else with its thinking.
    fn message_extra(&mut self, field: &str, value: Value) {
        let part = self.parts.last_reasoning().unwrap_or_else(|| self.parts.begin_reasoning());
        self.parts.set_opaque(part, field, value);
    }

    fn reason(&self) -> FinishReason {
        let reason = match self.finish.as_deref() {
            Some("stop" | "eos" | "end_turn" | "stop_sequence" | "end") => FinishReason::Stop,
            Some("length" | "max_tokens" | "model_length" | "MAX_TOKENS") => FinishReason::Length,
            Some("tool_calls" | "function_call" | "tool_use") => FinishReason::ToolCalls,
            Some("content_filter" | "safety" | "SAFETY") => FinishReason::ContentFilter,
            Some("refusal") => FinishReason::Refusal,
            Some("error") => FinishReason::Error,
            Some(_) => FinishReason::Other,
            None if self.parts.has_calls() => FinishReason::ToolCalls,
            None => FinishReason::Stop,
        };
        if reason == FinishReason::Stop && !self.refusal.is_empty() { FinishReason::Refusal } else { reason }
    }
}

impl Decode for Decoder {
    fn event(&mut self, name: Option<&str>, data: &str, out: &mut Vec<ModelEvent>) -> Result<Flow, ModelError> {
        let data = data.trim();
        if data == "[DONE]" {
            self.done = true;
            return Ok(Flow::Stop);
        }
        if name != Some("error") && delta::read(self, data, out) {
            return Ok(Flow::Continue);
        }
        let chunk = self.setup.json(data)?;
        if name == Some("error") && !is_error(&chunk) {
            return Err(self.setup.in_answer(&chunk));
        }
        self.chunk(chunk, out)?;
        Ok(Flow::Continue)
    }

    fn document(&mut self, document: Value, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.chunk(document, out)?;
        if !self.chunks {
            return Err(self.setup.origin.protocol("the answer is JSON but no completion (it has no `choices`); check the base URL"));
        }
        self.done = true;
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<Finish, ModelError> {
        // An end mark alone, without one chunk before it, ends no answer.
        if self.finish.is_none() && !(self.done && self.chunks) {
            return Err(self.setup.origin.truncated());
        }
        self.parts.close_all(out);
        let mut finish = Finish::new(self.reason());
        finish.raw_reason = self.finish.take();
        finish.usage = self.usage.take().map(usage);
        finish.response_id = self.id.take();
        finish.model = self.model.take();
        finish.explanation = (!self.refusal.is_empty()).then(|| std::mem::take(&mut self.refusal));
        Ok(finish)
    }

    fn ended(&self) -> bool {
        self.finish.is_some() || self.done
    }
}

/// A text that is not empty.
fn text(value: Option<&mut Value>) -> Option<String> {
    match value.map(Value::take) {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    }
}

fn is_complete(arguments: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
}

/// Streamed texts of one detail are joined; everything else of it is set when it comes. Encrypted data always stands alone.
fn merge_detail(list: &mut Vec<Value>, detail: Value) {
    let same = |a: &Value, b: &Value| ["type", "index", "id"].iter().all(|field| a.get(field) == b.get(field));
    let plain = |value: &Value| value.get("data").is_none();
    let Some(Value::Object(last)) = list.iter_mut().rfind(|last| plain(last) && plain(&detail) && same(last, &detail)) else {
        list.push(detail);
        return;
    };
    let Value::Object(more) = detail else { return };
    for (name, value) in more {
        match (last.get_mut(&name), value) {
            (Some(Value::String(text)), Value::String(more)) if matches!(name.as_str(), "text" | "summary") => text.push_str(&more),
            (_, Value::Null) => {}
            (_, value) => drop(last.insert(name, value)),
        }
    }
}

fn usage(raw: Value) -> Usage {
    let count = |path: &[&str]| path.iter().try_fold(&raw, |value, field| value.get(field)).and_then(Value::as_u64);
    let input = count(&["prompt_tokens"]).unwrap_or(0);
    let written = count(&["completion_tokens"]).unwrap_or(0);
    let reasoning = count(&["completion_tokens_details", "reasoning_tokens"]);
    let total = count(&["total_tokens"]);
    // One provider does not count reasoning as output; its total tells.
    let output = match (reasoning, total) {
        (Some(reasoning), Some(total)) if reasoning > 0 && total == input.saturating_add(written).saturating_add(reasoning) => {
            written.saturating_add(reasoning)
        }
        _ => written,
    };
    let mut usage = Usage::new(input, output);
    usage.total = total.unwrap_or(usage.total);
    usage.cached_input = count(&["prompt_tokens_details", "cached_tokens"])
        .or_else(|| count(&["cached_tokens"]))
        .or_else(|| count(&["prompt_cache_hit_tokens"]));
    usage.cache_write = count(&["prompt_tokens_details", "cache_write_tokens"]);
    usage.reasoning = reasoning;
    usage.raw = Some(raw);
    usage
}

#[cfg(test)]
mod tests;
