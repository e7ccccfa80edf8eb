use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use ac_core::{
    CancelToken, FinishReason, Message, ModelError, ModelErrorKind, ModelId, ModelProvider, ModelRequest, Part, Role, Timestamp,
    ToolCallState, ToolOutput, assemble::Assembler, message::Opaque, model::Finish,
};
use ac_llm::{
    Api, HttpProvider, Profile, ReqwestTransport, Timeouts, Transport,
    decode::{AnswerHead, AnswerLimits, AnswerReader},
    retry,
};
use futures::StreamExt;
use serde_json::{Map, Value, json};

use super::Case;

/// Reads cases with the real adapters over a real socket.
pub(super) struct Reader {
    address: SocketAddr,
    transport: Arc<dyn Transport>,
}

impl Reader {
    pub(super) fn new(address: SocketAddr) -> io::Result<Self> {
        Ok(Self { address, transport: Arc::new(ReqwestTransport::new().map_err(io::Error::other)?) })
    }

    /// What the adapter of the case's protocol makes of it, in the judge's words.
    pub(super) async fn read(&self, number: usize, case: &Case) -> Value {
        let Some((api, base, model)) = adapter(case) else {
            return json!({"outcome": "unknown_api"});
        };
        let profile = Profile::new(PROVIDER, api, format!("http://{}/case/{number}{base}", self.address));
        let limit = Duration::from_secs(30);
        let provider =
            HttpProvider::new(profile, Arc::clone(&self.transport)).timeouts(Timeouts::new(limit, limit, limit.saturating_mul(20)));
        let hello = Arc::new(Message::user("u1", "hello", Timestamp::default()));
        let request = ModelRequest::new(format!("wire/{model}"), vec![hello]);
        let policy = retry::RetryPolicy::default();
        let mut attempt = 1;
        loop {
            let (assembled, error, started) = ask(&provider, request.clone()).await;
            // Only a failure that was injected is asked again: a recorded error stays one.
            let injected = error.as_ref().filter(|error| !started && error.provider_message.as_deref() == Some("injected failure"));
            match injected.and_then(|failed| retry::next(&policy, failed, attempt, 0.0)) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return result(case, assembled, error, started),
            }
            attempt += 1;
        }
    }
}

/// The provider's name in model ids and opaque data; the same for every case.
const PROVIDER: &str = "wire";

/// The request that goes on after `case`: its answer, as it is stored, and a result for each of its calls. `None` where the case is of an
/// unknown protocol or is no answer.
pub(super) fn next_request(case: &Case) -> Option<Value> {
    let (api, base, model) = adapter(case)?;
    let mut profile = Profile::new(PROVIDER, api, format!("http://127.0.0.1{base}"));
    profile.chat.replay_reasoning = true;
    let model = ModelId::from(format!("{PROVIDER}/{model}"));
    let hello = Arc::new(Message::user("u1", "hello", Timestamp::default()));
    let mut request = ModelRequest::new(model.clone(), vec![hello]);

    let head = AnswerHead::new(case.status, http::HeaderMap::new(), std::time::SystemTime::UNIX_EPOCH);
    let mut reader = AnswerReader::new(&profile, &request, head, AnswerLimits::default());
    let (mut events, mut assembled) = (vec![], Assembler::new());
    reader.push(&case.body, &mut events).ok()?;
    reader.end(&mut events).ok()?;
    events.into_iter().for_each(|event| assembled.push(event));
    let mut answer = Message::new("a1", Role::Assistant, assembled.into_parts().0, Timestamp::default());
    answer.meta.model = Some(model);
    for part in &mut answer.parts {
        if let Part::ToolCall(call) = part {
            call.state = ToolCallState::Result { output: ToolOutput::text("done"), is_error: false };
        }
    }
    // As it is after a restart: through the store's own form and back.
    let stored = serde_json::to_string(&answer).ok()?;
    request.messages.push(Arc::new(serde_json::from_str(&stored).ok()?));
    Some(ac_llm::request::build(&profile, &request).ok()?.body)
}

async fn ask(provider: &HttpProvider, request: ModelRequest) -> (Assembler, Option<ModelError>, bool) {
    let mut assembled = Assembler::new();
    let mut stream = match provider.stream(request, CancelToken::new()).await {
        Ok(stream) => stream,
        Err(error) => return (assembled, Some(error), false),
    };
    let mut failed = None;
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => assembled.push(event),
            Err(error) => failed = Some(error),
        }
    }
    (assembled, failed, true)
}

