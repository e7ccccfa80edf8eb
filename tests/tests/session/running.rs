//! Sending, stopping, steering, queues.

use std::time::Duration;

use ac_controller::{ApprovalDecision, Mode, Settlement, UserMessage};
use ac_core::{EventBody, Policy, ToolCategory, permission::Reason};
use ac_storage::domain::MessageQuery;
use ac_testkit::{Turn, server::turn::Match};
use serde_json::{Map, json};

use crate::desk::{Desk, build_mode, drain, is_end, names, send_and_rest, story, until};

fn is_text(body: &EventBody) -> bool {
    matches!(body, EventBody::MessageUpdate { .. })
}

#[tokio::test]
async fn abort_keeps_the_text_that_was_shown() {
    let desk = Desk::new([Turn::text("I was say").then_hang()]);
    let controller = desk.open("");
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    let submitted = session.submit("talk").await.unwrap();
    let mut all = until(&mut events, is_text).await;
    assert!(session.abort().await.unwrap());
    assert_eq!(submitted.settled().await, Settlement::Aborted);
    all.extend(drain(&mut events));
    insta::assert_snapshot!(story(&all), @r#"
    [run-1] agent_start
    [run-1] message_start message-1 signal: "talk"
    [run-1] message_end id=message-1
    [run-1] message_start run-1/0 assistant: ""
    [run-1] message_update run-1/0 text "I was say"
    [run-1] message_end id=run-1/0
    [run-1] agent_end reason=aborted
    "#);
    let stored = session.messages(None, MessageQuery::default()).await.unwrap();
    assert_eq!(stored.items.iter().map(|stored| stored.message.text()).collect::<Vec<_>>(), ["talk", "I was say"]);
    controller.shutdown().await;
}

#[tokio::test]
async fn two_sessions_at_once_do_not_see_each_other() {
    let turn = |text: &str, who: &str| {
        Turn::chunks([text, "!"]).slowly(Duration::from_millis(5)).when(Match { contains: Some(who.into()), ..Match::default() })
    };
    let desk = Desk::new([turn("to ann", "I am ann"), turn("to bob", "I am bob")]);
    let controller = desk.open("");
    let (ann, bob) = (controller.create_session("ann").await.unwrap(), controller.create_session("bob").await.unwrap());
    let (mut to_ann, mut to_bob) = (ann.subscribe(), bob.subscribe());
    let (a, b) = tokio::join!(ann.send_message("I am ann"), bob.send_message("I am bob"));
    assert_eq!((a.unwrap().settlement, b.unwrap().settlement), (Settlement::Complete, Settlement::Complete));
    for (events, own, other) in [(&mut to_ann, "ann", "bob"), (&mut to_bob, "bob", "ann")] {
        let events = drain(events);
        assert!(events.iter().all(|event| event.session.resource.as_str() == own));
        let told = story(&events);
        assert!(told.contains(&format!("I am {own}")) && !told.contains(other), "{told}");
        assert!(events.windows(2).all(|pair| pair[1].seq == pair[0].seq + 1), "no number is missing");
    }
    controller.shutdown().await;
}

#[tokio::test]
async fn a_message_during_a_run_reaches_the_next_step() {
    let desk = Desk::new([Turn::tool("c1", "look", json!({ "what": "slowly", "wait": 100 })), Turn::text("both done")]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    let submitted = session.submit("first").await.unwrap();
    until(&mut events, |body| matches!(body, EventBody::ToolStart { .. })).await;
    let second = session.send_message("second").await.unwrap();
    assert_eq!((second.settlement, &second.run), (Settlement::Joined, &submitted.run));
    session.inject("third").await.unwrap();
    assert_eq!(session.queue().await.unwrap().len(), 2);
    let removed = session.submit("taken back").await.unwrap();
    session.remove_queued(&removed.message).await.unwrap();
    assert_eq!(submitted.settled().await, Settlement::Complete);
    let last = desk.server.requests().pop().unwrap().body.to_string();
    assert!(last.contains("second") && last.contains("third") && !last.contains("taken back"), "{last}");
    assert_eq!(session.remove_queued(&second.message).await.unwrap_err().code(), "queue.not_found");
    controller.shutdown().await;
}

#[tokio::test]
async fn follow_ups_run_one_after_the_other_and_are_seen_while_they_wait() {
    let desk = Desk::new([
        Turn::chunks(["a", "b", "c"]).slowly(Duration::from_millis(30)),
        Turn::text("to the second"),
        Turn::text("to the third"),
    ]);
    let controller = desk.open("");
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    session.submit("first").await.unwrap();
    until(&mut events, is_text).await;
    let second = session.follow_up("second").await.unwrap();
    let third = session.follow_up("third").await.unwrap();
    let dropped = session.follow_up("dropped").await.unwrap();
    assert!(second.started.is_none());
    session.remove_queued(&dropped.message).await.unwrap();
    session.reorder_queue(&[third.message.clone(), second.message.clone()]).await.unwrap();
    let queue = session.queue().await.unwrap();
    assert_eq!(queue.iter().map(|item| item.text.as_str()).collect::<Vec<_>>(), ["third", "second"]);
    assert_eq!(session.display_state().queued_follow_ups, 2);
    for _ in 0..3 {
        until(&mut events, is_end).await;
    }
    tokio::time::timeout(Duration::from_secs(5), async {
        while session.current_run().await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .unwrap();
    let stored = session.messages(None, MessageQuery::default()).await.unwrap();
    let texts: Vec<_> = stored.items.iter().map(|stored| stored.message.text()).collect();
    assert_eq!(texts, ["first", "abc", "third", "to the second", "second", "to the third"]);
    assert!(session.queue().await.unwrap().is_empty());
    assert_eq!(session.display_state().queued_follow_ups, 0);
    controller.shutdown().await;
}

#[tokio::test]
async fn a_follow_up_survives_the_process() {
    let desk = Desk::new([Turn::tool("c1", "write", json!({ "what": "a" })), Turn::text("one"), Turn::text("two")]);
    let first = desk.open("a");
    let session = first.create_session("ann").await.unwrap();
    session.switch_mode("build").await.unwrap();
    send_and_rest(&session, "go").await;
    session.follow_up("and then").await.unwrap();
    first.shutdown().await;

    let second = desk.open("b");
    let session = second.create_session("ann").await.unwrap();
    assert_eq!(session.queue().await.unwrap().len(), 1);
    assert_eq!(session.display_state().queued_follow_ups, 1);
    let mut events = session.subscribe();
    session.respond_to_tool_approval(ApprovalDecision::Approve, None).await.unwrap();
    until(&mut events, is_end).await;
    until(&mut events, is_end).await;
    let stored = session.messages(None, MessageQuery::default()).await.unwrap();
    assert_eq!(stored.items.last().unwrap().message.text(), "two");
    second.shutdown().await;
}

/// SPEC S-33.
#[tokio::test]
async fn a_follow_up_to_a_run_that_waits_for_answers_alone_joins_it() {
    let desk = Desk::new([Turn::tool("c1", "ask_user", json!({ "question": "?" })), Turn::text("one")]);
    let controller = desk.open("");
    let session = controller.create_session("ann").await.unwrap();
    session.send_message("go").await.unwrap();
    assert!(session.follow_up("and then").await.unwrap().started.is_none());
    let queue = session.queue().await.unwrap();
    assert_eq!((queue.len(), queue[0].kind), (1, ac_core::event::QueueKind::Message));
    let mut events = session.subscribe();
    session.respond_to_tool_suspension(json!("yes"), None).await.unwrap();
    until(&mut events, is_end).await;
    let asked = desk.server.requests()[1].body["messages"].clone();
    let last: Vec<_> = asked.as_array().unwrap().iter().rev().take(2).map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(last, ["user", "tool"], "after the answer, and as it was written: nothing worked when it came");
    assert_eq!(asked.as_array().unwrap().last().unwrap()["content"], "and then");
    controller.shutdown().await;
}

#[tokio::test]
async fn steering_stops_what_runs_and_goes_on_with_the_message() {
    let desk = Desk::new([Turn::text("wrong way").then_hang(), Turn::text("right way")]);
    let controller = desk.open("");
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    session.submit("go").await.unwrap();
    let mut all = until(&mut events, is_text).await;
    let steered = session.steer("turn round").await.unwrap();
    assert_eq!(steered.settled().await, Settlement::Complete);
    all.extend(drain(&mut events));
    assert_eq!(
        names(&all).into_iter().filter(|name| name.starts_with("agent_")).collect::<Vec<_>>(),
        ["agent_start", "agent_end", "agent_start", "agent_end"]
    );
    controller.shutdown().await;
}

#[tokio::test]
async fn what_fails_before_a_run_is_an_error_and_what_fails_in_it_an_event() {
    let desk = Desk::new([Turn::error(401, "bad key")]);
    let controller = desk.builder("").mode(Mode::new("only")).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    assert_eq!(session.send_message("").await.unwrap_err().code(), "message.empty");
    assert_eq!(session.send_message("hi").await.unwrap_err().code(), "model.none_selected");
    let mut large = Map::new();
    large.insert("k".into(), json!("x".repeat(70_000)));
    assert_eq!(session.send_message(UserMessage::new("hi").request_context(large)).await.unwrap_err().code(), "message.too_large");
    assert!(desk.server.requests().is_empty());
    session.switch_model("prov/m").await.unwrap();
    let mut events = session.subscribe();
    let settled = session.send_message("hi").await.unwrap();
    let Settlement::Failed(error) = settled.settlement else { panic!("{settled:?}") };
    assert_eq!(error.code, "model.auth");
    assert_eq!(names(&drain(&mut events)).into_iter().rev().take(2).collect::<Vec<_>>(), ["agent_end", "error"]);
    controller.shutdown().await;
}

#[tokio::test]
async fn rules_decide_before_anybody_is_asked() {
    let desk = Desk::new([
        Turn::tool("c1", "write", json!({ "what": "a" })).then_tool("c2", "run", json!({ "what": "b" })),
        Turn::text("ok"),
        Turn::text("ok"),
    ]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    assert_eq!(session.decide("write").unwrap().reason, Reason::Default);
    session.set_tool_policy("write", Some(Policy::Allow)).await.unwrap();
    session.set_category_policy(ToolCategory::Execute, Some(Policy::Deny)).await.unwrap();
    assert_eq!(session.decide("run").unwrap().reason, Reason::CategoryDenied);
    let mut events = session.subscribe();
    assert_eq!(session.send_message("go").await.unwrap().settlement, Settlement::Complete);
    let denied = drain(&mut events).into_iter().find_map(|event| match &event.body {
        EventBody::ToolEnd { call, denied, is_error, .. } if call.as_str() == "c2" => Some((*denied, *is_error)),
        _ => None,
    });
    assert_eq!(denied, Some((true, false)));
    assert_eq!(desk.done(), ["write a"]);
    // A denied tool is not shown; yolo does not change that.
    session.set_state(Map::from_iter([("yolo".to_owned(), json!(true))])).await.unwrap();
    session.send_message("again").await.unwrap();
    let tools = desk.server.requests()[0].body["tools"].to_string();
    assert!(tools.contains("write") && !tools.contains("\"run\""), "{tools}");
    assert_eq!(session.decide("run").unwrap().reason, Reason::CategoryDenied);
    controller.shutdown().await;
}
