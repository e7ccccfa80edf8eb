//! An agent that answers, in one file.
//!
//! ```sh
//! cargo run --example quick_start -- "Why do lighthouses flash?"
//! MODEL=openai/gpt-5 OPENAI_API_KEY=… cargo run --example quick_start -- "Why do lighthouses flash?"
//! ```
//!
//! Features: `openai`, `rustls`.

use std::{error::Error, io::Write as _, sync::Arc};

use agent_controller::{
    llm::{ReqwestTransport, Router, demo::Guide},
    prelude::*,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let question = std::env::args().nth(1).unwrap_or_else(|| "Hello!".into());
    // Without a model the built-in demonstration answers: a small program, and no language model.
    let model = std::env::var("MODEL").unwrap_or_else(|_| "demo/guide".into());
    let router = Router::builder(Arc::new(ReqwestTransport::new()?)).provider("demo", Arc::new(Guide::new())).build();

    let controller = AgentController::builder()
        .storage(Arc::new(MemoryStorage::new()))
        .models(move |model: &ModelId| router.resolve(model))
        .agent(AgentConfig::new("helper").instructions("You help."))
        .mode(Mode::new("chat").model(model.as_str()))
        .build()?;
    let session = controller.create_session("ada").await?;

    let mut events = session.subscribe();
    session.submit(question).await?;
    while let Some(event) = events.next_event().await {
        match &event.body {
            EventBody::MessageUpdate { update: MessageUpdate::TextDelta(text), .. } => {
                print!("{text}");
                std::io::stdout().flush()?;
            }
            EventBody::AgentEnd { error: Some(error), .. } => return Err(format!("{}: {}", error.code, error.message).into()),
            EventBody::AgentEnd { .. } => break,
            _ => {}
        }
    }
    println!();
    controller.shutdown().await;
    Ok(())
}
