//! The web console: a page that a person uses, built into the binary.
//!
//! It is made of the files in `console/`, without a build step. Every one of them comes from this server and from nowhere else, nothing on
//! the page is inline, and a browser that reads the headers runs nothing that a model, a tool or another site could have written.

use std::sync::{Arc, LazyLock};

use axum::{
    Router,
    body::Body,
    extract::Request,
    response::Response,
    routing::{MethodFilter, on},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

use crate::{call, origin, server::App};

/// A file of the page: where it is, its type, its bytes.
struct Asset {
    path: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// An entry of the table of files.
macro_rules! asset {
    ($name:literal, $kind:expr) => {
        Asset { path: concat!("/console/", $name), kind: $kind, bytes: include_bytes!(concat!("../console/", $name)) }
    };
}

static ASSETS: &[Asset] = &[
    asset!("api.js", JS),
    asset!("app.js", JS),
    asset!("composer.js", JS),
    asset!("details.js", JS),
    asset!("dom.js", JS),
    asset!("icon.svg", SVG),
    asset!("markdown.js", JS),
    asset!("message.css", CSS),
    asset!("session.js", JS),
    asset!("stream.js", JS),
    asset!("style.css", CSS),
    asset!("theme.js", JS),
    asset!("threads.js", JS),
    asset!("tools.js", JS),
    asset!("transcript.js", JS),
    asset!("vendor/marked.js", JS),
    asset!("waits.js", JS),
];

/// The page itself. `{{prefix}}` becomes what the routes begin with.
const PAGE: &str = include_str!("../console/index.html");

/// What a browser may do with the page. Scripts come from files of this server only; text never becomes markup (`trusted-types`); pictures
/// are the page's own or stand in the conversation as data, so that reading a message tells no other server about it; nobody may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The tags of the files, in their order: what they hold decides.
static TAGS: LazyLock<Vec<HeaderValue>> = LazyLock::new(|| ASSETS.iter().map(|asset| tag(asset.bytes)).collect());

/// The routes of the page, beside those of the API.
pub(crate) fn routes(app: &Arc<App>) -> Router {
    let page: Arc<str> = PAGE.replace("{{prefix}}", &attribute(&app.prefix)).into();
    let page_tag = tag(page.as_bytes());
    let shared = app.clone();
    let mut router = Router::new().route(
        "/",
        on(MethodFilter::GET, move |request: Request| {
            let (app, page, tag) = (shared.clone(), page.clone(), page_tag.clone());
            async move { serve(&app, &request, "text/html; charset=utf-8", &tag, || Body::from(page.to_string())) }
        }),
    );
    for (asset, tag) in ASSETS.iter().zip(TAGS.iter()) {
        let app = app.clone();
        router = router.route(
            asset.path,
            on(MethodFilter::GET, move |request: Request| {
                let app = app.clone();
                async move { serve(&app, &request, asset.kind, tag, || Body::from(asset.bytes)) }
            }),
        );
    }
    router
}

fn serve(app: &App, request: &Request, kind: &'static str, tag: &HeaderValue, body: impl FnOnce() -> Body) -> Response {
    // The page is no secret, but a name that somebody else made lead here gets nothing at all.
    if let Err(failure) = origin::check(request.headers(), request.uri(), app.hosts.as_deref()) {
        return call::refuse(&failure);
    }
    let known = is_known(request.headers(), tag);
    let mut response = Response::new(if known { Body::empty() } else { body() });
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::ETAG, tag.clone());
    // Asked for again each time, and then mostly not sent: a new server has a new page at once.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    response
}

/// A strong tag: the beginning of the digest.
fn tag(bytes: &[u8]) -> HeaderValue {
    let digest: String = Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&format!("\"{digest}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

fn is_known(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let tag = tag.to_str().unwrap_or_default();
    known.map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == tag)
}

/// As the value of an attribute between double quotes.
fn attribute(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests;
