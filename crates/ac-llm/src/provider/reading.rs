use std::pin::Pin;

use ac_core::{CancelToken, ModelError, ModelErrorKind, ModelEvent};
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
    /// When the next byte is due.
    next: Instant,
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
            next: first,
            total,
            alarm: Box::pin(sleep_until(first.min(total))),
            cancelled: async move { cancel.cancelled().await }.boxed(),
        }
    }

    /// The next event. Dropping the future, or the whole stream, closes the connection.
    pub(super) async fn next(mut self) -> Option<(Result<ModelEvent, ModelError>, Self)> {
        loop {
            if let Some(event) = self.told.pop() {
                return Some((Ok(event), self));
            }
            if let Some(last) = self.last.take() {
                return Some((last, self));
            }
            let (reader, body) = (self.reader.as_mut()?, self.body.as_mut()?);
            let piece = tokio::select! {
                biased;
                () = &mut self.cancelled => {
                    self.finish(Err(self.origin.cancelled()));
                    continue;
                }
                piece = body.next() => piece,
                () = self.alarm.as_mut() => {
                    let due = self.next.min(self.total);
                    if Instant::now() < due {
                        self.alarm.as_mut().reset(due);
                    } else {
                        let error = self.quiet();
                        self.finish(Err(error));
                    }
                    continue;
                }
            };
            let mut told = Vec::new();
            match piece {
                Some(Ok(bytes)) => {
                    self.next = Instant::now() + self.provider.timeouts.idle;
                    if self.alarm.deadline() > self.next {
                        self.alarm.as_mut().reset(self.next);
                    }
                    match reader.push(&bytes, &mut told) {
                        Ok(true) => {}
                        Ok(false) => self.end(None, &mut told),
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

    /// Nothing more is wanted: the connection is closed here and now, not when the stream is dropped.
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
