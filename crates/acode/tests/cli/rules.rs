//! Rules for single calls, and what settings and flags say of tools and commands.

use ac_testkit::{ScriptedServer, Turn};
use serde_json::json;

use crate::harness::{Ended, Home};

fn asked(home: &Home, server: &ScriptedServer, args: &[&str]) -> Ended {
    let base = server.base_url();
    let mut all = vec!["exec", "Go", "--base-url", &base, "--model", "m"];
    all.extend(args);
    home.run(&all, "")
}

fn write(id: &str, name: &str) -> Turn {
    Turn::tool(id, "write_file", json!({ "path": format!(".acode/plans/{name}.md"), "content": "# Plan\n" }))
}

#[test]
fn a_rule_of_a_flag_decides_and_stays_with_the_conversation() {
    let server = ScriptedServer::start([write("c1", "a"), Turn::text("Done."), write("c2", "b"), write("c3", "a"), Turn::text("Done.")]);
    let home = Home::new();
    asked(&home, &server, &["--allow", "write_file(.acode/plans/a.md)", "--deny", "write_file(b.md)"]).exits(0);
    assert_eq!(home.read(".acode/plans/a.md"), "# Plan\n");
    // Another process, without the flags: the denial holds even where everything else is allowed.
    asked(&home, &server, &["--continue", "--approve", "all"]).exits(0);
    assert!(!home.project().join(".acode/plans/b.md").exists());
    let rows = home.run(&["rules", "--json"], "").exits(0).lines().pop().unwrap();
    let rows: Vec<_> = rows.as_array().unwrap().iter().map(|row| (row["policy"].clone(), row["pattern"].clone())).collect();
    assert_eq!(rows, [(json!("allow"), json!("write_file(.acode/plans/a.md)")), (json!("deny"), json!("write_file(b.md)"))]);
    let thread = home.run(&["threads", "--json"], "").exits(0).lines().pop().unwrap()[0]["id"].as_str().unwrap().to_owned();
    home.run(&["rules", "forget", &thread, "write_file(b.md)"], "").exits(0);
    home.run(&["rules", "forget", &thread, "write_file(b.md)"], "").exits(64);
    assert!(!home.run(&["rules"], "").exits(0).out.contains("b.md"));
}

#[test]
fn settings_of_the_project_and_of_the_user_decide_and_mistakes_in_them_are_told() {
    let server = ScriptedServer::start([write("c1", "a"), Turn::text("Done.")]);
    let home = Home::new();
    let settings = home.data().join("settings.json");
    std::fs::create_dir_all(home.data()).unwrap();
    std::fs::write(&settings, r#"{"permissions": {"deny": ["write_file(**)"]}, "toolCalls": "json-action"}"#).unwrap();
    // The answers of the server are no JSON: what is asked is what counts here.
    asked(&home, &server, &["--approve", "all"]);
    let body = &server.requests()[0].body;
    assert!(body["response_format"]["json_schema"].is_object() && body["tools"].is_null(), "{body}");
    assert!(!home.project().join(".acode/plans/a.md").exists());
    let native = ScriptedServer::start([Turn::text("Done.")]);
    asked(&home, &native, &["--tool-calls", "native"]).exits(0);
    assert!(native.requests()[0].body["tools"].is_array());
    for (wrong, word) in [(r#"{"permissions": {"deny": ["write_file("]}}"#, "no rule"), (r#"{"permission": {}}"#, "permission")] {
        std::fs::write(&settings, wrong).unwrap();
        let ended = asked(&home, &native, &[]).exits(64);
        assert!(ended.err.contains(word), "{}", ended.err);
    }
    std::fs::remove_file(&settings).unwrap();
    let ended = asked(&home, &native, &["--deny", "write_file("]).exits(64);
    assert!(ended.err.contains("no rule"), "{}", ended.err);
    let ended = asked(&home, &native, &["--tool-calls", "xml"]).exits(64);
    assert!(ended.err.contains("json-action"), "{}", ended.err);
    assert!(home.run(&["pending", "--deny", "view(a)"], "").exits(64).err.contains("exec"));
}

/// What commands are told about how they are held; where nothing can hold them there is nothing to widen.
#[test]
fn flags_widen_how_commands_are_held() {
    let told = |args: &[&str]| {
        let home = Home::new();
        std::fs::create_dir_all(home.project().join("out")).unwrap();
        // The building mode has the tool for commands, and an approved plan leads there.
        let plan = Turn::tool("c2", "submit_plan", json!({ "path": ".acode/plans/a.md" }));
        let server = ScriptedServer::start([write("c1", "a"), plan, Turn::text("Built.")]);
        let mut all = vec!["--approve", "all"];
        all.extend(args);
        asked(&home, &server, &all).exits(0);
        let tools = server.requests().pop().unwrap().body["tools"].clone();
        let tool = tools.as_array().unwrap().iter().find(|tool| tool["function"]["name"] == "execute_command").unwrap();
        tool["function"]["description"].to_string()
    };
    if told(&[]).contains("no network") {
        assert!(!told(&["--allow-network", "--writable", "out"]).contains("no network"));
    } else {
        eprintln!("skipped: nothing here limits the network of commands");
    }
}
