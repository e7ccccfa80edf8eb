use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use ac_core::RunId;
use futures::{Stream, StreamExt};

use super::{AgentChunk, ChunkBody};

/// What an agent does, as it does it. Dropping the stream does not stop the run.
pub struct AgentStream {
    run: RunId,
    queue: Arc<ChunkQueue>,
}

/// Chunks that nobody read yet. The writer never waits; deltas are joined while nobody reads, so what can wait is bounded by what the run
/// may do and not by how fast it is written.
#[derive(Default)]
pub(super) struct ChunkQueue(Mutex<State>);

#[derive(Default)]
struct State {
    chunks: VecDeque<AgentChunk>,
    closed: bool,
    waker: Option<Waker>,
}

impl ChunkQueue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, chunk: AgentChunk) {
        let mut state = self.state();
        match (state.chunks.back_mut().map(|last| &mut last.body), &chunk.body) {
            (Some(ChunkBody::TextDelta { text }), ChunkBody::TextDelta { text: more })
            | (Some(ChunkBody::ReasoningDelta { text }), ChunkBody::ReasoningDelta { text: more }) => text.push_str(more),
            _ => state.chunks.push_back(chunk),
        }
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

impl AgentStream {
    pub(super) fn new(run: RunId, queue: Arc<ChunkQueue>) -> Self {
        Self { run, queue }
    }

    /// The run: what [`resume_stream`](super::Agent::resume_stream) takes.
    pub fn run_id(&self) -> &RunId {
        &self.run
    }

    /// The text alone.
    pub fn text_stream(self) -> impl Stream<Item = String> + Send {
        self.filter_map(|chunk| {
            let text = match chunk.body {
                ChunkBody::TextDelta { text } => Some(text),
                _ => None,
            };
            std::future::ready(text)
        })
    }
}

impl Stream for AgentStream {
    type Item = AgentChunk;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AgentChunk>> {
        let mut state = self.queue.state();
        match state.chunks.pop_front() {
            Some(chunk) => Poll::Ready(Some(chunk)),
            None if state.closed => Poll::Ready(None),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
