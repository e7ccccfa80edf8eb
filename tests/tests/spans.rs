//! What tracing tells of a run, and what it never tells.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
};

use ac_agent::{Agent, StreamOptions};
use ac_core::{Tool, ToolCategory, ToolContext, ToolDefinition, ToolEffect, ToolError, ToolErrorKind, ToolOutcome};
use ac_storage::MemoryStorage;
use ac_testkit::{ManualClock, ScriptedModel, SequentialIds, Turn};
use async_trait::async_trait;
use futures::StreamExt as _;
use serde_json::{Value, json};
use tracing::{
    Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{Layer, layer::Context, layer::SubscriberExt as _, registry::LookupSpan};

/// Spans that are over, in the order of their ends.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Told {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        cx.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, cx: Context<'_, S>) {
        record.record(cx.span(id).unwrap().extensions_mut().get_mut::<Fields>().unwrap());
    }

    fn on_close(&self, id: Id, cx: Context<'_, S>) {
        let span = cx.span(&id).unwrap();
        let above: Vec<_> = span.scope().skip(1).map(|span| span.name()).collect();
        let extensions = span.extensions();
        let fields = extensions.get::<Fields>().unwrap().0.iter().map(|(name, value)| format!("\n    {name} = {value}"));
        let below = if above.is_empty() { String::new() } else { format!(" below {}", above.join(", ")) };
        self.0.lock().unwrap().push(format!("{}{below}{}", span.name(), fields.collect::<String>()));
    }
}

struct Broken;

#[async_trait]
impl Tool for Broken {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new("weigh", "Weighs.", json!({"type": "object"})).category(ToolCategory::Read).effect(ToolEffect::ReadOnly)
    }

    async fn call(&self, _: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        Err(ToolError::new(ToolErrorKind::Denied, "SECRET-RESULT"))
    }
}

#[tokio::test]
async fn a_run_its_model_calls_and_its_tools_are_spans_without_a_word_of_anybody() {
    let told = Told::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(told.clone()));
    let turns = [Turn::tool("w1", "weigh", json!({"what": "SECRET-ARGUMENT"})), Turn::error(401, "SECRET-KEY")];
    let (model, clock) = (Arc::new(ScriptedModel::new(turns)), Arc::new(ManualClock::new()));
    let agent = Agent::builder("agent", "scripted/model", model, Arc::new(MemoryStorage::new()), clock, Arc::new(SequentialIds::new()));
    let agent = agent.tool(Arc::new(Broken)).build().unwrap();
    let stream = agent.stream("SECRET-MESSAGE", StreamOptions::default()).await.unwrap();
    stream.collect::<Vec<_>>().await;
    agent.runtime().shutdown().await;
    let told = told.0.lock().unwrap().join("\n");
    assert!(!told.contains("SECRET"), "{told}");
    insta::assert_snapshot!(told, @"
    chat below invoke_agent
        agent_controller.attempt = 1
        gen_ai.conversation.id = thread-1
        gen_ai.operation.name = chat
        gen_ai.provider.name = scripted
        gen_ai.request.model = model
        gen_ai.response.finish_reasons = tool_calls
        gen_ai.usage.input_tokens = 10
        gen_ai.usage.output_tokens = 5
        otel.kind = client
        otel.name = chat model
    execute_tool below invoke_agent
        error.type = tool.denied
        gen_ai.conversation.id = thread-1
        gen_ai.operation.name = execute_tool
        gen_ai.tool.call.id = w1
        gen_ai.tool.name = weigh
        otel.name = execute_tool weigh
    chat below invoke_agent
        agent_controller.attempt = 2
        error.type = model.auth
        gen_ai.conversation.id = thread-1
        gen_ai.operation.name = chat
        gen_ai.provider.name = scripted
        gen_ai.request.model = model
        otel.kind = client
        otel.name = chat model
    invoke_agent
        agent_controller.run.id = run-1
        gen_ai.conversation.id = thread-1
        gen_ai.operation.name = invoke_agent
    ");
}
