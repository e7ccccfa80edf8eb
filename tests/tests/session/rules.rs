//! Rules for single calls, from where they are laid down to the call that they decide.

use std::sync::Arc;

use ac_controller::{ControllerBuilder, Settlement, UserMessage};
use ac_core::{
    EventBody, PermissionRules, Policy,
    permission::{GrantTarget, Reason, Verdict},
};
use ac_testkit::Turn;
use ac_tools::workspace::WorkspaceRules;
use ac_workspace::Workspace;
use serde_json::{Map, Value, json};

use crate::desk::{Desk, build_mode, drain, send_and_rest};

fn run(command: &str) -> Value {
    json!({ "what": command, "command": command })
}

fn open(desk: &Desk, life: &str, folder: &tempfile::TempDir) -> ControllerBuilder {
    let workspace = Arc::new(Workspace::local(folder.path()).unwrap());
    desk.builder(life).modes(build_mode()).call_rules(WorkspaceRules::new(workspace))
}

#[tokio::test]
async fn rules_for_single_calls_are_kept_and_a_denial_beats_everything_that_allows() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::new([
        Turn::tool("c1", "run", run("git status")),
        Turn::text("ok"),
        Turn::tool("c2", "run", run("git push")).then_tool("c3", "run", run("git  status -s")).then_tool("c4", "run", run("git $x")),
    ]);
    let controller = open(&desk, "", &folder).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    session.set_call_policy("run(git status*)", Some(Policy::Allow)).await.unwrap();
    session.set_call_policy("run(git push*)", Some(Policy::Deny)).await.unwrap();
    assert_eq!(session.set_call_policy("run(", Some(Policy::Deny)).await.unwrap_err().code(), "rule.invalid");
    assert_eq!(session.send_message("go").await.unwrap().settlement, Settlement::Complete, "nobody is asked");
    controller.shutdown().await;

    // Another process: the rules are there, and neither a grant nor a session that allows everything lifts the denial.
    let controller = open(&desk, "b", &folder).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    session.grant(GrantTarget::Tool("run".into())).await.unwrap();
    session.set_state(Map::from_iter([("yolo".to_owned(), json!(true))])).await.unwrap();
    let mut events = session.subscribe();
    send_and_rest(&session, "more").await;
    let waiting = session.pending().await.unwrap();
    assert_eq!((waiting.len(), &waiting[0].args["command"]), (1, &json!("git $x")), "what may be a denied call waits for a person");
    assert_eq!(desk.done(), ["run git status", "run git  status -s"]);
    let denied = drain(&mut events).into_iter().filter(|event| matches!(&event.body, EventBody::ToolEnd { denied: true, .. })).count();
    assert_eq!(denied, 1);
    // A grant that is given again does not reach what a rule holds back.
    session.grant(GrantTarget::Tool("run".into())).await.unwrap();
    assert_eq!(session.pending().await.unwrap().len(), 1);
    let reason = async |command: &str| {
        let decision = session.decide_call("run", &run(command)).await.unwrap();
        (decision.verdict, decision.reason)
    };
    assert_eq!(reason("git status && git push").await, (Verdict::Deny, Reason::CallDenied));
    assert_eq!(reason("$x").await, (Verdict::Ask, Reason::CallUnclear));
    assert_eq!(reason("make").await, (Verdict::Allow, Reason::Yolo));
    session.set_call_policy("run(git push*)", None).await.unwrap();
    assert_eq!(reason("git push").await, (Verdict::Allow, Reason::Yolo));
    controller.shutdown().await;
}

#[tokio::test]
async fn the_rules_of_the_host_hold_in_every_session_and_mean_something() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret"), "x").unwrap();
    std::os::unix::fs::symlink("secret", folder.path().join("innocent")).unwrap();
    let desk = Desk::new([Turn::tool("c1", "look", json!({ "what": "x", "path": "./innocent" })), Turn::text("ok")]);
    let rules: PermissionRules = serde_json::from_value(json!({ "calls": { "look(secret)": "deny" } })).unwrap();
    // Nobody is there to read it: it would protect nothing.
    let nobody = desk.builder("").modes(build_mode()).rules(rules.clone()).build();
    assert_eq!(nobody.unwrap_err().code(), "rule.invalid");
    let controller = open(&desk, "", &folder).rules(rules).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    session.set_call_policy("look(secret)", Some(Policy::Allow)).await.unwrap();
    session.send_message("go").await.unwrap();
    assert_eq!(desk.done(), Vec::<String>::new(), "the link leads to what is denied");
    controller.shutdown().await;
}

#[tokio::test]
async fn a_run_that_asks_nobody_runs_nothing_that_may_be_denied() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::new([
        Turn::tool("c1", "run", run("git $x")).then_tool("c2", "run", run("git push")).then_tool("c3", "run", run("make")),
        Turn::text("ok"),
    ]);
    let controller = open(&desk, "", &folder).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    session.set_call_policy("run(git push*)", Some(Policy::Deny)).await.unwrap();
    let submitted = session.submit(UserMessage::new("go").unattended()).await.unwrap();
    assert_eq!(submitted.settled().await, Settlement::Complete);
    assert_eq!(desk.done(), ["run make"]);
    controller.shutdown().await;
}
