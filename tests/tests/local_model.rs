//! A real local model on tasks in a folder, through the schema-constrained way to ask for tools. Opt-in: it needs a server and minutes.
//!
//! `AC_LIVE_LOCAL=1 cargo test -p tests --test local_model -- --nocapture`, with an OpenAI-compatible server at `AC_LOCAL_BASE` (by default
//! `http://127.0.0.1:18999/v1`). What counts is the state of the files; the model is small, so three tasks of five are enough.
//! `docs/models.md` says which servers and models there are.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::print_stderr)]

use std::{fs, path::Path, sync::Arc, time::Duration};

use ac_agent::{Agent, ChunkBody, StreamOptions};
use ac_core::{CancelToken, ModelProvider};
use ac_engine::Limits;
use ac_llm::{Api, HttpProvider, Profile, ReqwestTransport, Timeouts, ToolCallMode};
use ac_storage::MemoryStorage;
use ac_testkit::{ManualClock, SequentialIds};
use ac_tools::workspace::{WorkspaceTool, WorkspaceToolOptions};
use ac_workspace::Workspace;
use futures::StreamExt;

struct Task {
    prompt: &'static str,
    files: &'static [(&'static str, &'static str)],
    done: fn(&Path) -> bool,
}

fn read(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(file)).unwrap_or_default()
}

const TASKS: [Task; 5] = [
    Task {
        prompt: "In config.ini change the port from 3000 to 8080. Change nothing else.",
        files: &[("config.ini", "[server]\nhost=localhost\nport=3000\n")],
        done: |folder| read(folder, "config.ini") == "[server]\nhost=localhost\nport=8080\n",
    },
    Task {
        prompt: "Write a Python file sum.py with a function add(a, b) that returns the sum of both.",
        files: &[("readme.md", "An empty project.\n")],
        done: |folder| read(folder, "sum.py").contains("def add(a") && read(folder, "sum.py").contains("return a + b"),
    },
    Task {
        prompt: "One file in this folder contains the word PASSWORD. Find it, and write its file name into found.txt.",
        files: &[("a.txt", "nothing here\n"), ("b.txt", "the PASSWORD is hidden\n"), ("c.txt", "nor here\n")],
        done: |folder| read(folder, "found.txt").contains("b.txt") && !read(folder, "found.txt").contains("a.txt"),
    },
    Task {
        prompt: "Correct the spelling mistake in text.md: it says `colour`, it must say `color`.",
        files: &[("text.md", "# Paint\n\nThe colour of the wall is green.\n")],
        done: |folder| read(folder, "text.md") == "# Paint\n\nThe color of the wall is green.\n",
    },
    Task {
        prompt: "Read names.txt and write the last name in it, and nothing else, into last.txt.",
        files: &[("names.txt", "Ada\nGrace\nEdsger\n")],
        done: |folder| read(folder, "last.txt").trim() == "Edsger",
    },
];

#[tokio::test]
async fn a_small_local_model_does_most_of_its_tasks() {
    if std::env::var_os("AC_LIVE_LOCAL").is_none() {
        eprintln!("skipped: set AC_LIVE_LOCAL=1 to ask a real local model");
        return;
    }
    let base = std::env::var("AC_LOCAL_BASE").unwrap_or_else(|_| "http://127.0.0.1:18999/v1".into());
    let profile = Profile::new("local", Api::OpenAiChat, base).tool_calls(ToolCallMode::JsonAction);
    let patient = Duration::from_secs(900);
    let provider =
        HttpProvider::new(profile, Arc::new(ReqwestTransport::new().unwrap())).timeouts(Timeouts::new(patient, patient, patient));
    let listed = provider.models(CancelToken::new()).await.expect("a server at AC_LOCAL_BASE");
    let model = listed.first().cloned().unwrap_or_else(|| "local".into());
    let provider: Arc<dyn ModelProvider> = Arc::new(provider);

    let mut done = 0;
    for (number, task) in (1..).zip(&TASKS) {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in task.files {
            fs::write(folder.path().join(name), content).unwrap();
        }
        let options = WorkspaceToolOptions::default().with(WorkspaceTool::ExecuteCommand, |switch| switch.enabled = false);
        let workspace = Arc::new(Workspace::local(folder.path()).unwrap());
        let mut limits = Limits::default();
        limits.steps = 8;
        let agent = Agent::builder(
            "worker",
            format!("local/{model}"),
            Arc::clone(&provider),
            Arc::new(MemoryStorage::new()),
            Arc::new(ManualClock::new()),
            Arc::new(SequentialIds::new()),
        )
        .instructions("You work in a folder of files. Paths are relative to it.")
        .tools(ac_tools::workspace::tools(workspace, options))
        .limits(limits)
        .build()
        .unwrap();
        let mut stream = agent.stream(task.prompt, StreamOptions::default()).await.unwrap();
        while let Some(chunk) = stream.next().await {
            if let ChunkBody::ToolCall { .. } | ChunkBody::ToolResult { .. } | ChunkBody::Error { .. } = chunk.body {
                eprintln!("  {}", serde_json::to_string(&chunk).unwrap());
            }
        }
        let good = (task.done)(folder.path());
        eprintln!("task {number} {}: {}", if good { "done" } else { "not done" }, task.prompt);
        done += usize::from(good);
    }
    eprintln!("{done} of {} tasks done", TASKS.len());
    assert!(done >= 3, "only {done} of {} tasks were done", TASKS.len());
}
