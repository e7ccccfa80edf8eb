//! The stream half.

mod delta;

use std::collections::BTreeMap;

use ac_core::{FinishReason, ModelError, ModelEvent, Usage, model::Finish};
use serde_json::{Map, Value};

use crate::{
    decode::{Decode, Flow, Setup, take_text},
    parts::{Handle, Parts},
};

/// Response events in, events out. Items are known by their place in the output: one gateway changes their ids in every event.
pub struct Decoder {
    setup: Setup,
    parts: Parts,
    items: BTreeMap<u64, Item>,
    /// Ids of items in the order of the output, where a server tells no places.
    ids: Vec<String>,
    refusal: String,
    /// `response.completed` or `response.incomplete`.
    last: Option<Value>,
}

#[derive(Default)]
struct Item {
    /// Texts of a message by content index; one part each.
    texts: BTreeMap<u64, Handle>,
    reasoning: Option<Handle>,
    /// The piece of reasoning that is being told, to put a blank line between two.
    piece: Option<(bool, u64)>,
    call: Option<Handle>,
    refused: bool,
    done: bool,
}

impl Decoder {
    pub(crate) fn new(setup: Setup) -> Self {
        Self { parts: setup.parts(), setup, items: BTreeMap::new(), ids: vec![], refusal: String::new(), last: None }
    }

    /// The place of an item in the output. A server that leaves it out tells the item's id; one that leaves out both tells one item after
    /// the other.
    fn place(&mut self, event: &Value) -> u64 {
        if let Some(at) = event.get("output_index").and_then(Value::as_u64) {
            return at;
        }
        if ["item", "item_id", "delta"].iter().all(|field| event.get(*field).is_none()) {
            return 0;
        }
        let item = event.get("item");
        let id = item.and_then(|item| item.get("id")).or_else(|| event.get("item_id")).and_then(Value::as_str).unwrap_or_default();
        match self.ids.iter().rposition(|known| known == id) {
            Some(at) if !id.is_empty() => u64::try_from(at).unwrap_or(u64::MAX),
            _ => {
                let begins = event.get("type").and_then(Value::as_str) == Some("response.output_item.added");
                if self.ids.is_empty() || begins || !id.is_empty() {
                    self.ids.push(id.to_owned());
                }
                u64::try_from(self.ids.len().saturating_sub(1)).unwrap_or(u64::MAX)
            }
        }
    }

    fn begin(&mut self, at: u64, item: &mut Value, out: &mut Vec<ModelEvent>) {
        let kind = item.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let state = self.items.entry(at).or_default();
        match kind.as_str() {
            "function_call" | "custom_tool_call" if state.call.is_none() => {
                let id = take_text(item, "call_id").unwrap_or_default();
                let name = take_text(item, "name").unwrap_or_default();
                let part = self.parts.begin_call(&id, &name, out);
                if kind == "custom_tool_call" {
                    self.parts.plain_input(part);
                    self.parts.set_opaque(part, "custom", true.into());
                }
                state.call = Some(part);
            }
            "reasoning" if state.reasoning.is_none() => state.reasoning = Some(self.parts.begin_reasoning()),
            _ => {}
        }
    }

    fn text(&mut self, at: u64, content: u64, text: String, out: &mut Vec<ModelEvent>) {
        let item = self.items.entry(at).or_default();
        let part = *item.texts.entry(content).or_insert_with(|| self.parts.begin_text());
        self.parts.append(part, text, out);
    }

    fn reasoning(&mut self, at: u64, piece: (bool, u64), text: String, out: &mut Vec<ModelEvent>) {
        if text.is_empty() {
            return;
        }
        let item = self.items.entry(at).or_default();
        let part = *item.reasoning.get_or_insert_with(|| self.parts.begin_reasoning());
        // A server that tells both the summary and the thoughts behind it says the same twice; the kind that came first is shown.
        match item.piece {
            Some((summary, _)) if summary != piece.0 => return,
            Some(before) if before != piece => self.parts.append(part, "\n\n".into(), out),
            _ => {}
        }
        item.piece = Some(piece);
        self.parts.append(part, text, out);
    }