/// Protocol, base path and model, from the protocol and the path that were recorded.
fn adapter(case: &Case) -> Option<(Api, &str, &str)> {
    let path = case.path.as_str();
    let below = |suffix: &str| path.strip_suffix(suffix).unwrap_or(path);
    Some(match case.api.as_str() {
        "openai-chat" => (Api::OpenAiChat, below("/chat/completions"), "model"),
        "openai-responses" => (Api::OpenAiResponses, below("/responses"), "model"),
        "anthropic-messages" => (Api::Anthropic, below("/messages"), "model"),
        "ollama-chat" => (Api::Ollama, below("/api/chat"), "model"),
        "gemini-generate" => {
            let (base, model) = path.split_once("/models/")?;
            (Api::Gemini, base, model.split(':').next()?)
        }
        _ => return None,
    })
}

fn result(case: &Case, assembled: Assembler, error: Option<ModelError>, started: bool) -> Value {
    let mut result = Map::new();
    let mut set = |name: &str, value: Value| drop(result.insert(name.to_owned(), value));
    let (parts, finish) = match &error {
        None => assembled.into_parts(),
        Some(_) => (assembled.into_partial(), None),
    };
    set("outcome", outcome(error.as_ref(), started).into());
    set("text", parts.iter().filter_map(Part::as_text).collect::<String>().into());
    set(
        "reasoning",
        parts
            .iter()
            .filter_map(|part| if let Part::Reasoning(part) = part { Some(part.text.as_str()) } else { None })
            .collect::<String>()
            .into(),
    );
    set("tool_calls", parts.iter().filter_map(call).collect());
    set("opaque", opaque(&parts).into());
    // What the provider did not say is null, whatever the adapter concludes from the rest.
    let said = finish.as_ref().filter(|finish| finish.raw_reason.is_some());
    set("finish_reason", said.map_or(Value::Null, |finish| reason(finish).into()));
    // In these protocols alone a refusal is a text of its own.
    let refusal = finish.as_ref().and_then(|finish| finish.explanation.clone()).filter(|_| case.api.starts_with("openai"));
    set("refusal", refusal.into());
    if let Some(finish) = &finish {
        let usage = finish.usage.as_ref().map(|usage| {
            json!({
                "input": usage.input,
                "output": usage.output,
                "cached": usage.cached_input,
                "cache_write": usage.cache_write,
                "reasoning": usage.reasoning,
            })
        });
        set("usage", usage.into());
    }
    if let Some(error) = error {
        let mut said = Map::new();
        said.insert("message".into(), error.provider_message.clone().unwrap_or_else(|| error.to_string()).into());
        said.extend(error.status.map(|status| ("status".to_owned(), status.into())));
        said.extend(error.provider_type.map(|kind| ("type".to_owned(), kind.into())));
        said.extend(error.provider_code.map(|code| ("code".to_owned(), code.into())));
        said.extend(error.retry_after.map(|wait| ("retry_after".to_owned(), wait.as_secs_f64().to_string().into())));
        said.insert("kind".into(), error.kind.code().into());
        set("error", said.into());
    }
    Value::Object(result)
}

fn outcome(error: Option<&ModelError>, started: bool) -> &'static str {
    match error.map(|error| error.kind) {
        None => "ok",
        Some(_) if !started => "http_error",
        Some(ModelErrorKind::Truncated | ModelErrorKind::Timeout) => "truncated",
        Some(ModelErrorKind::Protocol) => "invalid_response",
        Some(_) => "stream_error",
    }
}

fn call(part: &Part) -> Option<Value> {
    let Part::ToolCall(call) = part else { return None };
    let id = Some(call.id.as_str()).filter(|id| !id.is_empty());
    Some(match &call.raw {
        Some(raw) => json!({"id": id, "name": call.name, "arguments": raw}),
        None => json!({"id": id, "name": call.name, "arguments": call.args}),
    })
}

/// The judge keeps a refusal that was told as text apart from one that the provider itself calls a refusal.
fn reason(finish: &Finish) -> &'static str {
    match (finish.reason, finish.raw_reason.as_deref()) {
        (FinishReason::Stop, _) | (FinishReason::Refusal, Some("stop" | "completed")) => "stop",
        (FinishReason::Length, _) => "length",
        (FinishReason::ToolCalls, _) => "tool_calls",
        (FinishReason::ContentFilter, _) => "content_filter",
        (FinishReason::Refusal, _) => "refusal",
        (FinishReason::Pause, _) => "pause",
        (FinishReason::Error, _) => "error",
        _ => "other",
    }
}

/// Every text that goes back to the provider.
fn opaque(parts: &[Part]) -> Vec<String> {
    let mut texts = vec![];
    for part in parts {
        let opaque: Option<&Opaque> = match part {
            Part::Text(part) => part.opaque.as_ref(),
            Part::Reasoning(part) => part.opaque.as_ref(),
            Part::File(part) => part.opaque.as_ref(),
            Part::ToolCall(part) => part.opaque.as_ref(),
            Part::Data(part) => part.opaque.as_ref(),
            _ => None,
        };
        if let Some(opaque) = opaque {
            collect(&opaque.value, &mut texts);
        }
    }
    texts
}

pub(super) fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|value| collect(value, texts)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, texts)),
        _ => {}
    }
}
