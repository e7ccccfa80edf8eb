use ac_testkit::{ScriptedServer, Turn};

use crate::harness::Home;

#[test]
fn the_whole_job_runs_at_a_terminal() {
    let home = Home::new();
    let mut terminal = home.terminal(&[]);
    for (prompt, answer) in [
        ("plan>", "Write a greeting\r"),
        ("Your answer:", "2\r"),
        ("Allow this?", "y\r"),
        ("Approve this plan?", "approve\r"),
        ("Allow this?", "y\r"),
        ("Allow this?", "y\r"),
        ("build>", "\u{4}"),
    ] {
        terminal.wait(prompt);
        terminal.send(answer);
    }
    terminal.exits(0);
    assert!(terminal.shown().contains("\u{1b}["), "colours at a terminal");
    assert!(home.read("write-a-greeting.sh").contains("echo"));
}

#[test]
fn the_first_ctrl_c_aborts_the_run_and_the_second_leaves() {
    let server = ScriptedServer::start([Turn::text("I begin").then_hang(), Turn::text("Back again.")]);
    let home = Home::new();
    let mut terminal = home.terminal(&["--base-url", &server.base_url(), "--model", "m"]);
    terminal.wait("plan>");
    terminal.send("Hello\r");
    terminal.wait("I begin");
    terminal.send("\u{3}");
    terminal.wait("aborted").wait("plan>");
    // The history is legal: the next message is answered.
    std::thread::sleep(std::time::Duration::from_millis(2100));
    terminal.send("And now?\r");
    terminal.wait("Back again.").wait("plan>");
    terminal.send("\u{3}");
    terminal.wait("Ctrl-C again leaves");
    terminal.send("\u{3}");
    terminal.exits(130);
}

#[test]
fn ctrl_c_ends_exec_with_130() {
    let server = ScriptedServer::start([Turn::text("I begin").then_hang()]);
    let home = Home::new();
    let mut terminal = home.terminal(&["exec", "Hello", "--base-url", &server.base_url(), "--model", "m"]);
    terminal.wait("I begin");
    terminal.send("\u{3}");
    terminal.exits(130);
    assert!(home.pending().is_empty());
}

#[test]
fn leaving_at_a_prompt_parks_the_run() {
    let home = Home::new();
    for (leave, begins) in [("\u{3}", true), ("\u{4}", false)] {
        let mut terminal = home.terminal(if begins { &[] } else { &["--continue"] });
        if begins {
            terminal.wait("plan>");
            terminal.send("Write notes\r");
        }
        terminal.wait("Your answer:");
        terminal.send(leave);
        terminal.exits(2);
        assert_eq!(home.waiting().1, "question");
    }
}

#[test]
fn a_model_cannot_send_sequences_to_the_terminal() {
    let server = ScriptedServer::start([Turn::chunks(["clear \u{1b}", "[2Jscreen \u{9b}1A title \u{1b}]0;owned\u{7} end"])]);
    let home = Home::new();
    let mut terminal = home.terminal(&["exec", "Hello", "--base-url", &server.base_url(), "--model", "m"]);
    terminal.wait("end");
    terminal.exits(0);
    let shown = terminal.shown();
    assert!(
        !shown.contains("\u{1b}[2J") && !shown.contains("\u{1b}]") && !shown.contains('\u{9b}') && !shown.contains('\u{7}'),
        "{shown:?}"
    );
}
