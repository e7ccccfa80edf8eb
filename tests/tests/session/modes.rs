//! What people reported of planning modes: shown and enforced are two things, plans lose their owner, choices of models vanish.

use ac_controller::{Mode, ModelChoice, Settlement};
use ac_core::event::PendingKind;
use ac_testkit::Turn;
use serde_json::{Value, json};

use crate::desk::{Desk, drain, is_end, until};

/// Model, system text and offered tools of a request.
fn asked(desk: &Desk, request: usize) -> (String, String, Vec<String>) {
    let body = desk.server.requests()[request].body.clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let tools = body["tools"].as_array().into_iter().flatten().map(|tool| text(&tool["function"]["name"])).collect();
    (text(&body["model"]), text(&body["messages"][0]["content"]), tools)
}

/// B-24: the mode that is shown after a reload is the one that the first turn is bound to.
#[tokio::test]
async fn a_reloaded_session_enforces_the_mode_that_it_shows() {
    let desk = Desk::new([Turn::text("built"), Turn::tool("c1", "write", json!({ "what": "a" })), Turn::text("could not")]);
    let first = desk.open("");
    let session = first.create_session("ann").await.unwrap();
    session.switch_mode("build").await.unwrap();
    session.send_message("build").await.unwrap();
    session.switch_mode("plan").await.unwrap();
    first.shutdown().await;

    let second = desk.open("second");
    second.init().await.unwrap();
    let session = second.create_session("ann").await.unwrap();
    assert_eq!(session.mode_view().id.as_str(), "plan");
    let mut events = session.subscribe();
    assert_eq!(session.send_message("write it").await.unwrap().settlement, Settlement::Complete);
    let refused = drain(&mut events).into_iter().find(|event| event.body.name() == "tool_end").unwrap();
    let refused = ac_core::wire::body(&refused);
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(refused["result"].as_str().unwrap().contains("ask_user, submit_plan, look"), "{refused}");
    assert_eq!(desk.done(), Vec::<String>::new());
    let (model, system, tools) = asked(&desk, 1);
    assert_eq!((model.as_str(), system.as_str()), ("planner", "AGENT\nPLAN"));
    assert_eq!(tools, ["ask_user", "submit_plan", "look"]);
    second.shutdown().await;
}

/// B-25: whoever planned goes on after the approval, also in the next life of the process, and the next turn is the target mode's.
#[tokio::test]
async fn an_approved_plan_is_carried_out_by_its_run_also_after_a_restart() {
    for restart in [false, true] {
        let desk = Desk::new([Turn::tool("c1", "submit_plan", json!({ "path": "plan.md" })), Turn::text("built"), Turn::text("next")]);
        let mut controller = desk.open("");
        let mut session = controller.create_session("ann").await.unwrap();
        let run = session.send_message("plan").await.unwrap().run;
        if restart {
            controller.shutdown().await;
            controller = desk.open("second");
            controller.init().await.unwrap();
            session = controller.create_session("ann").await.unwrap();
        }
        let open = session.pending().await.unwrap();
        assert_eq!((open[0].kind, &open[0].run), (PendingKind::Plan, &run));
        let mut events = session.subscribe();
        session.respond_to_tool_suspension(json!({ "action": "approved" }), None).await.unwrap();
        let told = until(&mut events, is_end).await;
        assert!(told.iter().filter(|event| event.body.name() != "display_state_changed").all(|event| event.run.as_ref() == Some(&run)));
        assert_eq!((session.mode().as_str(), session.current_run().await.unwrap()), ("build", None));
        session.send_message("go on").await.unwrap();
        for request in [1, 2] {
            let (model, system, tools) = asked(&desk, request);
            assert_eq!((model.as_str(), system.as_str()), ("builder", "AGENT\nBUILD"), "restart: {restart}");
            assert!(tools.contains(&"write".to_owned()));
        }
        controller.shutdown().await;
    }
}

