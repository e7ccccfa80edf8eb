//! An agent that hands work to another one, which has fewer tools than itself.
//!
//! ```sh
//! cargo run --example subagents -- FOLDER 'subagent {"agentType": "explore", "task": "What is in this folder?"}'
//! ```
//!
//! The built-in demonstration model calls what a message names; a language model decides by itself when to ask for help.
//!
//! Features: `workspace`.

use std::{error::Error, path::PathBuf, sync::Arc};

use agent_controller::{llm::demo::Guide, prelude::*, tools::workspace, workspace::Workspace};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(folder), task) = (args.next().map(PathBuf::from), args.next()) else {
        return Err("usage: subagents FOLDER [MESSAGE]; FOLDER is read".into());
    };
    let task = task.unwrap_or_else(|| r#"subagent {"agentType": "explore", "task": "What is in this folder?"}"#.into());

    let files = Arc::new(Workspace::local(folder)?);
    let controller = AgentController::builder()
        .storage(Arc::new(MemoryStorage::new()))
        .provider(Guide::new())
        .agent(AgentConfig::new("lead").instructions("Hand questions about the folder to `explore`."))
        .workspace_tools(workspace::tools(files, Default::default()))
        .subagent(
            Subagent::new("explore")
                .name("Explorer")
                .description("Finds things out and changes nothing.")
                .instructions("Look around and report what you find.")
                .allowed_workspace_tools(["view", "find_files", "search_content"])
                .max_steps(10),
        )
        .mode(Mode::new("build").model("demo/guide"))
        .build()?;
    let session = controller.create_session("ada").await?;
    // Starting one asks first, unless it is allowed. What it does then asks as it would in its parent.
    session.set_tool_policy("subagent", Some(Policy::Allow)).await?;

    let mut events = session.subscribe();
    session.submit(task).await?;
    while let Some(event) = events.next_event().await {
        match &event.body {
            EventBody::MessageUpdate { update: MessageUpdate::TextDelta(text), .. } => print!("{text}"),
            EventBody::ToolStart { .. } => println!(),
            EventBody::SubagentStart { name, agent_type, task, .. } => {
                println!("  [{} begins: {task}]", name.as_ref().unwrap_or(agent_type));
            }
            EventBody::SubagentToolStart { tool, args, .. } => println!("  [it calls {tool} {args}]"),
            EventBody::SubagentEnd { duration_ms, is_error, .. } => {
                println!("  [it {} after {duration_ms} ms]", if *is_error { "failed" } else { "is done" });
            }
            EventBody::AgentEnd { .. } => break,
            _ => {}
        }
    }
    println!();
    println!("Tokens, those of the subagent among them: {}", session.token_usage().await?.total);
    controller.shutdown().await;
    Ok(())
}
