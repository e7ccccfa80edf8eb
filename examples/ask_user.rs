//! An agent that asks a person in the terminal, with choices where the model gives some.
//!
//! ```sh
//! cargo run --example ask_user -- "Tell me about lighthouses"
//! ```
//!
//! Features: none beyond the default.

use std::{
    error::Error,
    io::{self, Write as _},
    sync::Arc,
};

use agent_controller::{llm::demo::Guide, prelude::*};
use serde_json::Value;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let task = std::env::args().nth(1).unwrap_or_else(|| "Tell me about lighthouses".into());
    let controller = AgentController::builder()
        .storage(Arc::new(MemoryStorage::new()))
        .provider(Guide::new())
        .agent(AgentConfig::new("helper").instructions("Ask when something is not clear.").tools([Arc::new(AskUser) as Arc<dyn Tool>]))
        .mode(Mode::new("chat").model("demo/guide"))
        .build()?;
    let session = controller.create_session("ada").await?;

    let mut events = session.subscribe();
    session.submit(task).await?;
    while let Some(event) = events.next_event().await {
        match &event.body {
            EventBody::MessageUpdate { update: MessageUpdate::TextDelta(text), .. } => print!("{text}"),
            EventBody::ToolStart { .. } => println!(),
            EventBody::ToolSuspended { pending, kind: PendingKind::Question, payload, .. } => loop {
                // An answer is checked against the schema of the question; what does not fit changes nothing.
                match session.answer(pending, Answer::Reply { value: question(payload)? }).await {
                    Ok(_) => break,
                    Err(error) => println!("{error}"),
                }
            },
            EventBody::AgentEnd { reason: EndReason::Suspended, .. } => {}
            EventBody::AgentEnd { .. } => break,
            _ => {}
        }
    }
    println!();
    controller.shutdown().await;
    Ok(())
}

/// Shows a question and reads the answer: a number, several with commas where several may be chosen, or words.
fn question(payload: &Value) -> io::Result<Value> {
    println!("\n{}", payload["question"].as_str().unwrap_or_default());
    let options: Vec<&str> = payload["options"].as_array().into_iter().flatten().filter_map(|option| option["label"].as_str()).collect();
    for (n, option) in (1..).zip(&options) {
        println!("  {n}. {option}");
    }
    print!("> ");
    io::stdout().flush()?;
    let mut line = String::new();
    if io::stdin().read_line(&mut line)? == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "nobody is there to answer"));
    }
    let chosen = |word: &str| -> Value {
        let number = word.trim().parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        number.and_then(|n| options.get(n)).map_or_else(|| word.trim().into(), |label| (*label).into())
    };
    Ok(match payload["selectionMode"].as_str() {
        Some("multi_select") => line.split(',').map(chosen).collect(),
        _ => chosen(&line),
    })
}