    fn call_input(&mut self, at: u64, text: String, out: &mut Vec<ModelEvent>) {
        if let Some(part) = self.items.get(&at).and_then(|item| item.call) {
            self.parts.append(part, text, out);
        }
    }

    /// An item is complete: what was not streamed is in it, and so is what goes back.
    fn complete(&mut self, at: u64, mut item: Value, out: &mut Vec<ModelEvent>) {
        self.begin(at, &mut item.clone(), out);
        let state = self.items.entry(at).or_default();
        if std::mem::replace(&mut state.done, true) {
            return;
        }
        let kind = item.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        match kind.as_str() {
            "message" => {
                let phase = item.get("phase").filter(|phase| phase.is_string()).cloned();
                // One server counts the content of an item from another number in its deltas than in the whole.
                let (told, refused) = (!state.texts.is_empty(), state.refused);
                if let Some(Value::Array(content)) = item.get_mut("content").map(Value::take) {
                    for (index, mut piece) in (0..).zip(content) {
                        if let Some(text) = take_text(&mut piece, "text").filter(|_| !told) {
                            self.text(at, index, text, out);
                        }
                        if let Some(refusal) = take_text(&mut piece, "refusal").filter(|_| !refused) {
                            self.refusal.push_str(&refusal);
                        }
                    }
                }
                let texts: Vec<Handle> = self.items.get(&at).into_iter().flat_map(|item| item.texts.values().copied()).collect();
                for part in texts {
                    if let Some(phase) = &phase {
                        self.parts.set_opaque(part, "phase", phase.clone());
                    }
                    self.parts.close(part, out);
                }
            }
            "reasoning" => {
                let (part, told) = (state.reasoning, state.piece.is_some());
                for (summary, field) in [(true, "summary"), (false, "content")] {
                    let pieces = item.get(field).and_then(Value::as_array).filter(|_| !told).cloned().unwrap_or_default();
                    for (index, mut piece) in (0..).zip(pieces) {
                        self.reasoning(at, (summary, index), take_text(&mut piece, "text").unwrap_or_default(), out);
                    }
                }
                if let Some(part) = part {
                    self.keep(part, item);
                }
            }
            "function_call" | "custom_tool_call" => {
                let Some(part) = state.call else { return };
                let field = if kind == "function_call" { "arguments" } else { "input" };
                if self.parts.so_far(part).is_empty()
                    && let Some(whole) = take_text(&mut item, field)
                {
                    self.parts.append(part, whole, out);
                }
                // A call that was cut off is closed by the end of the answer, if at all.
                if item.get("status").and_then(Value::as_str) != Some("incomplete") {
                    self.parts.close(part, out);
                }
            }
            // Calls that the provider runs itself, compaction, and what is to come.
            _ => self.parts.own(&kind, item, out),
        }
    }

    /// What goes back of a reasoning item. The part stays open: the end of the answer may carry the item once more, encrypted anew.
    fn keep(&mut self, part: Handle, item: Value) {
        let Value::Object(fields) = item else { return };
        let wanted = |name: &str| matches!(name, "type" | "id" | "summary" | "content" | "encrypted_content");
        let back = fields.into_iter().filter(|(name, value)| wanted(name) && !value.is_null());
        self.parts.set_opaque(part, "item", Value::Object(back.collect()));
    }

