//! Requests to a platform.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;

use crate::{ChannelError, ChannelErrorKind};

/// How long a connection, and a whole request, may take.
const CONNECT: Duration = Duration::from_secs(5);
const TOTAL: Duration = Duration::from_secs(20);
/// The pause where a platform wants one and does not say how long.
const SOME_PAUSE: Duration = Duration::from_secs(5);
/// No platform says more than this, and a wrong header must not stop a conversation for ever.
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);
/// The largest answer that is read as JSON.
const MAX_ANSWER: usize = 4 * 1024 * 1024;

/// A pool of connections to one platform. Addresses can hold keys, so they are in no error.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    client: Option<reqwest::Client>,
}

/// What a platform answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn text(&self, pointer: &str) -> Option<&str> {
        self.body.pointer(pointer).and_then(Value::as_str)
    }

    /// The pause that the platform wants, from the header, else from a number of seconds in the body.
    pub(crate) fn pause(&self, pointer: &str) -> ChannelError {
        let header = self
            .headers
            .get(http::header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.trim().parse::<f64>().ok());
        let seconds = self.body.pointer(pointer).and_then(Value::as_f64).or(header);
        let pause = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.05)).ok());
        ChannelError::rate_limited(pause.unwrap_or(SOME_PAUSE).min(LONGEST_PAUSE))
    }
}

/// A body that is not JSON.
pub(crate) enum Body<'a> {
    Empty,
    Json(&'a Value),
    Raw { media_type: &'a str, bytes: Bytes },
}

impl Caller {
    pub(crate) fn new() -> Self {
        // The process may have chosen a provider of its own; then this changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .tls_backend_rustls()
            .connect_timeout(CONNECT)
            .timeout(TOTAL)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("agent-controller/", env!("CARGO_PKG_VERSION")))
            .pool_idle_timeout(Duration::from_secs(50))
            .tcp_nodelay(true)
            .build();
        if client.is_err() {
            tracing::error!("the HTTP client could not be built: no channel can post anything");
        }
        Self { client: client.ok() }
    }

    async fn send(&self, method: Method, url: &str, headers: &[(&str, &str)], body: Body<'_>) -> Result<reqwest::Response, ChannelError> {
        let client = self.client.as_ref().ok_or_else(|| ChannelError::new(ChannelErrorKind::Unavailable, "there is no HTTP client"))?;
        let mut request = client.request(method, url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request = match body {
            Body::Empty => request,
            Body::Json(json) => request.header(http::header::CONTENT_TYPE, "application/json; charset=utf-8").body(json.to_string()),
            Body::Raw { media_type, bytes } => request.header(http::header::CONTENT_TYPE, media_type).body(bytes),
        };
        request.send().await.map_err(unreachable)
    }

    /// A request, and the answer as JSON (`null` where it is none).
    pub(crate) async fn call(&self, method: Method, url: &str, headers: &[(&str, &str)], body: Body<'_>) -> Result<Answer, ChannelError> {
        let response = self.send(method, url, headers, body).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = read(response, MAX_ANSWER).await?;
        Ok(Answer { status, headers, body: serde_json::from_slice(&bytes).unwrap_or(Value::Null) })
    }

    /// A file.
    pub(crate) async fn fetch(&self, url: &str, headers: &[(&str, &str)], limit: usize) -> Result<Bytes, ChannelError> {
        let response = self.send(Method::GET, url, headers, Body::Empty).await?;
        if !response.status().is_success() {
            return Err(ChannelError::new(
                ChannelErrorKind::Rejected,
                format!("the platform answered {} for a file", response.status().as_u16()),
            ));
        }
        read(response, limit).await
    }
}

async fn read(response: reqwest::Response, limit: usize) -> Result<Bytes, ChannelError> {
    let mut bytes = BytesMut::new();
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        bytes.extend_from_slice(&piece.map_err(unreachable)?);
        if bytes.len() > limit {
            return Err(ChannelError::new(ChannelErrorKind::TooLarge, format!("the file is larger than {limit} bytes")));
        }
    }
    Ok(bytes.freeze())
}

fn unreachable(error: reqwest::Error) -> ChannelError {
    // The address can hold a key.
    let error = error.without_url();
    let what = if error.is_timeout() { "did not answer in time" } else { "could not be reached" };
    ChannelError::new(ChannelErrorKind::Unavailable, format!("the platform {what}")).with_source(error)
}

/// Whether an address belongs to the place that `base` names: credentials go nowhere else.
pub(crate) fn is_below(url: &str, base: &str) -> bool {
    url.strip_prefix(base.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
}

/// Scheme, host and port of an address.
pub(crate) fn origin(url: &str) -> String {
    url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/")
}

/// A form with a JSON part and a file, as platforms want it for uploads.
pub(crate) fn multipart(fields: &[(&str, &str)], file_field: &str, name: &str, media_type: &str, bytes: &[u8]) -> (String, Bytes) {
    // Found nowhere in what it separates.
    let digest = crate::signature::hmac(b"boundary", &[name.as_bytes(), bytes]);
    let boundary: String =
        "part-".chars().chain(digest.iter().flat_map(|byte| format!("{byte:02x}").chars().collect::<Vec<_>>())).collect();
    let quoted = |text: &str| text.replace(['"', '\r', '\n', '\\'], "_");
    let mut body = BytesMut::new();
    for (field, value) in fields {
        body.extend_from_slice(
            format!("--{boundary}\r\ncontent-disposition: form-data; name=\"{}\"\r\n\r\n{value}\r\n", quoted(field)).as_bytes(),
        );
    }
    let head = format!(
        "--{boundary}\r\ncontent-disposition: form-data; name=\"{}\"; filename=\"{}\"\r\ncontent-type: {}\r\n\r\n",
        quoted(file_field),
        quoted(name),
        quoted(media_type)
    );
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(bytes);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body.freeze())
}
