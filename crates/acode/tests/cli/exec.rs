use serde_json::Value;

use crate::harness::Home;

fn kinds(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["type"].as_str().unwrap()).collect()
}

#[test]
fn the_job_is_done_piece_by_piece_each_by_a_process_of_its_own() {
    let home = Home::new();
    home.run(&["exec", "Write a greeting"], "").exits(2);
    let steps: [(&str, &[&str]); 5] = [
        ("question", &["answer", "ID", "2"]),
        ("approval", &["approve", "ID"]),
        ("plan", &["plan", "ID", "approve"]),
        ("approval", &["approve", "ID"]),
        ("approval", &["approve", "ID"]),
    ];
    for (n, (kind, args)) in steps.iter().enumerate() {
        let (id, waits) = home.waiting();
        assert_eq!(waits, *kind);
        let args: Vec<_> = args.iter().map(|arg| if *arg == "ID" { id.as_str() } else { arg }).collect();
        home.run(&args, "").exits(if n + 1 == steps.len() { 0 } else { 2 });
        // The same again is fine and moves nothing; another answer comes too late.
        let repeated = home.run(&args, "").exits(if n + 1 == steps.len() { 0 } else { 2 });
        assert!(!repeated.out.contains("agent_start"), "{}", repeated.out);
        let other: Vec<_> = args
            .iter()
            .map(|arg| match *arg {
                "2" => "1",
                "approve" if args.len() == 3 => "reject",
                "approve" => "decline",
                arg => arg,
            })
            .collect();
        // Nothing is wrong with how it was asked.
        assert!(home.run(&other, "").exits(1).err.contains("answer.already_resolved"));
    }
    assert!(home.read("write-a-greeting.sh").contains("echo"));
    assert!(home.pending().is_empty());
    assert!(home.run(&["threads"], "").exits(0).out.contains("Write a greeting"));
}

#[test]
fn json_is_one_event_a_line_in_its_wire_form() {
    let home = Home::new();
    let lines = home.run(&["exec", "Write notes", "--json"], "").exits(2).lines();
    let names = kinds(&lines);
    assert!(names.contains(&"tool_suspended") && names.contains(&"message_update"), "{names:?}");
    assert!(!names.contains(&"display_state_changed"));
    assert_eq!(names.last(), Some(&"agent_end"));
    let numbers: Vec<_> = lines.iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    let id = home.waiting().0;
    let lines = home.run(&["answer", &id, "A note", "--json=all"], "").exits(2).lines();
    assert!(kinds(&lines).contains(&"display_state_changed"));
}

#[test]
fn with_approve_all_nobody_is_asked_and_the_plan_is_built() {
    let home = Home::new();
    let lines = home.run(&["exec", "Write notes", "--approve", "all", "--json"], "").exits(0).lines();
    let names = kinds(&lines);
    assert!(!names.contains(&"tool_approval_required"), "{names:?}");
    assert!(!lines.iter().any(|line| line["toolName"] == "ask_user"), "nobody could answer");
    assert!(home.project().join("write-notes.md").exists());
    // The flag holds for this process alone.
    home.run(&["exec", "Write more", "--continue"], "").exits(2);
}

#[test]
fn with_approve_none_whatever_asks_is_declined() {
    let home = Home::new();
    let ended = home.run(&["exec", "Write notes", "--approve", "none"], "").exits(0);
    assert!(ended.out.contains("not done: declined"), "{}", ended.out);
    assert!(!home.project().join(".acode").exists() && home.pending().is_empty());
}

#[test]
fn with_approve_edits_files_are_written_and_commands_still_ask() {
    let home = Home::new();
    home.run(&["exec", "Write notes", "--approve", "edits"], "").exits(2);
    let (id, _) = home.waiting();
    home.run(&["answer", &id, "1", "--approve", "edits"], "").exits(2);
    let (id, kind) = home.waiting();
    assert_eq!(kind, "plan");
    let ended = home.run(&["plan", &id, "approve", "--approve", "edits"], "").exits(2);
    assert!(ended.out.contains("execute_command asks"), "{}", ended.out);
    assert!(home.project().join("write-notes.md").exists());
    // What waits is decided by a later flag too.
    home.run(&["exec", "--continue", "--approve", "all"], "").exits(0);
}

#[test]
fn a_call_is_named_by_its_run_where_its_id_is_not_alone() {
    let home = Home::new();
    for task in ["One", "Two"] {
        home.run(&["exec", task], "").exits(2);
    }
    let rows = home.pending();
    let ids: Vec<_> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert!(ids.len() == 2 && ids[0] != ids[1] && ids.iter().all(|id| id.ends_with("/guide_2")), "{ids:?}");
    let ended = home.run(&["answer", "guide_2", "1"], "").exits(64);
    assert!(ids.iter().all(|id| ended.err.contains(id)), "{}", ended.err);
    home.run(&["answer", ids[1], "1"], "").exits(2);
    assert_eq!(home.pending().iter().filter(|row| row["kind"] == "question").count(), 1);
}

#[test]
fn a_question_is_not_answered_by_yes() {
    let home = Home::new();
    home.run(&["exec", "Write notes"], "").exits(2);
    let id = home.waiting().0;
    for args in [&["approve", &id][..], &["plan", &id, "approve"]] {
        let ended = home.run(args, "").exits(64);
        assert!(ended.err.contains(&format!("acode answer {id}")) && ended.out.is_empty(), "{}{}", ended.err, ended.out);
    }
    assert_eq!(home.waiting(), (id.clone(), "question".into()));
    home.run(&["answer", &id, "1"], "").exits(2);
    // Decided, and not by a yes or no.
    for op in ["approve", "decline"] {
        assert!(home.run(&[op, &id], "").exits(1).err.contains("answer.already_resolved"));
    }
}

#[test]
fn a_conversation_goes_on_by_its_id() {
    let home = Home::new();
    for task in ["One", "Two"] {
        home.run(&["exec", task, "--approve", "all"], "").exits(0);
    }
    let threads = home.run(&["threads", "--json"], "").exits(0).lines().remove(0);
    let first = threads.as_array().unwrap().iter().find(|row| row["title"] == "One").unwrap()["id"].as_str().unwrap().to_owned();
    home.run(&["exec", "Three", "--approve", "all", "--thread", &first], "").exits(0);
    let threads = home.run(&["threads", "--json"], "").exits(0).lines().remove(0);
    assert_eq!((threads.as_array().unwrap().len(), &threads[0]["id"]), (2, &Value::String(first)));
    home.run(&["exec", "Four", "--thread", "nowhere"], "").exits(64);
}
