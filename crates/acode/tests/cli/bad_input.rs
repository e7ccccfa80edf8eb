use ac_testkit::{ScriptedServer, Turn};
use serde_json::json;

use crate::harness::{Ended, Home, Live};

#[test]
fn wrong_usage_ends_with_64_and_says_what_is_right() {
    let home = Home::new();
    for (args, hint) in [
        (&["frobnicate"][..], "Usage"),
        (&["exec"], "acode exec 'TASK'"),
        (&["exec", ""], "acode exec 'TASK'"),
        (&["--approve", "maybe"], "edits"),
        (&["--continue", "--thread", "x"], "--thread"),
        (&["--continue", "pending"], "exec"),
        (&["answer", "x"], "VALUE"),
        (&["plan", "x", "approve", "--feedback", "y"], "reject"),
        (&["exec", "x", "--model", "nonsense"], "provider/model"),
        (&["exec", "x", "--model", "nobody/m"], "openai"),
        (&["exec", "x", "--base-url", "nonsense"], "http://"),
        (&["exec", "x", "--continue"], "without --continue"),
        (&["exec", "x", "--thread", "nowhere"], "acode threads"),
        (&["approve", "nothing"], "acode pending"),
    ] {
        let ended = home.run(args, "").exits(64);
        assert!(ended.err.contains(hint), "{args:?}: {}", ended.err);
        assert!(ended.out.is_empty(), "{args:?}: {}", ended.out);
    }
    let help = home.run(&["--help"], "").exits(0);
    assert!(help.out.contains("Exit codes") && help.err.is_empty());
}

#[test]
fn with_json_a_failure_is_a_line_too() {
    let home = Home::new();
    for (args, exit, code) in [
        (&["--json", "frobnicate"][..], 64, "usage"),
        (&["exec", "--json"], 64, "usage"),
        (&["exec", "x", "--json=all", "--model", "nobody/m"], 64, "model.unknown_provider"),
        (&["exec", "x", "--json", "--model", "openai/gpt-4o"], 1, "model.missing_key"),
        (&["exec", "x", "--json", "--base-url", "http://127.0.0.1:9/v1"], 1, "model.connect"),
        (&["answer", "nothing", "1", "--json"], 64, "answer.not_pending"),
        (&["grants", "revoke", "x", "--json"], 64, "usage"),
    ] {
        let ended = home.run(args, "").exits(exit);
        let lines = ended.lines();
        assert_eq!(lines.len(), 1, "{args:?}: {}", ended.out);
        assert_eq!((&lines[0]["type"], &lines[0]["error"]["name"]), (&json!("error"), &json!(code)), "{args:?}");
        assert!(lines[0]["error"]["message"].as_str().unwrap().len() > 10 && !ended.err.is_empty());
    }
    // A task that only looks like the flag.
    assert!(home.run(&["exec", "--nonsense", "--", "--json"], "").exits(64).out.is_empty());
}

#[test]
fn ctrl_c_also_stops_what_is_not_yet_a_run() {
    // It takes connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let home = Home::new();
    let base = format!("http://{}/v1", silent.local_addr().unwrap());
    for args in [&["exec", "Hello", "--base-url", &base][..], &["pending", "--base-url", &base]] {
        let live = home.start(args);
        // Held open: a connection that is dropped is an answer too.
        let held = silent.accept().unwrap();
        live.signal("-INT");
        live.end().exits(130);
        drop(held);
    }
}

#[test]
fn output_that_cannot_be_written_is_told_and_one_that_nobody_reads_is_not() {
    let home = Home::new();
    for (args, exit) in [(&["threads"][..], 1), (&["exec", "Write notes"], 1), (&["exec", "--continue", "--json"], 1)] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let ended = home.command(args).stdout(full).output().unwrap();
        let err = String::from_utf8(ended.stderr).unwrap();
        assert_eq!((ended.status.code(), err.matches("cannot write").count()), (Some(exit), 1), "{args:?}: {err}");
    }
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = home.command(&["threads"]).stdout(writer).output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(1), &b""[..]));
}

#[test]
fn a_missing_key_names_its_variable_before_anything_is_stored() {
    let home = Home::new();
    let ended = home.run(&["exec", "x", "--model", "openai/gpt-4o"], "").exits(1);
    assert!(ended.err.contains("OPENAI_API_KEY"), "{}", ended.err);
    assert!(home.run(&["threads"], "").exits(0).out.contains("No conversations"));
}

