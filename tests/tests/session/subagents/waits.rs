//! Subagents that wait for a person: in the parent's session, in any process, at any depth.

use std::{sync::Arc, time::Duration};

use ac_controller::{Answer, ControllerBuilder, RuntimeSettings, Settlement, Subagent, SystemClock};
use ac_core::{
    EventBody,
    event::{EndReason, PendingKind},
};
use ac_testkit::Turn;
use serde_json::json;

use super::{builder, hand_over, helper, over, process, said, waiting, write};
use crate::desk::{Desk, build_mode, drain, is_end, names, until};

/// A that hands to B that hands to C, which wants to write.
fn nested() -> [Subagent; 3] {
    let kind = |id: &str, tools: &[&'static str]| {
        Subagent::new(id).instructions(format!("I AM {id}")).allowed_controller_tools(tools.iter().copied())
    };
    [kind("b", &["subagent"]), kind("c", &["subagent", "write"]), kind("d", &["write"])]
}

fn two_levels() -> Vec<Turn> {
    vec![
        hand_over("c1", "b", "to b"),
        hand_over("c1", "c", "to c").when_contains("I AM b"),
        write("c1", "w").when_contains("I AM c"),
        Turn::text("c did it").when_contains("I AM c"),
        Turn::text("b says: c did it").when_contains("I AM b"),
        Turn::text("done"),
    ]
}

fn three_levels() -> Vec<Turn> {
    let mut turns = two_levels();
    turns[2] = hand_over("c1", "d", "to d").when_contains("I AM c");
    turns.insert(3, write("c1", "w").when_contains("I AM d"));
    turns.insert(4, Turn::text("d did it").when_contains("I AM d"));
    turns
}

/// B-102: what waits below is answered where the parent lives, the protected tool runs once, and the results bubble up.
#[tokio::test]
async fn an_approval_two_and_three_levels_below_is_given_in_the_session_live() {
    for turns in [two_levels(), three_levels()] {
        let count = turns.len();
        let desk = Desk::new(turns);
        let controller = process(&desk, "", nested());
        let session = controller.create_session("ann").await.unwrap();
        let mut events = session.subscribe();
        let submitted = session.submit("go").await.unwrap();
        let handle = submitted.handle().unwrap();
        tokio::time::timeout(Duration::from_secs(10), handle.resting()).await.unwrap();
        let open = waiting(&session, 1).await;
        assert_eq!((open[0].tool.as_str(), open[0].kind), ("write", PendingKind::Approval));
        assert!(open[0].parent_call.is_some());
        let view = session.display_state();
        assert_eq!(view.pending_approvals.len(), 1);
        assert_eq!((&view.pending_approvals[0].pending, &view.pending_approvals[0].parent_call), (&open[0].id, &open[0].parent_call));
        assert!(view.is_running, "an approval keeps the segment open");
        session.approve(&open[0].id).await.unwrap();
        assert_eq!(submitted.settled().await, Settlement::Complete);
        assert_eq!(desk.done(), ["write w"]);
        assert!(session.pending().await.unwrap().is_empty());
        assert!(session.display_state().pending_approvals.is_empty());
        assert_eq!(desk.server.requests().len(), count);
        assert_eq!(said(&desk, count - 1).pop().unwrap().1, json!({ "content": "b says: c did it", "isError": false }).to_string());
        let told = names(&drain(&mut events));
        let n = |name: &str| told.iter().filter(|told| **told == name).count();
        assert_eq!((n("tool_approval_required"), n("agent_start"), n("agent_end")), (1, 1, 1));
        assert_eq!(n("subagent_start"), n("subagent_end"));
        controller.shutdown().await;
    }
}

