use serde_json::json;

use super::*;

fn files() -> Files {
    Files::new(|path| async move {
        match path.as_str() {
            "a.md" => Ok("one\ntwo\n".to_owned()),
            _ => Err("no such file".into()),
        }
    })
}

async fn painted(events: &[Value]) -> String {
    let mut out = vec![];
    let mut painter = Painter::new(&mut out, files(), false);
    for event in events {
        painter.event(event).await.unwrap();
    }
    // Colours are the stream's business; here they are taken away.
    Stream::default().next(&String::from_utf8(out).unwrap())
}

fn delta(text: &str) -> Value {
    json!({"type": "message_update", "event": {"type": "text-delta", "delta": text}})
}

fn start(call: &str, tool: &str, args: Value) -> Value {
    json!({"type": "tool_start", "toolCallId": call, "toolName": tool, "args": args})
}

fn end(call: &str, result: Value) -> Value {
    json!({"type": "tool_end", "toolCallId": call, "result": result, "isError": false})
}

#[tokio::test]
async fn a_turn_reads_as_it_happens() {
    let shown = painted(&[
        json!({"type": "agent_start"}),
        delta("I "),
        delta("look."),
        json!({"type": "message_end", "id": "m"}),
        start("c1", "find_files", json!({})),
        end("c1", json!("a\nb\n")),
        start("c2", "write_file", json!({"path": "a.md", "content": "one\nthree\n"})),
        end("c2", json!("wrote a.md")),
        start("c3", "execute_command", json!({"command": "ls\nrm x"})),
        json!({"type": "shell_output", "toolCallId": "c3", "output": "a.md\n"}),
        json!({"type": "command_exit", "toolCallId": "c3", "exitCode": 2}),
        end("c3", json!("a.md\nexit code 2")),
        json!({"type": "mode_changed", "modeId": "build", "previousModeId": "plan"}),
        json!({"type": "agent_end", "reason": "complete"}),
    ])
    .await;
    insta::assert_snapshot!(shown, @r"
    I look.
    ● Look for files in this folder
      2 lines
    ● Write a.md
      @@ -1,2 +1,2 @@
       one
      -two
      +three
      wrote a.md
    ● Run
      $ ls
      > rm x
    a.md
      exit code 2
    mode: plan → build
    ");
}

#[tokio::test]
async fn of_several_calls_at_once_each_is_shown_again_when_it_asks() {
    let mut out = vec![];
    let mut painter = Painter::new(&mut out, files(), false);
    let row = |id: &str, command: &str| json!({"id": id, "kind": "approval", "tool": "execute_command", "args": {"command": command, "cwd": "sub"}});
    for (id, command) in [("c1", "ls"), ("c2", "rm x")] {
        painter.event(&start(id, "execute_command", json!({"command": command, "cwd": "sub"}))).await.unwrap();
    }
    painter.waiting(Shown(&row("run/c1", "ls"))).await.unwrap();
    painter.event(&end("c1", json!(""))).await.unwrap();
    painter.waiting(Shown(&row("run/c2", "rm x"))).await.unwrap();
    painter.event(&end("c2", json!(""))).await.unwrap();
    // One alone was shown a moment ago.
    painter.event(&start("c3", "execute_command", json!({"command": "id"}))).await.unwrap();
    painter.waiting(Shown(&row("run/c3", "id"))).await.unwrap();
    let shown = Stream::default().next(&String::from_utf8(out).unwrap());
    insta::assert_snapshot!(shown, @r"
    ● Run in sub
      $ ls
    ● Run in sub
      $ rm x
    execute_command asks for permission:
    ● Run in sub
      $ ls
    execute_command asks for permission:
    ● Run in sub
      $ rm x
    ● Run
      $ id
    execute_command asks for permission: Run in sub
    ");
}

#[tokio::test]
async fn a_model_that_says_nothing_is_not_passed_over_in_silence() {
    let end = json!({"type": "agent_end", "reason": "complete"});
    let begin = json!({"type": "agent_start"});
    assert_eq!(painted(&[begin.clone(), end.clone()]).await, "(the model said nothing)\n");
    assert_eq!(painted(&[begin, delta("Yes."), end]).await, "Yes.\n");
}

#[tokio::test]
async fn failures_are_named_once() {
    let error = json!({"name": "model.auth", "message": "the key was refused"});
    let shown = painted(&[
        json!({"type": "error", "error": error, "retryable": true, "retryDelay": 1500, "retryAttempt": 2, "maxRetries": 3}),
        json!({"type": "error", "error": error, "retryable": false}),
        json!({"type": "agent_end", "reason": "error", "error": {"code": "model.auth", "message": "the key was refused"}}),
        json!({"type": "agent_end", "reason": "error", "error": {"code": "run.step_limit", "message": "too many steps"}}),
        start("c", "view", json!({"path": "x"})),
        json!({"type": "tool_end", "toolCallId": "c", "result": "not found", "isError": true}),
        start("c", "view", json!({"path": "x"})),
        json!({"type": "tool_end", "toolCallId": "c", "result": "a rule", "denied": true}),
        json!({"type": "agent_end", "reason": "aborted"}),
    ])
    .await;
    insta::assert_snapshot!(shown, @r"
    the key was refused (model.auth); again in 2 s, attempt 2 of 3
    error: the key was refused (model.auth)
    error: too many steps (run.step_limit)
    ● Read x
      failed: not found
    ● Read x
      not done: a rule
    aborted
    ");
}

#[tokio::test]
async fn nothing_that_others_wrote_reaches_the_terminal_as_a_control_sequence() {
    let evil = "x\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\r";
    let mut out = vec![];
    let mut painter = Painter::new(&mut out, Files::new(move |_| async move { Ok("\u{1b}[2J".to_owned()) }), true);
    let mut events = vec![
        delta(evil),
        json!({"type": "message_update", "event": {"type": "reasoning-delta", "delta": evil}}),
        start(evil, evil, json!({ "k": evil })),
        json!({"type": "shell_output", "toolCallId": evil, "output": evil}),
        end(evil, json!(evil)),
        json!({"type": "error", "error": {"name": evil, "message": evil}}),
        json!({"type": "info", "message": evil}),
        json!({"type": "model_changed", "modelId": evil}),
        json!({"type": "mode_changed", "modeId": evil, "previousModeId": evil}),
        json!({"type": "tool_suspension_cancelled", "reason": evil}),
        json!({"type": "subagent_start", "agentType": evil, "task": evil}),
        json!({"type": "subagent_end", "agentType": evil, "result": evil, "isError": true}),
        json!({"type": "agent_end", "reason": "error", "error": {"code": evil, "message": evil}}),
    ];
    events.extend(["view", "find_files", "search_content", "write_file", "string_replace", "execute_command"].map(|tool| {
        start("c", tool, json!({"path": evil, "pattern": evil, "content": evil, "old_string": evil, "new_string": evil, "command": evil}))
    }));
    for event in &events {
        painter.event(event).await.unwrap();
    }
    let options = json!([{"label": evil, "description": evil}]);
    for (kind, tool) in
        [("question", "ask_user"), ("question", evil), ("plan", "submit_plan"), ("approval", "execute_command"), ("in_doubt", evil)]
    {
        let row = json!({"id": evil, "kind": kind, "tool": tool, "args": {"command": evil, "path": evil}, "payload": {"question": evil, "options": options, "path": evil}});
        painter.waiting(Shown(&row)).await.unwrap();
        painter.how(Shown(&row)).unwrap();
    }
    let shown = String::from_utf8(out).unwrap();
    // Our own styles are `ESC [ … m`, and nothing else is left.
    let mut rest = shown.as_str();
    while let Some((_, after)) = rest.split_once('\u{1b}') {
        let style = after.strip_prefix('[').and_then(|after| after.split_once('m'));
        let (numbers, after) = style.unwrap_or_else(|| panic!("a foreign sequence: {after:?}"));
        assert!(numbers.chars().all(|c| c.is_ascii_digit() || c == ';'), "{numbers:?}");
        rest = after;
    }
    assert!(!shown.contains(['\u{7}', '\u{9b}', '\u{202e}', '\r']), "{shown:?}");
}

#[tokio::test]
async fn whatever_waits_is_shown_with_all_that_is_needed_to_decide() {
    let rows = [
        json!({"id": "c1", "kind": "question", "tool": "ask_user", "args": {}, "payload": {"question": "Which?", "options": [{"label": "A", "description": "first"}, {"label": "B"}]}}),
        json!({"id": "c2", "kind": "plan", "tool": "submit_plan", "args": {}, "payload": {"path": "a.md"}}),
        json!({"id": "c3", "kind": "plan", "tool": "submit_plan", "args": {}, "payload": {"path": "gone.md"}}),
        json!({"id": "c4", "kind": "approval", "tool": "execute_command", "args": {"command": "ls"}, "payload": null}),
        json!({"id": "c5", "kind": "in_doubt", "tool": "execute_command", "args": {"command": "ls"}, "payload": null}),
    ];
    let mut out = vec![];
    let mut painter = Painter::new(&mut out, files(), false);
    for row in &rows {
        painter.waiting(Shown(row)).await.unwrap();
        painter.how(Shown(row)).unwrap();
    }
    painter.prompt("Allow?", false).unwrap();
    let shown = Stream::default().next(&String::from_utf8(out).unwrap());
    insta::assert_snapshot!(shown, @r"
    ? Which?
      1. A – first
      2. B
      acode answer c1 'ANSWER'
    Plan a.md
      one
      two
      acode plan c2 approve    or    acode plan c2 reject --feedback 'TEXT'
    Plan gone.md
      file missing: no such file
      acode plan c3 approve    or    acode plan c3 reject --feedback 'TEXT'
    execute_command asks for permission:
    ● Run
      $ ls
      acode approve c4    or    acode decline c4
    This call was running when the process ended. It may have done its work, and may still be running:
    ● Run
      $ ls
      acode approve c5 (run it again)    or    acode decline c5 (record it as failed)
    Allow? 
    ");
}
