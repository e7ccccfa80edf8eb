//! Goals: judged after each answer, in the same run, until they are reached, paused or waited for.

use std::time::Duration;

use ac_controller::{AgentController, GoalJudge, GoalStatus, GoalUpdate, NewGoal, Settlement};
use ac_core::{EventBody, Role, event::EndReason};
use ac_storage::domain::MessageQuery;
use ac_testkit::{Turn, server::turn::Match};
use serde_json::{Value, json};

use crate::desk::{Desk, build_mode, drain, is_end, names, until};

fn open(desk: &Desk, life: &str) -> AgentController {
    let judge = GoalJudge::new().model("prov/judge").timeout(Duration::from_millis(500));
    desk.builder(life).modes(build_mode()).goal_judge(judge).build().unwrap()
}

/// An answer of the judge.
fn judge(decision: &str, reason: &str) -> Turn {
    judges(Turn::text(json!({ "decision": decision, "reason": reason }).to_string()))
}

fn judges(turn: Turn) -> Turn {
    turn.when(Match { model: Some("judge".into()), ..Match::default() })
}

/// An answer of the worker.
fn works(text: &str) -> Turn {
    Turn::text(text).when(Match { model: Some("builder".into()), ..Match::default() })
}

fn verdicts(events: &[std::sync::Arc<ac_core::Event>]) -> Vec<Value> {
    events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::GoalEvaluation { payload } if payload.get("pending").is_none() => Some(payload.clone()),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_run_goes_on_until_its_goal_is_reached() {
    let desk = Desk::new([works("half"), judge("continue", "the rest is missing"), works("whole"), judge("done", "all there")]);
    let controller = open(&desk, "");
    let session = controller.create_session("ann").await.unwrap();
    let goal = session.set_goal(NewGoal::new("Ship it").max_runs(5)).await.unwrap();
    let mut events = session.subscribe();
    assert_eq!(session.send_message("go").await.unwrap().settlement, Settlement::Complete);
    let all = drain(&mut events);
    let told: Vec<_> =
        names(&all).into_iter().filter(|name| !matches!(*name, "message_update" | "usage_update" | "queue_changed")).collect();
    assert_eq!(
        told,
        [
            "agent_start",
            // what the person said, the goal
            "message_start",
            "message_end",
            "message_start",
            "message_end",
            // half
            "message_start",
            "message_end",
            "goal_evaluation",
            "goal_evaluation",
            "message_start",
            "message_end",
            "goal_evaluation",
            // whole
            "message_start",
            "message_end",
            "goal_evaluation",
            "goal_evaluation",
            "message_start",
            "message_end",
            "goal_evaluation",
            "agent_end",
        ]
    );
    let verdicts = verdicts(&all);
    let shown: Vec<_> = verdicts.iter().map(|v| (v["iteration"].clone(), v["shouldContinue"].clone(), v["status"].clone())).collect();
    assert_eq!(shown, [(json!(1), json!(true), json!("active")), (json!(2), json!(false), json!("done"))]);

    let reached = session.goal().await.unwrap().unwrap();
    assert_eq!((reached.id, reached.status, reached.runs_used), (goal.id, GoalStatus::Done, 2));
    let requests = desk.server.requests();
    assert_eq!(requests.len(), 4);
    let used: u64 = all
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::UsageUpdate { usage, .. } => Some(usage.total),
            _ => None,
        })
        .sum();
    let stored = session.token_usage().await.unwrap();
    assert_eq!((used, stored.total), (4 * 15, 4 * 15), "what the judge used counts too");
    let asked = requests[1].body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(asked.starts_with("Goal: Ship it") && asked.ends_with("half"), "{asked}");
    let second = requests[2].body["messages"].as_array().unwrap();
    let note = second.last().unwrap()["content"].as_str().unwrap();
    assert!(note.contains("the rest is missing") && note.contains("Ship it"), "{note}");
    let roles: Vec<_> = session.messages(None, MessageQuery::default()).await.unwrap().items.iter().map(|m| m.message.role).collect();
    use Role::{Assistant, Signal, User};
    assert_eq!(roles, [User, Signal, Assistant, Signal, Assistant, Signal]);

    // Reached: the next answer is nobody's to judge.
    desk.server.push(works("and now"));
    session.send_message("more").await.unwrap();
    assert_eq!(desk.server.requests().len(), 5);
    assert!(desk.server.violations().is_empty());
    controller.shutdown().await;
}

