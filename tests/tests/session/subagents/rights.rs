//! What a subagent may do: at most what its parent may.

use std::{sync::Arc, time::Duration};

use ac_controller::{Limits, Mode, Settlement, Subagent};
use ac_core::{
    Policy, Tool, ToolCategory, ToolContext, ToolDefinition, ToolError, ToolOutcome,
    event::PendingKind,
    permission::{DefaultPolicies, Verdict},
};
use ac_testkit::Turn;
use async_trait::async_trait;
use serde_json::{Value, json};

use super::{builder, hand_over, helper, over, process, said, tools, waiting, write};
use crate::desk::{Desk, build_mode, send_and_rest};

/// B-105: a subagent changes no policy. What asks asks everywhere, meanwhile and afterwards, also when the subagent breaks.
#[tokio::test]
async fn what_asks_asks_in_the_subagent_its_parent_and_another_session() {
    struct Panics;
    #[async_trait]
    impl Tool for Panics {
        fn definition(&self) -> ToolDefinition {
            ToolDefinition::new("panics", "Breaks.", json!({ "type": "object" })).category(ToolCategory::Read)
        }
        async fn call(&self, _: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
            panic!("the tool of a subagent broke")
        }
    }
    let both = hand_over("c1", "helper", "work").then_tool("c2", "run", json!({ "what": "parent" }));
    let child = |turn: Turn| turn.when_contains("HELPER");
    let desk = Desk::new([
        child(Turn::tool("s1", "panics", json!({}))),
        child(Turn::tool("s2", "run", json!({ "what": "child" }))),
        child(Turn::text("worked")),
        Turn::tool("o1", "run", json!({ "what": "other" })).when_contains("other session"),
        both,
        Turn::tool("c3", "run", json!({ "what": "later" })),
        Turn::text("done").forever(),
    ]);
    let kind = helper().tools([Arc::new(Panics) as Arc<dyn Tool>]).allowed_controller_tools(["run"]);
    let controller = process(&desk, "", [kind]);
    let session = controller.create_session("ann").await.unwrap();
    let other = controller.create_session("bob").await.unwrap();
    let submitted = session.submit("go").await.unwrap();
    send_and_rest(&other, "other session").await;
    tokio::time::timeout(Duration::from_secs(10), submitted.handle().unwrap().resting()).await.unwrap();
    let asked = |open: &[ac_controller::Pending]| {
        let mut asked: Vec<_> = open.iter().map(|wait| wait.args["what"].as_str().unwrap().to_owned()).collect();
        asked.sort();
        asked
    };
    let open = waiting(&session, 2).await;
    assert_eq!(asked(&open), ["child", "parent"]);
    assert_eq!(asked(&waiting(&other, 1).await), ["other"]);
    assert!(desk.done().is_empty());
    for wait in &open {
        session.approve(&wait.id).await.unwrap();
    }
    let later = waiting(&session, 1).await;
    assert_eq!((asked(&later), later[0].kind), (vec!["later".to_owned()], PendingKind::Approval));
    assert!(session.grants().is_empty());
    assert_eq!(session.decide("run").unwrap().verdict, Verdict::Ask);
    session.abort().await.unwrap();
    over(&session).await;
    controller.shutdown().await;
}

/// B-106: a parent that only hands out work has subagents with tools: that it does not have them itself is no denial. What a mode, a rule
/// or a person forbids is one, and where that leaves a subagent nothing it is not started at all, and says so.
#[tokio::test]
async fn a_parent_that_only_delegates_has_executors_and_a_conflict_is_an_error() {
    let executor = || Subagent::new("executor").instructions("EXECUTOR").allowed_controller_tools(["look", "run"]);
    let only_delegates = Mode::new("build").model("prov/builder");
    let desk = Desk::new([
        hand_over("c1", "executor", "do it"),
        Turn::tool("s1", "look", json!({ "what": "around" })).when_contains("EXECUTOR"),
        Turn::text("looked").when_contains("EXECUTOR"),
        Turn::text("done"),
        // Then one with nothing left.
        hand_over("c2", "executor", "do it"),
        Turn::text("done"),
        // And under a mode that offers nothing of it.
        hand_over("c3", "executor", "do it"),
        Turn::text("done"),
    ]);
    let narrow = Mode::new("narrow").model("prov/builder").available_tools(["subagent"]);
    let controller = builder(&desk, "", [executor()]).modes([only_delegates, narrow]).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    // The parent has a narrow list of its own; its executor is not asked about that.
    session.send_message("go").await.unwrap();
    assert_eq!(tools(&desk, 1), ["look", "run"]);
    assert_eq!(desk.done(), ["look around"]);

    for tool in ["look", "run"] {
        session.set_tool_policy(tool, Some(Policy::Deny)).await.unwrap();
    }
    session.send_message("again").await.unwrap();
    let (_, result) = said(&desk, 5).pop().unwrap();
    assert!(result.contains("cannot work here") && result.contains("look, run"), "{result}");

    for tool in ["look", "run"] {
        session.set_tool_policy(tool, None).await.unwrap();
    }
    session.switch_mode("narrow").await.unwrap();
    session.send_message("once more").await.unwrap();
    let (_, result) = said(&desk, 7).pop().unwrap();
    assert!(result.contains("cannot work here") && result.contains("mode `narrow`"), "{result}");
    assert_eq!(desk.server.requests().len(), 8);
    controller.shutdown().await;
}

