use std::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use ac_core::{CancelToken, ModelError, ModelErrorKind, ModelEvent, ModelStream};
use bytes::Bytes;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream::BoxStream};
use tokio::time::{Instant, Sleep, sleep_until};

use super::HttpProvider;
use crate::{decode::AnswerReader, error::Origin, transport::TransportError};

/// An answer while it comes in.
pub(super) struct Reading {
    provider: HttpProvider,
    origin: Origin,
    /// Gone as soon as nothing more is wanted: that closes the connection.
    body: Option<BoxStream<'static, Result<Bytes, TransportError>>>,
    reader: Option<AnswerReader>,
    /// Told by what was read, in reverse, so that the next is last.
    told: Vec<ModelEvent>,
    /// What comes after `told`: the end.
    last: Option<Result<ModelEvent, ModelError>>,
    /// When the next byte is due; `None` as long as there are some.
    next: Option<Instant>,
    total: Instant,
    /// Rings no later than the next byte is due. It is set when it rings, not with each piece.
    alarm: Pin<Box<Sleep>>,
    /// Ends when nobody wants the answer any more.
    cancelled: BoxFuture<'static, ()>,
}

impl Reading {
    /// `first` is when the first byte of the body is due, `total` when all of it is.
    pub(super) fn new(
        provider: HttpProvider,
        origin: Origin,
        reader: AnswerReader,
        body: BoxStream<'static, Result<Bytes, TransportError>>,
        cancel: CancelToken,
        first: Instant,
        total: Instant,
    ) -> Self {
        Self {
            provider,
            origin,
            body: Some(body),
            reader: Some(reader),
            told: vec![],
            last: None,
            next: Some(first),
            total,
            alarm: Box::pin(sleep_until(first.min(total))),
            cancelled: async move { cancel.cancelled().await }.boxed(),
        }
    }

    /// The events, until the end. Dropping the stream closes the connection.
    pub(super) fn into_stream(mut self) -> ModelStream {
        futures::stream::poll_fn(move |cx| self.poll(cx)).boxed()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ModelEvent, ModelError>>> {
        loop {
            if let Some(event) = self.told.pop() {
                return Poll::Ready(Some(Ok(event)));
            }
            if let Some(last) = self.last.take() {
                return Poll::Ready(Some(last));
            }
            let Some(body) = &mut self.body else { return Poll::Ready(None) };
            if self.cancelled.poll_unpin(cx).is_ready() {
                self.finish(Err(self.origin.cancelled()));
                continue;
            }
            match body.poll_next_unpin(cx) {
                Poll::Ready(piece) => self.take(piece),
                Poll::Pending => {
                    if self.next.is_none() {
                        self.waits();
                    }
                    std::task::ready!(self.alarm.as_mut().poll(cx));
                    self.rung();
                }
            }
        }
    }

    /// What came of the body; `None` is its end.
    fn take(&mut self, piece: Option<Result<Bytes, TransportError>>) {
        let Some(reader) = &mut self.reader else { return };
        // Taken and put back: its room is used again.
        let mut told = std::mem::take(&mut self.told);
        match piece {
            Some(Ok(bytes)) => {
                self.next = None;
                match reader.push(&bytes, &mut told) {
                    Ok(true) => {}
                    Ok(false) => {
                        let rest = self.body.take();
                        self.end(None, &mut told);
                        tokio::spawn(read_out(rest));
                    }
                    Err(error) => self.finish(Err(error)),
                }
            }
            Some(Err(broken)) => {
                let broken = self.provider.lost(&self.origin, broken);
                self.end(Some(broken), &mut told);
            }
            None => self.end(None, &mut told),
        }
        told.reverse();
        self.told = told;
    }

    /// What came is read, and nothing more is there. The clock is looked at now, and not for each piece.
    fn waits(&mut self) {
        // Some servers say that the answer has ended, and not that the stream has.
        let ended = self.reader.as_ref().is_some_and(AnswerReader::ended);
        let idle = self.provider.timeouts.idle;
        let next = Instant::now() + if ended { idle.min(END) } else { idle };
        self.next = Some(next);
        if self.alarm.deadline() > next {
            self.alarm.as_mut().reset(next);
        }
    }

    /// The alarm rang: either nothing came for too long, or what came put it off.
    fn rung(&mut self) {
        let due = self.next.map_or(self.total, |next| next.min(self.total));
        if Instant::now() < due {
            self.alarm.as_mut().reset(due);
        } else {
            let error = self.quiet();
            let mut told = vec![];
            self.end(Some(error), &mut told);
            told.reverse();
            self.told = told;
        }
    }

    fn end(&mut self, broken: Option<ModelError>, told: &mut Vec<ModelEvent>) {
        let Some(reader) = self.reader.take() else { return };
        let finish = match broken {
            None => reader.end(told),
            Some(mut broken) => {
                // Once the answer has begun, a broken connection is a cut answer, whatever broke it.
                if broken.kind == ModelErrorKind::Connect {
                    let mut cut = self.origin.truncated();
                    std::mem::swap(&mut cut, &mut broken);
                    broken = broken.with_source(cut);
                }
                reader.broken(broken, told)
            }
        };
        self.finish(finish.map(ModelEvent::Finish));
    }

    /// Nothing more is wanted: a connection that is still there is closed here and now, not when the stream is dropped.
    fn finish(&mut self, last: Result<ModelEvent, ModelError>) {
        self.body = None;
        self.reader = None;
        self.last = Some(last.map_err(|error| self.provider.redacted(error)));
    }

    fn quiet(&self) -> ModelError {
        if Instant::now() >= self.total {
            self.origin
                .error(ModelErrorKind::Timeout, "the answer took longer than the whole time allowed; ask again, or allow it more time")
        } else {
            self.origin.error(ModelErrorKind::Timeout, "the answer stopped coming; what came so far is kept, ask again for the rest")
        }
    }
}

/// How long a stream may say nothing once its answer has ended.
const END: Duration = Duration::from_secs(10);

/// How long the end of a body may take after the answer, and in how many pieces it may come.
const REST: Duration = Duration::from_secs(1);
const PIECES: usize = 16;

/// After a complete answer comes nothing but the end of its body. A connection is used again where that was read, and closed otherwise; so
/// it is waited for a moment, by nobody who wants the answer.
async fn read_out(rest: Option<BoxStream<'static, Result<Bytes, TransportError>>>) {
    let Some(mut rest) = rest else { return };
    let reading = async {
        for _ in 0..PIECES {
            if !matches!(rest.next().await, Some(Ok(_))) {
                return;
            }
        }
    };
    let _ended = tokio::time::timeout(REST, reading).await;
}
