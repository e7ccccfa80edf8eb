//! What tracing tells of a run: `invoke_agent`, and below it `chat` for each model call and `execute_tool` for each tool call.
//!
//! Names are OpenTelemetry's for generative AI, as its semantic conventions had them at 1.37. No span holds a word of anybody: ids, names,
//! counts and codes only.

use ac_core::{ModelError, ModelId, RunId, ThreadId, ToolError, model::Finish};
use tracing::{Span, field::Empty, info_span};

/// A run, as long as this process moves it.
pub(crate) fn run(run: &RunId, thread: &ThreadId) -> Span {
    info_span!(
        "invoke_agent",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.conversation.id = %thread,
        agent_controller.run.id = %run,
    )
}

/// A model call, until its answer is whole, has failed or is given up. `model` is `provider/name`.
pub(crate) fn chat(model: &ModelId, thread: &ThreadId, attempt: u32) -> Span {
    let (provider, name) = model.as_str().split_once('/').unwrap_or(("", model.as_str()));
    info_span!(
        "chat",
        otel.name = format_args!("chat {name}"),
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = provider,
        gen_ai.request.model = name,
        gen_ai.conversation.id = %thread,
        agent_controller.attempt = attempt,
        gen_ai.response.id = Empty,
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        error.r#type = Empty,
    )
}

/// The answer is whole.
pub(crate) fn answered(span: &Span, finish: &Finish) {
    if span.is_disabled() {
        return;
    }
    let reason = serde_json::to_value(finish.reason).unwrap_or_default();
    span.record("gen_ai.response.finish_reasons", reason.as_str().unwrap_or_default());
    if let Some(id) = &finish.response_id {
        span.record("gen_ai.response.id", id.as_str());
    }
    if let Some(model) = &finish.model {
        span.record("gen_ai.response.model", model.as_str());
    }
    if let Some(usage) = &finish.usage {
        span.record("gen_ai.usage.input_tokens", usage.input);
        span.record("gen_ai.usage.output_tokens", usage.output);
    }
}

/// There is no whole answer.
pub(crate) fn failed(span: &Span, error: &ModelError) {
    span.record("error.type", error.code());
}

/// A tool did not do it.
pub(crate) fn tool_failed(span: &Span, error: &ToolError) {
    span.record("error.type", error.code());
}

/// A tool call at work.
pub(crate) fn tool(name: &str, call: &str, thread: &ThreadId) -> Span {
    info_span!(
        "execute_tool",
        otel.name = format_args!("execute_tool {name}"),
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = name,
        gen_ai.tool.call.id = call,
        gen_ai.conversation.id = %thread,
        error.r#type = Empty,
    )
}
