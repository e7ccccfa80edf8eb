use ac_testkit::{ScriptedServer, Turn};
use serde_json::json;

use crate::harness::Home;

/// The prompts of the job, and what is answered at each.
const PROMPTS: [(&str, &str); 5] = [
    ("Your answer:", "2\n"),
    ("write_file asks for permission", "y\n"),
    ("Approve this plan?", "approve\n"),
    ("write_file asks for permission", "y\n"),
    ("execute_command asks for permission", "y\n"),
];

#[test]
fn killed_at_any_prompt_the_same_prompt_comes_again_and_the_job_is_finished() {
    for stop in 0..PROMPTS.len() {
        let home = Home::new();
        let mut live = home.start(&[]);
        live.send("Write a greeting\n");
        for (prompt, answer) in &PROMPTS[..stop] {
            live.wait(prompt);
            live.send(answer);
        }
        live.wait(PROMPTS[stop].0);
        live.kill();

        let before = home.pending();
        let rest: String = PROMPTS[stop..].iter().map(|(_, answer)| *answer).collect();
        let ended = home.run(&["--continue"], &rest).exits(0);
        assert!(ended.out.contains(PROMPTS[stop].0) && ended.out.contains("Done."), "{stop}: {}", ended.out);
        assert_eq!(before.len(), 1, "{stop}");
        assert!(home.pending().is_empty(), "{stop}");
        assert!(home.read("write-a-greeting.sh").contains("echo"));
        // Nothing was done twice: each of the two writes and the command, or what is left of them.
        let writes = ended.out.matches("Wrote ").count();
        let expected = [2, 2, 1, 1, 0][stop];
        assert_eq!(writes, expected, "{stop}: {}", ended.out);
    }
}

