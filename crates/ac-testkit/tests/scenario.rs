//! Scenarios: the recorder itself, the four decisions that are everywhere, and the golden scenarios.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use ac_testkit::scenario::{
    self, Recording, Scenario, ScenarioErrorKind,
    compare::{self, Deviations, Verdict},
};
use futures::StreamExt;
use serde_json::{Value, json};

/// Plays a scenario of this repository, which must be sound by itself.
async fn play(name: &str) -> Recording {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/scenarios/{name}.scenario.json"));
    let recording = scenario::run(&Scenario::read(&path).unwrap()).await.unwrap();
    assert_eq!(compare::complaints(&recording), Vec::<String>::new());
    recording
}

fn events<'a>(recording: &'a Recording, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    recording.events.iter().filter(move |line| line["k"] == "event" && line["type"] == kind)
}

fn place(recording: &Recording, holds: impl Fn(&Value) -> bool) -> usize {
    recording.events.iter().position(|line| line["k"] == "event" && holds(line)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_step_of_a_run_is_one_message_with_the_results_of_its_calls() {
    let recording = play("message_per_step").await;
    let stored = &recording.last["sessions"]["s"]["messages"];
    let parts: Vec<Vec<&str>> = stored
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"]["parts"].as_array().unwrap().iter().map(|part| part["type"].as_str().unwrap()).collect())
        .collect();
    assert_eq!(parts, [vec!["text"], vec!["text", "tool-invocation"], vec!["text"]]);
    let ended: Vec<_> = events(&recording, "message_end").map(|event| event["id"].clone()).collect();
    let ids: Vec<_> = stored.as_array().unwrap().iter().map(|message| message["id"].clone()).collect();
    assert_eq!(ended, ids, "each message that was shown ends once, and is found again under its id");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_ends_before_the_segment_that_waits_for_a_person() {
    let recording = play("message_end_at_suspension").await;
    let suspended = place(&recording, |event| event["type"] == "tool_suspended");
    let end = place(&recording, |event| event["type"] == "agent_end" && event["reason"] == "suspended");
    let shown = events(&recording, "message_start").last().unwrap()["message"]["id"].clone();
    let closed = place(&recording, |event| event["type"] == "message_end" && event["id"] == shown);
    assert!(suspended < closed && closed < end, "{suspended} {closed} {end}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answered_call_gets_its_result_in_the_message_that_it_stands_in() {
    let recording = play("same_message_after_resume").await;
    let announced: Vec<_> = events(&recording, "message_start")
        .filter(|event| event["message"]["role"] == "assistant")
        .map(|event| event["message"]["id"].clone())
        .collect();
    assert_eq!(announced.len(), 3, "shown, shown again after the restart, and the next step");
    assert_eq!(announced[0], announced[1]);
    let again = events(&recording, "message_start").find(|event| event["s"] == "again").unwrap();
    assert_eq!(again["message"]["content"]["parts"][0], json!({ "type": "text", "text": "One question. " }));
    let threw: Vec<_> = recording.events.iter().filter(|line| line["k"] == "threw").map(|line| line["error"]["__error"].clone()).collect();
    assert_eq!(threw, ["answer.not_pending"], "the question is answered, and its run is over");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_and_what_was_answered_is_told() {
    let recording = play("own_events").await;
    let asked = events(&recording, "tool_approval_required").next().unwrap();
    let resolved: Vec<_> = events(&recording, "pending_resolved").collect();
    assert_eq!(resolved.len(), 1);
    assert_eq!(resolved[0]["pendingId"], asked["pendingId"]);
    let queues: Vec<usize> = events(&recording, "queue_changed").map(|event| event["items"].as_array().unwrap().len()).collect();
    assert_eq!(queues, [1, 0]);
}

#[test]
fn what_no_host_can_do_is_refused_by_name() {
    let unknown = Scenario::parse(r#"{ "actions": [{ "do": "createSession" }, { "do": "dance" }] }"#).unwrap_err();
    assert_eq!(unknown.kind(), ScenarioErrorKind::UnknownAction);
    assert!(unknown.to_string().contains("`dance` at place 2"), "{unknown}");
    let nothing = Scenario::parse(r#"{ "actions": [{ "wave": true }] }"#).unwrap_err();
    assert_eq!(nothing.kind(), ScenarioErrorKind::UnknownAction);
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_no_scenario() {
    let scenario = Scenario::parse(r#"{ "controller": { "tools": ["teleport"] }, "actions": [] }"#).unwrap();
    assert_eq!(scenario::run(&scenario).await.unwrap_err().kind(), ScenarioErrorKind::UnknownTool);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_come_is_noted_and_the_next_action_goes_on() {
    let text = r#"{ "actions": [
        { "do": "createSession" }, { "waitFor": { "type": "agent_start", "timeout": 50 } }, { "do": "thread.id", "s": "nobody" }, { "do": "usage" }
    ] }"#;
    let recording = scenario::run(&Scenario::parse(text).unwrap()).await.unwrap();
    assert_eq!(recording.last["driverError"], "`agent_start` did not come in time");
    let last = recording.events.last().unwrap();
    assert_eq!((&last["do"], &last["r"]["totalTokens"]), (&json!("usage"), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_difference_that_is_not_listed_fails_and_so_does_one_that_is_listed_and_gone() {
    let ours = play("message_per_step").await;
    let mut golden = ours.clone();
    assert_eq!(compare::compare(&golden, &ours, &Deviations::default()), Verdict::Same);

    golden.last["sessions"]["s"]["mode"] = json!("plan");
    assert!(matches!(compare::compare(&golden, &ours, &Deviations::default()), Verdict::Failed(why) if why.len() == 1));

    let what = compare::differences(&golden, &ours).remove(0);
    let rule = compare::Rule { rule: "R0".into(), reason: "because".into() };
    let listed = Deviations {
        rules: [("mode".to_owned(), rule)].into(),
        scenarios: [(ours.name.clone(), vec![compare::Deviation { rule: "mode".into(), what, or: vec![] }])].into(),
    };
    assert_eq!(compare::compare(&golden, &ours, &listed), Verdict::Deviating(vec!["mode".into()]));
    assert!(matches!(compare::compare(&ours, &ours, &listed), Verdict::Failed(why) if why[0].starts_with("listed, and no longer so")));
}

#[tokio::test(flavor = "multi_thread")]
async fn which_of_two_subagents_asks_first_is_no_difference_and_what_they_are_asked_is_one() {
    let asks = |n: u32, task: &str, more: &[&str]| {
        let mut messages = vec![json!({ "role": "system", "content": "SUB" }), json!({ "role": "user", "content": task })];
        messages.extend(more.iter().map(|text| json!({ "role": "assistant", "content": text })));
        json!({ "n": n, "model": "sub", "tools": [], "messages": messages })
    };
    let mut ours = play("message_per_step").await;
    let begun = |task: &str| json!({ "k": "event", "s": "s", "type": "subagent_start", "task": task });
    ours.events.extend(["one", "two"].map(begun));
    let mut golden = ours.clone();
    golden.last["requestsSummary"] = json!([asks(1, "one", &[]), asks(2, "two", &[])]);
    ours.last["requestsSummary"] = json!([asks(1, "two", &[]), asks(2, "one", &[])]);
    assert_eq!(compare::differences(&golden, &ours), []);
    ours.last["requestsSummary"] = json!([asks(1, "two", &[]), asks(2, "two", &[])]);
    assert_eq!(compare::differences(&golden, &ours).len(), 1);
    // One that goes on with what the other said has its place.
    golden.last["requestsSummary"] = json!([asks(1, "one", &[]), asks(2, "one", &["more"])]);
    ours.last["requestsSummary"] = json!([asks(1, "one", &["more"]), asks(2, "one", &[])]);
    assert!(!compare::differences(&golden, &ours).is_empty());
}

/// All of them at once, since each mostly waits. One that fails among the others is played once more alone: its moments are real time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn golden_scenarios_are_the_same_in_substance_or_differ_as_listed() {
    let Some(folder) = ac_testkit::shared::data("cases/golden") else { return println!("skipped: no shared data") };
    let listed = Deviations::ours().unwrap();
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(".scenario.json"));
    let judge = async |path: &Path| {
        let scenario = Scenario::read(path).unwrap();
        let ours = scenario::run(&scenario).await.unwrap();
        (scenario.name.clone(), compare::compare(&Recording::read(&folder, &scenario.name).unwrap(), &ours, &listed))
    };
    let verdicts: Vec<_> = futures::stream::iter(files.iter().map(|path| judge(path))).buffered(12).collect().await;
    let (mut same, mut deviating, mut failed) = (0, 0, vec![]);
    for (path, (name, verdict)) in files.iter().zip(verdicts) {
        let verdict = if matches!(verdict, Verdict::Failed(_)) { judge(path).await.1 } else { verdict };
        match verdict {
            Verdict::Same => same += 1,
            Verdict::Deviating(_) => deviating += 1,
            Verdict::Failed(why) => failed.push(format!("{name}:\n    {}", why.join("\n    "))),
        }
    }
    println!("same {same}, deviating {deviating}, failed {}", failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let unheard: Vec<_> = listed.scenarios.keys().filter(|name| !folder.join(format!("{name}.scenario.json")).exists()).collect();
    assert!(unheard.is_empty(), "deviations of scenarios that do not exist: {unheard:?}");
}

#[test]
fn the_page_about_deviations_is_made_from_the_list() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/deviations.md");
    let Ok(page) = std::fs::read_to_string(path) else { return println!("skipped: not in a checkout") };
    let (_, rest) = page.split_once("<!-- made by `scenario --page`; do not edit -->\n").unwrap();
    let (shown, _) = rest.split_once("<!-- end -->").unwrap();
    assert!(shown.trim() == Deviations::ours().unwrap().page().trim(), "put the output of `scenario --page` between the marks");
}
