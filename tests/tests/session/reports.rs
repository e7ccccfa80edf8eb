//! What people reported of comparable systems: waits that are taken for one another, histories that no provider accepts any more. More of
//! it in `suspensions`, `histories` and `rivals`; which test answers which report is listed in `docs/reported-failures.md`.

use ac_controller::{Answer, Settlement};
use ac_core::EventBody;
use ac_testkit::Turn;
use serde_json::{Value, json};

use crate::desk::{Desk, build_mode, send_and_rest, until};

/// Role and content of the messages of a request.
pub(crate) fn told(desk: &Desk, request: usize) -> Vec<(String, String)> {
    let body = &desk.server.requests()[request].body;
    let text = |message: &Value, key: &str| message[key].as_str().unwrap_or_default().to_owned();
    body["messages"].as_array().unwrap().iter().map(|message| (text(message, "role"), message["content"].to_string())).collect()
}

/// B-01: a late decision about an old call does not reach the call that waits now.
#[tokio::test]
async fn a_late_click_does_not_decide_about_a_newer_call() {
    let write = |id: &str, what: &str| Turn::tool(id, "write", json!({ "what": what }));
    let desk = Desk::new([write("c1", "first"), write("c2", "second"), Turn::text("done")]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    send_and_rest(&session, "write").await;
    let old = session.pending().await.unwrap().remove(0).id;
    session.decline(&old, None).await.unwrap();
    session.live_run().await.unwrap().unwrap().resting().await;
    let waits = session.pending().await.unwrap();
    assert_eq!(waits.iter().map(|wait| wait.call.as_str()).collect::<Vec<_>>(), ["c2"]);
    assert_eq!(session.approve(&old).await.unwrap_err().code(), "answer.already_resolved");
    assert_eq!(session.pending().await.unwrap(), waits);
    assert_eq!(desk.done(), Vec::<String>::new());
    controller.shutdown().await;
}

/// B-04, B-06: three questions of one step have names of their own, and two answers leave the third open.
#[tokio::test]
async fn questions_of_one_step_are_answered_one_by_one() {
    let ask = |turn: Turn, id: &str| turn.then_tool(id, "ask_user", json!({ "question": format!("{id}?") }));
    let step = ["north", "east", "south"].into_iter().fold(Turn::default(), ask);
    let desk = Desk::new([step, Turn::text("done")]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    assert_eq!(session.send_message("ask").await.unwrap().settlement, Settlement::Waiting);
    let waits = session.pending().await.unwrap();
    assert_eq!(waits.len(), 3);
    for wait in &waits[..2] {
        session.answer(&wait.id, Answer::Reply { value: json!(format!("to {}", wait.call)) }).await.unwrap();
    }
    assert_eq!(session.pending().await.unwrap(), waits[2..]);
    assert_eq!(desk.server.requests().len(), 1, "the step is not over");
    session.answer(&waits[2].id, Answer::Reply { value: json!(format!("to {}", waits[2].call)) }).await.unwrap();
    desk.server.wait_for_requests(2).await;
    let results: Vec<_> = told(&desk, 1).into_iter().filter(|(role, _)| role == "tool").map(|(_, content)| content).collect();
    assert_eq!(results.len(), 3);
    for (call, result) in ["north", "east", "south"].iter().zip(&results) {
        assert!(result.contains(&format!("User answered: to {call}")), "{call}: {result}");
    }
    controller.shutdown().await;
}

/// B-09, B-18: after a restart a wait reads the same field by field, and its answer counts whatever context comes with it.
#[tokio::test]
async fn a_wait_is_the_same_in_the_next_life_whatever_context_comes_with_its_answer() {
    let desk = Desk::new([Turn::tool("c1", "write", json!({ "what": "a" })), Turn::text("done")]);
    let first = desk.builder("").modes(build_mode()).build().unwrap();
    let session = first.create_session("ann").await.unwrap();
    send_and_rest(&session, "write").await;
    let before = session.pending().await.unwrap();
    first.shutdown().await;
    let second = desk.builder("second").modes(build_mode()).build().unwrap();
    second.init().await.unwrap();
    let session = second.create_session("ann").await.unwrap();
    assert_eq!(session.pending().await.unwrap(), before);
    let context = json!({ "tenant": "other" }).as_object().unwrap().clone();
    session.answer_with(&before[0].id, Answer::Approve { grant: None }, Some(context)).await.unwrap();
    desk.server.wait_for_requests(2).await;
    assert_eq!(desk.done(), ["write a"]);
    assert!(session.pending().await.unwrap().is_empty());
    second.shutdown().await;
}

/// B-15: what is put before the model after the decision does not hide the decision.
#[tokio::test]
async fn a_note_after_the_decision_stands_behind_the_result() {
    let desk = Desk::new([
        Turn::tool("c1", "write", json!({ "what": "a" })).then_tool("c2", "ask_user", json!({ "question": "And?" })),
        Turn::text("done"),
    ]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    send_and_rest(&session, "write").await;
    let waits = session.pending().await.unwrap();
    let of = |call: &str| waits.iter().find(|wait| wait.call.as_str() == call).unwrap().id.clone();
    session.approve(&of("c1")).await.unwrap();
    session.inject("a file changed").await.unwrap();
    session.answer(&of("c2"), Answer::Reply { value: json!("no") }).await.unwrap();
    desk.server.wait_for_requests(2).await;
    assert_eq!(desk.done(), ["write a"]);
    let roles: Vec<_> = told(&desk, 1).into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "user"]);
    controller.shutdown().await;
}

/// B-33, B-34: after an abort in the middle of a call the model is told that the call may have happened, and goes on with the new message.
#[tokio::test]
async fn an_aborted_call_is_told_and_not_taken_up_again() {
    let desk = Desk::new([Turn::tool("c1", "look", json!({ "what": "far", "wait": 60_000 })), Turn::text("Four.")]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    let submitted = session.submit("look far").await.unwrap();
    until(&mut events, |body| matches!(body, EventBody::ToolStart { .. })).await;
    assert!(session.abort().await.unwrap());
    assert_eq!(submitted.settled().await, Settlement::Aborted);
    assert_eq!(session.send_message("two and two?").await.unwrap().settlement, Settlement::Complete);
    let told = told(&desk, 1);
    let (role, last) = told.last().unwrap();
    assert!(role == "user" && last.contains("two and two?"), "{told:?}");
    let (_, result) = told.iter().find(|(role, _)| role == "tool").unwrap();
    assert!(result.contains("Interrupted"), "{result}");
    assert_eq!(desk.server.requests().len(), 2);
    assert_eq!(desk.done(), Vec::<String>::new());
    controller.shutdown().await;
}

/// Every Rust file of the workspace.
fn sources(folder: &std::path::Path, into: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(std::fs::read_to_string(path).unwrap());
        }
    }
}

