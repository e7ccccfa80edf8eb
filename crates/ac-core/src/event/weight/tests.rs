use serde_json::json;

use super::*;
use crate::{Role, SessionKey, Timestamp, display::reduce, event::PendingKind, message::FilePart, tool::FileChange};

fn event(body: EventBody) -> Event {
    Event { epoch: "e".into(), seq: 1, at: Timestamp::default(), session: SessionKey::new("r"), run: None, thread: None, body }
}

fn delta(text: &str) -> EventBody {
    EventBody::MessageUpdate { id: "m".into(), update: MessageUpdate::TextDelta(text.into()) }
}

fn start(parts: Vec<Part>) -> EventBody {
    EventBody::MessageStart { message: Arc::new(Message::new("m", Role::Assistant, parts, Timestamp::default())) }
}

/// A view of much work, and what the next event makes of it.
fn views(next: EventBody) -> (DisplayState, Event) {
    let mut state = DisplayState::default();
    let mut tell = |body| reduce(&mut state, &event(body));
    tell(EventBody::AgentStart);
    for n in 0..300 {
        let call = format!("c{n}");
        tell(EventBody::ToolStart { call: call.as_str().into(), tool: "write_file".into(), args: json!({ "content": "x".repeat(1000) }) });
        let changed = vec![FileChange { path: format!("src/{n}.rs"), operation: "write_file".into(), diff: None }];
        tell(EventBody::ToolEnd { call: call.as_str().into(), result: json!("ok"), is_error: false, denied: false, changed });
    }
    tell(start(vec![Part::text("a".repeat(1_000_000))]));
    let before = state.clone();
    reduce(&mut state, &event(next));
    (before, event(EventBody::DisplayStateChanged { state: Arc::new(state) }))
}

#[test]
fn a_view_weighs_what_changed_and_not_what_there_is() {
    let (before, text) = views(delta("a"));
    let text = text.weight(Some(&before));
    assert!(text < 800, "{text}");
    let (before, tool) = views(EventBody::ToolInputStart { call: "new".into(), tool: "t".into() });
    let more = tool.weight(Some(&before)) - text;
    assert!((5_000..15_000).contains(&more), "the list of 300 calls, and nothing of what they hold: {more}");
    assert!(tool.weight(None) > tool.weight(Some(&before)), "a view that nothing came before has it all to itself");
}

#[test]
fn what_an_event_carries_counts() {
    const SIZE: usize = 10_000;
    let long = || "x".repeat(SIZE);
    let value = || json!({ "a": [long()] });
    let file = FilePart { media_type: "image/png".into(), source: FileSource::Base64(long().into()), name: None, opaque: None };
    let mut done = crate::ToolCallPart::new("c", "t", json!({}));
    done.state = ToolCallState::Result { output: ToolOutput::new(value()), is_error: false };
    let updated = MessageUpdate::Part { index: 0, part: Box::new(Part::ToolCall(done)) };
    let pending = || "r/0/c#1".parse().unwrap();
    let (call, tool) = (|| "c".into(), || "t".to_owned());
    let bodies = [
        start(vec![Part::text(long())]),
        start(vec![Part::File(file)]),
        delta(&long()),
        EventBody::MessageUpdate { id: "m".into(), update: updated },
        EventBody::ToolInputDelta { call: call(), delta: long() },
        EventBody::ToolStart { call: call(), tool: tool(), args: value() },
        EventBody::ToolApprovalRequired { pending: pending(), call: call(), tool: tool(), args: value(), parent_call: None },
        EventBody::ToolSuspended {
            pending: pending(),
            kind: PendingKind::Question,
            call: call(),
            tool: tool(),
            args: json!({}),
            payload: value(),
            answer_schema: None,
            parent_call: None,
        },
        EventBody::ToolUpdate { call: call(), partial: value() },
        EventBody::ToolEnd { call: call(), result: value(), is_error: false, denied: false, changed: vec![] },
        EventBody::ShellOutput { call: call(), output: long(), stderr: false },
        EventBody::Info { message: long() },
        EventBody::Error { error: ErrorInfo::new("a.b", long()), retry: None },
        EventBody::StateChanged { state: Arc::new(value().as_object().unwrap().clone()), changed: vec![] },
        EventBody::GoalEvaluation { payload: value() },
        EventBody::SubagentTextDelta { call: call(), agent_type: tool(), delta: long() },
        EventBody::SubagentToolEnd { call: call(), agent_type: tool(), sub_call: call(), tool: tool(), result: value(), is_error: false },
    ];
    for body in bodies {
        let name = body.name();
        let weight = event(body).weight(None);
        assert!((SIZE..3 * SIZE).contains(&weight), "{name}: {weight}");
    }
    assert!(event(EventBody::AgentStart).weight(None) < 400);
}