/// B-27: a model that calls what the mode does not offer, or what does not exist at all, gets an error for it and nothing runs.
#[tokio::test]
async fn what_a_mode_does_not_offer_is_not_run_whatever_the_model_calls() {
    let desk = Desk::new([
        Turn::tool("c1", "write", json!({ "what": "a" }))
            .then_tool("c2", "run", json!({ "what": "touch x" }))
            .then_tool("c3", "Write", json!({ "what": "b" }))
            .then_tool("c4", "replace_in_file", json!({ "path": "x" })),
        Turn::text("could not"),
    ]);
    let controller = desk.open("");
    let session = controller.create_session("ann").await.unwrap();
    let state = json!({ "yolo": true }).as_object().unwrap().clone();
    session.set_state(state).await.unwrap();
    let mut events = session.subscribe();
    assert_eq!(session.send_message("write it").await.unwrap().settlement, Settlement::Complete);
    let ends: Vec<_> =
        drain(&mut events).iter().map(|event| ac_core::wire::body(event)).filter(|body| body["type"] == "tool_end").collect();
    assert_eq!(ends.len(), 4);
    assert!(ends.iter().all(|end| end["isError"] == true), "{ends:?}");
    assert_eq!(desk.done(), Vec::<String>::new());
    controller.shutdown().await;
}

/// B-28: plans belong to their threads. A rejection without a word leaves the mode, tells the model to stop, and leaves the other thread's
/// plan as it is; the plan can be handed in again after a restart. (The report wants the turn to end there; here, as the reference does it,
/// the model has the last word.)
#[tokio::test]
async fn a_rejected_plan_leaves_the_plans_of_other_threads_alone() {
    let plan = |id: &str| Turn::tool(id, "submit_plan", json!({ "path": format!("{id}.md") }));
    let desk = Desk::new([plan("p1"), plan("p2"), Turn::text("what now?"), plan("p3")]);
    let first = desk.open("");
    let session = first.create_session("ann").await.unwrap();
    let one = session.send_message("plan one").await.unwrap().thread;
    let two = session.create_thread(None, "two").await.unwrap().id;
    session.send_message("plan two").await.unwrap();
    let open = session.pending().await.unwrap();
    assert_eq!(open.iter().map(|wait| &wait.thread).collect::<Vec<_>>(), [&one, &two]);

    session.switch_thread(&one).await.unwrap();
    let mut events = session.subscribe();
    session.respond_to_tool_suspension(json!({ "action": "rejected" }), Some(&"p1".into())).await.unwrap();
    until(&mut events, is_end).await;
    assert_eq!((session.mode().as_str(), session.is_running()), ("plan", false));
    assert!(desk.server.requests()[2].body.to_string().contains("Plan was not approved."));
    let left = session.pending().await.unwrap();
    assert_eq!(left, open[1..]);
    first.shutdown().await;

    let second = desk.open("second");
    second.init().await.unwrap();
    let session = second.create_session("ann").await.unwrap();
    assert_eq!(session.thread_id(), Some(one.clone()));
    assert_eq!(session.send_message("here is what I want").await.unwrap().settlement, Settlement::Waiting);
    let open = session.pending().await.unwrap();
    assert_eq!(open.iter().map(|wait| (&wait.thread, wait.call.as_str())).collect::<Vec<_>>(), [(&two, "p2"), (&one, "p3")]);
    second.shutdown().await;
}

/// B-30: what a person chose for a mode is there again whenever the mode is, also after a restart; else the mode's own model counts, else
/// the controller's.
#[tokio::test]
async fn a_model_that_was_chosen_for_a_mode_survives_the_way_through_other_modes() {
    let desk = Desk::new([]);
    let open = |life: &str| {
        let modes = [Mode::new("build").model("prov/builder"), Mode::new("plan"), Mode::new("review").model("prov/reviewer")];
        desk.builder(life).modes(modes).default_model("prov/any").build().unwrap()
    };
    let first = open("");
    let session = first.create_session("ann").await.unwrap();
    session.switch_model(ModelChoice::new("prov/mine")).await.unwrap();
    let model = |session: &ac_controller::Session| session.model().unwrap().to_string();
    for (mode, expected) in [("plan", "prov/any"), ("build", "prov/mine"), ("review", "prov/reviewer"), ("build", "prov/mine")] {
        session.switch_mode(mode).await.unwrap();
        assert_eq!(model(&session), expected, "{mode}");
    }
    first.shutdown().await;
    let second = open("second");
    let session = second.create_session("ann").await.unwrap();
    assert_eq!((session.mode().as_str(), model(&session).as_str()), ("build", "prov/mine"));
    session.switch_mode("plan").await.unwrap();
    assert_eq!(model(&session), "prov/any");
    second.shutdown().await;
}
