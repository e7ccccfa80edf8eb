//! Every call that changes something is shown to a person first, exactly as it will run.
//!
//! ```sh
//! cargo run --example tool_approval -- FOLDER "Write a greeting into hello.sh"
//! ```
//!
//! `y` allows the call, `a` allows the tool from now on, anything else declines it, and the model reads those words.
//!
//! Features: `workspace`.

use std::{
    error::Error,
    io::{self, Write as _},
    path::PathBuf,
    sync::Arc,
};

use agent_controller::{
    core::permission::GrantTarget,
    llm::demo::Guide,
    prelude::*,
    tools::workspace,
    workspace::{Workspace, supervisor},
};

fn main() -> Result<(), Box<dyn Error>> {
    // Commands end with this program, whatever becomes of it: see docs/workspace.md.
    supervisor::run_if_asked();
    let mut args = std::env::args().skip(1);
    let (Some(folder), task) = (args.next(), args.next()) else {
        return Err("usage: tool_approval FOLDER [TASK]; files are written below FOLDER".into());
    };
    let task = task.unwrap_or_else(|| "Write a greeting into hello.sh".into());
    tokio::runtime::Runtime::new()?.block_on(work(folder.into(), task))
}

async fn work(folder: PathBuf, task: String) -> Result<(), Box<dyn Error>> {
    let files = Arc::new(Workspace::local(&folder)?);
    let controller = AgentController::builder()
        .storage(Arc::new(MemoryStorage::new()))
        .provider(Guide::new())
        .agent(AgentConfig::new("coder").tools(workspace::tools(files, Default::default())))
        .mode(Mode::new("build").model("demo/guide"))
        .build()?;
    let session = controller.create_session("ada").await?;

    let mut events = session.subscribe();
    session.submit(task).await?;
    while let Some(event) = events.next_event().await {
        match &event.body {
            EventBody::MessageUpdate { update: MessageUpdate::TextDelta(text), .. } => print!("{text}"),
            EventBody::ToolStart { .. } => println!(),
            EventBody::ToolApprovalRequired { pending, tool, args, .. } => {
                println!("\n{tool} {args:#}");
                let answer = match ask("May it run? y, a (always this tool), or why not > ")?.as_str() {
                    "y" => Answer::Approve { grant: None },
                    "a" => Answer::Approve { grant: Some(GrantTarget::Tool(tool.clone())) },
                    reason => Answer::Decline { reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()) },
                };
                session.answer(pending, answer).await?;
            }
            EventBody::AgentEnd { .. } => break,
            _ => {}
        }
    }
    println!();
    for grant in session.grants() {
        println!("Allowed for the rest of the session: {:?}", grant.target);
    }
    controller.shutdown().await;
    Ok(())
}

/// Reads a line. The runtime works on while the main thread waits for the person. Where nobody is, nothing is allowed.
fn ask(prompt: &str) -> io::Result<String> {
    print!("{prompt}");
    io::stdout().flush()?;
    let mut line = String::new();
    match io::stdin().read_line(&mut line)? {
        0 => Ok("nobody is there to decide".into()),
        _ => Ok(line.trim().to_owned()),
    }
}
