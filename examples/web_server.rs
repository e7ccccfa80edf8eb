//! A controller over HTTP, with the web console at `/`.
//!
//! ```sh
//! cargo run --example web_server -- FOLDER 4111
//! curl -N http://127.0.0.1:4111/api/agent-controller/coder/sessions/ada/stream                  # events, in another terminal
//! curl http://127.0.0.1:4111/api/agent-controller/coder/sessions -H 'content-type: application/json' -d '{"resourceId": "ada"}'
//! curl http://127.0.0.1:4111/api/agent-controller/coder/sessions/ada/messages -H 'content-type: application/json' \
//!     -d '{"message": "Write a greeting into hello.txt"}'
//! curl http://127.0.0.1:4111/api/agent-controller/coder/sessions/ada/pending                    # what waits for a person
//! # the answer; in the id that was listed, / is written %2F and # is written %23
//! curl http://127.0.0.1:4111/api/agent-controller/coder/sessions/ada/pending/ID -H 'content-type: application/json' \
//!     -d '{"action": "reply", "value": "Only the file"}'
//! ```
//!
//! Without tokens everybody who reaches the port may do everything, so it listens on this machine alone: see docs/http.md.
//!
//! Features: `workspace`, `sled`, `server`.

use std::{error::Error, path::PathBuf, sync::Arc};

use agent_controller::{
    llm::demo::Guide,
    prelude::*,
    server::{Served, Server},
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
        return Err("usage: web_server FOLDER [PORT]; files are written below FOLDER".into());
    };
    let port = port.map_or(Ok(4111), |port| port.parse())?;
    tokio::runtime::Runtime::new()?.block_on(serve(folder.into(), port))
}

async fn serve(folder: PathBuf, port: u16) -> Result<(), Box<dyn Error>> {
    let files = Arc::new(Workspace::local(&folder)?);
    let controller = AgentController::builder()
        .storage(Arc::new(SledStorage::open(folder.join(".agent")).await?))
        .provider(Guide::new())
        .agent(
            AgentConfig::new("coder")
                .tools(workspace::tools(files, Default::default()))
                .tools([Arc::new(AskUser) as Arc<dyn Tool>, Arc::new(SubmitPlan)]),
        )
        .mode(Mode::new("build").model("demo/guide"))
        .build()?;
    controller.init().await?;

    let server = Server::builder().controller(Served::new("coder", controller)).loopback_hosts().build()?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://{}/ is open; Ctrl-C ends it", listener.local_addr()?);
    // Ends streams and parks runs; what waits goes on waiting.
    let stop = async { drop(tokio::signal::ctrl_c().await) };
    server.serve(listener, stop).await?;
    println!("done");
    Ok(())
}
