use std::sync::Arc;

use ac_core::{CancelToken, ModelError, ModelErrorKind, ModelEvent, ModelId, ModelProvider, ModelRequest, ModelStream};
use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use secrecy::SecretString;

use super::Router;
use crate::{
    catalog::{AuthStatus, ModelInfo},
    profile::{Api, Profile},
    transport::{HttpAnswer, Transport, TransportError},
};

/// Answers with the address and the key it was asked with, as text.
struct Mirror;

#[async_trait]
impl Transport for Mirror {
    async fn send(&self, request: http::Request<Bytes>) -> Result<HttpAnswer, TransportError> {
        let key = request.headers().get("authorization").map(|key| key.to_str().unwrap().to_owned());
        let body: serde_json::Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let text = format!("{} {} {}", request.uri(), body["model"], key.unwrap_or_default());
        let body = serde_json::json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "data": [{"id": "gpt-5"}, {"id": "new"}]}).to_string();
        Ok(HttpAnswer::new(200, http::HeaderMap::new(), futures::stream::iter([Ok(body.into())]).boxed()))
    }
}

struct Named(&'static str);

#[async_trait]
impl ModelProvider for Named {
    async fn stream(&self, _: ModelRequest, _: CancelToken) -> Result<ModelStream, ModelError> {
        let event = ModelEvent::TextDelta { index: 0, text: self.0.into() };
        Ok(futures::stream::iter([Ok(event)]).boxed())
    }
}

fn keys(provider: &str, _: &[Arc<str>]) -> Option<SecretString> {
    (provider == "groq").then(|| SecretString::from("sk-groq"))
}

fn router() -> Router {
    let gateway = |model: &ModelId| model.as_str().starts_with("corp-").then(|| Arc::new(Named("gateway")) as Arc<dyn ModelProvider>);
    Router::builder(Arc::new(Mirror))
        .keys(keys)
        .provider("demo", Arc::new(Named("demo")))
        .provider("demo", Arc::new(Named("second")))
        .gateway("corp", gateway)
        .http(Profile::new("ollama", Api::OpenAiChat, "http://gpu:1/v1"))
        .model(ModelInfo::new("demo/guide"))
        .build()
}

async fn ask(router: &Router, model: &str) -> Result<String, ModelError> {
    let mut stream = router.stream(ModelRequest::new(model, vec![]), CancelToken::new()).await?;
    match stream.next().await {
        Some(Ok(ModelEvent::TextDelta { text, .. })) => Ok(text),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_first_route_that_matches_answers() {
    let router = router();
    assert_eq!(ask(&router, "demo/guide").await.unwrap(), "demo");
    assert_eq!(ask(&router, "corp-x").await.unwrap(), "gateway");
    assert_eq!(ask(&router, "ollama/qwen").await.unwrap(), "http://gpu:1/v1/chat/completions \"qwen\" ");
    assert_eq!(ask(&router, "groq/a/b").await.unwrap(), "https://api.groq.com/openai/v1/chat/completions \"a/b\" Bearer sk-groq");
}

#[tokio::test]
async fn what_cannot_be_routed_says_why_and_what_to_do() {
    let router = router();
    for (model, kind, says) in [
        ("nowhere/m", ModelErrorKind::UnknownProvider, "no provider `nowhere` is known. Known: demo, corp, ollama, "),
        ("gpt-5", ModelErrorKind::UnknownProvider, "write provider/model"),
        ("groq", ModelErrorKind::UnknownModel, "groq/MODEL"),
        ("demo/", ModelErrorKind::UnknownModel, "demo/MODEL"),
        ("mistral/m", ModelErrorKind::MissingKey, "set MISTRAL_API_KEY"),
    ] {
        let error = ask(&router, model).await.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    let bare = Router::builder(Arc::new(Mirror)).without_known().build();
    assert_eq!(ask(&bare, "groq/m").await.unwrap_err().kind, ModelErrorKind::UnknownProvider);
}

#[tokio::test]
async fn models_are_listed_with_whether_they_can_be_asked() {
    let router = router();
    let models = router.list_models();
    let auth = |id: &str| models.iter().find(|model| model.id.as_str() == id).map(|model| model.auth.clone());
    assert_eq!(auth("demo/guide"), Some(AuthStatus::NotNeeded));
    assert_eq!(auth("openai/gpt-5"), Some(AuthStatus::MissingKey { vars: vec!["OPENAI_API_KEY".into()] }));
    assert_eq!(router.auth("groq"), Some(AuthStatus::Ready));
    let found = router.discover("ollama", CancelToken::new()).await.unwrap();
    assert_eq!(found.iter().map(|model| model.id.as_str()).collect::<Vec<_>>(), ["ollama/gpt-5", "ollama/new"]);
    assert_eq!(router.discover("nowhere", CancelToken::new()).await.unwrap_err().kind, ModelErrorKind::UnknownProvider);
    let mut usage = ac_core::Usage::new(1_000_000, 1_000_000);
    usage.cached_input = Some(400_000);
    let price = models.iter().find(|model| model.id.as_str() == "openai/gpt-5").unwrap().price.unwrap();
    assert!((price.cost(&usage) - (0.6 * 1.25 + 0.4 * 0.125 + 10.0)).abs() < 1e-9);
}

#[test]
fn no_key_is_ever_shown() {
    let router = Router::builder(Arc::new(Mirror)).keys(|_: &str, _: &[Arc<str>]| Some(SecretString::from("sk-hidden"))).build();
    assert!(!format!("{router:?}").contains("sk-hidden"));
}

/// Keeps what it was asked, and fails.
#[derive(Clone, Default)]
struct Heard(Arc<std::sync::Mutex<Vec<String>>>);

#[async_trait]
impl Transport for Heard {
    async fn send(&self, request: http::Request<Bytes>) -> Result<HttpAnswer, TransportError> {
        self.0.lock().unwrap().push(String::from_utf8_lossy(request.body()).into_owned());
        Ok(HttpAnswer::new(503, http::HeaderMap::new(), futures::stream::iter([Ok(Bytes::from_static(b"no"))]).boxed()))
    }
}

#[tokio::test]
async fn how_a_model_asks_for_tools_is_said_by_the_user_else_by_the_model_else_by_the_provider() {
    use crate::mode::ToolCallMode::{JsonAction, Native};
    let heard = Heard::default();
    let router = Router::builder(Arc::new(heard.clone()))
        .tool_calls(|model| match model.as_str() {
            "mine/forced" => Some(JsonAction),
            "mine/gemma3:4b" => Some(Native),
            _ => None,
        })
        .http(Profile::new("mine", Api::OpenAiChat, "http://gpu:1/v1").with_local_models())
        .http(Profile::new("theirs", Api::OpenAiChat, "http://far:1/v1"))
        .build();
    for (model, constrained) in [
        ("mine/forced", true),
        ("mine/gemma3:4b", false),
        ("mine/Qwen2.5-Coder-1.5B-Instruct", true),
        ("mine/qwen3:8b", false),
        ("theirs/qwen2.5-coder", false),
    ] {
        let mut request = ModelRequest::new(model, vec![]);
        request.tools = Arc::new([ac_core::ToolDefinition::new("ls", "lists", serde_json::json!({"type": "object"}))]);
        assert!(router.stream(request, CancelToken::new()).await.is_err());
        let body = heard.0.lock().unwrap().pop().unwrap();
        assert_eq!(body.contains("json_schema"), constrained, "{model}: {body}");
    }
    assert_eq!("json_action".parse(), Ok(JsonAction));
    assert!("xml".parse::<crate::mode::ToolCallMode>().unwrap_err().to_string().contains("text-repair"));
}
