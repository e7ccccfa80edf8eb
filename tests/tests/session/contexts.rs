//! Request contexts and the host's state, as tools see them.

use std::sync::{Arc, Mutex};

use ac_controller::{Answer, ControllerBuilder, StateSchema, UserMessage};
use ac_core::{
    EventBody, Policy, Tool, ToolCategory, ToolContext, ToolDefinition, ToolEffect, ToolError, ToolOutcome, ToolOutput, tool::SessionState,
};
use ac_testkit::Turn;
use async_trait::async_trait;
use serde_json::{Map, Value, json};

use crate::desk::{Desk, build_mode, drain, names};

/// Writes down what it is given, and sets the state where it is told to.
struct Peek(Arc<Mutex<Vec<Value>>>);

#[async_trait]
impl Tool for Peek {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new("peek", "Looks.", json!({ "type": "object" })).category(ToolCategory::Other).effect(ToolEffect::ReadOnly)
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        self.0.lock().unwrap().push(Value::Object(cx.request_context.as_ref().clone()));
        if let Some(set) = args["set"].as_object() {
            let state = cx.capability::<dyn SessionState>()?.set(set.clone()).await?;
            return Ok(ToolOutcome::Done(ToolOutput::new(Value::Object(state.as_ref().clone()))));
        }
        Ok(ToolOutcome::Done(ToolOutput::text("seen")))
    }
}

fn peeking(desk: &Desk, life: &str) -> (ControllerBuilder, Arc<Mutex<Vec<Value>>>) {
    let seen = Arc::new(Mutex::new(vec![]));
    let tool: Arc<dyn Tool> = Arc::new(Peek(seen.clone()));
    (desk.builder(life).tools([tool]).modes(build_mode()), seen)
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn with(context: Value) -> UserMessage {
    UserMessage::new("go").request_context(map(context))
}

#[tokio::test]
async fn tools_read_the_context_and_an_answer_after_a_restart_still_has_it() {
    let desk = Desk::new([
        Turn::tool("c1", "peek", json!({})),
        Turn::tool("c2", "ask_user", json!({ "question": "?" })),
        Turn::tool("c3", "peek", json!({})),
        Turn::tool("c4", "ask_user", json!({ "question": "?" })),
        Turn::tool("c5", "peek", json!({})),
        Turn::text("done"),
    ]);
    let (builder, seen) = peeking(&desk, "a");
    let first = builder.transient_context_keys(["token"]).build().unwrap();
    let session = first.create_session("ann").await.unwrap();
    session.set_tool_policy("peek", Some(Policy::Allow)).await.unwrap();
    session.send_message(with(json!({ "tenant": "t1", "token": "secret", "mastra__userRoles": ["admin"] }))).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [json!({ "tenant": "t1", "token": "secret" })]);
    first.shutdown().await;

    let (builder, seen) = peeking(&desk, "b");
    let second = builder.transient_context_keys(["token"]).build().unwrap();
    let session = second.create_session("ann").await.unwrap();
    session.set_tool_policy("peek", Some(Policy::Allow)).await.unwrap();
    let open = session.pending().await.unwrap();
    session.answer(&open[0].id, Answer::Reply { value: json!("x") }).await.unwrap();
    second.session(session.key()).unwrap().live_run().await.unwrap().unwrap().resting().await;
    assert_eq!(*seen.lock().unwrap(), [json!({ "tenant": "t1" })], "what is transient was never stored");
    let open = session.pending().await.unwrap();
    let other = map(json!({ "tenant": "t2", "token": "new", "organizationId": "o" }));
    let wrong = session.answer_with(&open[0].id, Answer::RunAgain, Some(map(json!({ "token": "wrong" })))).await;
    assert!(wrong.is_err());
    session.answer_with(&open[0].id, Answer::Reply { value: json!("x") }, Some(other)).await.unwrap();
    if let Some(run) = session.live_run().await.unwrap() {
        run.ended().await;
    }
    assert_eq!(seen.lock().unwrap().last().unwrap(), &json!({ "tenant": "t2", "token": "new" }), "the answerer's replaces it");
    let thread = session.thread_id().unwrap();
    assert!(desk.storage.runs().head(&thread).await.unwrap().unwrap().value.active_run.is_none());
    second.shutdown().await;
}

#[tokio::test]
async fn a_follow_up_keeps_its_context_until_its_run() {
    let slow = Turn::chunks(["a", "b"]).slowly(std::time::Duration::from_millis(50));
    let desk = Desk::new([slow, Turn::tool("c1", "peek", json!({})), Turn::text("done")]);
    let (builder, seen) = peeking(&desk, "");
    let controller = builder.transient_context_keys(["token"]).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    session.set_tool_policy("peek", Some(Policy::Allow)).await.unwrap();
    let mut events = session.subscribe();
    session.submit("first").await.unwrap();
    session.follow_up(with(json!({ "token": "t" }))).await.unwrap();
    for _ in 0..2 {
        crate::desk::until(&mut events, crate::desk::is_end).await;
    }
    assert_eq!(*seen.lock().unwrap(), [json!({ "token": "t" })]);
    controller.shutdown().await;
}

