//! What happens to every request before its handler: the order of the checks is the reference's (WIRE 1.2), but nobody's body is read
//! before it is known who sends it.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use ac_controller::{AgentController, Session, SessionRequest};
use ac_core::{ResourceId, SessionKey, ThreadId};
use axum::{
    body::Body,
    extract::{FromRequestParts as _, RawPathParams, Request},
    response::Response,
};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};
use tracing::Instrument as _;

use crate::{
    Auth, Principal,
    auth::Pass,
    failure::{Failure, Issue},
    origin,
    owners::Access,
    query::Query,
    route::Route,
    server::{App, Served},
    shape::{self, LONGEST_NAME},
};

/// A request that may go to its handler.
pub(crate) struct Call {
    pub(crate) app: Arc<App>,
    pub(crate) who: Principal,
    pub(crate) pass: Pass,
    pub(crate) query: Query,
    pub(crate) body: Map<String, Value>,
    pub(crate) last_event_id: Option<String>,
    /// What may be done with the resource that the path names.
    pub(crate) access: Option<Access>,
    params: Vec<(String, String)>,
    served: Option<(usize, Arc<Served>)>,
    key: Option<SessionKey>,
}

/// What a handler answers.
pub(crate) enum Reply {
    /// JSON.
    Json(Value),
    /// `{"ok": true}`, and what came of it in a header.
    Done(&'static str),
    /// Anything else with its type.
    Text(&'static str, String),
    /// An event stream.
    Stream(Body),
}

/// What came of an answer or a command (HTTP.md).
pub(crate) const ACCEPTED: &str = "accepted";

const OUTCOME: header::HeaderName = header::HeaderName::from_static("x-ac-outcome");
/// A longer one is nobody's.
const LONGEST_EVENT_ID: usize = 256;

/// The address of who asks, set by who accepts connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// A request from its head to the head of its answer.
pub(crate) async fn answer(app: Arc<App>, route: &'static Route, request: Request) -> Response {
    let begun = Instant::now();
    let span = tracing::info_span!(
        "http.request",
        otel.name = %format_args!("{} {}", route.method.as_str(), route.path),
        otel.kind = "server",
        http.request.method = route.method.as_str(),
        http.route = route.path,
        http.response.status_code = tracing::field::Empty,
        gen_ai.operation.name = route.operation.filter_gen_ai(),
        gen_ai.agent.id = tracing::field::Empty,
        gen_ai.conversation.id = tracing::field::Empty,
        error.type = tracing::field::Empty,
    );
    let metrics = app.clone();
    let response = async move {
        let outcome = attend(app, route, request).await;
        let span = tracing::Span::current();
        let response = match outcome {
            Ok(reply) => respond(reply),
            Err(failure) => {
                span.record("error.type", failure.code);
                refuse(&failure)
            }
        };
        span.record("http.response.status_code", response.status().as_u16());
        response
    }
    .instrument(span)
    .await;
    metrics.metrics.request(route.path, response.status().as_u16(), begun.elapsed());
    response
}

async fn attend(app: Arc<App>, route: &'static Route, request: Request) -> Result<Reply, Failure> {
    let (mut parts, body) = request.into_parts();
    origin::check(&parts.headers, &parts.uri, app.hosts.as_deref())?;
    let declared = parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > app.limits.body as u64) {
        return Err(Failure::too_large());
    }
    let query = Query::read(parts.uri.query());
    let (who, pass) = if route.public { (Principal::new(""), Pass::NONE) } else { app.auth.principal(&parts, &query)? };
    let bucket: Arc<str> = match (&app.auth, parts.extensions.get::<Peer>()) {
        (Auth::Tokens(_) | Auth::Host, _) if !route.public => who.name.clone(),
        (_, Some(Peer(address))) => address.ip().to_string().into(),
        _ => who.name.clone(),
    };
    app.rates.take(&bucket, &app.limits, Instant::now()).map_err(|seconds| {
        Failure::new(StatusCode::TOO_MANY_REQUESTS, "request.too_many", "too many requests; try again later").after(seconds)
    })?;
    let body = match route.body {
        Some(_) => read_body(&app, &parts.headers, body).await?,
        None => None,
    };
    if let Some(check) = route.check_query {
        check(&query).map_err(Failure::query)?;
    }
    if let Some(fields) = route.body {
        let issues = shape::check(fields, body.as_ref());
        if !issues.is_empty() {
            return Err(Failure::body(issues));
        }
    }
    let body = match body {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    let mut params = read_params(&mut parts).await?;
    params.extend(route.fixed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let last_event_id = parts.headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let last_event_id = last_event_id.filter(|id| id.len() <= LONGEST_EVENT_ID).map(str::to_owned);
    let mut call = Call { app, who, pass, query, body, last_event_id, access: None, params, served: None, key: None };
    call.locate().await?;
    match tokio::time::timeout(HANDLER_TIME, (route.run)(call)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Failure::new(StatusCode::GATEWAY_TIMEOUT, "request.timeout", "this took too long and was given up")),
    }
}

async fn read_params(parts: &mut http::request::Parts) -> Result<Vec<(String, String)>, Failure> {
    let found = RawPathParams::from_request_parts(parts, &()).await.map_err(|_| Failure::path("root", "Invalid input: expected UTF-8"))?;
    let params: Vec<_> = found.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    match params.iter().find(|(_, value)| value.len() > LONGEST_NAME) {
        Some((name, _)) => Err(Failure::path(name, &format!("Too big: expected string to have <={LONGEST_NAME} characters"))),
        None => Ok(params),
    }
}

/// The body, where its type says JSON; anything else counts as absent and is not even read.
async fn read_body(app: &App, headers: &http::HeaderMap, body: Body) -> Result<Option<Value>, Failure> {
    let json = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|kind| kind.to_ascii_lowercase().contains("application/json"));
    if !json {
        return Ok(None);
    }
    let bytes = read_whole(app, body).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|error| Failure::body(vec![Issue::new("body", error.to_string())]))
}