    fn response(&mut self, mut response: Value, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if let Some(Value::Array(output)) = response.get_mut("output").map(Value::take) {
            for (at, item) in (0..).zip(output) {
                match self.items.get(&at).filter(|item| item.done) {
                    None => self.complete(at, item, out),
                    Some(Item { reasoning: Some(part), .. }) if item.get("encrypted_content").is_some_and(Value::is_string) => {
                        self.keep(*part, item);
                    }
                    Some(_) => {}
                }
            }
        }
        if response.get("status").and_then(Value::as_str) == Some("failed") {
            return Err(self.setup.in_answer(&response));
        }
        self.last = Some(response);
        Ok(())
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
        let number = |field: &str| event.get(field).and_then(Value::as_u64).unwrap_or(0);
        let (content, summary) = (number("content_index"), number("summary_index"));
        let at = self.place(&event);
        let kind = take_text(&mut event, "type").unwrap_or_default();
        let mut delta = || take_text(&mut event, "delta").unwrap_or_default();
        match kind.as_str() {
            "response.output_text.delta" => {
                let text = delta();
                self.text(at, content, text, out);
            }
            "response.reasoning_summary_text.delta" => {
                let text = delta();
                self.reasoning(at, (true, summary), text, out);
            }
            "response.reasoning_text.delta" | "response.reasoning.delta" => {
                let text = delta();
                self.reasoning(at, (false, content), text, out);
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                let text = delta();
                self.call_input(at, text, out);
            }
            "response.refusal.delta" => {
                self.refusal.push_str(&delta());
                self.items.entry(at).or_default().refused = true;
            }
            "response.output_item.added" => {
                if let Some(item) = event.get_mut("item") {
                    self.begin(at, item, out);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.get_mut("item").map(Value::take) {
                    self.complete(at, item, out);
                }
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                self.response(event.get_mut("response").map(Value::take).unwrap_or_default(), out)?;
                return Ok(Flow::Stop);
            }
            "response.failed" | "error" => {
                let failed = event.get("response").filter(|response| response.is_object()).unwrap_or(&event);
                return Err(self.setup.in_answer(failed));
            }
            "" if crate::error::is_error(&event) => return Err(self.setup.in_answer(&event)),
            _ => {}
        }
        Ok(Flow::Continue)
    }

    fn document(&mut self, document: Value, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if !document.get("output").is_some_and(Value::is_array) {
            return Err(self.setup.origin.protocol("the answer is JSON but no response (it has no `output`); check the base URL"));
        }
        if let Some("queued" | "in_progress") = document.get("status").and_then(Value::as_str) {
            return Err(self.setup.origin.protocol("the response goes on in the background, which is not waited for"));
        }
        self.response(document, out)
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<Finish, ModelError> {
        let Some(mut response) = self.last.take() else {
            return Err(self.setup.origin.truncated());
        };
        self.parts.close_all(out);
        let why = response.get("incomplete_details").and_then(|details| details.get("reason")).and_then(Value::as_str).map(str::to_owned);
        let status = take_text(&mut response, "status").unwrap_or_else(|| "completed".into());
        let reason = match (status.as_str(), why.as_deref()) {
            ("incomplete", Some("max_output_tokens" | "max_tokens")) => FinishReason::Length,
            ("incomplete", Some("content_filter")) => FinishReason::ContentFilter,
            ("incomplete" | "cancelled", _) => FinishReason::Other,
            _ if self.parts.has_calls() => FinishReason::ToolCalls,
            _ if !self.refusal.is_empty() => FinishReason::Refusal,
            _ => FinishReason::Stop,
        };
        let mut finish = Finish::new(reason);
        finish.raw_reason = Some(why.map_or_else(|| status.clone(), |why| format!("{status}:{why}")));
        if let Some(Value::Object(raw)) = response.get_mut("usage").map(Value::take) {
            finish.usage = Some(usage(raw));
        }
        finish.response_id = take_text(&mut response, "id");
        finish.model = take_text(&mut response, "model");
        finish.explanation = (!self.refusal.is_empty()).then(|| std::mem::take(&mut self.refusal));
        Ok(finish)
    }

    fn ended(&self) -> bool {
        self.last.is_some()
    }
}

fn usage(raw: Map<String, Value>) -> Usage {
    let count = |field: &str| raw.get(field).and_then(Value::as_u64);
    let detail = |list: &str, field: &str| raw.get(list).and_then(|list| list.get(field)).and_then(Value::as_u64);
    let mut usage = Usage::new(count("input_tokens").unwrap_or(0), count("output_tokens").unwrap_or(0));
    usage.total = count("total_tokens").unwrap_or(usage.total);
    usage.cached_input = detail("input_tokens_details", "cached_tokens");
    usage.cache_write = detail("input_tokens_details", "cache_write_tokens");
    usage.reasoning = detail("output_tokens_details", "reasoning_tokens");
    usage.raw = Some(Value::Object(raw));
    usage
}

#[cfg(test)]
mod tests;
