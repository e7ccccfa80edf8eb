//! How requests reach a server. The runtime brings one over reqwest (feature `transport-reqwest`); a host may bring another.

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use http::HeaderMap;

#[cfg(feature = "transport-reqwest")]
mod reqwest;

#[cfg(feature = "transport-reqwest")]
pub use self::reqwest::ReqwestTransport;

/// Carries one request and its answer.
///
/// What an implementation must do:
/// - Send the request as it is, and follow no redirect: a redirect would carry the key to somebody else.
/// - Hand out the body as it comes, without collecting it.
/// - Close the connection (or reset its stream) as soon as the future of [`Transport::send`] or the returned body is dropped. Cancelling
///   and every time-out but that of connecting are drops.
/// - Bound the time to connect.
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// Sends `request` and waits for the head of the answer.
    ///
    /// # Errors
    /// When there is no answer at all. A status of any kind is an answer.
    async fn send(&self, request: http::Request<Bytes>) -> Result<HttpAnswer, TransportError>;
}

/// The head of an answer, and its body as it comes.
#[non_exhaustive]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body. Dropping it closes the connection unless the body was read to its end.
    pub body: BoxStream<'static, Result<Bytes, TransportError>>,
}

impl HttpAnswer {
    /// An answer.
    pub fn new(status: u16, headers: HeaderMap, body: BoxStream<'static, Result<Bytes, TransportError>>) -> Self {
        Self { status, headers, body }
    }
}

impl std::fmt::Debug for HttpAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpAnswer").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Where a transport failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// The request is none that can be sent (a bad address).
    Request,
    /// No connection.
    Connect,
    /// The connection broke before the head of the answer, or in the body.
    Broken,
    /// A time-out of the transport's own.
    Timeout,
}

/// A request without an answer, or an answer without its end. Holds no header and no key.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct TransportError {
    /// Where.
    pub kind: TransportErrorKind,
    /// What happened.
    pub message: String,
    #[source]
    source: Option<ac_core::error::Source>,
}

impl TransportError {
    /// A failure of this kind.
    pub fn new(kind: TransportErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Keeps the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<ac_core::error::Source>) -> Self {
        self.source = Some(source.into());
        self
    }
}
