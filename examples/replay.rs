//! A recorded transcript is played again: the model's words and calls come from the record, the tools really run. So an agent is tested
//! without a model, and a change of a tool shows as a result that differs.
//!
//! ```sh
//! cargo run --example replay -- record FOLDER FILE       # the built-in demonstration works in FOLDER; what was said goes into FILE
//! cargo run --example replay -- play OTHER-FOLDER FILE   # the same again, from FILE
//! ```
//!
//! Features: `workspace`.

use std::{error::Error, path::PathBuf, sync::Arc};

use agent_controller::{
    core::{
        CancelToken, FinishReason, Message, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelStream, Part, Role, ToolCallPart,
        model::Finish,
    },
    llm::demo::Guide,
    prelude::*,
    storage::domain::MessageQuery,
    tools::workspace,
    workspace::Workspace,
};
use async_trait::async_trait;
use futures::stream;

/// A model that says what one said before. It counts the answers in the request and keeps nothing itself.
struct Recorded(Vec<Message>);

#[async_trait]
impl ModelProvider for Recorded {
    async fn stream(&self, request: ModelRequest, _: CancelToken) -> Result<ModelStream, ModelError> {
        let said = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
        let answer = self.0.iter().filter(|message| message.role == Role::Assistant).nth(said);
        let answer = answer.ok_or_else(|| ModelError::new(ModelErrorKind::BadRequest, "the record ends here"))?;
        let mut events = vec![];
        for (index, part) in (0..).zip(&answer.parts) {
            if let Some(text) = part.as_text() {
                events.push(ModelEvent::TextDelta { index, text: text.to_owned() });
            }
            let part = match part {
                // As it was asked for, without the result of that time.
                Part::ToolCall(call) => Part::ToolCall(ToolCallPart::new(call.id.clone(), &call.name, call.args.clone())),
                other => other.clone(),
            };
            events.push(ModelEvent::PartDone { index, part });
        }
        let reason = if answer.tool_calls().next().is_some() { FinishReason::ToolCalls } else { FinishReason::Stop };
        events.push(ModelEvent::Finish(Finish::new(reason)));
        Ok(Box::pin(stream::iter(events.into_iter().map(Ok))))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let usage = "usage: replay record FOLDER FILE, or replay play FOLDER FILE; files are written below FOLDER";
    let [what, folder, file] = args.as_slice() else { return Err(usage.into()) };
    match what.as_str() {
        "record" => {
            let messages = talk(folder.into(), Arc::new(Guide::new()), &["Write a greeting into hello.txt".into()]).await?;
            std::fs::write(file, serde_json::to_string_pretty(&messages)?)?;
            println!("{} messages are in {file}", messages.len());
        }
        "play" => {
            let recorded: Vec<Message> = serde_json::from_str(&std::fs::read_to_string(file)?)?;
            let person: Vec<String> = recorded.iter().filter(|message| message.role == Role::User).map(Message::text).collect();
            let messages = talk(folder.into(), Arc::new(Recorded(recorded.clone())), &person).await?;
            compare(&recorded, &messages)?;
        }
        _ => return Err(usage.into()),
    }
    Ok(())
}

/// One conversation; what was said in it.
async fn talk(folder: PathBuf, model: Arc<dyn ModelProvider>, person: &[String]) -> Result<Vec<Message>, Box<dyn Error>> {
    let files = Arc::new(Workspace::local(folder)?);
    let controller = AgentController::builder()
        .storage(Arc::new(MemoryStorage::new()))
        .models(move |_: &ModelId| Ok(model.clone()))
        .agent(AgentConfig::new("coder").tools(workspace::tools(files, Default::default())))
        .mode(Mode::new("build").model("demo/guide"))
        .build()?;
    let session = controller.create_session("ada").await?;
    // Nobody is asked: files may be written, commands may not run.
    session.set_category_policy(ToolCategory::Edit, Some(Policy::Allow)).await?;
    session.set_category_policy(ToolCategory::Execute, Some(Policy::Deny)).await?;
    for words in person {
        session.send_message(words.as_str()).await?;
    }
    let stored = session.messages(None, MessageQuery::default()).await?;
    controller.shutdown().await;
    Ok(stored.items.into_iter().map(|stored| Arc::unwrap_or_clone(stored.message)).collect())
}

/// The results of the same calls, then and now.
fn compare(then: &[Message], now: &[Message]) -> Result<(), String> {
    let calls = |messages: &[Message]| messages.iter().flat_map(Message::tool_calls).cloned().collect::<Vec<_>>();
    let (then, now) = (calls(then), calls(now));
    let mut differ = then.len().abs_diff(now.len());
    for (before, after) in then.iter().zip(&now) {
        let same = before.state == after.state;
        println!("{} {}: {}", after.name, after.args, if same { "as recorded" } else { "another result" });
        differ += usize::from(!same);
    }
    println!("{} calls, {differ} differ", now.len());
    if differ == 0 { Ok(()) } else { Err("the tools do not do what they did".into()) }
}
