//! Each example runs, without a key and without a terminal, and shows what it says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod program;

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    time::{Duration, SystemTime},
};

use ac_testkit::platforms::{
    Platforms, Shown,
    sign::{self, Delivery},
};
use program::Program;
use serde_json::Value;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn read(folder: &tempfile::TempDir, path: &str) -> String {
    std::fs::read_to_string(folder.path().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn path(folder: &tempfile::TempDir) -> &str {
    folder.path().to_str().unwrap()
}

#[test]
fn quick_start_answers() {
    let out = Program::start("quick_start", &["Why do lighthouses flash?"]).ends_well();
    assert!(out.contains("I am demo/guide") && out.contains("Why do lighthouses flash?"), "{out}");
}

#[test]
fn quick_start_says_which_key_is_missing() {
    let mut command = Program::command("quick_start", &["Hello!"]);
    command.env("MODEL", "openai/gpt-5").env_remove("OPENAI_API_KEY");
    let out = Program::spawn(command).ends(Some(1));
    assert!(out.contains("OPENAI_API_KEY"), "{out}");
}

#[test]
fn plan_and_build_builds_the_plan_that_was_approved_after_a_change() {
    let folder = folder();
    let mut live = Program::start("plan_and_build", &[path(&folder), "Add a page about lighthouses"]);
    live.waits_for("what to change > ");
    live.says("mention ships\n");
    live.waits_for("mention ships").waits_for("what to change > ");
    live.says("\n");
    let out = live.ends_well();
    assert!(out.contains("[now in mode build]") && out.contains("The session is in mode build."), "{out}");
    assert!(read(&folder, "add-a-page-about-lighthouses.md").contains("mention ships"));
}

#[test]
fn plan_and_build_builds_nothing_that_was_rejected() {
    let folder = folder();
    let mut live = Program::start("plan_and_build", &[path(&folder)]);
    live.says("no\n");
    let out = live.ends_well();
    assert!(out.contains("The session is in mode plan."), "{out}");
    assert!(!folder.path().join("add-a-page-about-lighthouses.md").exists());
}

#[test]
fn tool_approval_runs_what_was_allowed_and_nothing_else() {
    let folder = folder();
    let mut live = Program::start("tool_approval", &[path(&folder), "Write a greeting into hello.sh"]);
    live.waits_for("write_file").waits_for("not > ");
    assert!(!folder.path().join("hello.sh").exists(), "it was not allowed yet");
    live.says("a\n");
    live.waits_for("execute_command").waits_for("sh hello.sh").waits_for("not > ");
    live.says("not on this machine\n");
    let out = live.ends_well();
    assert!(out.contains("not on this machine)") && out.contains("rest of the session: Tool(\"write_file\")"), "{out}");
    assert!(read(&folder, "hello.sh").starts_with("#!/bin/sh"));
}

#[test]
fn tool_approval_allows_nothing_where_nobody_is() {
    let folder = folder();
    let mut live = Program::start("tool_approval", &[path(&folder)]);
    live.hangs_up();
    let out = live.ends_well();
    assert!(out.contains("nobody is there to decide"), "{out}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn ask_user_takes_a_number_or_words() {
    let mut live = Program::start("ask_user", &["Tell me about lighthouses"]);
    live.waits_for("  2. A script").waits_for("> ");
    live.says("2\n");
    assert!(live.ends_well().contains("You chose: A script"));

    let mut live = Program::start("ask_user", &[]);
    live.hangs_up();
    assert!(live.ends(Some(1)).contains("nobody is there to answer"));
}

#[test]
fn durable_approval_is_shown_by_the_next_process_also_after_a_kill() {
    let folder = folder();
    let first = Program::start("durable_approval", &[path(&folder)]).ends_well();
    let wait = first.split_whitespace().next().unwrap();
    assert!(first.contains("This process ends here") && !folder.path().join("hello.txt").exists(), "{first}");

    let mut second = Program::start("durable_approval", &[path(&folder)]);
    second.waits_for(wait).waits_for("y or n > ");
    second.kill();

    let mut third = Program::start("durable_approval", &[path(&folder)]);
    third.waits_for(wait).waits_for("y or n > ");
    third.says("y\n");
    let third = third.ends_well();
    assert!(third.contains("Noted.") && third.contains("Next: execute_command"), "{third}");
    assert!(!read(&folder, "hello.txt").is_empty());

    let mut fourth = Program::start("durable_approval", &[path(&folder)]);
    fourth.says("n\n");
    assert!(fourth.ends_well().contains("did not run"));
}

#[test]
fn subagents_report_to_their_parent() {
    let folder = folder();
    std::fs::write(folder.path().join("notes.txt"), "Lighthouses guide ships.\n").unwrap();
    let out = Program::start("subagents", &[path(&folder)]).ends_well();
    let order = ["[Explorer begins: What is in this folder?]", "[it calls find_files", "[it is done", "`subagent` says:", "notes.txt"];
    let mut rest = out.as_str();
    for words in order {
        rest = rest.split_once(words).unwrap_or_else(|| panic!("{words} does not come in {out}")).1;
    }
    assert!(out.contains("Tokens"), "{out}");
}

#[test]
fn custom_tool_runs_a_function_and_stops_for_a_person() {
    let out = Program::start("custom_tool", &[r#"weather {"city": "Oslo"}"#]).ends_well();
    assert!(out.contains("`weather` says: Sunny in Oslo."), "{out}");
    let out = Program::start("custom_tool", &[r#"weather {"town": "Oslo"}"#]).ends_well();
    assert!(out.contains("`weather` failed") && out.contains("city"), "{out}");

    let mut live = Program::start("custom_tool", &[r#"choose_seat {"train": "R60"}"#]);
    live.waits_for("Which seat in R60?").waits_for("> ");
    live.says("1A\n");
    live.waits_for("> ");
    live.says("14C\n");
    assert!(live.ends_well().contains("Seat 14C in R60 is taken for you."));
}

#[test]
fn replay_plays_what_was_recorded_and_tells_a_result_that_differs() {
    let (first, second) = (folder(), folder());
    let record = first.path().join("record.json");
    let record = record.to_str().unwrap();
    let out = Program::start("replay", &["record", path(&first), record]).ends_well();
    assert!(out.contains("messages are in"), "{out}");
    // A folder of its own: the record must not be among what the agent sees.
    let kept = tempfile::NamedTempFile::new().unwrap();
    std::fs::copy(record, kept.path()).unwrap();
    let out = Program::start("replay", &["play", path(&second), kept.path().to_str().unwrap()]).ends_well();
    assert!(out.contains("as recorded") && out.contains(", 0 differ"), "{out}");
    assert_eq!(read(&first, "hello.txt"), read(&second, "hello.txt"));
    // The file is there by now, so the tools do something else.
    let out = Program::start("replay", &["play", path(&second), kept.path().to_str().unwrap()]).ends(Some(1));
    assert!(out.contains("another result"), "{out}");
}

#[test]
fn the_record_that_comes_with_the_examples_plays() {
    let folder = folder();
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts/hello.json");
    let out = Program::start("replay", &["play", path(&folder), record.to_str().unwrap()]).ends_well();
    assert!(out.contains(", 0 differ"), "{out}");
}

/// Asks over a real connection; the status and the body.
fn http(address: &str, method: &str, path: &str, headers: &[(String, String)], body: &str) -> (u16, String) {
    let mut socket = TcpStream::connect(address).unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    socket.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn json_post(address: &str, path: &str, body: &str) -> String {
    let (status, answer) = http(address, "POST", path, &[("content-type".into(), "application/json".into())], body);
    assert_eq!(status, 200, "{answer}");
    answer
}

#[test]
fn web_server_takes_a_message_shows_what_waits_and_takes_the_answer() {
    let folder = folder();
    let mut live = Program::start("web_server", &[path(&folder), "0"]);
    let address = live.line_with("is open").split('/').nth(2).unwrap().to_owned();
    let session = "/api/agent-controller/coder/sessions";
    let (status, page) = http(&address, "GET", "/", &[], "");
    assert!(status == 200 && page.contains("<html"), "{page}");
    json_post(&address, session, r#"{"resourceId": "ada"}"#);
    json_post(
        &address,
        &format!("{session}/ada/messages"),
        r#"{"message": "write_file {\"path\": \"hello.txt\", \"content\": \"Hello\"}"}"#,
    );
    let wait = eventually(|| {
        let (_, body) = http(&address, "GET", &format!("{session}/ada/pending"), &[], "");
        let found: Value = serde_json::from_str(&body).ok()?;
        found["pending"].as_array()?.first()?["id"].as_str().map(str::to_owned)
    });
    let wait = wait.replace('/', "%2F").replace('#', "%23");
    json_post(&address, &format!("{session}/ada/pending/{wait}"), r#"{"action": "approve"}"#);
    eventually(|| std::fs::read_to_string(folder.path().join("hello.txt")).ok().filter(|text| text == "Hello"));
    live.interrupts();
    assert!(live.ends_well().contains("done"));
}

fn eventually<T>(find: impl Fn() -> Option<T>) -> T {
    for _ in 0..1000 {
        if let Some(found) = find() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("it does not come");
}

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

#[test]
fn slack_bot_asks_with_buttons_and_does_what_was_approved() {
    let (folder, slack) = (folder(), Platforms::start().unwrap());
    let mut command = Program::command("slack_bot", &[path(&folder), "0"]);
    command.env("SLACK_SIGNING_SECRET", sign::SLACK_SECRET).env("SLACK_BOT_TOKEN", sign::SLACK_TOKEN);
    command.env("SLACK_API_URL", slack.base_url("slack")).env("SLACK_BUTTON_KEY", "thirty-two bytes or more of a key");
    let mut live = Program::spawn(command);
    let address = live.line_with("listening on").split([' ', ';']).nth(2).unwrap().to_owned();
    let deliver = |delivery: &Delivery| {
        let path = "/api/agent-controllers/bot/channels/slack/webhook";
        http(&address, "POST", path, &delivery.headers, &delivery.body).0
    };

    let text = r#"write_file {"path": "hello.txt", "content": "Hello from Slack"}"#;
    let said = sign::slack_message("Ev1", "D1", None, "U1", text, "1700000000.000100", now());
    let forged = Delivery { body: said.body.replace("Hello", "Howdy"), ..said.clone() };
    assert_eq!(deliver(&forged), 401, "not what Slack signed");
    assert_eq!(deliver(&said), 200);
    let (card, approve) = eventually(|| {
        let with_button =
            |shown: Shown| shown.buttons.into_iter().find(|(label, _)| label == "Approve").map(|(_, value)| (shown.id, value));
        slack.shown_in("D1").into_iter().find_map(with_button)
    });
    assert!(!folder.path().join("hello.txt").exists(), "it was not approved yet");
    assert_eq!(deliver(&sign::slack_press("T1", "D1", None, &card, "U1", &approve, now())), 200);
    eventually(|| std::fs::read_to_string(folder.path().join("hello.txt")).ok().filter(|text| text == "Hello from Slack"));
    eventually(|| slack.shown_in("D1").into_iter().find(|shown| shown.text.contains("says:")));
    live.interrupts();
    assert!(live.ends_well().contains("done"));
}

#[test]
fn who_says_nothing_is_told_what_an_example_wants() {
    for name in ["plan_and_build", "tool_approval", "durable_approval", "subagents", "web_server", "slack_bot", "replay"] {
        let out = Program::start(name, &[]).ends(Some(1));
        assert!(out.contains("usage: "), "{name}: {out}");
    }
    let folder = folder();
    let mut command = Program::command("slack_bot", &[path(&folder)]);
    command.env_remove("SLACK_SIGNING_SECRET");
    assert!(Program::spawn(command).ends(Some(1)).contains("SLACK_SIGNING_SECRET is not set"));
    let missing = Program::start("tool_approval", &[folder.path().join("missing").to_str().unwrap()]).ends(Some(1));
    assert!(missing.contains("missing"), "{missing}");
}
