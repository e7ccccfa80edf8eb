use std::sync::Arc;

use ac_core::{
    Clock as _, DisplayState, Event, EventBody, Message, Part, SessionKey,
    display::reduce,
    event::{EndReason, MessageUpdate},
};
use ac_storage::record::StoredMessage;
use serde_json::json;

use super::Transcript;
use crate::{ManualClock, server::Exchange};

fn events() -> Vec<Event> {
    let clock = ManualClock::new();
    let at = clock.now();
    let message = Arc::new(Message::new("run-1/1", ac_core::Role::Assistant, vec![Part::text("")], at));
    let bodies = vec![
        EventBody::AgentStart,
        EventBody::MessageStart { message: Arc::new(Message::user("message-1", "say hi", at)) },
        EventBody::MessageEnd { id: "message-1".into() },
        EventBody::MessageStart { message },
        EventBody::MessageUpdate { id: "run-1/1".into(), update: MessageUpdate::TextDelta("h".into()) },
        EventBody::MessageUpdate { id: "run-1/1".into(), update: MessageUpdate::TextDelta("i".into()) },
        EventBody::MessageEnd { id: "run-1/1".into() },
        EventBody::ToolEnd { call: "c1".into(), result: json!({ "a": 1 }), is_error: false, denied: true, changed: Vec::new() },
        EventBody::AgentEnd { reason: EndReason::Complete, finish: None, error: None },
        EventBody::DisplayStateChanged { state: Arc::default() },
    ];
    let event = |(n, body)| Event {
        epoch: "e".into(),
        seq: n,
        at,
        session: SessionKey::new("local"),
        run: Some("run-1".into()),
        thread: Some("thread-1".into()),
        body,
    };
    (1..).zip(bodies).map(event).collect()
}

#[test]
fn a_transcript_reads_like_a_story() {
    let events = events();
    let mut state = DisplayState::default();
    events.iter().for_each(|event| reduce(&mut state, event));
    let call = json!({ "id": "c1", "type": "function", "function": { "name": "view", "arguments": "{\"path\":\"a\"}" } });
    let body = json!({
        "model": "m",
        "tools": [{ "type": "function", "function": { "name": "view" } }],
        "messages": [
            { "role": "user", "content": "say hi" },
            { "role": "assistant", "content": null, "tool_calls": [call] },
            { "role": "tool", "tool_call_id": "c1", "content": "text" },
        ],
    });
    let exchange = Exchange {
        path: "/v1/chat/completions".into(),
        headers: Vec::new(),
        body,
        turn: Some(0),
        delivery: crate::server::Delivery::Complete,
    };
    let stored = StoredMessage { position: 0, message: Arc::new(Message::user("message-1", "say hi", ManualClock::new().now())) };
    let mut told = Transcript::new();
    told.heading("events").note("say hi").events(&events).heading("requests").request(&exchange);
    told.heading("view").display(&state).heading("stored").messages([&stored]).row("lease", &json!({ "owner": "o", "epoch": 2 }));
    insta::assert_snapshot!(told, @r#"
    == events
    > say hi
    [run-1] agent_start
    [run-1] message_start message-1 signal: "say hi"
    [run-1] message_end id=message-1
    [run-1] message_start run-1/1 assistant: ""
    [run-1] message_update run-1/1 text "hi" (2 pieces)
    [run-1] message_end id=run-1/1
    [run-1] tool_end denied=true isError=false result={"a":1} threadId=thread-1 toolCallId=c1
    [run-1] agent_end reason=complete

    == requests
    POST /v1/chat/completions model=m tools=view
      user: "say hi"
      assistant: c1 view({"path":"a"})
      tool c1: "text"

    == view
    currentMessage: run-1/1 assistant: "hi"
    isRunning: false

    == stored
    0: message-1 signal: "say hi"
    lease epoch=2 owner=o
    "#);
}

#[test]
fn snapshots_of_the_view_are_shown_on_request() {
    let tell = |mut told: Transcript| told.events(&events()).to_string();
    assert!(!tell(Transcript::new()).contains("display_state_changed"));
    assert!(tell(Transcript::new().with_display_events()).contains("display_state_changed"));
}
