//! What is told of a subagent at work, and what its call comes to.

use std::sync::Arc;

use ac_core::{Event, EventBody, display::ToolStatus, wire};
use ac_storage::domain::{MessageQuery, ThreadQuery};
use ac_testkit::Turn;
use serde_json::{Value, json};

use super::{hand_over, helper, over, process, said, tools};
use crate::desk::{Desk, drain, is_end, names, until};

/// The activity of subagents, in the reference's form.
fn activity(events: &[Arc<Event>]) -> Vec<Value> {
    let about = |event: &&Arc<Event>| event.body.name().starts_with("subagent_");
    events
        .iter()
        .filter(about)
        .map(|event| {
            let mut told = wire::body(event);
            told.as_object_mut().unwrap().remove("durationMs");
            told
        })
        .collect()
}

/// SPEC U-4, U-12, U-13: what a subagent does is told as its call's activity, in order, and its words are the result.
#[tokio::test]
async fn a_subagent_works_on_its_own_and_its_words_are_the_result() {
    let desk = Desk::new([
        hand_over("c1", "helper", "find it").tokens(10, 5),
        Turn::tool("s1", "look", json!({ "what": "around" })).tokens(20, 6).when_contains("HELPER"),
        Turn::chunks(["sub ", "result"]).tokens(30, 7).when_contains("HELPER"),
        Turn::text("parent done").tokens(40, 8),
    ]);
    let controller = process(&desk, "", [helper()]);
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    session.send_message("go").await.unwrap();
    let events = drain(&mut events);

    let sub = "s1~";
    let told = activity(&events);
    let call = told[1]["subToolCallId"].as_str().unwrap().to_owned();
    assert!(call.starts_with(sub), "a child's call has an id of its own: {call}");
    assert_eq!(
        told,
        [
            json!({ "type": "subagent_start", "toolCallId": "c1", "agentType": "helper", "task": "find it", "modelId": "prov/builder", "forked": false }),
            json!({ "type": "subagent_tool_start", "toolCallId": "c1", "agentType": "helper", "subToolName": "look", "subToolArgs": { "what": "around" }, "subToolCallId": call }),
            json!({ "type": "subagent_tool_end", "toolCallId": "c1", "agentType": "helper", "subToolName": "look", "subToolResult": "did around", "isError": false, "subToolCallId": call }),
            json!({ "type": "subagent_text_delta", "toolCallId": "c1", "agentType": "helper", "textDelta": "sub " }),
            json!({ "type": "subagent_text_delta", "toolCallId": "c1", "agentType": "helper", "textDelta": "result" }),
            json!({ "type": "subagent_end", "toolCallId": "c1", "agentType": "helper", "result": "sub result", "isError": false }),
        ]
    );
    let others: Vec<_> = names(&events).into_iter().filter(|name| !name.starts_with("subagent_")).collect();
    // One segment, one message of the person's, and nothing of the subagent's own thread.
    assert_eq!(others.iter().filter(|name| **name == "agent_start").count(), 1);
    assert_eq!(others.iter().filter(|name| **name == "message_start").count(), 3);
    let end = events.iter().find_map(|event| match &event.body {
        EventBody::ToolEnd { call, result, is_error, .. } if call.as_str() == "c1" => Some((result.clone(), *is_error)),
        _ => None,
    });
    assert_eq!(end, Some((json!({ "content": "sub result", "isError": false }), false)));

    assert_eq!(said(&desk, 1), [("system".into(), "HELPER".into()), ("user".into(), "find it".into())]);
    assert_eq!(tools(&desk, 1), ["look", "write", "ask_user"]);
    assert!(tools(&desk, 0).contains(&"subagent".to_owned()));
    // Its tokens count (SPEC U-16).
    let usage = session.token_usage().await.unwrap();
    assert_eq!((usage.input, usage.output), (100, 26));
    assert_eq!(*session.display_state().token_usage, usage);
    assert!(session.display_state().active_subagents.is_empty(), "the segment is over");
    controller.shutdown().await;
}

/// SPEC U-15: the call did not fail, the subagent did, and the model reads why.
#[tokio::test]
async fn a_subagent_that_fails_is_a_result() {
    let desk =
        Desk::new([hand_over("c1", "helper", "find it"), Turn::error(400, "bad sub").when_contains("HELPER"), Turn::text("parent done")]);
    let controller = process(&desk, "", [helper()]);
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    session.send_message("go").await.unwrap();
    let events = drain(&mut events);
    let told = activity(&events);
    let reason = told[1]["result"].as_str().unwrap().to_owned();
    assert!(reason.contains("bad sub"), "{reason}");
    assert_eq!((told.len(), &told[1]["isError"]), (2, &json!(true)));
    assert!(!names(&events).contains(&"error"), "the run of the parent has no error");
    let (_, result) = said(&desk, 2).pop().unwrap();
    assert_eq!(result, json!({ "content": format!("Subagent \"Helper\" failed: {reason}"), "isError": true }).to_string());
    controller.shutdown().await;
}

