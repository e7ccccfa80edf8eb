//! Whose rules hold for a run, and who hears of it: those of the session that started it, as they are stored, whoever moves it on.

use std::time::Duration;

use ac_controller::{AgentController, Mode, SessionRequest, Settlement, UserMessage};
use ac_core::{EventBody, Policy, SessionKey, ToolCategory, permission::GrantTarget};
use ac_testkit::Turn;
use ac_tools::TypedTool;
use serde_json::{Map, Value, json};

use crate::desk::{Desk, build_mode, drain, is_end, names, send_and_rest, until};

fn open(desk: &Desk, life: &str) -> AgentController {
    desk.builder(life).modes(build_mode()).build().unwrap()
}

fn work(call: &str, tool: &str) -> Turn {
    Turn::tool(call, tool, json!({ "what": call }))
}

#[tokio::test]
async fn an_answer_after_a_restart_goes_by_the_rules_of_a_session_that_nobody_opened() {
    let desk = Desk::new([work("c1", "write"), work("c2", "run").then_tool("c3", "look", json!({ "what": "c3" })), Turn::text("ok")]);
    let a = open(&desk, "a");
    let session = a.create_session("ann").await.unwrap();
    session.set_tool_policy("look", Some(Policy::Deny)).await.unwrap();
    session.grant(GrantTarget::Tool("run".into())).await.unwrap();
    send_and_rest(&session, "go").await;
    a.shutdown().await;

    let b = open(&desk, "b");
    b.init().await.unwrap();
    let waiting = b.pending().await.unwrap();
    b.answer(&waiting[0].id, ac_controller::Answer::Approve { grant: None }).await.unwrap();
    let ended = async {
        while desk.server.requests().len() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ended).await.expect("nobody is asked");
    assert_eq!(desk.done(), ["write c1", "run c2"], "what was granted runs, what was denied does not");
    b.shutdown().await;
}

#[tokio::test]
async fn a_rule_that_another_process_laid_down_holds_at_once() {
    let turns = [Turn::text("hello"), work("c1", "look"), Turn::text("ok"), work("c2", "write"), work("c3", "run"), Turn::text("ok")];
    let desk = Desk::new(turns);
    let (a, b) = (open(&desk, "a"), open(&desk, "b"));
    let here = a.create_session("ann").await.unwrap();
    here.send_message("hi").await.unwrap();
    let there = b.create_session("ann").await.unwrap();
    there.set_tool_policy("look", Some(Policy::Deny)).await.unwrap();
    assert_eq!(here.send_message("look").await.unwrap().settlement, Settlement::Complete);
    assert_eq!(desk.done(), Vec::<String>::new());
    assert_eq!(here.rules(), there.rules());
    // In the middle of a run too.
    let mut events = here.subscribe();
    send_and_rest(&here, "write, then run").await;
    there.set_tool_policy("run", Some(Policy::Deny)).await.unwrap();
    here.approve(&here.pending().await.unwrap()[0].id).await.unwrap();
    until(&mut events, is_end).await;
    assert_eq!(desk.done(), ["write c2"]);
    a.shutdown().await;
    b.shutdown().await;
}

#[tokio::test]
async fn what_waits_is_answered_for_the_session_that_is_there_and_not_for_the_deleted_one() {
    let desk = Desk::new([work("c1", "write"), work("c2", "run"), Turn::text("ok"), Turn::text("more")]);
    let controller = open(&desk, "");
    let old = controller.create_session("ann").await.unwrap();
    old.grant(GrantTarget::Tool("run".into())).await.unwrap();
    send_and_rest(&old, "go").await;
    assert!(controller.delete_session(&SessionKey::new("ann")).await.unwrap());
    assert_eq!(old.set_tool_policy("run", Some(Policy::Allow)).await.unwrap_err().code(), "session.deleted");

    let new = controller.create_session("ann").await.unwrap();
    assert!(!new.is_running(), "it waits, and nothing moves");
    let mut events = new.subscribe();
    let open = new.pending().await.unwrap();
    assert_eq!(open.iter().map(|open| open.call.as_str()).collect::<Vec<_>>(), ["c1"]);
    new.approve(&open[0].id).await.unwrap();
    until(&mut events, |body| matches!(body, EventBody::ToolApprovalRequired { .. })).await;
    assert_eq!(desk.done(), ["write c1"], "the grants of the deleted session are gone");
    new.approve(&new.pending().await.unwrap()[0].id).await.unwrap();
    until(&mut events, is_end).await;
    assert_eq!(desk.done(), ["write c1", "run c2"]);
    assert_eq!(new.send_message("more").await.unwrap().settlement, Settlement::Complete);
    controller.shutdown().await;
}

#[tokio::test]
async fn who_speaks_on_another_sessions_run_moves_it_on_by_that_ones_rules() {
    let desk = Desk::new([work("c1", "write"), work("c2", "write"), Turn::text("ok")]);
    let a = open(&desk, "a");
    let ann = a.create_session(SessionRequest::new("ann").thread("T")).await.unwrap();
    send_and_rest(&ann, "go").await;
    a.shutdown().await;

    let b = open(&desk, "b");
    let tab = b.create_session(SessionRequest::new("ann").scope("tab").thread("T")).await.unwrap();
    tab.set_state(Map::from_iter([("yolo".to_owned(), json!(true))])).await.unwrap();
    let mut events = tab.subscribe();
    let submitted = tab.submit(UserMessage::new("rather this")).await.unwrap();
    assert!(submitted.joined);
    let handle = submitted.handle().unwrap();
    tokio::time::timeout(Duration::from_secs(10), handle.resting()).await.unwrap();
    let ann = b.create_session("ann").await.unwrap();
    assert_eq!(desk.done(), Vec::<String>::new(), "what the other session allows itself is not allowed to this run");
    assert_eq!(ann.pending().await.unwrap().iter().map(|open| open.call.as_str()).collect::<Vec<_>>(), ["c2"]);
    assert_eq!(tab.pending().await.unwrap(), []);
    assert!(!tab.is_running() && !names(&drain(&mut events)).contains(&"tool_approval_required"));
    let mut heard = ann.subscribe();
    ann.approve(&ann.pending().await.unwrap()[0].id).await.unwrap();
    until(&mut heard, is_end).await;
    assert_eq!(desk.done(), ["write c2"]);
    b.shutdown().await;
}

#[tokio::test]
async fn a_wait_knows_the_category_of_its_call_wherever_the_session_went_meanwhile() {
    let touch = TypedTool::new("touch", |_: Map<String, Value>, _| async move { Ok("touched") });
    let build = Mode::new("build").model("prov/builder").additional_tools([touch.category(ToolCategory::Edit).build()]).default();
    let desk = Desk::new([work("c1", "touch")]);
    let controller = desk.builder("").modes([build, Mode::new("plan").model("prov/planner")]).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    send_and_rest(&session, "go").await;
    session.switch_mode("plan").await.unwrap();
    assert_eq!(session.category_of("touch"), None, "the mode of now has no such tool");
    assert_eq!(session.pending().await.unwrap()[0].category, ToolCategory::Edit);
    controller.shutdown().await;
}
