//! One model call in flight: polled by the driver, never a task of its own.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    pin::Pin,
    task::{Context, Poll},
};

use ac_core::{CancelToken, ModelError, ModelErrorKind, ModelEvent, ModelStream, Part, ToolCallId, assemble::Assembler, model::Finish};
use futures::{FutureExt, StreamExt, future::BoxFuture};
use tracing::Span;

use crate::spans;

/// How many events of a model are taken in a row at most.
const BURST: usize = 64;

/// A model call in flight.
pub(crate) struct Sampling {
    /// Names it.
    pub(crate) attempt: u32,
    cancel: CancelToken,
    span: Span,
    state: State,
    /// Events that came together and wait to be taken.
    arrived: VecDeque<Sampled>,
    answer: Assembler,
    /// The final ids of calls, by the provider's index; taken when a call is first seen, so that its events already carry it.
    calls: HashMap<u32, ToolCallId>,
    taken: HashSet<ToolCallId>,
    /// Indexes whose arguments stream.
    streaming: HashSet<u32>,
}

enum State {
    Connecting(BoxFuture<'static, Result<ModelStream, ModelError>>),
    Streaming(ModelStream),
    Over,
}

/// What became of a model call.
pub(crate) enum Sampled {
    /// The next event.
    Event(ModelEvent),
    /// It is complete.
    Finished(Finish),
    /// It is not.
    Failed(ModelError),
}

impl Sampling {
    pub(crate) fn new(attempt: u32, cancel: CancelToken, span: Span, connect: BoxFuture<'static, Result<ModelStream, ModelError>>) -> Self {
        Self {
            attempt,
            cancel,
            span,
            state: State::Connecting(connect),
            arrived: VecDeque::new(),
            answer: Assembler::new(),
            calls: HashMap::new(),
            taken: HashSet::new(),
            streaming: HashSet::new(),
        }
    }

    /// Waits for what comes next. Cancel safe: nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Sampled {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// What came together with the last event.
    pub(crate) fn arrived(&mut self) -> Option<Sampled> {
        self.arrived.pop_front()
    }

    /// Takes all that is there, so that a burst costs one round of waiting; not all of a flood, though.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Sampled> {
        while self.arrived.len() < BURST {
            let Poll::Ready(sampled) = self.poll(cx) else { break };
            match &sampled {
                Sampled::Event(_) => {}
                Sampled::Finished(finish) => spans::answered(&self.span, finish),
                Sampled::Failed(error) => spans::failed(&self.span, error),
            }
            self.arrived.push_back(sampled);
        }
        self.arrived.pop_front().map_or(Poll::Pending, Poll::Ready)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Sampled> {
        loop {
            match &mut self.state {
                State::Connecting(connect) => match std::task::ready!(connect.poll_unpin(cx)) {
                    Ok(stream) => self.state = State::Streaming(stream),
                    Err(error) => {
                        self.state = State::Over;
                        return Poll::Ready(Sampled::Failed(error));
                    }
                },
                State::Streaming(stream) => {
                    let item = std::task::ready!(Pin::new(stream).poll_next_unpin(cx));
                    return Poll::Ready(match item {
                        Some(Ok(ModelEvent::Finish(finish))) => {
                            self.state = State::Over;
                            Sampled::Finished(finish)
                        }
                        Some(Ok(event)) => Sampled::Event(event),
                        Some(Err(error)) => {
                            self.state = State::Over;
                            Sampled::Failed(error)
                        }
                        None => {
                            self.state = State::Over;
                            Sampled::Failed(ModelError::new(
                                ModelErrorKind::Truncated,
                                "the model's answer ended before it was complete; nothing that was cut off is run",
                            ))
                        }
                    });
                }
                State::Over => return Poll::Pending,
            }
        }
    }

    /// Takes an event into the answer.
    pub(crate) fn take(&mut self, event: ModelEvent) {
        self.answer.push(event);
    }

    /// Marks a call as streaming its arguments; answers whether it was not before.
    pub(crate) fn begins_input(&mut self, index: u32) -> bool {
        self.streaming.insert(index)
    }

    /// Whether the arguments of this call were streaming until now.
    pub(crate) fn ends_input(&mut self, index: u32) -> bool {
        self.streaming.remove(&index)
    }

    /// The final id of the call at this index.
    pub(crate) fn call(&self, index: u32) -> Option<&ToolCallId> {
        self.calls.get(&index)
    }

    /// Settles the final id of the call at this index, if it has none yet.
    pub(crate) fn settle_call(&mut self, index: u32, fresh: impl FnOnce(usize, &HashSet<ToolCallId>) -> ToolCallId) -> ToolCallId {
        if let Some(id) = self.calls.get(&index) {
            return id.clone();
        }
        let id = fresh(self.calls.len(), &self.taken);
        self.taken.insert(id.clone());
        self.calls.insert(index, id.clone());
        id
    }

    /// The parts of the complete answer.
    pub(crate) fn into_parts(mut self) -> Vec<Part> {
        std::mem::take(&mut self.answer).into_parts().0
    }

    /// What may be kept of an answer that was cut.
    pub(crate) fn into_partial(mut self) -> Vec<Part> {
        std::mem::take(&mut self.answer).into_partial()
    }
}

/// However the call ends, the connection does too.
impl Drop for Sampling {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