/// A denial holds in the subagent whatever it was allowed, also one that is laid down while it works.
#[tokio::test]
async fn a_denial_of_the_session_holds_below_it() {
    let desk = Desk::new([
        hand_over("c1", "helper", "write"),
        Turn::tool("s1", "look", json!({ "what": "x", "wait": 150 })).when_contains("HELPER"),
        write("s2", "it").when_contains("HELPER"),
        Turn::text("could not").when_contains("HELPER"),
        Turn::text("done"),
    ]);
    let mut yolo = serde_json::Map::new();
    yolo.insert("yolo".into(), true.into());
    let controller = builder(&desk, "", [helper()]).initial_state(yolo).modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let submitted = session.submit("go").await.unwrap();
    desk.server.wait_for_requests(2).await;
    session.set_tool_policy("write", Some(Policy::Deny)).await.unwrap();
    assert_eq!(submitted.settled().await, Settlement::Complete);
    assert_eq!(desk.done(), ["look x"]);
    controller.shutdown().await;
}

/// `subagent` is a tool like any other: without a rule it asks, and a denied one is not offered (SPEC T-7).
#[tokio::test]
async fn handing_over_asks_first_and_can_be_denied() {
    let desk = Desk::new([hand_over("c1", "helper", "x"), Turn::text("done")]);
    let controller = builder(&desk, "", [helper()]).default_policies(DefaultPolicies::default()).modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    send_and_rest(&session, "go").await;
    let open = session.pending().await.unwrap();
    assert_eq!((open[0].tool.as_str(), open[0].kind), ("subagent", PendingKind::Approval));
    session.decline(&open[0].id, None).await.unwrap();
    over(&session).await;
    session.set_tool_policy("subagent", Some(Policy::Deny)).await.unwrap();
    desk.server.push(Turn::text("ok"));
    session.send_message("again").await.unwrap();
    assert!(!tools(&desk, 2).contains(&"subagent".to_owned()));
    controller.shutdown().await;
}

/// One that is as deep as may be has no subagents, and a call all the same is answered in words.
#[tokio::test]
async fn subagents_are_nested_as_deep_as_the_host_says_and_no_deeper() {
    let kind = Subagent::new("nest").instructions("NEST").allowed_controller_tools(["subagent", "look"]);
    let desk = Desk::new([
        hand_over("c1", "nest", "level 1"),
        hand_over("c2", "nest", "level 2").when_contains("level 1\""),
        hand_over("c3", "nest", "level 3").when_contains("level 2\""),
        Turn::text("deep enough").when_contains("level 2\""),
        Turn::text("done").when_contains("level 1\""),
        Turn::text("done"),
    ]);
    let controller = builder(&desk, "", [kind]).subagent_depth(2).modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    session.send_message("go").await.unwrap();
    assert_eq!(tools(&desk, 1), ["subagent", "look"]);
    assert_eq!(tools(&desk, 2), ["look"]);
    let (_, result) = said(&desk, 3).pop().unwrap();
    assert!(result.contains("no tool named") && result.contains("subagent"), "{result}");
    controller.shutdown().await;
}

/// A subagent makes no more model calls than its type says, and spends no more tokens than are left of its parent's.
#[tokio::test]
async fn a_subagent_has_a_budget_of_its_own() {
    let look = |n: u32| Turn::tool(format!("s{n}"), "look", json!({ "what": n.to_string() })).when_contains("HELPER").tokens(10, 0);
    let desk = Desk::new([hand_over("c1", "helper", "x").tokens(60, 0), look(1), look(2), look(3), Turn::text("done")]);
    let mut limits = Limits::default();
    limits.tokens = Some(1000);
    let controller = builder(&desk, "", [helper().max_steps(2)]).limits(limits).modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    session.send_message("go").await.unwrap();
    assert_eq!(desk.done(), ["look 1", "look 2"]);
    let (_, result) = said(&desk, 3).pop().unwrap();
    assert!(result.contains("made its 2 model calls") && result.contains("\"isError\":true"), "{result}");
    controller.shutdown().await;

    let desk = Desk::new([hand_over("c1", "helper", "x").tokens(60, 0), look(1), look(2), look(3), look(4), look(5), Turn::text("done")]);
    limits.tokens = Some(90);
    let controller = builder(&desk, "", [helper()]).limits(limits).modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let settled = session.send_message("go").await.unwrap();
    assert_eq!(desk.done(), ["look 1", "look 2", "look 3"], "thirty tokens were left");
    assert!(matches!(settled.settlement, Settlement::Failed(error) if error.code == "run.token_limit"), "they are the parent's, too");
    controller.shutdown().await;
}
