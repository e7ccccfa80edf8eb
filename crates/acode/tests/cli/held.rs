use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::harness::Home;

#[test]
fn a_second_chat_on_a_held_store_is_told_who_holds_it() {
    let home = Home::new();
    let mut live = home.start(&[]);
    live.send("Write notes\n");
    live.wait("Your answer:");
    for args in [&["exec", "More"][..], &[], &["--continue"]] {
        let ended = home.run(args, "").exits(1);
        assert!(ended.err.contains(&format!("process {}", live.id())), "{}", ended.err);
        assert!(ended.err.contains("--data"), "{}", ended.err);
    }
    live.close_input();
    live.end().exits(2);
}

#[test]
fn commands_reach_a_running_chat_over_its_socket_and_the_chat_goes_on() {
    let home = Home::new();
    let mut live = home.start(&[]);
    live.send("Write notes\n");
    live.wait("Your answer:");
    let mode = home.data().join("socket").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let (id, kind) = home.waiting();
    assert_eq!(kind, "question");
    assert!(home.run(&["threads"], "").exits(0).out.contains("(1 waiting)"));
    let ended = home.run(&["answer", &id, ""], "").exits(64);
    assert!(ended.err.contains("choose 1 (A note)"), "{}", ended.err);
    let ended = home.run(&["answer", &id, "1"], "").exits(2);
    assert!(ended.out.contains("● Write .acode/plans/write-notes.md") && ended.out.contains("acode approve"), "{}", ended.out);

    // The chat saw it too, and asks the next question itself.
    live.wait("Answered elsewhere").wait("Allow this?");
    live.send("y\n");
    live.wait("Approve this plan?");
    let (id, _) = home.waiting();
    let lines = home.run(&["plan", &id, "reject", "--json"], "").exits(0).lines();
    assert!(lines.iter().any(|line| line["type"] == "agent_end" && line["reason"] == "complete"), "{lines:?}");
    live.wait("The plan was not approved").wait("plan>");
    live.close_input();
    live.end().exits(0);
    assert!(!home.data().join("socket").exists());
}

#[test]
fn a_socket_that_a_dead_process_left_behind_is_in_nobodys_way() {
    let home = Home::new();
    let mut live = home.start(&[]);
    live.send("Write notes\n");
    live.wait("Your answer:");
    live.kill();
    assert!(home.data().join("socket").exists());
    assert_eq!(home.waiting().1, "question");
    home.run(&["--continue"], "").exits(2);
}

#[test]
fn ctrl_c_leaves_a_command_whose_holder_does_not_answer() {
    let home = Home::new();
    let mut holder = home.start(&[]);
    holder.wait("plan>");
    holder.signal("-STOP");
    let asking = home.start(&["pending"]);
    std::thread::sleep(std::time::Duration::from_millis(300));
    asking.signal("-INT");
    asking.end().exits(130);
    holder.signal("-CONT");
    holder.close_input();
    holder.end().exits(0);
}

#[test]
fn over_the_socket_what_is_not_understood_decides_nothing() {
    use std::io::{Read, Write};
    let home = Home::new();
    let mut live = home.start(&[]);
    live.send("Write notes\n");
    live.wait("Your answer:");
    let id = home.waiting().0;
    for args in [
        json!({"id": id}),
        json!({"id": id, "values": "1"}),
        json!({"id": id, "values": [1]}),
        json!({"id": id, "values": ["1"], "mode": "everything"}),
    ] {
        let mut socket = std::os::unix::net::UnixStream::connect(home.data().join("socket")).unwrap();
        writeln!(socket, "{}", json!({"op": "answer", "args": args})).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("{\"exit\":64}\n") && answer.contains("must be"), "{args}: {answer}");
    }
    assert_eq!(home.waiting(), (id, "question".into()));
    live.close_input();
    live.end().exits(2);
}