/// B-102, B-103: the same after a restart. The child goes on where it stopped: its first step is not made again, one approval is asked for
/// in all.
#[tokio::test]
async fn an_approval_below_is_given_in_another_life() {
    for turns in [two_levels(), three_levels()] {
        let count = turns.len();
        let desk = Desk::new(turns);
        let first = process(&desk, "", nested());
        let session = first.create_session("ann").await.unwrap();
        let submitted = session.submit("go").await.unwrap();
        tokio::time::timeout(Duration::from_secs(10), submitted.handle().unwrap().resting()).await.unwrap();
        let before = waiting(&session, 1).await;
        first.shutdown().await;
        let asked = desk.server.requests().len();

        let second = process(&desk, "second", nested());
        second.init().await.unwrap();
        let session = second.create_session("ann").await.unwrap();
        assert_eq!(session.pending().await.unwrap(), before);
        let view = session.display_state();
        assert!(!view.is_running, "after a restart nothing runs");
        assert_eq!(view.pending_approvals.len(), 1);
        assert!(!view.active_subagents.is_empty());
        assert_eq!(desk.server.requests().len(), asked, "nothing was asked again");
        let mut events = session.subscribe();
        session.approve(&before[0].id).await.unwrap();
        let events = until(&mut events, is_end).await;
        over(&session).await;
        assert_eq!(desk.done(), ["write w"]);
        assert_eq!(desk.server.requests().len(), count);
        assert!(session.pending().await.unwrap().is_empty());
        let told = names(&events);
        assert_eq!(told.iter().filter(|name| **name == "agent_start").count(), 1, "{told:?}");
        assert!(!told.contains(&"tool_approval_required"));
        // The same again is known, something else is refused.
        assert!(session.approve(&before[0].id).await.unwrap().repeated);
        assert_eq!(session.decline(&before[0].id, None).await.unwrap_err().code(), "answer.already_resolved");
        second.shutdown().await;
    }
}

/// B-102: two children wait at the same time, and each is answered by itself.
#[tokio::test]
async fn two_children_wait_at_the_same_time() {
    let both = hand_over("c1", "helper", "one").then_tool("c2", "subagent", json!({ "agentType": "helper", "task": "two" }));
    let desk = Desk::new([
        both,
        write("w", "first").when_contains("\"one\""),
        write("w", "second").when_contains("\"two\""),
        Turn::text("done one").when_contains("\"one\""),
        Turn::text("done two").when_contains("\"two\""),
        Turn::text("done"),
    ]);
    let controller = process(&desk, "", [helper()]);
    let session = controller.create_session("ann").await.unwrap();
    let submitted = session.submit("go").await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), submitted.handle().unwrap().resting()).await.unwrap();
    let open = waiting(&session, 2).await;
    let of = |what: &str| open.iter().find(|wait| wait.args["what"] == what).unwrap().id.clone();
    session.decline(&of("second"), Some("not that".into())).await.unwrap();
    assert_eq!(waiting(&session, 1).await[0].id, of("first"));
    session.approve(&of("first")).await.unwrap();
    assert_eq!(submitted.settled().await, Settlement::Complete);
    assert_eq!(desk.done(), ["write first"]);
    let refusals = desk.server.requests().iter().filter(|request| request.body.to_string().contains("not that")).count();
    assert!(refusals > 0);
    controller.shutdown().await;
}

/// B-103: a child that wrote before it asked does not write again, in this life or the next one.
#[tokio::test]
async fn an_approved_child_goes_on_where_it_stopped() {
    for restart in [false, true] {
        let desk = Desk::new([
            hand_over("c1", "helper", "count"),
            Turn::tool("s1", "look", json!({ "what": "counter" })).when_contains("HELPER"),
            write("s2", "gated").when_contains("HELPER"),
            Turn::text("counted").when_contains("HELPER"),
            Turn::text("done"),
        ]);
        let first = process(&desk, "", [helper()]);
        let session = first.create_session("ann").await.unwrap();
        let mut events = session.subscribe();
        let submitted = session.submit("go").await.unwrap();
        tokio::time::timeout(Duration::from_secs(10), submitted.handle().unwrap().resting()).await.unwrap();
        let open = waiting(&session, 1).await;
        let mut told = names(&drain(&mut events));
        let controller = if restart {
            first.shutdown().await;
            let second = process(&desk, "second", [helper()]);
            second.init().await.unwrap();
            second
        } else {
            first
        };
        let session = controller.create_session("ann").await.unwrap();
        let mut events = session.subscribe();
        session.approve(&open[0].id).await.unwrap();
        told.extend(names(&until(&mut events, is_end).await));
        assert_eq!(desk.done(), ["look counter", "write gated"], "restart: {restart}");
        assert_eq!(told.iter().filter(|name| **name == "tool_approval_required").count(), 1, "restart: {restart}");
        assert_eq!(desk.server.requests().len(), 5);
        controller.shutdown().await;
    }
}

