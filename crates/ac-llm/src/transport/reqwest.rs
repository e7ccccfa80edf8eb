use std::{task::Poll, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{Stream, StreamExt, poll, stream};

use super::{HttpAnswer, Transport, TransportError, TransportErrorKind};

/// HTTP/1.1 and HTTP/2, one pool of connections. Cloning shares the pool: one of these serves a whole process.
///
/// Connections are encrypted by rustls with ring (feature `rustls`), else by the library of the system (feature `native-tls`). With neither,
/// only `http://` can be asked.
///
/// No redirects, no cookies, no decompression, and no total time-out: a long answer is no failure. Proxies come from the environment
/// (`HTTPS_PROXY`, `NO_PROXY`).
#[derive(Clone, Debug)]
pub struct ReqwestTransport {
    client: reqwest::Client,
    encrypts: bool,
}

/// What encrypts connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tls {
    #[cfg(feature = "rustls")]
    Rustls,
    #[cfg(feature = "native-tls")]
    Native,
    #[cfg(not(any(feature = "rustls", feature = "native-tls")))]
    None,
}

impl Tls {
    const DEFAULT: Self = {
        #[cfg(feature = "rustls")]
        {
            Self::Rustls
        }
        #[cfg(all(feature = "native-tls", not(feature = "rustls")))]
        {
            Self::Native
        }
        #[cfg(not(any(feature = "rustls", feature = "native-tls")))]
        {
            Self::None
        }
    };
}

/// How long a connection may take to come up.
const CONNECT: Duration = Duration::from_secs(10);

impl ReqwestTransport {
    /// A pool that waits ten seconds for a connection.
    ///
    /// # Errors
    /// When the system's certificates cannot be read.
    pub fn new() -> Result<Self, TransportError> {
        Self::with_connect_timeout(CONNECT)
    }

    /// A pool that waits this long for a connection.
    ///
    /// # Errors
    /// When the system's certificates cannot be read.
    pub fn with_connect_timeout(connect: Duration) -> Result<Self, TransportError> {
        Self::build(connect, Tls::DEFAULT)
    }

    /// As [`ReqwestTransport::with_connect_timeout`], encrypted by the library of the system even where rustls is built in too.
    ///
    /// # Errors
    /// When the system's library cannot be set up.
    #[cfg(feature = "native-tls")]
    pub fn with_native_tls(connect: Duration) -> Result<Self, TransportError> {
        Self::build(connect, Tls::Native)
    }

    fn build(connect: Duration, tls: Tls) -> Result<Self, TransportError> {
        let builder = reqwest::Client::builder();
        let (builder, encrypts) = match tls {
            #[cfg(feature = "rustls")]
            Tls::Rustls => {
                // The process may have chosen a provider of its own; then this changes nothing.
                let _ = rustls::crypto::ring::default_provider().install_default();
                (builder.tls_backend_rustls(), true)
            }
            #[cfg(feature = "native-tls")]
            Tls::Native => (builder.tls_backend_native(), true),
            #[cfg(not(any(feature = "rustls", feature = "native-tls")))]
            Tls::None => (builder, false),
        };
        let client = builder
            .connect_timeout(connect)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("agent-controller/", env!("CARGO_PKG_VERSION")))
            // A pooled connection that a middlebox dropped would cost a failed request.
            .pool_idle_timeout(Duration::from_secs(50))
            .tcp_nodelay(true)
            .build()
            .map_err(|error| TransportError::new(TransportErrorKind::Request, "the HTTP client could not be built").with_source(error))?;
        Ok(Self { client, encrypts })
    }
}

#[async_trait]
impl Transport for ReqwestTransport {
    async fn send(&self, request: http::Request<Bytes>) -> Result<HttpAnswer, TransportError> {
        if !self.encrypts && request.uri().scheme_str() == Some("https") {
            return Err(TransportError::new(
                TransportErrorKind::Request,
                "no encryption is built in: build with the feature `rustls` or `native-tls`",
            ));
        }
        let request = reqwest::Request::try_from(request)
            .map_err(|error| TransportError::new(TransportErrorKind::Request, "the address is no URL").with_source(error.without_url()))?;
        let answer = self.client.execute(request).await.map_err(fail)?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        Ok(HttpAnswer { status, headers, body: unhurried(answer.bytes_stream().map(|piece| piece.map_err(fail))).boxed() })
    }
}

/// How many pieces of a body are taken in a row at most.
const BURST: usize = 64;

/// The HTTP client's own task hands over one piece at a time, and goes on when that was taken. Who has one lets that task go on for a
/// moment before it hands the piece on: what the connection has read is then handed on together, and a burst wakes those who wait for
/// it once and not for each piece. Where nothing more is there, the moment is one turn of the scheduler.
fn unhurried(
    pieces: impl Stream<Item = Result<Bytes, TransportError>> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, TransportError>> + Send {
    stream::unfold(Box::pin(pieces.fuse()), |mut pieces| async move {
        let mut burst = vec![pieces.next().await?];
        while burst.len() < BURST {
            tokio::task::yield_now().await;
            let next = poll!(pieces.next());
            let Poll::Ready(Some(piece)) = next else { break };
            burst.push(piece);
        }
        Some((stream::iter(burst), pieces))
    })
    .flatten()
}

/// The address can hold a key in its query, so it is taken out; whoever asked knows it anyway.
fn fail(error: reqwest::Error) -> TransportError {
    let error = error.without_url();
    let kind = if error.is_connect() {
        TransportErrorKind::Connect
    } else if error.is_timeout() {
        TransportErrorKind::Timeout
    } else if error.is_builder() {
        TransportErrorKind::Request
    } else {
        TransportErrorKind::Broken
    };
    TransportError::new(kind, reason(&error)).with_source(error)
}

fn causes<'a>(error: &'a (dyn std::error::Error + 'static)) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |cause| cause.source())
}

/// The innermost cause says what happened ("connection refused"); the outer ones only that something did.
fn reason(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use futures::{SinkExt, channel::mpsc};

    use super::*;

    /// As an HTTP client does it: a task of its own, which waits with each piece until the one before was taken.
    fn handed_over(pieces: Vec<Result<Bytes, TransportError>>) -> impl Stream<Item = Result<Bytes, TransportError>> + Send {
        let (mut give, take) = mpsc::channel(0);
        tokio::spawn(async move {
            for piece in pieces {
                give.send(piece).await.unwrap();
            }
        });
        take
    }

    #[tokio::test]
    async fn pieces_come_in_order_and_an_error_after_them() {
        let broken = || Err(TransportError::new(TransportErrorKind::Broken, "cut"));
        let pieces = (0..3 * BURST).map(|n| Ok(Bytes::from(n.to_string()))).chain([broken()]).collect();
        let read: Vec<_> = unhurried(handed_over(pieces)).collect().await;
        assert_eq!(read.len(), 3 * BURST + 1);
        assert!(read.iter().take(3 * BURST).enumerate().all(|(n, piece)| *piece.as_ref().unwrap() == n.to_string()));
        assert!(read.last().unwrap().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_there_is_not_kept_for_what_is_not() {
        let later = stream::once(async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok(Bytes::from_static(b"two"))
        });
        let mut pieces = Box::pin(unhurried(stream::iter([Ok(Bytes::from_static(b"one"))]).chain(later)));
        let begun = tokio::time::Instant::now();
        assert_eq!(pieces.next().await.unwrap().unwrap(), "one");
        assert!(begun.elapsed().is_zero());
        assert_eq!(pieces.next().await.unwrap().unwrap(), "two");
        assert!(pieces.next().await.is_none());
    }
}
