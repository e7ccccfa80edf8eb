use crate::harness::Home;

#[test]
fn the_whole_job_runs_through_a_pipe() {
    let home = Home::new();
    let ended = home.run(&[], "Write a greeting\n2\ny\napprove\ny\ny\n").exits(0);
    for shown in [
        "I am demo/guide",
        "1. A note",
        "● Write .acode/plans/write-a-greeting.md",
        "Approve this plan?",
        "mode: plan → build",
        "$ sh write-a-greeting.sh",
        "Done.",
    ] {
        assert!(ended.out.contains(shown), "{shown} is missing in\n{}", ended.out);
    }
    assert!(ended.err.contains("--model"), "{}", ended.err);
    assert!(home.read("write-a-greeting.sh").contains("echo 'Write a greeting'"));
    // Shown once, though it was announced and then asked about.
    assert_eq!(ended.out.matches("+#!/bin/sh").count(), 1 + 1, "{}", ended.out);
    assert!(!ended.out.contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn an_edited_plan_changes_what_is_built() {
    let home = Home::new();
    let mut live = home.start(&[]);
    live.send("Write notes\n1\ny\n");
    live.wait("Approve this plan?");
    let plan = home.project().join(".acode/plans/write-notes.md");
    let text = std::fs::read_to_string(&plan).unwrap();
    std::fs::write(&plan, text.replace("write-notes.md", "other.md")).unwrap();
    live.send("approve\ny\ny\n");
    live.close_input();
    live.end().exits(0);
    assert!(home.project().join("other.md").exists() && !home.project().join("write-notes.md").exists());
}

#[test]
fn what_should_change_is_said_at_the_plan_and_the_next_plan_has_it() {
    let home = Home::new();
    let mut live = home.start(&[]);
    live.send("Write notes\n1\nalways\n");
    live.wait("Approve this plan?");
    live.send("call it ideas.txt\n");
    live.wait("call it ideas.txt").wait("Approve this plan?");
    live.send("no\n");
    live.wait("What should change?");
    live.send("and mention tea\n");
    live.wait("and mention tea").wait("Approve this plan?");
    // A plan that is gone can still be rejected, and the person is told.
    live.send("no\n\n");
    live.wait("The plan was not approved");
    live.close_input();
    live.end().exits(0);
    assert!(!home.project().join("ideas.txt").exists());
}

#[test]
fn a_missing_plan_file_is_named_and_nothing_is_built() {
    let home = Home::new();
    let mut live = home.start(&[]);
    live.send("Write notes\n1\ny\n");
    live.wait("Approve this plan?");
    live.close_input();
    live.end().exits(2);
    std::fs::remove_file(home.project().join(".acode/plans/write-notes.md")).unwrap();
    let ended = home.run(&["--continue"], "approve\n").exits(0);
    assert!(ended.out.contains("file missing"), "{}", ended.out);
    assert!(ended.out.contains("I build nothing"), "{}", ended.out);
}

#[test]
fn a_plan_outside_of_the_folder_is_never_shown() {
    let home = Home::new();
    let outside = home.project().parent().unwrap().join("secret.md");
    std::fs::write(&outside, "the secret").unwrap();
    let mut live = home.start(&[]);
    live.send("Write notes\n1\ny\n");
    live.wait("Approve this plan?");
    live.close_input();
    live.end().exits(2);
    let plan = home.project().join(".acode/plans/write-notes.md");
    std::fs::remove_file(&plan).unwrap();
    std::os::unix::fs::symlink(&outside, &plan).unwrap();
    let ended = home.run(&["--continue"], "no\n\n").exits(0);
    assert!(ended.out.contains("file missing") && !ended.out.contains("the secret"), "{}", ended.out);
}

#[test]
fn the_end_of_input_parks_at_a_prompt_and_leaves_at_the_main_one() {
    let home = Home::new();
    home.run(&[], "").exits(0);
    let ended = home.run(&[], "Write notes\n").exits(2);
    assert!(ended.out.contains("acode --continue"), "{}", ended.out);
    assert_eq!(home.waiting().1, "question");
    let ended = home.run(&["--continue"], "1\ny\ny\ny\ny\n").exits(0);
    assert!(ended.out.contains("1. A note") && ended.out.contains("Done."), "{}", ended.out);
    assert!(home.pending().is_empty());
}

#[test]
fn an_unclear_answer_is_asked_again_and_decides_nothing() {
    let home = Home::new();
    let ended = home.run(&[], "Write notes\n\n1\nperhaps\n\nn\nnot like this\n").exits(0);
    assert!(ended.out.contains("choose 1 (A note)"), "{}", ended.out);
    assert!(ended.out.contains("not done: not like this"), "{}", ended.out);
    assert!(!home.project().join(".acode").exists());
}

#[test]
fn always_is_remembered_over_restarts_listed_and_taken_back() {
    let home = Home::new();
    home.run(&[], "Write notes\n1\nalways\n").exits(2);
    let grants = home.run(&["grants", "--json"], "").exits(0).lines().remove(0);
    assert_eq!(grants[0]["allows"]["tool"], "write_file");
    let id = grants[0]["id"].as_str().unwrap();
    // After the restart the file is written without asking; the command still asks.
    let ended = home.run(&["--continue"], "approve\n").exits(2);
    assert!(ended.out.contains("execute_command asks"), "{}", ended.out);
    assert!(home.project().join("write-notes.md").exists());
    home.run(&["grants", "revoke", id], "").exits(0);
    home.run(&["grants", "revoke", id], "").exits(64);
    assert!(home.run(&["grants"], "").exits(0).out.contains("Nothing was allowed"));
}

#[test]
fn a_mode_is_chosen_before_the_first_task_and_the_conversation_is_named_after_it() {
    let home = Home::new();
    let ended = home.run(&[], "/mode nowhere\n/mode build\nwrite hello.txt\n1\ny\ny\n/quit\n").exits(0);
    assert!(ended.out.contains("The modes are plan and build"), "{}", ended.out);
    // No plan in this mode.
    assert!(home.project().join("hello.txt").exists() && !home.project().join(".acode").exists());
    assert!(home.run(&["threads"], "").exits(0).out.contains("write hello.txt"));
}

#[test]
fn a_no_counts_although_no_reason_follows_it() {
    let home = Home::new();
    // The question, the plan's file, and nothing more.
    let ended = home.run(&[], "Write notes\n1\nn\n").exits(0);
    assert!(ended.out.contains("Why not?") && ended.out.contains("not done"), "{}", ended.out);
    assert!(home.pending().is_empty() && !home.project().join(".acode").exists());
    let ended = home.run(&[], "Write more\n1\ny\nno\n").exits(0);
    assert!(ended.out.contains("The plan was not approved"), "{}", ended.out);
}