#[tokio::test]
async fn waiting_ends_the_run_and_the_limit_pauses_the_goal() {
    let desk = Desk::new([works("which one?"), judge("waiting", "asks"), works("a"), judge("continue", "not yet")]);
    let controller = open(&desk, "");
    let session = controller.create_session("ann").await.unwrap();
    session.set_goal(NewGoal::new("Ship it").max_runs(2)).await.unwrap();
    let mut events = session.subscribe();
    session.send_message("go").await.unwrap();
    let waiting = verdicts(&drain(&mut events));
    assert_eq!((&waiting[0]["waitingForUser"], &waiting[0]["status"]), (&json!(true), &json!("active")));
    assert_eq!(session.send_message("that one").await.unwrap().settlement, Settlement::Complete);
    let limit = verdicts(&drain(&mut events));
    assert_eq!((&limit[0]["maxRunsReached"], &limit[0]["status"]), (&json!(true), &json!("paused")));
    let goal = session.goal().await.unwrap().unwrap();
    assert_eq!((goal.status, goal.runs_used), (GoalStatus::Paused, 2));
    assert!(goal.paused_reason.is_some());
    let resumed = session.update_goal(GoalUpdate::new().status(GoalStatus::Active).max_runs(9)).await.unwrap().unwrap();
    assert_eq!((resumed.status, resumed.paused_reason, resumed.max_runs), (GoalStatus::Active, None, Some(9)));
    controller.shutdown().await;
}

