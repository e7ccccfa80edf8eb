//! Subagents: runs that serve a call of another run, as people see them.

mod activity;
mod forks;
mod models;
mod rights;
mod waits;

use std::time::Duration;

use ac_controller::{AgentController, ControllerBuilder, RuntimeSettings, Session, Subagent};
use ac_core::{Policy, ToolCategory, permission::DefaultPolicies};
use ac_testkit::Turn;
use serde_json::{Value, json};

use crate::desk::{Desk, build_mode};

/// A process in which `subagent` asks nobody.
fn process(desk: &Desk, life: &str, kinds: impl IntoIterator<Item = Subagent>) -> AgentController {
    builder(desk, life, kinds).modes(build_mode()).build().unwrap()
}

fn builder(desk: &Desk, life: &str, kinds: impl IntoIterator<Item = Subagent>) -> ControllerBuilder {
    let mut settings = RuntimeSettings::default();
    settings.grace = Duration::from_millis(50);
    settings.poll = Duration::from_millis(50);
    let defaults = DefaultPolicies::default().with(ToolCategory::Other, Policy::Allow);
    desk.builder(life).runtime(settings).default_policies(defaults).subagents(kinds)
}

/// Reads, writes and asks, by instructions of its own.
fn helper() -> Subagent {
    Subagent::new("helper")
        .name("Helper")
        .description("Helps.")
        .instructions("HELPER")
        .allowed_controller_tools(["look", "write", "ask_user"])
}

/// A call of `subagent`.
fn hand_over(id: &str, kind: &str, task: &str) -> Turn {
    Turn::tool(id, "subagent", json!({ "agentType": kind, "task": task }))
}

fn write(id: &str, what: &str) -> Turn {
    Turn::tool(id, "write", json!({ "what": what }))
}

/// Waits until so many things wait for a person.
async fn waiting(session: &Session, n: usize) -> Vec<ac_controller::Pending> {
    for _ in 0..400 {
        let open = session.pending().await.unwrap();
        if open.len() == n {
            return open;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{n} should wait, and there are {:?}", session.pending().await.unwrap());
}

/// Waits until nothing is open on the session's thread.
async fn over(session: &Session) {
    for _ in 0..1000 {
        if session.current_run().await.unwrap().is_none() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the run does not end");
}

/// What a request says, as role and text.
fn said(desk: &Desk, request: usize) -> Vec<(String, String)> {
    let body = desk.server.requests()[request].body.clone();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    body["messages"].as_array().unwrap().iter().map(|message| (text(&message["role"]), text(&message["content"]))).collect()
}

fn tools(desk: &Desk, request: usize) -> Vec<String> {
    let body = desk.server.requests()[request].body.clone();
    body["tools"].as_array().into_iter().flatten().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}
