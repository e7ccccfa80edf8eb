//! Requests of chat platforms, handed to whoever the host says.
//!
//! They carry no token of this server: the platform's signature, over the exact bytes, says who they are from. So nothing is read out of
//! the body here, and nothing is decided but size, time and rate.

use std::{future::Future, pin::Pin, sync::Arc, time::Instant};

use axum::{
    Router,
    body::Body,
    extract::{Path, Request},
    response::Response,
    routing::post,
};
use bytes::Bytes;
use http::StatusCode;

use crate::{
    call::{self, Peer, read_whole},
    failure::Failure,
    origin,
    server::App,
};

/// Takes the id of a controller, the name of a platform and the request; gives the answer that the platform reads.
pub(crate) type Webhooks =
    dyn Fn(String, String, http::Request<Bytes>) -> Pin<Box<dyn Future<Output = http::Response<Bytes>> + Send>> + Send + Sync;

/// The route, where somebody takes what comes.
pub(crate) fn mount(app: &Arc<App>, router: Router) -> Router {
    if app.webhooks.is_none() {
        return router;
    }
    let path = format!("{}/agent-controllers/{{controller}}/channels/{{platform}}/webhook", app.prefix);
    let app = app.clone();
    let answer = move |Path((controller, platform)): Path<(String, String)>, request: Request| {
        let app = app.clone();
        async move { receive(&app, controller, platform, request).await.unwrap_or_else(|failure| call::refuse(&failure)) }
    };
    router.route(&path, post(answer))
}

async fn receive(app: &App, controller: String, platform: String, request: Request) -> Result<Response, Failure> {
    let Some(webhooks) = &app.webhooks else { return Err(Failure::no_route()) };
    let (parts, body) = request.into_parts();
    origin::check(&parts.headers, &parts.uri, app.hosts.as_deref())?;
    let bucket: Arc<str> =
        parts.extensions.get::<Peer>().map_or_else(|| platform.as_str().into(), |Peer(from)| from.ip().to_string().into());
    app.rates.take(&bucket, &app.limits, Instant::now()).map_err(|seconds| {
        Failure::new(StatusCode::TOO_MANY_REQUESTS, "request.too_many", "too many requests; try again later").after(seconds)
    })?;
    let body = read_whole(app, body).await?;
    Ok(webhooks(controller, platform, http::Request::from_parts(parts, body)).await.map(Body::from))
}