#[tokio::test]
async fn a_judge_that_fails_never_keeps_a_run_from_ending() {
    for (turn, timed_out) in [
        (Turn::error(400, "no"), false),
        (Turn::hang(), true),
        (Turn::text("I would rather not say"), false),
        (Turn::text(r#"{"decision":"again and again"}"#), false),
    ] {
        let desk = Desk::new([works("done"), judges(turn)]);
        let controller = open(&desk, "");
        let session = controller.create_session("ann").await.unwrap();
        session.set_goal("Ship it").await.unwrap();
        let mut events = session.subscribe();
        let settled = tokio::time::timeout(Duration::from_secs(10), session.send_message("go")).await.unwrap().unwrap();
        assert_eq!(settled.settlement, Settlement::Complete);
        let verdict = &verdicts(&drain(&mut events))[0];
        assert_eq!((&verdict["judgeFailed"], &verdict["timedOut"]), (&json!(true), &json!(timed_out)));
        assert_eq!(session.goal().await.unwrap().unwrap().status, GoalStatus::Paused);
        controller.shutdown().await;
    }
}

/// What comes while the judge thinks goes before its verdict.
#[tokio::test]
async fn a_message_and_an_abort_do_not_wait_for_the_judge() {
    let desk = Desk::new([works("one"), judges(Turn::hang()), works("two"), judge("done", "yes")]);
    let judge_slowly = GoalJudge::new().model("prov/judge").timeout(Duration::from_secs(60));
    let controller = desk.builder("").modes(build_mode()).goal_judge(judge_slowly).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    session.set_goal("Ship it").await.unwrap();
    let mut events = session.subscribe();
    let first = session.submit("go").await.unwrap();
    until(&mut events, |body| matches!(body, EventBody::GoalEvaluation { .. })).await;
    let second = session.submit("and this").await.unwrap();
    assert_eq!((second.joined, &second.run), (true, &first.run));
    assert_eq!(first.settled().await, Settlement::Complete);
    assert_eq!(names(&until(&mut events, is_end).await).iter().filter(|name| **name == "agent_start").count(), 0, "the same segment");
    assert_eq!(session.goal().await.unwrap().unwrap().runs_used, 1, "what was dropped does not count");

    session.update_goal(GoalUpdate::new().status(GoalStatus::Active)).await.unwrap();
    for turn in [works("three"), judges(Turn::hang())] {
        desk.server.push(turn);
    }
    let third = session.submit("go on").await.unwrap();
    until(&mut events, |body| matches!(body, EventBody::GoalEvaluation { .. })).await;
    session.abort().await.unwrap();
    assert_eq!(tokio::time::timeout(Duration::from_secs(5), third.settled()).await.unwrap(), Settlement::Aborted);
    let end = until(&mut events, is_end).await;
    assert!(matches!(end.last().unwrap().body, EventBody::AgentEnd { reason: EndReason::Aborted, .. }));
    assert!(!session.is_running());
    assert_eq!(
        session.messages(None, MessageQuery::default()).await.unwrap().items.iter().filter(|m| m.message.text() == "three").count(),
        1
    );
    controller.shutdown().await;
}

/// A goal that is paused or taken away while the judge thinks is the person's last word.
#[tokio::test]
async fn a_late_verdict_on_another_goal_does_not_count() {
    let slow = judges(Turn::chunks([r#"{"decision":"#, r#""continue"}"#]).slowly(Duration::from_millis(100)));
    let desk = Desk::new([works("one"), slow]);
    let controller = open(&desk, "");
    let session = controller.create_session("ann").await.unwrap();
    session.set_goal("Ship it").await.unwrap();
    let mut events = session.subscribe();
    let sent = session.submit("go").await.unwrap();
    until(&mut events, |body| matches!(body, EventBody::GoalEvaluation { .. })).await;
    assert!(session.clear_goal().await.unwrap());
    assert_eq!(sent.settled().await, Settlement::Complete);
    let verdict = &verdicts(&until(&mut events, is_end).await)[0];
    assert_eq!((&verdict["shouldContinue"], &verdict["suppressFeedback"]), (&json!(false), &json!(true)));
    assert_eq!(session.goal().await.unwrap(), None);
    assert_eq!(desk.server.requests().len(), 2);
    controller.shutdown().await;
}

/// A process that stops while the judge thinks: the next one judges the stored answer, and counts it once.
#[tokio::test]
async fn judging_goes_on_after_a_restart() {
    let desk = Desk::new([works("one"), judges(Turn::hang())]);
    let slow = GoalJudge::new().model("prov/judge").timeout(Duration::from_secs(60));
    let first = desk.builder("a").modes(build_mode()).goal_judge(slow).build().unwrap();
    let session = first.create_session("ann").await.unwrap();
    session.set_goal(NewGoal::new("Ship it").max_runs(5)).await.unwrap();
    let mut events = session.subscribe();
    session.submit("go").await.unwrap();
    until(&mut events, |body| matches!(body, EventBody::GoalEvaluation { .. })).await;
    first.shutdown().await;

    for turn in [judge("continue", "more"), works("two"), judge("done", "yes")] {
        desk.server.push(turn);
    }
    let second = open(&desk, "b");
    let session = second.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    second.init().await.unwrap();
    let all = until(&mut events, is_end).await;
    assert_eq!(names(&all)[0], "agent_start");
    let goal = session.goal().await.unwrap().unwrap();
    assert_eq!((goal.status, goal.runs_used), (GoalStatus::Done, 2));
    let texts: Vec<_> = session.messages(None, MessageQuery::default()).await.unwrap().items;
    assert_eq!(texts.iter().filter(|m| m.message.role == Role::Assistant).count(), 2, "the answer was not sampled again");
    second.shutdown().await;
}

#[tokio::test]
async fn a_goal_belongs_to_its_thread_and_is_checked() {
    let desk = Desk::new([Turn::text("ok")]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let thread = session.thread_id().unwrap();
    assert_eq!(session.goal().await.unwrap(), None);
    assert_eq!(session.update_goal(GoalUpdate::new().status(GoalStatus::Done)).await.unwrap(), None);
    assert_eq!(session.set_goal("  ").await.unwrap_err().code(), "goal.invalid");
    assert_eq!(session.set_goal(NewGoal::new("x").max_runs(0)).await.unwrap_err().code(), "goal.invalid");
    session.set_goal("x").await.unwrap();
    assert_eq!(session.send_message("go").await.unwrap().settlement, Settlement::Complete, "without a judge nothing is judged");
    let roles: Vec<_> = session.messages(None, MessageQuery::default()).await.unwrap().items.iter().map(|m| m.message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant], "and nobody is told");
    session.create_thread(None, "").await.unwrap();
    assert_eq!(session.goal().await.unwrap(), None);
    assert_eq!(controller.goal(&thread).await.unwrap().unwrap().objective, "x");
    session.switch_thread(&thread).await.unwrap();
    session.delete_thread(&thread).await.unwrap();
    assert_eq!(session.goal().await.unwrap(), None);
    assert_eq!(session.set_goal("y").await.unwrap_err().code(), "session.no_thread");
    assert_eq!(session.clear_goal().await.unwrap_err().code(), "session.no_thread");
    controller.shutdown().await;
}
