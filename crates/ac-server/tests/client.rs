//! The published TypeScript client, from npm, against the acceptance fixture: every method of it at least once.
//!
//! Needs node and npm, and a registry for the first run. Run with `AC_CLIENT=1`; without it, or without them, it says that it was skipped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use ac_testkit::{
    Turn,
    server::{
        Setup,
        turn::{Match, Repeat},
    },
};
use serde_json::json;

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn works(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The example as cargo built it beside this test.
fn fixture() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let program = own.parent()?.parent()?.join("examples/fixture");
    program.is_file().then_some(program)
}

/// What the model says, by what it is asked last.
fn script() -> Vec<Turn> {
    let on = |text: &str, mut turn: Turn| {
        turn.when = Match { contains: Some(text.to_owned()), last_role: Some("user".into()), ..Match::default() };
        turn
    };
    let mut after_tool = Turn::text("tool done");
    after_tool.when = Match { last_role: Some("tool".into()), ..Match::default() };
    after_tool.repeat = Repeat::Forever(true);
    let mut judge = Turn::text(r#"{"decision":"done","reason":"it is shipped"}"#);
    judge.when = Match { contains: Some("Goal: ".into()), ..Match::default() };
    let note = || json!({ "path": "a.txt", "content": "b" });
    let ask = json!({ "question": "Which?", "options": [{ "label": "A" }, { "label": "B" }] });
    vec![
        on("say hello", Turn::chunks(["hel", "lo ", "wörld"])),
        on("read the file", Turn::text("it says plain text")),
        on("tell the context", Turn::tool("ctx", "get_context", json!({ "key": "who" }))),
        on("write it", Turn::tool("w1", "write_note", note())),
        on("write again", Turn::tool("w2", "write_note", note())),
        on("ask me", Turn::tool("q1", "ask_user", ask)),
        on("make a plan", Turn::tool("p1", "submit_plan", json!({ "path": "plan.md" }))),
        on("go on for ever", Turn::chunks(["tick "]).then_hang()),
        on("never stop", Turn::chunks(["tock "]).then_hang()),
        on("steered", Turn::text("new course")),
        on("afterwards", Turn::text("after")),
        on("delegate", Turn::tool("s1", "subagent", json!({ "agentType": "helper", "task": "inner task" }))),
        on("inner task", Turn::text("inner done")),
        judge,
        on("work on it", Turn::text("all shipped")),
        on("Build broke", Turn::text("noticed")),
        after_tool,
    ]
}

#[test]
fn the_published_client_drives_the_fixture_with_every_method_it_has() {
    if std::env::var_os("AC_CLIENT").is_none() {
        eprintln!("skipped: AC_CLIENT=1 runs the published client");
        return;
    }
    if !works("node") || !works("npm") {
        eprintln!("skipped: there is no node, or no npm, here");
        return;
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/client");
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("client");
    std::fs::create_dir_all(&place).unwrap();
    for name in ["package.json", "package-lock.json", "test.mjs"] {
        std::fs::copy(sources.join(name), place.join(name)).unwrap();
    }
    let installed = Command::new("npm").args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&place).status().unwrap();
    if !installed.success() {
        eprintln!("skipped: npm could not install the client; is there a registry?");
        return;
    }
    let fixture = fixture().expect("the example `fixture`; build it with cargo build -p ac-server --example fixture");
    let model = Setup::new(script()).start().unwrap();
    let db = tempfile::tempdir().unwrap();
    let mut server = Command::new(fixture)
        .args(["127.0.0.1", "0", &model.base_url(), "fake/fake-a", "code"])
        .arg(db.path().join("db"))
        .stdout(Stdio::piped())
        .spawn()
        .map(Running)
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let base = line.trim().strip_prefix("listening on ").and_then(|url| url.strip_suffix("/api")).expect("the ready line").to_owned();
    let outcome = Command::new("node").arg("test.mjs").arg(&base).current_dir(&place).status().unwrap();
    assert!(outcome.success(), "the client's checks failed; see above");
    // Told to end, it ends well and in time.
    let begun = std::time::Instant::now();
    assert!(Command::new("kill").args(["-TERM", &server.0.id().to_string()]).status().unwrap().success());
    let status = server.0.wait().unwrap();
    assert!(status.success() && begun.elapsed().as_secs() < 5, "{status} after {:?}", begun.elapsed());
    model.violations();
}
