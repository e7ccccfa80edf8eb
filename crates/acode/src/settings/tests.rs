use std::path::Path;

use clap::Parser;

use super::*;
use crate::{args::Cli, exit::Exit};

fn project(dir: &Path) -> Project {
    let mut project = Project::open(dir, Some(Path::new("data"))).unwrap();
    project.config = Some(dir.join("config"));
    fs::create_dir_all(dir.join("config")).unwrap();
    project
}

fn options(args: &[&str]) -> Options {
    Cli::parse_from(std::iter::once("acode").chain(args.iter().copied())).options
}

#[test]
fn files_and_flags_are_joined_and_the_narrower_word_counts() {
    let dir = tempfile::tempdir().unwrap();
    let project = project(dir.path());
    assert_eq!(Settings::read(&project, &options(&[])).unwrap(), Settings::default());
    let user = r#"{"toolCalls": "text-repair", "permissions": {"allow": ["view(a)"], "deny": ["execute_command(rm *)"]}, "network": true}"#;
    fs::write(dir.path().join("config/settings.json"), user).unwrap();
    let own = r#"{"toolCalls": {"ollama/": "json-action", "ollama/qwen3": "native"}, "permissions": {"allow": ["execute_command(rm *)"]},
        "network": false, "writable": ["/cache"]}"#;
    fs::write(project.data.join("settings.json"), own).unwrap();
    let settings = Settings::read(&project, &options(&["--deny", "view(b)", "--writable", "out"])).unwrap();
    let mode = |model: &str| settings.tool_calls(&model.into());
    use ToolCallMode::{JsonAction, Native, TextRepair};
    assert_eq!([mode("ollama/gemma3"), mode("ollama/qwen3:8b"), mode("openai/x")], [Some(JsonAction), Some(Native), Some(TextRepair)]);
    assert_eq!(settings.rules.calls.get("execute_command(rm *)"), Some(&Policy::Deny), "an allowance lifts no denial");
    assert_eq!(settings.given, [("view(b)".to_owned(), Policy::Deny)]);
    let (files, commands) = settings.limits();
    assert!(!commands.network);
    assert_eq!(commands.writable, [PathBuf::from("/cache"), project.folder.join("out")]);
    assert_eq!(files.writable, commands.writable);
    let flags = Settings::read(&project, &options(&["--tool-calls", "native", "--allow-network"])).unwrap();
    assert_eq!(flags.tool_calls(&"ollama/gemma3".into()), Some(Native));
    assert!(flags.limits().1.network);
}

#[test]
fn a_slip_of_the_pen_is_no_silent_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let project = project(dir.path());
    for wrong in ["{", r#"{"permission": {}}"#, r#"{"permissions": {"denied": []}}"#, r#"{"toolCalls": "xml"}"#, r#"{"network": "no"}"#] {
        fs::write(project.data.join("settings.json"), wrong).unwrap();
        let failure = Settings::read(&project, &options(&[])).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage, "{wrong}");
        assert!(failure.message.contains("settings.json"), "{}", failure.message);
    }
}