/// A question of a child parks the whole tree: sending returns, the segment is over, and the answer opens the next one.
#[tokio::test]
async fn a_question_of_a_child_parks_its_parents_and_the_answer_goes_on_with_all() {
    let desk = Desk::new([
        hand_over("c1", "helper", "ask"),
        Turn::tool("q", "ask_user", json!({ "question": "Which?" })).when_contains("HELPER"),
        Turn::text("red it is").when_contains("HELPER"),
        Turn::text("done"),
    ]);
    let controller = process(&desk, "", [helper()]);
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    let settled = tokio::time::timeout(Duration::from_secs(10), session.send_message("go")).await.unwrap().unwrap();
    assert_eq!(settled.settlement, Settlement::Waiting);
    let told = drain(&mut events);
    assert!(matches!(
        told.iter().rev().find(|event| is_end(&event.body)).unwrap().body,
        EventBody::AgentEnd { reason: EndReason::Suspended, .. }
    ));
    let asked = told.iter().find_map(|event| match &event.body {
        EventBody::ToolSuspended { pending, parent_call, .. } => Some((pending.clone(), parent_call.clone())),
        _ => None,
    });
    let open = session.pending().await.unwrap();
    assert_eq!(asked, Some((open[0].id.clone(), Some("c1".into()))));
    assert_eq!(session.display_state().pending_suspensions.len(), 1);
    assert!(!session.is_running());
    // A wrong answer moves nothing.
    session.answer(&open[0].id, Answer::Reply { value: json!(7) }).await.unwrap_err();
    session.answer(&open[0].id, Answer::Reply { value: json!("red") }).await.unwrap();
    let told = names(&until(&mut events, is_end).await);
    let place = |name: &str| told.iter().position(|told| *told == name).unwrap_or_else(|| panic!("no {name} in {told:?}"));
    assert!(place("agent_start") < place("subagent_start") && place("subagent_start") < place("subagent_tool_end"), "{told:?}");
    assert!(place("subagent_end") < place("tool_end"));
    over(&session).await;
    assert_eq!(said(&desk, 3).pop().unwrap().1, json!({ "content": "red it is", "isError": false }).to_string());
    controller.shutdown().await;
}

/// `R7`: who writes instead of deciding declines exactly what asked at that moment, in the whole tree. Questions stay open.
#[tokio::test]
async fn a_message_declines_what_asks_in_children_and_leaves_their_questions() {
    let both = hand_over("c1", "helper", "one").then_tool("c2", "subagent", json!({ "agentType": "helper", "task": "two" }));
    let desk = Desk::new([
        both,
        write("w", "first").when_contains("\"one\""),
        Turn::tool("q", "ask_user", json!({ "question": "Which?" })).when_contains("\"two\""),
        Turn::text("all right").when_contains("\"one\""),
        Turn::text("blue").when_contains("\"two\""),
        Turn::text("done"),
    ]);
    let controller = process(&desk, "", [helper()]);
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    let submitted = session.submit("go").await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), submitted.handle().unwrap().resting()).await.unwrap();
    let open = waiting(&session, 2).await;
    let approval = open.iter().find(|wait| wait.kind == PendingKind::Approval).unwrap();
    assert_eq!(session.send_message("forget it").await.unwrap().settlement, Settlement::Joined);
    let left = waiting(&session, 1).await;
    assert_eq!(left[0].kind, PendingKind::Question);
    assert_eq!(session.approve(&approval.id).await.unwrap_err().code(), "answer.already_resolved");
    session.answer(&left[0].id, Answer::Reply { value: json!("blue") }).await.unwrap();
    over(&session).await;
    assert!(desk.done().is_empty());
    let told = drain(&mut events);
    let declined = told.iter().find_map(|event| match &event.body {
        EventBody::SubagentToolEnd { tool, result, .. } if tool == "write" => Some(result.clone()),
        _ => None,
    });
    assert_eq!(declined, Some(json!("interrupted_by_user_message")));
    let last = desk.server.requests().pop().unwrap().body.to_string();
    assert!(last.contains("forget it") && last.contains("all right") && last.contains("blue"), "{last}");
    controller.shutdown().await;
}

