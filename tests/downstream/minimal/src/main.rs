//! The least that runs.

use std::{error::Error, sync::Arc};

use agent_controller::{llm::demo::Guide, prelude::*};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let controller = AgentController::builder()
        .storage(Arc::new(MemoryStorage::new()))
        .provider(Guide::new())
        .agent(AgentConfig::new("helper"))
        .mode(Mode::new("chat").model("demo/guide"))
        .build()?;
    let session = controller.create_session("ada").await?;
    let mut events = session.subscribe();
    session.submit("Hello!").await?;
    while let Some(event) = events.next_event().await {
        match &event.body {
            EventBody::MessageUpdate { update: MessageUpdate::TextDelta(text), .. } => print!("{text}"),
            EventBody::AgentEnd { .. } => break,
            _ => {}
        }
    }
    controller.shutdown().await;
    Ok(())
}
