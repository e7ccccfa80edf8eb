//! Forked subagents: a copy of the thread, the parent's prompt, and nothing left behind.

use ac_controller::Subagent;
use ac_core::{Message, Role, RunId, ThreadId, id::child_run};
use ac_storage::{
    ThreadRecord,
    domain::{MessageQuery, ThreadQuery},
};
use ac_testkit::Turn;
use serde_json::json;

use super::{builder, hand_over, over, process, said, tools, waiting, write};
use crate::desk::{Desk, build_mode, drain};

fn fork() -> Subagent {
    // What a fork does not use is there to be ignored.
    Subagent::new("explore").name("Explore").instructions("IGNORED").model("prov/ignored").max_steps(1).forked()
}

/// SPEC U-9, U-10, B-108: everything before the task is the parent's, byte for byte; the copy ends before the answer with the call; a fork
/// has neither subagents nor the task list nor plans, though it sees the tools; afterwards nothing is left of it.
#[tokio::test]
async fn a_fork_goes_on_from_its_parents_thread() {
    let desk = Desk::new([
        Turn::text("first answer"),
        hand_over("c1", "explore", "fork task"),
        Turn::tool("n1", "subagent", json!({ "agentType": "explore", "task": "nested" })),
        Turn::tool("n2", "submit_plan", json!({ "path": "p.md" })),
        Turn::tool("n3", "look", json!({ "what": "around" })),
        Turn::text("forked result"),
        Turn::text("parent done"),
    ]);
    let controller = process(&desk, "", [fork()]);
    let session = controller.create_session("ann").await.unwrap();
    session.send_message("context").await.unwrap();
    let mut events = session.subscribe();
    let settled = session.send_message("go").await.unwrap();

    let requests = desk.server.requests();
    let prefix = said(&desk, 1);
    let forked = said(&desk, 2);
    assert_eq!(forked[..prefix.len()], prefix[..], "the parent's prompt");
    assert_eq!(forked.len(), prefix.len() + 1);
    assert!(forked.last().unwrap().1.starts_with("fork task\n\n"), "{:?}", forked.last());
    assert_eq!(requests[2].body["tools"], requests[1].body["tools"]);
    assert_eq!(requests[2].body["model"], requests[1].body["model"]);
    let refusal = |request: usize| said(&desk, request).pop().unwrap().1;
    assert!(refusal(3).contains("Use no subagents") && refusal(3).contains("\"isError\":true"), "{}", refusal(3));
    assert!(refusal(4).contains("Submit no plan"), "{}", refusal(4));
    assert_eq!(desk.done(), ["look around"]);
    assert_eq!(said(&desk, 6).pop().unwrap().1, json!({ "content": "forked result", "isError": false }).to_string());
    assert!(tools(&desk, 6).contains(&"subagent".to_owned()));

    let told = drain(&mut events);
    let started: Vec<_> = told
        .iter()
        .filter_map(|event| match &event.body {
            ac_core::EventBody::SubagentStart { model, forked, .. } => Some((model.to_string(), *forked)),
            _ => None,
        })
        .collect();
    assert_eq!(started, [("prov/builder".to_owned(), true)]);
    let calls: Vec<_> = told
        .iter()
        .filter_map(|event| match &event.body {
            ac_core::EventBody::SubagentToolStart { tool, .. } => Some(tool.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(calls, ["submit_plan", "look"], "a call that only says why there are no subagents is no activity");

    // The parent's thread is as if there had been no copy.
    assert_eq!(session.messages(None, MessageQuery::default()).await.unwrap().items.len(), 5);
    let thread = ThreadId::from(child_run(&settled.run, 0, &"c1".into()).as_str());
    is_gone(&desk, &thread).await;
    let all = ThreadQuery { hidden: true, ..ThreadQuery::default() };
    assert_eq!(session.threads(all).await.unwrap().items.len(), 1);
    controller.shutdown().await;
}

async fn is_gone(desk: &Desk, thread: &ThreadId) {
    for _ in 0..400 {
        let row = desk.storage.threads().get(thread).await.unwrap();
        if row.is_none() && desk.storage.messages().page(thread, &MessageQuery::default()).await.unwrap().items.is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("the copy {thread} is still there");
}

/// The call may say otherwise than the type, in both directions (SPEC U-3).
#[tokio::test]
async fn a_call_decides_whether_it_forks() {
    let call = |id: &str, kind: &str, forked: bool| Turn::tool(id, "subagent", json!({ "agentType": kind, "task": "x", "forked": forked }));
    let desk = Desk::new([
        call("c1", "explore", false),
        Turn::text("not forked").when_contains("IGNORED"),
        call("c2", "plain", true),
        Turn::text("forked"),
        Turn::text("done"),
    ]);
    let controller = process(&desk, "", [fork(), Subagent::new("plain").instructions("PLAIN")]);
    let session = controller.create_session("ann").await.unwrap();
    session.send_message("go").await.unwrap();
    assert_eq!(said(&desk, 1), [("system".into(), "IGNORED".into()), ("user".into(), "x".into())]);
    assert_eq!(desk.server.requests()[1].body["model"], "ignored");
    assert_eq!(said(&desk, 3)[0].1, "AGENT\nBUILD");
    controller.shutdown().await;
}

/// A fork that a person answered is kept a while, so that the same answer again is known; it goes with its parent's thread at the latest.
#[tokio::test]
async fn a_fork_waits_for_a_person_over_a_restart_and_is_cleaned_up_later() {
    let desk =
        Desk::new([hand_over("c1", "explore", "write"), write("w", "it"), Turn::text("wrote"), Turn::text("done"), Turn::text("bye")]);
    let first = process(&desk, "", [fork()]);
    let session = first.create_session("ann").await.unwrap();
    let submitted = session.submit("go").await.unwrap();
    submitted.handle().unwrap().resting().await;
    let open = waiting(&session, 1).await;
    first.shutdown().await;
    let second = process(&desk, "second", [fork()]);
    second.init().await.unwrap();
    let session = second.create_session("ann").await.unwrap();
    session.approve(&open[0].id).await.unwrap();
    over(&session).await;
    assert_eq!(desk.done(), ["write it"]);
    let thread = ThreadId::from(open[0].run.as_str());
    assert!(desk.storage.threads().get(&thread).await.unwrap().is_some());
    assert!(session.approve(&open[0].id).await.unwrap().repeated);
    desk.clock.advance(25 * 60 * 60 * 1000);
    session.send_message("a day later").await.unwrap();
    is_gone(&desk, &thread).await;
    second.shutdown().await;
}

/// B-108: forks are copied in the store, a piece at a time. Five of a long thread at once are five whole copies, and the parent is untouched.
#[tokio::test]
async fn five_forks_of_a_long_thread_are_copied_in_the_store() {
    const LONG: usize = 2000;
    let five = (2..=5).fold(hand_over("c1", "explore", "x"), |turn, n| {
        turn.then_tool(format!("c{n}"), "subagent", json!({ "agentType": "explore", "task": "x" }))
    });
    let desk = Desk::new([five]);
    let thread = ThreadId::from("long");
    let at = desk.clock.clone();
    let now = ac_core::Clock::now(&at);
    desk.storage.threads().create(&ThreadRecord::new(thread.clone(), "ann".into(), now)).await.unwrap();
    for n in 0..LONG {
        let version = desk.storage.runs().head(&thread).await.unwrap().unwrap().version;
        let message = Message::user(format!("m{n}"), format!("message {n}"), now);
        desk.storage.messages().put(&thread, &message, version).await.unwrap();
    }
    let mut settings = ac_controller::RuntimeSettings::default();
    settings.history = Some(20);
    settings.children = 5;
    let controller = builder(&desk, "", [fork()]).runtime(settings).modes(build_mode()).build().unwrap();
    let session = controller.create_session(ac_controller::SessionRequest::new("ann").thread("long")).await.unwrap();
    // The copies are looked at before anybody answers.
    (0..5).for_each(|_| desk.server.push(Turn::hang()));
    let submitted = session.submit("go").await.unwrap();
    desk.server.wait_for_requests(6).await;
    let own = |run: &RunId| ThreadId::from(run.as_str());
    let parent: Vec<_> = desk.storage.messages().page(&thread, &MessageQuery::default()).await.unwrap().items;
    assert_eq!(parent.len(), LONG + 2);
    for n in 1..=5 {
        let copy = own(&child_run(&submitted.run, 0, &format!("c{n}").into()));
        let messages = desk.storage.messages().page(&copy, &MessageQuery::default()).await.unwrap().items;
        assert_eq!(messages.len(), LONG + 2, "the prefix and the task");
        for (copied, original) in messages.iter().zip(&parent).take(LONG + 1) {
            assert_eq!(copied.message, original.message);
        }
        let ids: std::collections::BTreeSet<_> = messages.iter().map(|stored| stored.message.id.clone()).collect();
        assert_eq!(ids.len(), messages.len());
        assert_eq!(messages.last().unwrap().message.role, Role::User);
    }
    assert!(session.abort().await.unwrap());
    over(&session).await;
    for n in 1..=5 {
        is_gone(&desk, &own(&child_run(&submitted.run, 0, &format!("c{n}").into()))).await;
    }
    assert_eq!(desk.storage.messages().page(&thread, &MessageQuery::default()).await.unwrap().items.len(), LONG + 2);
    controller.shutdown().await;
}
