//! Two tools of one's own: a function, and one that stops for a person and goes on with the answer.
//!
//! ```sh
//! cargo run --example custom_tool -- 'weather {"city": "Oslo"}'
//! cargo run --example custom_tool -- 'choose_seat {"train": "R60"}'
//! ```
//!
//! The built-in demonstration model calls what a message names; a language model decides by itself.
//!
//! Features: `schema`.

use std::{
    error::Error,
    io::{self, Write as _},
    sync::Arc,
};

use agent_controller::{
    core::{Suspend, tool::ToolResume},
    llm::demo::Guide,
    prelude::*,
    tools::TypedTool,
};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// The weather of a city, today.
#[derive(Deserialize, JsonSchema)]
struct Weather {
    /// Its name in English.
    city: String,
}

/// A function is a tool: the schema comes from the type of its arguments, the description from the comment on it.
fn weather() -> Arc<dyn Tool> {
    TypedTool::new("weather", |Weather { city }, _cx| async move {
        if city.is_empty() {
            return Err(ToolError::failed("name a city"));
        }
        Ok(format!("Sunny in {city}."))
    })
    // Reading needs no approval, and a call that a crash interrupted may simply run again.
    .category(ToolCategory::Read)
    .effect(ToolEffect::ReadOnly)
    .build()
}

/// Lets the person choose a seat.
struct ChooseSeat;

#[async_trait]
impl Tool for ChooseSeat {
    fn definition(&self) -> ToolDefinition {
        let input = json!({ "type": "object", "properties": { "train": { "type": "string" } }, "required": ["train"] });
        ToolDefinition::new("choose_seat", "Lets the person choose a seat in a train.", input)
            .category(ToolCategory::Interact)
            .effect(ToolEffect::ReadOnly)
    }

    /// Looks up what is free and stops. What `resume` needs is returned, and stored: no task waits for the person.
    async fn call(&self, args: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let train = args["train"].as_str().ok_or_else(|| ToolError::args("train is missing"))?;
        let mut suspend = Suspend::question(json!({ "question": format!("Which seat in {train}?"), "free": ["12A", "14C"] }));
        suspend.answer_schema = Some(json!({ "enum": ["12A", "14C"] }));
        suspend.state = json!({ "train": train });
        Ok(ToolOutcome::Suspend(suspend))
    }

    /// Called with the answer, which fits the schema: a moment later, or tomorrow in another process.
    async fn resume(&self, with: ToolResume, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let (seat, train) = (with.answer.as_str().unwrap_or_default(), with.state["train"].as_str().unwrap_or_default());
        Ok(ToolOutcome::Done(ToolOutput::text(format!("Seat {seat} in {train} is taken for you."))))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let task = std::env::args().nth(1).unwrap_or_else(|| r#"weather {"city": "Oslo"}"#.into());
    let controller = AgentController::builder()
        .storage(Arc::new(MemoryStorage::new()))
        .provider(Guide::new())
        .agent(AgentConfig::new("clerk").tools([weather(), Arc::new(ChooseSeat) as Arc<dyn Tool>]))
        .mode(Mode::new("desk").model("demo/guide"))
        .build()?;
    let session = controller.create_session("ada").await?;

    let mut events = session.subscribe();
    session.submit(task).await?;
    while let Some(event) = events.next_event().await {
        match &event.body {
            EventBody::MessageUpdate { update: MessageUpdate::TextDelta(text), .. } => print!("{text}"),
            EventBody::ToolStart { .. } => println!(),
            EventBody::ToolSuspended { pending, payload, .. } => {
                println!("\n{} Free: {}", payload["question"].as_str().unwrap_or_default(), payload["free"]);
                loop {
                    match session.answer(pending, Answer::Reply { value: ask()?.into() }).await {
                        Ok(_) => break,
                        Err(error) => println!("{error}"),
                    }
                }
            }
            EventBody::AgentEnd { reason: EndReason::Suspended, .. } => {}
            EventBody::AgentEnd { .. } => break,
            _ => {}
        }
    }
    println!();
    controller.shutdown().await;
    Ok(())
}

/// Reads a line. The runtime works on while the main thread waits for the person.
fn ask() -> io::Result<String> {
    print!("> ");
    io::stdout().flush()?;
    let mut line = String::new();
    match io::stdin().read_line(&mut line)? {
        0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "nobody is there to answer")),
        _ => Ok(line.trim().to_owned()),
    }
}
