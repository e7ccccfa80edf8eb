//! A web application with routes and state of its own, that serves a controller too.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use agent_controller::{
    controller::AgentController,
    server::{Served, Server, ServerError},
};
use axum::{Router, extract::State, routing::get};

#[derive(Clone)]
struct Shop {
    visits: Arc<AtomicU64>,
    clerks: AgentController,
}

async fn door(State(shop): State<Shop>) -> String {
    let visit = shop.visits.fetch_add(1, Ordering::Relaxed) + 1;
    format!("visit {visit} of the shop of {}", shop.clerks.id())
}

pub fn app(clerks: AgentController) -> Result<Router, ServerError> {
    let server = Server::builder().controller(Served::new("clerks", clerks.clone())).prefix("/agents").build()?;
    let shop = Shop { visits: Arc::default(), clerks };
    Ok(Router::new().route("/door", get(door)).with_state(shop).merge(server.router()))
}
