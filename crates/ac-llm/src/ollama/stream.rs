//! The stream half.

mod delta;

use ac_core::{FinishReason, ModelError, ModelEvent, Usage, model::Finish};
use serde_json::{Map, Value};

use crate::{
    decode::{Decode, Flow, Setup, take_text},
    parts::Parts,
};

/// Lines in, events out.
pub struct Decoder {
    setup: Setup,
    parts: Parts,
    last: Option<Value>,
    model: Option<String>,
}

impl Decoder {
    pub(crate) fn new(setup: Setup) -> Self {
        Self { parts: setup.parts(), setup, last: None, model: None }
    }

    fn line(&mut self, mut line: Value, out: &mut Vec<ModelEvent>) -> Result<Flow, ModelError> {
        if crate::error::is_error(&line) {
            return Err(self.setup.in_answer(&line));
        }
        if self.model.is_none() {
            self.model = take_text(&mut line, "model");
        }
        if let Some(message) = line.get_mut("message") {
            if let Some(text) = take_text(message, "thinking") {
                self.parts.reasoning(text, out);
            }
            if let Some(text) = take_text(message, "content") {
                self.parts.text(text, out);
            }
            if let Some(Value::Array(calls)) = message.get_mut("tool_calls").map(Value::take) {
                for mut call in calls {
                    let id = take_text(&mut call, "id").unwrap_or_default();
                    let Some(function) = call.get_mut("function") else { continue };
                    let name = take_text(function, "name").unwrap_or_default();
                    let args = match function.get_mut("arguments").map(Value::take) {
                        Some(Value::String(text)) => text,
                        Some(Value::Null) | None => Value::Object(Map::new()).to_string(),
                        Some(args) => args.to_string(),
                    };
                    let handle = self.parts.begin_call(&id, &name, out);
                    self.parts.append(handle, args, out);
                    self.parts.close(handle, out);
                }
            }
        }
        if line.get("done").and_then(Value::as_bool) == Some(true) {
            self.last = Some(line);
            return Ok(Flow::Stop);
        }
        Ok(Flow::Continue)
    }
}

impl Decode for Decoder {
    fn event(&mut self, _name: Option<&str>, data: &str, out: &mut Vec<ModelEvent>) -> Result<Flow, ModelError> {
        if delta::read(self, data, out) {
            return Ok(Flow::Continue);
        }
        let line = self.setup.json(data)?;
        self.line(line, out)
    }

    fn document(&mut self, document: Value, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.line(document, out).map(drop)
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<Finish, ModelError> {
        let Some(mut last) = self.last.take() else {
            return Err(self.setup.origin.truncated());
        };
        self.parts.close_all(out);
        let raw = take_text(&mut last, "done_reason");
        let mut finish = Finish::new(match raw.as_deref() {
            Some("length") => FinishReason::Length,
            Some("stop") | None if self.parts.has_calls() => FinishReason::ToolCalls,
            Some("stop") | None => FinishReason::Stop,
            Some(_) => FinishReason::Other,
        });
        finish.raw_reason = raw;
        let count = |field: &str| last.get(field).and_then(Value::as_u64);
        if count("prompt_eval_count").is_some() || count("eval_count").is_some() {
            let mut usage = Usage::new(count("prompt_eval_count").unwrap_or(0), count("eval_count").unwrap_or(0));
            let counts = last.as_object().into_iter().flatten().filter(|(name, _)| name.contains("eval") || name.contains("duration"));
            usage.raw = Some(Value::Object(counts.map(|(name, value)| (name.clone(), value.clone())).collect()));
            finish.usage = Some(usage);
        }
        finish.model = self.model.take();
        Ok(finish)
    }

    fn ended(&self) -> bool {
        self.last.is_some()
    }
}

#[cfg(test)]
mod tests;
