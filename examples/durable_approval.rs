//! An approval that outlives the process that asked for it. Run it twice:
//!
//! ```sh
//! cargo run --example durable_approval -- FOLDER     # the agent wants to write a file; the process ends
//! cargo run --example durable_approval -- FOLDER     # another process shows the same approval and asks you
//! ```
//!
//! The second may be started tomorrow, and it may be killed at its prompt: a third one asks again.
//!
//! Features: `workspace`, `sled`.

use std::{
    error::Error,
    io::{self, Write as _},
    path::PathBuf,
    sync::Arc,
};

use agent_controller::{
    llm::demo::Guide,
    prelude::*,
    storage::SledStorage,
    tools::workspace,
    workspace::{Workspace, supervisor},
};

fn main() -> Result<(), Box<dyn Error>> {
    // Commands end with this program, whatever becomes of it: see docs/workspace.md.
    supervisor::run_if_asked();
    let Some(folder) = std::env::args().nth(1) else {
        return Err("usage: durable_approval FOLDER; files are written below FOLDER".into());
    };
    tokio::runtime::Runtime::new()?.block_on(work(folder.into()))
}

async fn work(folder: PathBuf) -> Result<(), Box<dyn Error>> {
    let files = Arc::new(Workspace::local(&folder)?);
    let controller = AgentController::builder()
        .storage(Arc::new(SledStorage::open(folder.join(".agent")).await?))
        .provider(Guide::new())
        .agent(AgentConfig::new("coder").tools(workspace::tools(files, Default::default())))
        .mode(Mode::new("build").model("demo/guide"))
        .build()?;
    controller.init().await?; // takes up what an earlier process left
    let session = controller.create_session("ada").await?;

    let mut events = session.subscribe();
    let waits = session.pending().await?;
    if waits.is_empty() {
        session.submit("Write a greeting into hello.txt").await?;
        while let Some(event) = events.next_event().await {
            match &event.body {
                EventBody::ToolApprovalRequired { pending, tool, args, .. } => {
                    println!("{pending}: {tool} {args}\nThis process ends here. Run it again to decide.");
                    break;
                }
                EventBody::AgentEnd { .. } => break,
                _ => {}
            }
        }
        // A run that waits needs nobody: neither this process nor any other.
        controller.shutdown().await;
        return Ok(());
    }

    for wait in waits {
        println!("{}: {} {}", wait.id, wait.tool, wait.args);
        print!("It waits since {}. May it run? y or n > ", wait.since);
        io::stdout().flush()?;
        let mut line = String::new();
        io::stdin().read_line(&mut line)?;
        let accepted = match line.trim() {
            "y" => session.approve(&wait.id).await?,
            _ => session.decline(&wait.id, None).await?,
        };
        println!("{}", if accepted.repeated { "That was answered before." } else { "Noted." });
    }
    // The run goes on, in this process, with the next step: it may ask for the next thing.
    while let Some(event) = events.next_event().await {
        match &event.body {
            EventBody::MessageUpdate { update: MessageUpdate::TextDelta(text), .. } => print!("{text}"),
            EventBody::ToolStart { .. } => println!(),
            EventBody::ToolApprovalRequired { tool, args, .. } => {
                println!("Next: {tool} {args}\nThis process ends here. Run it again to decide.");
                break;
            }
            EventBody::AgentEnd { .. } => break,
            _ => {}
        }
    }
    println!();
    controller.shutdown().await;
    Ok(())
}