/// SPEC U-14: an abort reaches the subagent first, and what it had said is kept.
#[tokio::test]
async fn an_abort_stops_the_subagent_and_keeps_its_words() {
    let desk = Desk::new([hand_over("c1", "helper", "find it"), Turn::text("a").then_hang().when_contains("HELPER")]);
    let controller = process(&desk, "", [helper()]);
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    let submitted = session.submit("go").await.unwrap();
    until(&mut events, |body| matches!(body, EventBody::SubagentTextDelta { .. })).await;
    let view = session.display_state();
    let shown = view.active_subagents.values().next().unwrap();
    assert_eq!((shown.name.as_deref(), shown.status, shown.text.to_string().as_str()), (Some("Helper"), ToolStatus::Running, "a"));
    assert!(session.abort().await.unwrap());
    let events = until(&mut events, is_end).await;
    assert_eq!(names(&events), ["subagent_end", "message_update", "tool_end", "usage_update", "message_end", "agent_end"]);
    assert_eq!(activity(&events)[0]["result"], "[Aborted by user]\n\nPartial output:\na");
    assert_eq!(activity(&events)[0]["isError"], false);
    submitted.handle().unwrap().ended().await;
    assert!(!session.is_running());
    over(&session).await;
    controller.shutdown().await;
}

/// SPEC U-19: side by side, and no more of them than the host allows.
#[tokio::test]
async fn subagents_of_one_step_work_side_by_side_up_to_a_limit() {
    let three = hand_over("c1", "helper", "one").then_tool("c2", "subagent", json!({ "agentType": "helper", "task": "two" })).then_tool(
        "c3",
        "subagent",
        json!({ "agentType": "helper", "task": "three" }),
    );
    let slow = |word: &str| Turn::chunks([word, "!"]).slowly(std::time::Duration::from_millis(60)).when_contains(format!("\"{word}\""));
    let desk = Desk::new([three, slow("one"), slow("two"), slow("three"), Turn::text("done")]);
    let mut settings = ac_controller::RuntimeSettings::default();
    settings.children = 2;
    let controller = super::builder(&desk, "", [helper()]).runtime(settings).modes(crate::desk::build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    session.send_message("go").await.unwrap();
    let events = drain(&mut events);
    let (mut open, mut most) = (0, 0);
    for name in names(&events) {
        match name {
            "subagent_start" => open += 1,
            "subagent_end" => open -= 1,
            _ => {}
        }
        most = most.max(open);
    }
    assert_eq!((most, open), (2, 0), "{:?}", names(&events));
    let (_, last) = said(&desk, 4).pop().unwrap();
    assert_eq!(last, json!({ "content": "three!", "isError": false }).to_string());
    controller.shutdown().await;
}

/// A subagent type that is not there any more is an answer, not a run that waits for ever.
#[tokio::test]
async fn a_type_that_another_process_knew_is_refused_in_words() {
    let desk = Desk::new([
        // Its arguments fit what was shown; what was shown is gone when the call is started.
        hand_over("c1", "helper", "find it"),
        Turn::text("parent done"),
    ]);
    let first = super::builder(&desk, "", [helper()])
        .default_policies(ac_core::permission::DefaultPolicies::default())
        .modes(crate::desk::build_mode())
        .build()
        .unwrap();
    let session = first.create_session("ann").await.unwrap();
    crate::desk::send_and_rest(&session, "go").await;
    let wait = session.pending().await.unwrap().remove(0);
    first.shutdown().await;
    let second = process(&desk, "second", [helper().max_steps(3), ac_controller::Subagent::new("other").instructions("OTHER")]);
    second.init().await.unwrap();
    let session = second.create_session("ann").await.unwrap();
    session.approve(&wait.id).await.unwrap();
    over(&session).await;
    let (_, result) = said(&desk, 1).pop().unwrap();
    assert!(result.contains("is not the one that was shown"), "{result}");
    second.shutdown().await;
}

/// B-109: threads of subagents have ids of their own and a link to their parent, are not listed, and are none of the parent's history.
#[tokio::test]
async fn threads_of_subagents_are_hidden_and_the_parent_resumes_with_its_own_messages() {
    let both = hand_over("c1", "helper", "one").then_tool("c2", "subagent", json!({ "agentType": "helper", "task": "two" }));
    let desk = Desk::new([
        both,
        Turn::text("R1").when_contains("\"one\""),
        Turn::text("R2").when_contains("\"two\""),
        Turn::text("done"),
        Turn::text("again"),
    ]);
    let first = process(&desk, "", [helper()]);
    let session = first.create_session("ann").await.unwrap();
    session.send_message("go").await.unwrap();
    first.shutdown().await;

    let second = process(&desk, "second", [helper()]);
    second.init().await.unwrap();
    let session = second.create_session("ann").await.unwrap();
    let all = ThreadQuery { hidden: true, ..ThreadQuery::default() };
    let listed: Vec<_> = session.threads(all).await.unwrap().items.into_iter().map(|info| info.id).collect();
    assert_eq!(listed, [session.thread_id().unwrap()]);
    // Nobody gets at a child's thread as if it were a conversation.
    let child = ac_core::id::child_run(&"run-1".into(), 0, &"c1".into());
    let stored = desk.storage.threads().get(&child.as_str().into()).await.unwrap().unwrap().value;
    assert_eq!(stored.parent.map(|parent| parent.run), Some("run-1".into()));
    assert_eq!(stored.info.metadata["parentThreadId"], json!(session.thread_id()));
    assert_eq!(session.switch_thread(&stored.info.id).await.unwrap_err().code(), "thread.not_found");

    session.send_message("more").await.unwrap();
    let roles: Vec<_> = said(&desk, 4).into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "assistant", "user"]);
    assert_eq!(session.messages(None, MessageQuery::default()).await.unwrap().items.len(), 5);
    second.shutdown().await;
}
