//! What people reported of stored conversations: calls without results, words that are gone, threads that no provider takes any more.

use std::{sync::Arc, time::Duration};

use ac_controller::{AgentConfig, Answer, Settlement};
use ac_core::{
    EventBody, Message, ModelRequest, Part, Role, ToolCallPart, ToolCallState,
    event::{MessageUpdate, PendingKind},
    tool::ToolOutput,
};
use ac_llm::{profile::known, request};
use ac_storage::domain::{MessageQuery, ThreadQuery};
use ac_testkit::{Turn, pairing};
use serde_json::{Value, json};

use crate::{
    desk::{Desk, build_mode, drain, send_and_rest, until},
    reports::told,
};

/// The history as each kind of provider is sent it: Responses, Chat Completions, Anthropic, Gemini.
fn bodies(messages: &[Arc<Message>]) -> [Value; 4] {
    [known::openai(), known::openai_chat(), known::anthropic(), known::google()].map(|profile| {
        let request = ModelRequest::new("any/model", messages.to_vec());
        request::build(&profile, &request).unwrap().body
    })
}

async fn stored(session: &ac_controller::Session) -> Vec<Arc<Message>> {
    let page = session.messages(None, MessageQuery::default()).await.unwrap();
    page.items.into_iter().map(|stored| stored.message).collect()
}

/// A process that dies, tasks and all, while the tool of an approved call is at work.
pub(crate) async fn killed_in_a_call(desk: &Desk) {
    let doomed = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let controller = desk.builder("a").modes(build_mode()).build().unwrap();
    let work = doomed.spawn(async move {
        let session = controller.create_session("ann").await.unwrap();
        send_and_rest(&session, "go").await;
        let wait = session.pending().await.unwrap().remove(0);
        session.approve(&wait.id).await.unwrap();
    });
    work.await.unwrap();
    doomed.shutdown_background();
    desk.clock.advance(60_000);
}

/// B-31, B-45: a process killed in a call leaves a thread that is listed, says what is open, and goes on; every provider takes its history.
#[tokio::test]
async fn a_thread_whose_process_died_in_a_call_is_listed_and_goes_on() {
    let desk = Desk::new([Turn::tool("c1", "write", json!({ "what": "a", "wait": 60_000 })), Turn::text("noted"), Turn::text("hello")]);
    killed_in_a_call(&desk).await;
    let controller = desk.builder("b").modes(build_mode()).build().unwrap();
    controller.init().await.unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let listed = controller.threads(&ThreadQuery::default()).await.unwrap().items;
    assert_eq!(listed.into_iter().map(|thread| thread.id).collect::<Vec<_>>(), [session.thread_id().unwrap()]);
    let wait = session.pending().await.unwrap().remove(0);
    assert_eq!(wait.kind, PendingKind::InDoubt, "the thread says that it was interrupted");
    // Even as it stands it would be taken: a call without a result is told as one.
    for body in bodies(&stored(&session).await) {
        assert!(body.to_string().contains("the call did not finish"), "{body}");
    }
    session.answer(&wait.id, Answer::RecordFailed).await.unwrap();
    desk.server.wait_for_requests(2).await;
    if let Some(run) = session.live_run().await.unwrap() {
        run.ended().await;
    }
    assert_eq!(session.send_message("hi").await.unwrap().settlement, Settlement::Complete);
    let after = stored(&session).await;
    let [_, chat, ..] = bodies(&after);
    assert_eq!(pairing::chat(&chat), Vec::<String>::new());
    for body in bodies(&after) {
        assert_eq!(body.to_string().matches("its outcome is unknown").count(), 1, "{body}");
    }
    controller.shutdown().await;
    // Opening it again mends nothing more.
    let controller = desk.builder("c").modes(build_mode()).build().unwrap();
    controller.init().await.unwrap();
    assert_eq!(stored(&controller.create_session("ann").await.unwrap()).await, after);
    assert_eq!(desk.done(), Vec::<String>::new());
    controller.shutdown().await;
}

/// B-33: a turn that was stopped after its calls were done is closed with a word about it, also for the next process.
#[tokio::test]
async fn a_turn_stopped_after_its_calls_says_so_to_the_model() {
    let desk = Desk::new([Turn::tool("c1", "look", json!({ "what": "far" })), Turn::hang(), Turn::text("Four.")]);
    let controller = desk.builder("a").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let submitted = session.submit("look far").await.unwrap();
    desk.server.wait_for_requests(2).await;
    assert!(session.abort().await.unwrap());
    assert_eq!(submitted.settled().await, Settlement::Aborted);
    controller.shutdown().await;
    let controller = desk.builder("b").modes(build_mode()).build().unwrap();
    controller.init().await.unwrap();
    let session = controller.create_session("ann").await.unwrap();
    assert_eq!(session.send_message("two and two?").await.unwrap().settlement, Settlement::Complete);
    let told = told(&desk, 2);
    let roles: Vec<_> = told.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user", "user"]);
    assert!(told[4].1.contains("stopped the turn") && told[5].1.contains("two and two?"), "{told:?}");
    controller.shutdown().await;
}