/// Case and tests of each row of the page.
fn rows(page: &str) -> Vec<(&str, Vec<&str>)> {
    page.lines()
        .filter_map(|line| line.strip_prefix("| B-"))
        .map(|row| {
            let cells: Vec<_> = row.trim_end_matches(" |").split(" | ").collect();
            (cells[0], cells[2].split('`').skip(1).step_by(2).collect())
        })
        .collect()
}

/// The kinds whose every case has a row.
const KINDS: [&str; 7] =
    ["approval-suspension", "history-persistence", "concurrency", "streaming-parse", "provider-roundtrip", "retry-errors", "tool-schema"];

#[test]
fn every_reported_failure_of_these_kinds_is_held_by_a_test_that_cites_it() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = std::fs::read_to_string(root.join("docs/reported-failures.md")).unwrap();
    let mut files = vec![];
    for folder in ["crates", "tests"] {
        sources(&root.join(folder), &mut files);
    }
    let rows = rows(&page);
    for (case, tests) in &rows {
        assert!(!tests.is_empty(), "B-{case} has no test");
        for test in tests {
            let declared = format!("fn {test}(");
            let of_test = files.iter().find_map(|text| text.split_once(&declared));
            let (before, _) = of_test.unwrap_or_else(|| panic!("there is no test `{test}`"));
            // The comment stands right before the attribute of the test.
            let comment: Vec<_> = before.lines().rev().skip(1).take_while(|line| !line.trim().is_empty()).collect();
            let cites = |line: &&str| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|word| word == format!("B-{case}"));
            assert!(comment.iter().any(cites), "`{test}` does not cite B-{case}");
        }
    }
    let Some(cases) = ac_testkit::shared::data("cases/BUGS.md") else { return println!("skipped: no shared data to compare with") };
    let cases = std::fs::read_to_string(cases).unwrap();
    let mut ours = false;
    let wanted = cases.lines().filter_map(|line| {
        if let Some(kind) = line.strip_prefix("## ") {
            ours = KINDS.contains(&kind.trim());
        }
        let case = line.strip_prefix("### B-").filter(|_| ours)?;
        case.split(' ').next()
    });
    let missing: Vec<_> = wanted.filter(|case| rows.iter().all(|(known, _)| known != case)).collect();
    assert!(missing.is_empty(), "no row for {missing:?}");
}