/// A tree that only waits is no moving run: who leaves its thread leaves it as it is, and its answer counts from anywhere.
#[tokio::test]
async fn a_waiting_tree_stays_where_it_is_when_its_thread_is_left() {
    let desk = Desk::new([
        hand_over("c1", "helper", "write"),
        write("w", "it").when_contains("HELPER"),
        Turn::text("wrote").when_contains("HELPER"),
        Turn::text("done"),
    ]);
    let controller = process(&desk, "", [helper()]);
    let session = controller.create_session("ann").await.unwrap();
    let first = session.thread_id().unwrap();
    let submitted = session.submit("go").await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), submitted.handle().unwrap().resting()).await.unwrap();
    let open = waiting(&session, 1).await;
    session.create_thread(None, "").await.unwrap();
    assert!(session.display_state().pending_approvals.is_empty(), "the other thread is not the shown one");
    assert_eq!(session.pending().await.unwrap(), open);
    session.approve(&open[0].id).await.unwrap();
    assert_eq!(submitted.settled().await, Settlement::Complete);
    assert_eq!(desk.done(), ["write it"]);
    assert_ne!(session.thread_id().unwrap(), first);
    // Deleting the thread takes the threads of its subagents along.
    session.delete_thread(&first).await.unwrap();
    let child = ac_core::id::child_run(&submitted.run, 0, &"c1".into());
    assert_eq!(desk.storage.threads().get(&child.as_str().into()).await.unwrap(), None);
    controller.shutdown().await;
}

/// A process with short leases, on the real clock.
fn on_real_time(desk: &Desk, life: &str) -> ControllerBuilder {
    let mut settings = RuntimeSettings::default();
    settings.lease = Duration::from_millis(300);
    settings.grace = Duration::from_millis(50);
    settings.poll = Duration::from_millis(30);
    builder(desk, life, [helper()]).clock(Arc::new(SystemClock)).runtime(settings).modes(build_mode())
}

/// One process asks, another answers: the child goes on there, and its parent with it. Nobody moves a tree that only waits.
#[tokio::test]
async fn a_child_is_answered_by_another_process_while_the_first_one_lives() {
    let desk = Desk::new([
        hand_over("c1", "helper", "write"),
        write("w", "it").when_contains("HELPER"),
        Turn::text("wrote").when_contains("HELPER"),
        Turn::text("done"),
    ]);
    let (a, b) = (on_real_time(&desk, "a").build().unwrap(), on_real_time(&desk, "b").build().unwrap());
    a.init().await.unwrap();
    b.init().await.unwrap();
    let session = a.create_session("ann").await.unwrap();
    let submitted = session.submit("go").await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), submitted.handle().unwrap().resting()).await.unwrap();
    let open = waiting(&session, 1).await;
    let epoch = async || desk.storage.runs().load(&submitted.run).await.unwrap().unwrap().value.header.epoch;
    let before = epoch().await;
    // Longer than two looks of the backstop of each.
    tokio::time::sleep(Duration::from_millis(800)).await;
    assert_eq!(epoch().await, before, "a tree that only waits is passed on");
    let other = b.create_session("ann").await.unwrap();
    let mut events = other.subscribe();
    other.approve(&open[0].id).await.unwrap();
    let told = names(&until(&mut events, is_end).await);
    over(&other).await;
    assert_eq!(desk.done(), ["write it"]);
    assert_eq!(desk.server.requests().len(), 4);
    assert_eq!(told.first(), Some(&"agent_start"), "{told:?}");
    assert!(told.contains(&"subagent_end") && told.contains(&"tool_end"), "{told:?}");
    a.shutdown().await;
    b.shutdown().await;
}

/// A process that dies while a child works: the next one goes on with both.
#[tokio::test]
async fn a_child_that_worked_when_its_process_died_is_gone_on_with() {
    let desk = Desk::new([
        hand_over("c1", "helper", "look"),
        Turn::tool("s1", "look", json!({ "what": "long", "wait": 60_000 })).when_contains("HELPER"),
        Turn::text("looked").when_contains("HELPER"),
        Turn::text("done"),
    ]);
    let first = on_real_time(&desk, "a").build().unwrap();
    let session = first.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    session.submit("go").await.unwrap();
    until(&mut events, |body| matches!(body, EventBody::SubagentToolStart { .. })).await;
    first.shutdown().await;
    let second = on_real_time(&desk, "b").build().unwrap();
    let session = second.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    second.init().await.unwrap();
    // Only looking was going on, so it is done again and nobody is asked; this time it is stopped.
    assert!(session.pending().await.unwrap().is_empty());
    assert!(session.abort().await.unwrap());
    let told = names(&until(&mut events, is_end).await);
    assert_eq!(told.iter().filter(|name| **name == "subagent_end").count(), 1, "{told:?}");
    over(&session).await;
    assert_eq!(desk.server.requests().len(), 2);
    second.shutdown().await;
}
