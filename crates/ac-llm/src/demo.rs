//! A model without a network: `demo/guide`.
//!
//! [`Guide`] is a real [`ModelProvider`] that follows one recipe instead of predicting words: it looks at the folder, asks one question,
//! writes a plan, submits it, and, once the plan is approved, reads it back and builds exactly what it lists. It decides from the request
//! alone and holds no state, so it goes on after a restart like any other model. It exists so that the main job of an agent runs without
//! a key, and so that tests can run that job for real.
//!
//! A message that is nothing but the name of a tool and its arguments, such as `weather {"city": "Oslo"}`, is called as it is, and what the
//! tool answers is told: that is how a tool of one's own is tried.

mod content;
mod folder;
mod order;
mod plan;
mod step;
mod story;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, time::Duration};

use ac_core::{
    CancelToken, FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelProvider, ModelRequest, ModelStream, Part, ToolCallPart, Usage,
    message::TextPart, model::Finish,
};
use async_trait::async_trait;
use futures::stream;

use self::step::Step;

/// The model id under which [`Guide`] answers.
pub const GUIDE: &str = "demo/guide";

/// The built-in demonstration model, `demo/guide`.
///
/// ```
/// use ac_core::{CancelToken, Message, ModelEvent, ModelProvider, ModelRequest, Timestamp};
/// use ac_llm::demo::{GUIDE, Guide};
/// use futures::StreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ac_core::ModelError> {
/// let hello = Message::user("m1", "Hello", Timestamp::from_millis(0));
/// let mut answer = Guide::new().stream(ModelRequest::new(GUIDE, vec![hello.into()]), CancelToken::new()).await?;
/// let mut said = String::new();
/// while let Some(event) = answer.next().await {
///     if let ModelEvent::TextDelta { text, .. } = event? {
///         said.push_str(&text);
///     }
/// }
/// assert!(said.starts_with("I am demo/guide"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Guide {
    pace: Duration,
}

impl Guide {
    /// Answers as fast as it is read.
    pub const fn new() -> Self {
        Self { pace: Duration::ZERO }
    }

    /// Waits this long before each word, as a model over a network would.
    pub const fn paced(pace: Duration) -> Self {
        Self { pace }
    }
}

#[async_trait]
impl ModelProvider for Guide {
    async fn stream(&self, request: ModelRequest, cancel: CancelToken) -> Result<ModelStream, ModelError> {
        let name = request.model.as_str();
        if name.strip_prefix("demo/").unwrap_or(name) != "guide" {
            let message = format!("there is no model `{name}` here; the only built-in model is `{GUIDE}`");
            return Err(error(ModelErrorKind::UnknownModel, message));
        }
        if cancel.is_cancelled() {
            return Err(cancelled());
        }
        let step = step::next(&request);
        let answer = Answer { events: events(&request, step), pace: self.pace, cancel };
        Ok(Box::pin(stream::unfold(answer, Answer::next)))
    }
}

struct Answer {
    events: VecDeque<ModelEvent>,
    pace: Duration,
    cancel: CancelToken,
}

impl Answer {
    async fn next(mut self) -> Option<(Result<ModelEvent, ModelError>, Self)> {
        if self.events.is_empty() {
            return None;
        }
        if !self.pace.is_zero() {
            tokio::select! {
                () = self.cancel.cancelled() => {}
                () = tokio::time::sleep(self.pace) => {}
            }
        }
        if self.cancel.is_cancelled() {
            self.events.clear();
            return Some((Err(cancelled()), self));
        }
        let event = self.events.pop_front()?;
        Some((Ok(event), self))
    }
}

fn cancelled() -> ModelError {
    error(ModelErrorKind::Cancelled, "the answer was cancelled")
}

fn error(kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
    let mut error = ModelError::new(kind, message);
    error.provider = Some("demo".into());
    error
}

/// The step as a stream: its text word by word, then each call with its arguments in pieces.
fn events(request: &ModelRequest, step: Step) -> VecDeque<ModelEvent> {
    let mut events = VecDeque::new();
    let mut written = 0;
    let mut index = 0;
    if !step.say.is_empty() {
        events.extend(step.say.split_inclusive([' ', '\n']).map(|word| ModelEvent::TextDelta { index, text: word.to_owned() }));
        written += step.say.len();
        events.push_back(ModelEvent::PartDone { index, part: Part::Text(TextPart { text: step.say, opaque: None }) });
        index += 1;
    }
    let reason = if step.calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
    // Ids count the calls of the conversation, so they are new in it and the same each time the same request is asked.
    let before = request.messages.iter().map(|message| message.tool_calls().count()).sum::<usize>();
    for (n, call) in step.calls.into_iter().enumerate() {
        let id = format!("guide_{}", before + n + 1);
        let args = call.args.to_string();
        events.push_back(ModelEvent::ToolInputStart { index, id: Some(id.clone()), name: call.tool.clone().into_owned() });
        events.extend(args.split_inclusive([' ', ',', '}']).map(|text| ModelEvent::ToolInputDelta { index, text: text.to_owned() }));
        written += args.len();
        events.push_back(ModelEvent::PartDone { index, part: Part::ToolCall(ToolCallPart::new(id, call.tool, call.args)) });
        index += 1;
    }
    let mut finish = Finish::new(reason);
    finish.usage = Some(Usage::new(tokens(read(request)), tokens(written)));
    finish.model = Some("guide".into());
    events.push_back(ModelEvent::Finish(finish));
    events
}

/// Bytes of the request, as far as a model would read them.
fn read(request: &ModelRequest) -> usize {
    let instructions = request.instructions.as_deref().map_or(0, str::len);
    let tools = request.tools.iter().map(|tool| tool.name.len() + tool.description.len()).sum::<usize>();
    let messages = request
        .messages
        .iter()
        .flat_map(|message| &message.parts)
        .map(|part| match part {
            Part::Text(part) => part.text.len(),
            Part::ToolCall(call) => call.name.len() + story::result(call).map_or(0, |result| result.text.len()),
            _ => 0,
        })
        .sum::<usize>();
    instructions + tools + messages
}

/// The usual estimate: four bytes are a token.
fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}
