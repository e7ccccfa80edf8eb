use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};

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

/// The HTTP client's own task hands over one piece at a time, and goes on when that was taken. Who asks for the next piece at once is
/// woken for each by way of the scheduler, which wakes another thread with it; who lets that task go on first finds the piece there.
fn unhurried(
    pieces: impl Stream<Item = Result<Bytes, TransportError>> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, TransportError>> + Send {
    stream::unfold((Box::pin(pieces), false), |(mut pieces, again)| async move {
        if again {
            tokio::task::yield_now().await;
        }
        Some((pieces.next().await?, (pieces, true)))
    })
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