#[test]
fn what_the_model_reads_after_a_kill_is_one_message_and_one_result_for_each_call() {
    let server = ScriptedServer::start([
        Turn::tool("call_1", "ask_user", json!({ "question": "Which?", "options": [{ "label": "A" }, { "label": "B" }] })),
        Turn::text("Thank you."),
    ]);
    let base = server.base_url();
    let home = Home::new();
    let mut live = home.start(&["--base-url", &base, "--model", "m"]);
    live.send("Hello\n");
    live.wait("Your answer:");
    live.kill();
    // The conversation knows its server.
    let ended = home.run(&["--continue"], "B\n").exits(0);
    assert!(ended.out.contains("Which?") && ended.out.contains("Thank you."), "{}", ended.out);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let messages = requests[1].body["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
    assert!(messages[3]["content"].as_str().unwrap().contains("User answered: B"), "{}", messages[3]);
}

fn counting() -> (ScriptedServer, Vec<String>) {
    let server = ScriptedServer::start([
        Turn::tool("call_1", "submit_plan", json!({ "path": ".acode/plans/p.md" })),
        Turn::tool("call_2", "execute_command", json!({ "command": "echo once >> log; touch started; sleep 20" })),
        Turn::text("Over."),
    ]);
    let args = ["--base-url", &server.base_url(), "--model", "m"].map(str::to_owned).to_vec();
    (server, args)
}

/// Starts the command, and kills the program while it runs.
fn killed_in_a_command(home: &Home, args: &[String], approve: &str) {
    let mut all = vec!["exec", "Go", "--approve", approve];
    all.extend(args.iter().map(String::as_str));
    let live = home.start(&all);
    let started = home.project().join("started");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !started.exists() {
        assert!(std::time::Instant::now() < until, "the command did not start: {}", live.shown());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    live.kill();
}

#[test]
fn a_command_that_was_running_is_in_doubt_and_no_flag_runs_it_again() {
    let home = Home::new();
    let (_server, args) = counting();
    killed_in_a_command(&home, &args, "all");
    assert!(home.run(&["threads"], "").exits(0).out.contains("(1 waiting)"));
    assert_eq!(home.waiting().1, "in_doubt");
    let ended = home.run(&["exec", "--continue", "--approve", "all"], "").exits(2);
    assert!(ended.out.contains("This call was running when the process ended"), "{}", ended.out);
    // A script is told as well, although no event says it.
    let ended = home.run(&["exec", "--continue", "--approve", "all", "--json"], "").exits(2);
    assert!(ended.out.is_empty() && ended.err.contains("acode decline"), "{}{}", ended.out, ended.err);
    let (id, kind) = home.waiting();
    assert_eq!((kind.as_str(), home.read("log").as_str()), ("in_doubt", "once\n"));
    let ended = home.run(&["decline", &id], "").exits(0);
    assert!(ended.out.contains("Over."), "{}", ended.out);
    home.run(&["decline", &id], "").exits(0);
    home.run(&["approve", &id], "").exits(1);
    assert_eq!(home.read("log"), "once\n");
}

#[test]
fn a_list_moves_no_run_that_a_dead_process_left() {
    let server = ScriptedServer::start([Turn::text("half").then_hang(), Turn::text("All of it.")]);
    let home = Home::new();
    let mut live = home.start(&["exec", "Hello", "--base-url", &server.base_url(), "--model", "m"]);
    live.wait("half");
    live.kill();
    assert!(home.pending().is_empty());
    home.run(&["threads"], "").exits(0);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_command_in_doubt_runs_again_when_the_person_says_so() {
    let home = Home::new();
    let (server, args) = counting();
    killed_in_a_command(&home, &args, "all");
    let mut live = home.start(&["--continue"]);
    live.wait("[again/failed]");
    live.send("yes\n");
    live.wait("[again/failed]");
    live.send("again\n");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while home.read("log") == "once\n" && std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // The rest of the sleep is not waited for.
    live.signal("-INT");
    live.wait("aborted");
    live.close_input();
    live.end().exits(0);
    assert_eq!(home.read("log"), "once\nonce\n");
    drop(server);
}

#[test]
fn a_repeated_approval_never_runs_a_call_in_doubt_again() {
    let home = Home::new();
    let (_server, args) = counting();
    let mut all = vec!["exec", "Go"];
    all.extend(args.iter().map(String::as_str));
    home.run(&all, "").exits(2);
    home.run(&["plan", "call_1", "approve"], "").exits(2);
    let live = home.start(&["approve", "call_2"]);
    while !home.project().join("started").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    live.kill();
    // The doubt is known at once, not only when somebody goes on with the conversation.
    let (id, kind) = home.waiting();
    assert_eq!(kind, "in_doubt");
    home.run(&["approve", "call_2"], "").exits(2);
    assert_eq!(home.read("log"), "once\n");
    home.run(&["decline", &id], "").exits(0);
    // The same again is fine here too, another decision comes too late.
    home.run(&["decline", &id], "").exits(0);
    home.run(&["approve", &id], "").exits(1);
    assert_eq!(home.read("log"), "once\n");
}

#[test]
fn killed_while_the_model_answers_it_is_asked_again() {
    let server = ScriptedServer::start([Turn::text("half").then_hang(), Turn::text("All of it.")]);
    let home = Home::new();
    let mut live = home.start(&["exec", "Hello", "--base-url", &server.base_url(), "--model", "m"]);
    live.wait("half");
    live.kill();
    let ended = home.run(&["exec", "--continue"], "").exits(0);
    assert!(ended.out.contains("All of it.") && !ended.out.contains("half"), "{}", ended.out);
}

#[test]
fn told_to_end_it_leaves_at_once_and_the_run_goes_on_later() {
    let server = ScriptedServer::start([Turn::text("half").then_hang(), Turn::text("All of it.")]);
    let home = Home::new();
    let mut live = home.start(&["exec", "Hello", "--base-url", &server.base_url(), "--model", "m"]);
    live.wait("half");
    live.signal("-TERM");
    live.end().exits(2);
    let ended = home.run(&["exec", "--continue"], "").exits(0);
    assert!(ended.out.contains("All of it."), "{}", ended.out);
}
