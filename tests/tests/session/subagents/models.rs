//! Which model a subagent uses.

use ac_controller::Subagent;
use ac_core::EventBody;
use ac_testkit::Turn;
use serde_json::json;

use super::{hand_over, process, said};
use crate::desk::{Desk, drain};

fn kinds() -> [Subagent; 2] {
    let kind = |id: &str| Subagent::new(id).instructions(id.to_uppercase());
    [kind("typed").model("prov/typed"), kind("bare")]
}

/// The model of each request to a subagent, in order.
fn models(desk: &Desk) -> Vec<String> {
    let requests = desk.server.requests();
    let children = requests.iter().enumerate().filter(|(at, _)| {
        let system = &said(desk, *at)[0].1;
        system == "TYPED" || system == "BARE"
    });
    children.map(|(_, request)| request.body["model"].as_str().unwrap().to_owned()).collect()
}

/// SPEC M-15, U-5: the selection for the type, the selection for all, the type's own, the parent's. The selection is the thread's: it is
/// there again in another process, other threads have their own, and a new one begins with it.
#[tokio::test]
async fn the_model_of_a_subagent_is_the_one_that_was_selected_closest_to_it() {
    let both = |n: u32| {
        hand_over(&format!("t{n}"), "typed", "x").then_tool(format!("b{n}"), "subagent", json!({ "agentType": "bare", "task": "x" }))
    };
    let child = |word: &str| Turn::text("ok").when_contains(word).forever();
    let step = |n: u32| {
        [both(n).when_last_role("user").when_contains(format!("\"go {n}\"")), Turn::text("done").when_contains(format!("\"t{n}\""))]
    };
    // The newest first: a request holds what was said before, too.
    let turns = [child("TYPED"), child("BARE")].into_iter().chain((1..=5).rev().flat_map(step));
    let desk = Desk::new(turns);
    let controller = process(&desk, "", kinds());
    let session = controller.create_session("ann").await.unwrap();
    let thread = session.thread_id().unwrap();
    let sorted = |from: usize| {
        let mut models = models(&desk).split_off(from);
        models.sort();
        models
    };
    assert_eq!(session.subagent_model(None).await.unwrap(), None);
    session.send_message("go 1").await.unwrap();
    assert_eq!(sorted(0), ["builder", "typed"], "the parent's, and the type's own");

    let mut events = session.subscribe();
    session.set_subagent_model(Some("prov/all".into()), None).await.unwrap();
    let told = drain(&mut events).into_iter().find_map(|event| match &event.body {
        EventBody::SubagentModelChanged { model, agent_type } => Some((model.to_string(), agent_type.clone())),
        _ => None,
    });
    assert_eq!(told, Some(("prov/all".into(), None)));
    session.send_message("go 2").await.unwrap();
    assert_eq!(sorted(2), ["all", "all"]);
    session.set_subagent_model(Some("prov/one".into()), Some("bare")).await.unwrap();
    assert_eq!(session.subagent_model(Some("bare")).await.unwrap(), Some("prov/one".into()));
    assert_eq!(session.subagent_model(Some("typed")).await.unwrap(), Some("prov/all".into()));
    assert_eq!(session.thread_settings(None).await.unwrap()["subagentModelId_bare"], json!("prov/one"));
    assert_eq!(session.set_subagent_model(None, Some("no")).await.unwrap_err().code(), "subagent.not_found");
    controller.shutdown().await;

    let second = process(&desk, "second", kinds());
    let session = second.create_session("ann").await.unwrap();
    session.send_message("go 3").await.unwrap();
    assert_eq!(sorted(4), ["all", "one"]);
    // A new thread begins as the person has it; what is changed there is not changed here.
    session.create_thread(None, "").await.unwrap();
    session.set_subagent_model(None, None).await.unwrap();
    session.send_message("go 4").await.unwrap();
    assert_eq!(sorted(6), ["one", "typed"]);
    session.switch_thread(&thread).await.unwrap();
    session.send_message("go 5").await.unwrap();
    assert_eq!(sorted(8), ["all", "one"]);
    second.shutdown().await;
}
