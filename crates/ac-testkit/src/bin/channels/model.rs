//! A model that says which messages it answers, and a tool that leaves a trace.

use std::{collections::BTreeMap, io::Write, path::PathBuf};

use ac_core::{
    CancelToken, FinishReason, ModelError, ModelEvent, ModelProvider, ModelRequest, ModelStream, Part, Role, Tool, ToolCategory,
    ToolContext, ToolDefinition, ToolEffect, ToolError, ToolOutcome, ToolOutput, assemble::tool_call, model::Finish,
};
use async_trait::async_trait;
use futures::StreamExt;
use serde_json::{Value, json};

/// Answers each message once: `answer:ID.` for every time that `msg:ID.` was said and not answered yet. One that says `write` first calls
/// the tool. A message that is handed on twice is answered twice: nothing is hidden here.
pub(crate) struct Answering;

/// How often each name was met.
#[derive(Default)]
struct Times(BTreeMap<String, usize>);

impl Times {
    fn count(&mut self, name: &str) {
        *self.0.entry(name.to_owned()).or_default() += 1;
    }

    /// Takes one away; says whether there was one.
    fn uncount(&mut self, name: &str) -> bool {
        self.0.get_mut(name).filter(|times| **times > 0).map(|times| *times -= 1).is_some()
    }
}

/// The names between a word and a full stop.
pub(crate) fn named<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    text.match_indices(word).filter_map(|(at, _)| text.get(at + word.len()..)?.split_once('.').map(|(name, _)| name)).collect()
}

#[async_trait]
impl ModelProvider for Answering {
    async fn stream(&self, request: ModelRequest, _: CancelToken) -> Result<ModelStream, ModelError> {
        let (mut asked, mut to_write) = (vec![], vec![]);
        let (mut answered, mut called) = (Times::default(), Times::default());
        for message in &request.messages {
            let text = message.text();
            match message.role {
                Role::User => {
                    for id in named(&text, "msg:") {
                        asked.push(id.to_owned());
                        if text.contains(&format!("msg:{id}. write")) {
                            to_write.push(id.to_owned());
                        }
                    }
                }
                Role::Assistant => {
                    named(&text, "answer:").into_iter().for_each(|id| answered.count(id));
                    message.tool_calls().filter_map(|call| call.args.get("what")?.as_str()).for_each(|id| called.count(id));
                }
                _ => {}
            }
        }
        let mut events = vec![];
        let open: Vec<&String> = to_write.iter().filter(|id| !called.uncount(id)).collect();
        if open.is_empty() {
            let text: Vec<String> = asked.iter().filter(|id| !answered.uncount(id)).map(|id| format!("answer:{id}.")).collect();
            for (n, piece) in text.join(" ").split_inclusive(' ').enumerate() {
                events.push(ModelEvent::TextDelta { index: 0, text: if n == 0 { format!("Well, {piece}") } else { piece.to_owned() } });
            }
            events.push(ModelEvent::Finish(Finish::new(FinishReason::Stop)));
        } else {
            for (index, id) in (0u32..).zip(open) {
                let args = json!({ "what": id }).to_string();
                let call = format!("call-{id}");
                events.push(ModelEvent::ToolInputStart { index, id: Some(call.clone()), name: "write".to_owned() });
                events.push(ModelEvent::ToolInputDelta { index, text: args.clone() });
                events.push(ModelEvent::PartDone { index, part: Part::ToolCall(tool_call(&call, "write", &args)) });
            }
            events.push(ModelEvent::Finish(Finish::new(FinishReason::ToolCalls)));
        }
        Ok(futures::stream::iter(events.into_iter().map(Ok)).boxed())
    }
}

/// Adds a line to a file: once for each time that it really ran.
pub(crate) struct Write_(pub(crate) PathBuf);

#[async_trait]
impl Tool for Write_ {
    fn definition(&self) -> ToolDefinition {
        let schema = json!({ "type": "object", "properties": { "what": { "type": "string" } }, "required": ["what"] });
        ToolDefinition::new("write", "Writes.", schema).category(ToolCategory::Edit).effect(ToolEffect::Mutating)
    }

    async fn call(&self, args: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let what = args.get("what").and_then(Value::as_str).unwrap_or_default();
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&self.0);
        // One write for the line, so that a kill leaves all of it or nothing.
        let wrote = file.and_then(|mut file| file.write_all(format!("{what}\n").as_bytes()));
        wrote.map_err(|error| ToolError::failed(format!("not written: {error}")))?;
        Ok(ToolOutcome::Done(ToolOutput::text("written")))
    }
}