/// The bytes of a body, of the size and in the time that are allowed.
pub(crate) async fn read_whole(app: &App, body: Body) -> Result<Bytes, Failure> {
    tokio::time::timeout(app.limits.body_time, collect(body, app.limits.body))
        .await
        .map_err(|_| Failure::new(StatusCode::REQUEST_TIMEOUT, "request.too_slow", "the body did not arrive in time"))?
}

async fn collect(body: Body, most: usize) -> Result<Bytes, Failure> {
    let mut stream = body.into_data_stream();
    let mut all = BytesMut::new();
    while let Some(piece) = stream.next().await {
        let piece = piece.map_err(|_| Failure::new(StatusCode::BAD_REQUEST, "request.broken", "the body broke off"))?;
        if all.len() + piece.len() > most {
            return Err(Failure::too_large());
        }
        all.extend_from_slice(&piece);
    }
    Ok(all.freeze())
}

impl Call {
    /// Finds what the path names, and sees whether they may use it.
    async fn locate(&mut self) -> Result<(), Failure> {
        let Some(name) = self.param("controllerId") else { return Ok(()) };
        let found = self.app.find(name).map(|(at, served)| (at, served.clone()));
        let Some((at, served)) = found else {
            let quoted = Value::from(name).to_string();
            return Err(Failure::not_found("controller.not_found", format!("agent controller {quoted} not found")));
        };
        tracing::Span::current().record("gen_ai.agent.id", served.controller.id().as_str());
        if let Some(resource) = self.param("resourceId") {
            let resource = ResourceId::from(resource);
            let scope = self.query.get("sessionScope").map(Arc::from);
            if scope.as_deref().is_some_and(|scope: &str| scope.len() > LONGEST_NAME) {
                let message = format!("Too big: expected string to have <={LONGEST_NAME} characters");
                return Err(Failure::query(vec![Issue::new("sessionScope", message)]));
            }
            self.access = Some(self.app.owners.check(&served, &resource, &self.who).await?);
            self.key = Some(SessionKey { resource, scope });
        }
        self.served = Some((at, served));
        Ok(())
    }

    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn served(&self) -> Result<(usize, &Arc<Served>), Failure> {
        self.served.as_ref().map(|(at, served)| (*at, served)).ok_or_else(Failure::no_route)
    }

    pub(crate) fn controller(&self) -> Result<&AgentController, Failure> {
        Ok(&self.served()?.1.controller)
    }

    pub(crate) fn key(&self) -> Result<&SessionKey, Failure> {
        self.key.as_ref().ok_or_else(Failure::no_route)
    }

    pub(crate) fn thread(&self) -> Result<ThreadId, Failure> {
        self.param("threadId").map(ThreadId::from).ok_or_else(Failure::no_route)
    }

    /// A text of the body; empty where there is none, which a checked body has only where it may.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.maybe(name).unwrap_or_default()
    }

    pub(crate) fn maybe(&self, name: &str) -> Option<&str> {
        self.body.get(name).and_then(Value::as_str)
    }

    /// The session, to be looked at. Nothing is made.
    pub(crate) async fn look(&self) -> Result<Session, Failure> {
        let session = self.controller()?.read_session(self.key()?).await?;
        if let Some(thread) = session.thread_id() {
            tracing::Span::current().record("gen_ai.conversation.id", thread.as_str());
        }
        Ok(session)
    }

    /// The session, to be used: it begins where it did not yet, and the resource becomes theirs.
    pub(crate) async fn session(&self) -> Result<Session, Failure> {
        self.begin(SessionRequest::new(self.key()?.clone())).await
    }

    pub(crate) async fn begin(&self, request: SessionRequest) -> Result<Session, Failure> {
        let (_, served) = self.served()?;
        let key = request.key();
        self.app.owners.claim(served, &key.resource, &self.who).await?;
        let live = if request.is_plain() { served.controller.live_session(key) } else { None };
        let session = match live {
            Some(live) => live,
            None => served.controller.create_session(request).await?,
        };
        if let Some(thread) = session.thread_id() {
            tracing::Span::current().record("gen_ai.conversation.id", thread.as_str());
        }
        Ok(session)
    }
}

fn respond(reply: Reply) -> Response {
    let json_type = HeaderValue::from_static("application/json");
    let mut response = match reply {
        Reply::Json(value) => Response::new(Body::from(value.to_string())),
        Reply::Done(outcome) => {
            let mut response = Response::new(Body::from(json!({ "ok": true }).to_string()));
            response.headers_mut().insert(OUTCOME, HeaderValue::from_static(outcome));
            response
        }
        Reply::Text(kind, text) => {
            let mut response = Response::new(Body::from(text));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            response
        }
        Reply::Stream(body) => {
            let mut response = Response::new(body);
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            headers.insert(header::CONNECTION, HeaderValue::from_static("keep-alive"));
            headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
            response
        }
    };
    let headers = response.headers_mut();
    headers.entry(header::CONTENT_TYPE).or_insert(json_type);
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A refusal, as JSON.
pub(crate) fn refuse(failure: &Failure) -> Response {
    let mut response = respond(Reply::Json(failure.to_json()));
    *response.status_mut() = failure.status;
    if let Some(seconds) = failure.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if matches!(failure.status, StatusCode::REQUEST_TIMEOUT | StatusCode::PAYLOAD_TOO_LARGE) {
        // What is left of the body is not waited for.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// How long anything but a stream may take (WIRE 3.10).
pub(crate) const HANDLER_TIME: Duration = Duration::from_secs(180);
