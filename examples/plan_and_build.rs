//! An agent with two modes: it plans in one, and builds in the other what a person approved.
//!
//! ```sh
//! cargo run --example plan_and_build -- FOLDER "Add a page about lighthouses"
//! ```
//!
//! Features: `workspace`.

use std::{
    error::Error,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use agent_controller::{
    llm::demo::Guide,
    prelude::*,
    tools::workspace,
    workspace::{Workspace, supervisor},
};
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    // Commands end with this program, whatever becomes of it: see docs/workspace.md.
    supervisor::run_if_asked();
    let mut args = std::env::args().skip(1);
    let (Some(folder), task) = (args.next(), args.next()) else {
        return Err("usage: plan_and_build FOLDER [TASK]; files are written below FOLDER".into());
    };
    let task = task.unwrap_or_else(|| "Add a page about lighthouses".into());
    tokio::runtime::Runtime::new()?.block_on(work(folder.into(), task))
}

async fn work(folder: PathBuf, task: String) -> Result<(), Box<dyn Error>> {
    let files = Arc::new(Workspace::local(&folder)?);
    let controller = AgentController::builder()
        .storage(Arc::new(MemoryStorage::new()))
        .provider(Guide::new())
        .agent(
            AgentConfig::new("coder")
                .instructions("You are a careful programmer.")
                .tools(workspace::tools(files.clone(), Default::default()))
                .tools([Arc::new(SubmitPlan) as Arc<dyn Tool>]),
        )
        .mode(
            Mode::new("plan")
                .instructions("Look around, write a plan, and submit it. Change nothing else.")
                .model("demo/guide")
                .available_tools(["view", "find_files", "search_content", "write_file", "submit_plan"])
                .transitions_to("build"),
        )
        .mode(Mode::new("build").instructions("Build what was planned.").model("demo/guide"))
        .build()?;
    let session = controller.create_session("ada").await?;
    // The person decides about the plan; what follows from it need not ask again.
    session.set_category_policy(ToolCategory::Edit, Some(Policy::Allow)).await?;
    session.set_category_policy(ToolCategory::Execute, Some(Policy::Allow)).await?;

    let mut events = session.subscribe();
    session.submit(task).await?;
    while let Some(event) = events.next_event().await {
        match &event.body {
            EventBody::MessageUpdate { update: MessageUpdate::TextDelta(text), .. } => print!("{text}"),
            EventBody::ToolStart { tool, .. } => println!("\n  [{tool}]"),
            EventBody::ToolEnd { changed, .. } => changed.iter().for_each(|file| println!("  [changed {}]", file.path)),
            EventBody::ModeChanged { mode, .. } => println!("  [now in mode {mode}]"),
            EventBody::ToolSuspended { pending, kind: PendingKind::Plan, payload, .. } => {
                // The plan is a file; whoever shows it reads it, so it may be edited until the person decides.
                let path = payload["path"].as_str().unwrap_or_default();
                let plan = files.filesystem().read(Path::new(path), 1 << 20).await?;
                println!("\n{}", String::from_utf8_lossy(&plan.bytes));
                let value = match ask("Build this? Enter: yes; `no`: no; other words: what to change > ")?.as_str() {
                    "" | "y" | "yes" => json!({ "action": "approved" }),
                    "n" | "no" => json!({ "action": "rejected" }),
                    feedback => json!({ "action": "rejected", "feedback": feedback }),
                };
                session.answer(pending, Answer::Reply { value }).await?;
            }
            // What waits for an answer ends a segment of the run; the answer begins the next one.
            EventBody::AgentEnd { reason: EndReason::Suspended, .. } => {}
            EventBody::AgentEnd { .. } => break,
            _ => {}
        }
    }
    println!();
    println!("The session is in mode {}.", session.mode());
    controller.shutdown().await;
    Ok(())
}

/// Reads a line. The runtime works on while the main thread waits for the person.
fn ask(prompt: &str) -> io::Result<String> {
    print!("{prompt}");
    io::stdout().flush()?;
    let mut line = String::new();
    match io::stdin().read_line(&mut line)? {
        0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "nobody is there to decide")),
        _ => Ok(line.trim().to_owned()),
    }
}