#[tokio::test]
async fn a_refused_repeat_takes_nothing_from_the_message_that_waits() {
    let desk = Desk::new([
        Turn::tool("c0", "look", json!({ "what": "a", "wait": 300 })),
        Turn::text("ok"),
        Turn::tool("c1", "peek", json!({})),
        Turn::text("done"),
        Turn::tool("c2", "peek", json!({})),
        Turn::text("done"),
    ]);
    let (builder, seen) = peeking(&desk, "");
    let controller = builder.transient_context_keys(["token"]).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    session.set_tool_policy("peek", Some(Policy::Allow)).await.unwrap();
    let mut events = session.subscribe();
    session.submit("first").await.unwrap();
    session.follow_up(with(json!({ "token": "its own" })).id("m2")).await.unwrap();
    let again = || with(json!({ "token": "another" })).id("m2");
    assert!(session.submit_once(again()).await.unwrap().is_none());
    assert_eq!(session.submit(again()).await.unwrap_err().code(), "storage.exists");
    assert_eq!(session.steer(again()).await.unwrap_err().code(), "storage.exists");
    assert_eq!(session.inject(again()).await.unwrap_err().code(), "storage.exists");
    assert_eq!(session.follow_up(again()).await.unwrap_err().code(), "storage.exists");
    // Ids are a thread's alone: this is another message.
    let elsewhere = controller.create_session(ac_controller::SessionRequest::new("ann").scope("tab").thread("other")).await.unwrap();
    for _ in 0..2 {
        crate::desk::until(&mut events, crate::desk::is_end).await;
    }
    elsewhere.set_tool_policy("peek", Some(Policy::Allow)).await.unwrap();
    elsewhere.send_message(again()).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [json!({ "token": "its own" }), json!({ "token": "another" })]);
    controller.shutdown().await;
}

fn counter() -> StateSchema {
    StateSchema::new(json!({
        "type": "object",
        "properties": { "count": { "type": "number", "default": 0 }, "name": { "type": "string" }, "yolo": { "type": "boolean" } }
    }))
    .strip_unknown()
}

/// SPEC A-1…A-6; what decides about permissions is nobody's but the host's.
#[tokio::test]
async fn the_state_is_checked_and_what_protects_it_is_protected() {
    let desk = Desk::new([
        Turn::tool("c1", "peek", json!({ "set": { "name": "n" } })),
        Turn::tool("c2", "peek", json!({ "set": { "yolo": true } })),
        Turn::tool("c3", "peek", json!({ "set": { "count": "bad" } })),
        Turn::text("done"),
    ]);
    let (builder, _) = peeking(&desk, "");
    let controller = builder.state_schema(counter()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    assert_eq!(*session.state(), map(json!({ "count": 0 })), "defaults of the schema");
    session.set_state(map(json!({ "count": 5 }))).await.unwrap();
    let error = session.set_state(map(json!({ "count": "bad", "name": "x" }))).await.unwrap_err();
    assert_eq!((error.code(), session.state().len()), ("state.invalid", 1), "all or nothing");
    let mut events = session.subscribe();
    session.set_state(map(json!({ "unknown": 1 }))).await.unwrap();
    assert_eq!(names(&drain(&mut events)), ["state_changed"]);
    assert_eq!(*session.state(), map(json!({ "count": 5 })));
    let error = session.set_unprotected_state(map(json!({ "yolo": true, "count": 6 }))).await.unwrap_err();
    assert_eq!((error.code(), session.state()["count"].clone()), ("state.protected", json!(5)));
    session.set_unprotected_state(map(json!({ "count": 6 }))).await.unwrap();

    session.set_tool_policy("peek", Some(Policy::Allow)).await.unwrap();
    session.send_message("go").await.unwrap();
    let ends: Vec<_> = drain(&mut events)
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::ToolEnd { is_error, .. } => Some(*is_error),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [false, true, true]);
    assert_eq!((&session.state()["name"], session.state().get("yolo")), (&json!("n"), None));
    controller.shutdown().await;
}

#[tokio::test]
async fn the_host_sets_the_rules_through_the_state() {
    let desk = Desk::new([]);
    let (builder, _) = peeking(&desk, "");
    let controller = builder.build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let rules = json!({ "categories": { "edit": "allow" }, "tools": { "run": "deny" } });
    session.set_state(map(json!({ "permissionRules": rules }))).await.unwrap();
    assert_eq!(session.rules().tools["run"], Policy::Deny);
    let before = session.rules();
    let error = session.set_state(map(json!({ "permissionRules": { "tools": { "run": "perhaps" } } }))).await.unwrap_err();
    assert_eq!((error.code(), session.rules()), ("state.invalid", before));
    controller.shutdown().await;
}