/// B-39: what an older or newer version wrote otherwise is kept, and hinders nobody.
#[tokio::test]
async fn a_thread_with_parts_of_another_version_opens_and_keeps_them() {
    let desk = Desk::new([Turn::text("fine")]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let thread = session.thread_id().unwrap();
    let odd = json!({ "id": "m-odd", "role": "assistant", "at": 1, "parts": [
        { "type": "hologram", "depth": { "cm": 3 } },
        { "type": "tool_call", "id": "c0", "name": "view", "args": { "line": "270" }, "state": "result", "output": { "value": "x" }, "is_error": false },
    ]});
    let odd: Message = serde_json::from_value(odd).unwrap();
    assert!(matches!(&odd.parts[0], Part::Unknown(_)));
    for message in [Arc::new(Message::user("m-0", "look", Default::default())), Arc::new(odd.clone())] {
        let head = desk.storage.runs().head(&thread).await.unwrap().unwrap();
        desk.storage.messages().put(&thread, &message, head.version).await.unwrap();
    }
    assert_eq!(session.send_message("and now?").await.unwrap().settlement, Settlement::Complete);
    assert!(told(&desk, 0).iter().any(|(role, content)| role == "tool" && content.contains('x')));
    assert_eq!(*stored(&session).await[1], odd);
    controller.shutdown().await;
}

/// B-40: a call that comes without an id gets one, and so has its result.
#[tokio::test]
async fn calls_without_ids_get_ids_of_their_own() {
    let desk =
        Desk::new([Turn::tool("", "look", json!({ "what": "a" })).then_tool("", "look", json!({ "what": "b" })), Turn::text("done")]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    assert_eq!(session.send_message("look").await.unwrap().settlement, Settlement::Complete);
    let messages = stored(&session).await;
    let ids: Vec<_> = messages.iter().flat_map(|message| message.tool_calls()).map(|call| call.id.clone()).collect();
    assert!(ids.len() == 2 && ids[0] != ids[1] && ids.iter().all(|id| !id.as_str().is_empty()), "{ids:?}");
    assert_eq!(pairing::chat(&desk.server.requests()[1].body), Vec::<String>::new());
    controller.shutdown().await;
}

fn deltas(events: &[Arc<ac_core::Event>]) -> String {
    events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::MessageUpdate { update: MessageUpdate::TextDelta(text), .. } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

/// B-42: leaving a thread whose run streams stops the run, and everything that was shown of it is stored there.
#[tokio::test]
async fn what_was_shown_before_the_thread_was_left_is_stored() {
    let pieces: Vec<String> = (0..200).map(|n| format!("{n} ")).collect();
    let desk = Desk::new([Turn::chunks(pieces).slowly(Duration::from_millis(2)), Turn::text("two")]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let old = session.thread_id().unwrap();
    let mut events = session.subscribe();
    session.submit("one").await.unwrap();
    let mut all = vec![];
    while deltas(&all).len() < 100 {
        all.extend(until(&mut events, |body| matches!(body, EventBody::MessageUpdate { .. })).await);
    }
    let new = session.create_thread(None, "Second").await.unwrap().id;
    all.extend(drain(&mut events));
    assert_eq!(session.send_message("elsewhere").await.unwrap().settlement, Settlement::Complete);
    let later = drain(&mut events);
    assert!(later.iter().filter(|event| event.run.is_some()).all(|event| event.thread.as_ref() == Some(&new)));
    session.switch_thread(&old).await.unwrap();
    let texts: Vec<_> = stored(&session).await.iter().map(|message| message.text()).collect();
    assert_eq!(texts, ["one".to_owned(), deltas(&all)]);
    controller.shutdown().await;
}

/// B-43: a message with text and calls is one row with its parts in order, however often it is opened again.
#[tokio::test]
async fn a_message_after_a_restart_adds_itself_and_its_answer_only() {
    let desk = Desk::new([
        Turn::text("I look.").then_tool("c1", "look", json!({ "what": "a" })).then_text(" There."),
        Turn::text("done"),
        Turn::text("hello"),
    ]);
    let controller = desk.builder("a").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    session.send_message("look").await.unwrap();
    let before = stored(&session).await;
    controller.shutdown().await;
    let controller = desk.builder("b").modes(build_mode()).build().unwrap();
    controller.init().await.unwrap();
    let session = controller.create_session("ann").await.unwrap();
    session.send_message("Hi").await.unwrap();
    let after = stored(&session).await;
    assert_eq!(after[..before.len()], before);
    assert_eq!(after.len(), before.len() + 2);
    controller.shutdown().await;
}

/// B-46: exactly what was shown is stored when the answer is stopped, and the model is told it; of nothing, nothing is stored.
#[tokio::test]
async fn an_answer_that_was_stopped_is_stored_as_it_was_shown() {
    for shown in [true, false] {
        let first = if shown { Turn::chunks(["Hello ", "wor"]).then_hang() } else { Turn::hang() };
        let desk = Desk::new([first, Turn::text("on we go")]);
        let controller = desk.builder("").modes(build_mode()).build().unwrap();
        let session = controller.create_session("ann").await.unwrap();
        let mut events = session.subscribe();
        let submitted = session.submit("talk").await.unwrap();
        desk.server.wait_for_requests(1).await;
        let mut all = vec![];
        while shown && deltas(&all) != "Hello wor" {
            all.extend(until(&mut events, |body| matches!(body, EventBody::MessageUpdate { .. })).await);
        }
        assert!(session.abort().await.unwrap());
        assert_eq!(submitted.settled().await, Settlement::Aborted);
        all.extend(drain(&mut events));
        let texts: Vec<_> = stored(&session).await.iter().map(|message| message.text()).collect();
        let expected = if shown { vec!["talk".to_owned(), deltas(&all)] } else { vec!["talk".to_owned()] };
        assert_eq!(texts, expected);
        session.send_message("go on").await.unwrap();
        assert_eq!(told(&desk, 1).iter().any(|(role, content)| role == "assistant" && content.contains("Hello wor")), shown);
        controller.shutdown().await;
    }
}

/// The blocks of text that a request holds, wherever a provider wants them.
fn blank_texts(value: &Value) -> usize {
    match value {
        Value::Object(fields) => {
            let blank = |text: &Value| text.as_str().is_some_and(|text| text.trim().is_empty());
            let empty =
                ["content", "parts"].iter().filter(|name| fields.get(**name).and_then(Value::as_array).is_some_and(Vec::is_empty)).count();
            let here = usize::from(fields.get("text").is_some_and(blank)) + empty;
            here + fields.values().map(blank_texts).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(blank_texts).sum(),
        _ => 0,
    }
}

/// B-48: texts without words never reach a provider that refuses them.
#[tokio::test]
async fn blank_texts_in_a_history_are_left_out_of_the_request() {
    let message = |id: &str, role, parts| Arc::new(Message::new(id, role, parts, Default::default()));
    let mut call = ToolCallPart::new("c1", "look", json!({}));
    call.state = ToolCallState::Result { output: ToolOutput::text(""), is_error: false };
    let history = [
        message("1", Role::User, vec![Part::text("first")]),
        message("2", Role::Assistant, vec![Part::text("")]),
        message("3", Role::User, vec![Part::text("  \n")]),
        message("4", Role::Assistant, vec![Part::text(" \n "), Part::ToolCall(call), Part::text("")]),
        message("5", Role::Assistant, vec![]),
        message("6", Role::User, vec![Part::text(""), Part::text("last")]),
    ];
    let [_, _, anthropic, gemini] = bodies(&history);
    for body in [anthropic, gemini] {
        assert_eq!(blank_texts(&body), 0, "{body:#}");
        let text = body.to_string();
        assert!(text.contains("first") && text.contains("last") && text.contains("look"), "{text}");
    }
}

/// B-49: a turn that failed, or was under way when the process ended, costs no history, whatever is changed before the next one.
#[tokio::test]
async fn a_last_turn_that_failed_leaves_the_conversation_as_it_was() {
    for (name, broken) in [
        ("refused", Turn::error(401, "no key")),
        ("limited", Turn::error(429, "slow down").forever()),
        ("reset", Turn::text("half").then_reset()),
        ("under way", Turn::hang()),
    ] {
        let desk = Desk::new([Turn::text("one")]);
        let builder = |life: &str| {
            let limits = {
                let mut limits = ac_controller::Limits::default();
                limits.attempts = 1;
                limits
            };
            desk.builder(life).limits(limits).modes(build_mode())
        };
        let controller = builder("a").build().unwrap();
        let session = controller.create_session("ann").await.unwrap();
        session.send_message("first").await.unwrap();
        desk.server.push(broken.when_contains("second").times(1));
        desk.server.push(Turn::text("three").forever());
        let submitted = session.submit("second").await.unwrap();
        if name == "under way" {
            desk.server.wait_for_requests(2).await;
        } else {
            assert!(matches!(submitted.settled().await, Settlement::Failed(_)), "{name}");
        }
        controller.shutdown().await;
        let controller = builder("b").agent(AgentConfig::new("agent").instructions("CHANGED")).build().unwrap();
        controller.init().await.unwrap();
        let session = controller.create_session("ann").await.unwrap();
        if let Some(run) = session.live_run().await.unwrap() {
            run.ended().await;
        }
        assert_eq!(session.send_message("third").await.unwrap().settlement, Settlement::Complete, "{name}");
        let last = told(&desk, desk.server.requests().len() - 1);
        let said: Vec<_> = last.iter().filter(|(role, _)| role == "user").map(|(_, content)| content.as_str()).collect();
        for (text, said) in ["first", "second", "third"].iter().zip(&said) {
            assert!(said.contains(text), "{name}: {last:?}");
        }
        controller.shutdown().await;
    }
}
