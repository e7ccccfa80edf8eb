//! A model in the same process that follows a script.
//!
//! [`ScriptedServer`](crate::ScriptedServer) is the real thing, with a socket. This one is for tests of what lies above a provider, where
//! thousands of model calls are made or time is paused.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ac_core::{
    CancelToken, FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelProvider, ModelRequest, ModelStream, Part, Role, ToolCallState,
    Usage, assemble::tool_call, model::Finish,
};
use async_trait::async_trait;
use futures::StreamExt;

use crate::{Turn, server::turn::TurnPart};

/// Answers request after request with turn after turn; remembers what it was asked.
///
/// ```
/// use ac_core::{CancelToken, Message, ModelProvider, ModelRequest, Timestamp};
/// use ac_testkit::{ScriptedModel, Turn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([Turn::text("Hello.")]);
/// let hello = Message::user("m1", "Hi", Timestamp::from_millis(0));
/// model.stream(ModelRequest::new("scripted/model", vec![hello.into()]), CancelToken::new()).await?;
/// assert_eq!(model.requests().len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct ScriptedModel {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    turns: VecDeque<Turn>,
    requests: Vec<ModelRequest>,
}

impl ScriptedModel {
    /// Follows these turns, in order. `match` and `repeat` of a turn are not looked at.
    pub fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self { state: Mutex::new(State { turns: turns.into_iter().collect(), requests: vec![] }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a turn at the end.
    pub fn push(&self, turn: Turn) {
        self.state().turns.push_back(turn);
    }

    /// What it was asked so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.state().requests.clone()
    }

    /// What is wrong with the histories that it was sent: calls without a result, a last word that is not a person's or a result.
    pub fn violations(&self) -> Vec<String> {
        self.state().requests.iter().enumerate().flat_map(|(n, request)| violations(n, request)).collect()
    }
}

fn violations(n: usize, request: &ModelRequest) -> Vec<String> {
    let mut found = vec![];
    for message in &request.messages {
        for call in message.tool_calls().filter(|call| call.state == ToolCallState::Call) {
            found.push(format!("request {n}: call {} of {} has no result", call.id, message.id));
        }
    }
    let last_answers = request.messages.last().is_some_and(|last| last.role == Role::Assistant && last.tool_calls().next().is_none());
    if last_answers {
        found.push(format!("request {n}: it ends with an answer"));
    }
    found
}

#[async_trait]
impl ModelProvider for ScriptedModel {
    async fn stream(&self, request: ModelRequest, cancel: CancelToken) -> Result<ModelStream, ModelError> {
        let turn = {
            let mut state = self.state();
            state.requests.push(request);
            state.turns.pop_front()
        };
        let Some(turn) = turn else {
            return Err(ModelError::new(ModelErrorKind::BadRequest, "the script has no turn for this request"));
        };
        if let Some(status) = turn.error.as_ref().and_then(|error| error.status) {
            let kind = match status {
                429 => ModelErrorKind::RateLimit,
                401 | 403 => ModelErrorKind::Auth,
                500.. => ModelErrorKind::Server,
                _ => ModelErrorKind::BadRequest,
            };
            let mut error = ModelError::new(kind, format!("the script says {status}"));
            error.status = Some(status);
            return Err(error);
        }
        let steps = futures::stream::iter(steps(turn)).then(move |step| {
            let cancel = cancel.clone();
            async move {
                match step {
                    Step::Say(event) => Some(Ok(*event)),
                    Step::Fail => Some(Err(ModelError::new(ModelErrorKind::Truncated, "the script ends here"))),
                    Step::Wait(wait) => {
                        tokio::select! {
                            () = tokio::time::sleep(wait) => None,
                            () = cancel.cancelled() => Some(Err(ModelError::new(ModelErrorKind::Cancelled, "cancelled"))),
                        }
                    }
                    Step::Hang => {
                        cancel.cancelled().await;
                        Some(Err(ModelError::new(ModelErrorKind::Cancelled, "cancelled")))
                    }
                }
            }
        });
        Ok(steps.filter_map(std::future::ready).boxed())
    }
}

enum Step {
    Say(Box<ModelEvent>),
    Wait(Duration),
    Fail,
    Hang,
}

fn steps(turn: Turn) -> Vec<Step> {
    let mut steps = vec![];
    let say = |event| Step::Say(Box::new(event));
    let mut has_tool = false;
    for (index, part) in (0u32..).zip(turn.parts) {
        match part {
            TurnPart::Text(pieces) => steps.extend(pieces.into_iter().map(|text| say(ModelEvent::TextDelta { index, text }))),
            TurnPart::Reasoning(pieces) => steps.extend(pieces.into_iter().map(|text| say(ModelEvent::ReasoningDelta { index, text }))),
            TurnPart::Delay(millis) => steps.push(Step::Wait(Duration::from_millis(millis))),
            TurnPart::Tool(tool) => {
                has_tool = true;
                let text = tool.raw.unwrap_or_else(|| tool.args.to_string());
                steps.push(say(ModelEvent::ToolInputStart { index, id: Some(tool.id.clone()), name: tool.name.clone() }));
                steps.push(say(ModelEvent::ToolInputDelta { index, text: text.clone() }));
                steps.push(say(ModelEvent::PartDone { index, part: Part::ToolCall(tool_call(&tool.id, &tool.name, &text)) }));
            }
        }
    }
    match &turn.error {
        Some(error) if error.hang => steps.push(Step::Hang),
        Some(_) => steps.push(Step::Fail),
        None => {
            let mut finish = Finish::new(match turn.finish.as_deref() {
                None if has_tool => FinishReason::ToolCalls,
                None | Some("stop") => FinishReason::Stop,
                Some("tool_calls") => FinishReason::ToolCalls,
                Some("length") => FinishReason::Length,
                Some("content_filter") => FinishReason::ContentFilter,
                Some("refusal") => FinishReason::Refusal,
                Some(_) => FinishReason::Other,
            });
            finish.raw_reason = turn.finish;
            finish.usage = Some(Usage::new(10, 5));
            steps.push(say(ModelEvent::Finish(finish)));
        }
    }
    steps
}
