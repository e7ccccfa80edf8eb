//! A web application with routes, state and accounts of its own, that serves a controller too.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use agent_controller::{
    controller::AgentController,
    server::{Auth, Principal, Served, Server, ServerError},
};
use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
    routing::get,
};

#[derive(Clone)]
struct Shop {
    visits: Arc<AtomicU64>,
    clerks: AgentController,
}

async fn door(State(shop): State<Shop>) -> String {
    let visit = shop.visits.fetch_add(1, Ordering::Relaxed) + 1;
    format!("visit {visit} of the shop of {}", shop.clerks.id())
}

/// The shop knows its people by a badge.
async fn badge(mut request: Request, next: Next) -> Response {
    let name = request.headers().get("x-badge").and_then(|value| value.to_str().ok()).map(Principal::new);
    if let Some(who) = name {
        request.extensions_mut().insert(who);
    }
    next.run(request).await
}

pub fn app(clerks: AgentController) -> Result<Router, ServerError> {
    let server = Server::builder().controller(Served::new("clerks", clerks.clone())).prefix("/agents").auth(Auth::Host).build()?;
    let shop = Shop { visits: Arc::default(), clerks };
    Ok(Router::new().route("/door", get(door)).with_state(shop).merge(server.router().layer(middleware::from_fn(badge))))
}