fn asked(home: &Home, server: &ScriptedServer, more: &[&str]) -> Ended {
    let base = server.base_url();
    let mut args = vec!["exec", "Hello", "--base-url", &base];
    args.extend(more);
    home.run(&args, "")
}

#[test]
fn a_server_that_refuses_the_key_ends_with_1_and_loses_nothing() {
    let server = ScriptedServer::start([Turn::error(401, "bad key"), Turn::text("Welcome.")]);
    let home = Home::new();
    let ended = asked(&home, &server, &["--model", "m"]).exits(1);
    assert!(ended.out.contains("model.auth"), "{}", ended.out);
    let mut command = home.command(&["exec", "Again", "--continue"]);
    command.env("AC_API_KEY", "sk-secret-key");
    let mut live = Live::new(command);
    live.close_input();
    let ended = live.end().exits(0);
    assert!(ended.out.contains("Welcome."), "{}", ended.out);
    let requests = server.requests();
    assert_eq!(requests[1].header("authorization"), Some("Bearer sk-secret-key"));
    // What was said before is still there.
    assert!(requests[1].body.to_string().contains("Hello"));
    let stored = std::fs::read_to_string(home.data().join("servers.json")).unwrap();
    assert!(!stored.contains("secret"), "{stored}");
}

#[test]
fn a_stream_that_is_cut_is_tried_again_and_then_named() {
    let server = ScriptedServer::start([Turn::text("half").then_cut().forever()]);
    let home = Home::new();
    let ended = asked(&home, &server, &["--model", "m"]).exits(1);
    assert!(ended.out.contains("model.truncated") && ended.out.contains("attempt 2 of"), "{}", ended.out);
}

#[test]
fn an_unreachable_server_is_named_with_what_to_do() {
    let home = Home::new();
    let ended = home.run(&["exec", "Hello", "--base-url", "http://127.0.0.1:9/v1"], "").exits(1);
    assert!(ended.err.contains("127.0.0.1:9") && ended.err.contains("--model"), "{}", ended.err);
}

#[test]
fn without_a_model_the_first_one_of_the_server_answers() {
    let server = ac_testkit::server::Setup::new([Turn::text("Hi.")]).models(["first/one", "second"]).start().unwrap();
    let home = Home::new();
    asked(&home, &server, &[]).exits(0);
    let chat = server.requests().into_iter().find(|request| request.path.ends_with("/chat/completions")).unwrap();
    assert_eq!(chat.body["model"], "first/one");
}

#[test]
fn a_call_that_is_repeated_for_ever_ends_by_the_step_budget() {
    let server = ScriptedServer::start([Turn::tool("c", "find_files", json!({})).forever()]);
    let home = Home::new();
    let ended = asked(&home, &server, &["--model", "m", "--json"]).exits(1);
    let end = ended.lines().into_iter().rfind(|line| line["type"] == "agent_end").unwrap();
    assert_eq!((&end["reason"], &end["error"]["code"]), (&json!("error"), &json!("run.step_limit")));
    assert_eq!(server.requests().len(), 50);
}

#[test]
fn in_plan_mode_a_file_elsewhere_is_refused_before_anybody_is_asked() {
    let server = ScriptedServer::start([
        Turn::tool("c1", "write_file", json!({ "path": "src/main.rs", "content": "x" })),
        Turn::tool("c2", "write_file", json!({ "path": ".acode/plans/../../out.md", "content": "x" })),
        Turn::tool("c3", "execute_command", json!({ "command": "touch out.md" })),
        Turn::text("I see."),
    ]);
    let home = Home::new();
    let ended = asked(&home, &server, &["--model", "m"]).exits(0);
    assert_eq!(ended.out.matches("failed:").count(), 3, "{}", ended.out);
    assert_eq!(std::fs::read_dir(home.project()).unwrap().count(), 0);
}

#[test]
fn a_store_that_cannot_be_read_is_left_as_it_is() {
    let home = Home::new();
    std::fs::create_dir_all(home.data()).unwrap();
    std::fs::write(home.data().join("store"), "no store").unwrap();
    let ended = home.run(&["exec", "Hello"], "").exits(1);
    assert!(ended.err.contains("store"), "{}", ended.err);
    assert_eq!(std::fs::read_to_string(home.data().join("store")).unwrap(), "no store");
}
