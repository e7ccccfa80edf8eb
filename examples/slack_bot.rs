//! The same agent in Slack: answers in threads and direct messages, approvals as buttons.
//!
//! ```sh
//! export SLACK_SIGNING_SECRET=… SLACK_BOT_TOKEN=xoxb-…
//! export SLACK_BUTTON_KEY=$(openssl rand -hex 32)    # once; the same after a restart, or old buttons no longer count
//! cargo run --example slack_bot -- FOLDER 4111
//! ```
//!
//! In the app's settings, events, interactivity and slash commands all go to
//! `https://YOUR-HOST/api/agent-controllers/bot/channels/slack/webhook`; docs/channels.md has the rest.
//!
//! Features: `workspace`, `sled`, `server`, `channels`.

use std::{error::Error, path::PathBuf, sync::Arc};

use agent_controller::{
    channels::{ChannelRegistry, Channels, Slack},
    llm::demo::Guide,
    prelude::*,
    server::Server,
    storage::SledStorage,
    tools::workspace,
    workspace::{Workspace, supervisor},
};
use tokio::net::TcpListener;

fn main() -> Result<(), Box<dyn Error>> {
    // Commands end with this program, whatever becomes of it: see docs/workspace.md.
    supervisor::run_if_asked();
    let mut args = std::env::args().skip(1);
    let (Some(folder), port) = (args.next(), args.next()) else {
        return Err("usage: slack_bot FOLDER [PORT]; files are written below FOLDER".into());
    };
    let port = port.map_or(Ok(4111), |port| port.parse())?;
    tokio::runtime::Runtime::new()?.block_on(serve(folder.into(), port))
}

fn secret(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("{name} is not set; examples/slack_bot.rs says what it is"))
}

async fn serve(folder: PathBuf, port: u16) -> Result<(), Box<dyn Error>> {
    let mut slack = Slack::new(secret("SLACK_SIGNING_SECRET")?, secret("SLACK_BOT_TOKEN")?);
    if let Ok(url) = std::env::var("SLACK_API_URL") {
        slack = slack.base_url(url); // Slack's own, unless set
    }
    let button_key = secret("SLACK_BUTTON_KEY")?;

    let files = Arc::new(Workspace::local(&folder)?);
    let storage: Arc<dyn Storage> = Arc::new(SledStorage::open(folder.join(".agent")).await?);
    let controller = AgentController::builder()
        .id("bot")
        .storage(storage.clone())
        .provider(Guide::new())
        .agent(AgentConfig::new("bot").tools(workspace::tools(files, Default::default())).tools([Arc::new(AskUser) as Arc<dyn Tool>]))
        .mode(Mode::new("build").model("demo/guide"))
        .build()?;
    controller.init().await?;

    let channels = Channels::builder(controller.clone()).storage(storage).key(button_key).adapter(slack).build()?;
    channels.start().await?;
    let mut registry = ChannelRegistry::new();
    registry.register(channels.clone())?;
    let registry = Arc::new(registry);

    // The only route that is served: Slack's signature says who asks.
    let server = Server::builder()
        .webhooks(move |controller, platform, request| {
            let registry = registry.clone();
            async move { registry.receive(&controller, &platform, request).await }
        })
        .build()?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on {}; Ctrl-C ends it", listener.local_addr()?);
    let stop = async { drop(tokio::signal::ctrl_c().await) };
    server.serve(listener, stop).await?;
    channels.shutdown().await;
    controller.shutdown().await;
    println!("done");
    Ok(())
}
