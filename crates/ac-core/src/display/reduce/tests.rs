use serde_json::json;

use super::*;
use crate::{Role, SessionKey, Timestamp, event::PendingKind, tool::FileChange};

fn told(body: EventBody) -> Event {
    Event { epoch: "e".into(), seq: 1, at: Timestamp::default(), session: SessionKey::new("r"), run: None, thread: Some("t".into()), body }
}

fn view(bodies: impl IntoIterator<Item = EventBody>) -> DisplayState {
    let mut state = DisplayState::default();
    for body in bodies {
        reduce(&mut state, &told(body));
    }
    state
}

fn start(call: &str) -> EventBody {
    EventBody::ToolStart { call: call.into(), tool: "write_file".into(), args: json!({}) }
}

fn pending(call: &str) -> crate::PendingId {
    format!("r/0/{call}#1").parse().unwrap()
}

fn asks(call: &str) -> EventBody {
    EventBody::ToolApprovalRequired { pending: pending(call), call: call.into(), tool: "t".into(), args: json!({}), parent_call: None }
}

fn suspends(call: &str) -> EventBody {
    EventBody::ToolSuspended {
        pending: pending(call),
        kind: PendingKind::Question,
        call: call.into(),
        tool: "ask_user".into(),
        args: json!({}),
        payload: json!({"question": "?"}),
        answer_schema: None,
        parent_call: None,
    }
}

fn ends(call: &str, is_error: bool, denied: bool, changed: Vec<FileChange>) -> EventBody {
    EventBody::ToolEnd { call: call.into(), result: json!("r"), is_error, denied, changed }
}

fn agent_end(reason: EndReason) -> EventBody {
    EventBody::AgentEnd { reason, finish: None, error: None }
}

#[test]
fn text_grows_part_by_part() {
    let message = Arc::new(Message::new("m", Role::Assistant, vec![Part::text("")], Timestamp::default()));
    let delta = |text: &str| EventBody::MessageUpdate { id: "m".into(), update: MessageUpdate::TextDelta(text.into()) };
    let other = EventBody::MessageUpdate { id: "other".into(), update: MessageUpdate::TextDelta("x".into()) };
    let state = view([EventBody::MessageStart { message }, delta("a"), delta("b"), other]);
    assert_eq!(state.current_message.unwrap().parts, [DisplayPart::Text("ab".into())]);
}

#[test]
fn a_snapshot_taken_in_the_middle_keeps_what_it_was() {
    let message = Arc::new(Message::new("m", Role::Assistant, vec![Part::text("a")], Timestamp::default()));
    let mut state = view([EventBody::MessageStart { message }]);
    let before = state.clone();
    reduce(&mut state, &told(EventBody::MessageUpdate { id: "m".into(), update: MessageUpdate::TextDelta("b".into()) }));
    assert_eq!(before.current_message.unwrap().parts, [DisplayPart::Text("a".into())]);
    assert_eq!(state.current_message.unwrap().parts, [DisplayPart::Text("ab".into())]);
}

#[test]
fn several_approvals_wait_at_once_and_each_goes_alone() {
    let mut state = view([EventBody::AgentStart, start("a"), start("b"), asks("a"), asks("b")]);
    assert_eq!(state.pending_approvals.len(), 2);
    reduce(&mut state, &told(EventBody::PendingResolved { pending: pending("a"), call: "a".into() }));
    assert_eq!(state.pending_approvals.iter().map(|open| open.call.as_str()).collect::<Vec<_>>(), ["b"]);
    reduce(&mut state, &told(ends("b", false, true, vec![])));
    assert!(state.pending_approvals.is_empty());
}

/// A run that was parked with several waits goes on when one is answered; `agent_start` must not hide the others.
#[test]
fn going_on_with_a_run_keeps_its_other_approvals_and_drops_those_of_others() {
    let mut state = view([asks("a"), asks("b"), agent_end(EndReason::Suspended)]);
    assert_eq!(state.pending_approvals.len(), 2);
    let start = |run: &str| Event { run: Some(run.into()), ..told(EventBody::AgentStart) };
    reduce(&mut state, &start("r"));
    assert_eq!(state.pending_approvals.len(), 2);
    reduce(&mut state, &start("another"));
    assert!(state.pending_approvals.is_empty());
}

#[test]
fn a_parked_call_is_suspended_and_no_error() {
    let state = view([EventBody::AgentStart, start("a"), suspends("a"), agent_end(EndReason::Suspended)]);
    assert_eq!(state.active_tools["a"].status, ToolStatus::Suspended);
    assert_eq!(state.pending_suspensions.len(), 1);
    assert!(!state.is_running);
}

#[test]
fn the_end_of_a_run_leaves_no_prompt_and_no_running_call() {
    let state = view([EventBody::AgentStart, start("a"), asks("a"), suspends("b"), agent_end(EndReason::Aborted)]);
    assert!(state.pending_approvals.is_empty() && state.pending_suspensions.is_empty());
    assert_eq!(state.active_tools["a"].status, ToolStatus::Error);
}

#[test]
fn only_what_a_tool_reports_counts_as_a_changed_file() {
    let change = FileChange { path: "a.txt".into(), operation: "write_file".into(), diff: None };
    let state = view([start("a"), ends("a", false, false, vec![change]), start("b"), ends("b", false, true, vec![])]);
    assert_eq!(state.modified_files["a.txt"].operations, ["write_file"]);
    assert_eq!(state.modified_files.len(), 1);
}

#[test]
fn another_thread_shows_nothing_of_the_old_one() {
    let state = view([
        EventBody::AgentStart,
        start("a"),
        suspends("a"),
        EventBody::FollowUpQueued { count: 2 },
        EventBody::ThreadChanged { thread: "u".into(), previous: None },
    ]);
    assert_eq!(state, DisplayState { is_running: true, ..DisplayState::default() });
}

#[test]
fn the_view_on_the_wire_has_all_its_keys() {
    let state = view([EventBody::AgentStart, start("a"), asks("a"), suspends("b")]);
    let wire = crate::wire::display_state(&state);
    assert_eq!(wire.as_object().unwrap().len(), 15);
    assert_eq!(wire["pendingApproval"], json!({"toolCallId": "a", "toolName": "t", "args": {}}));
    assert_eq!(wire["pendingSuspensions"]["b"]["suspendPayload"], json!({"question": "?"}));
}
