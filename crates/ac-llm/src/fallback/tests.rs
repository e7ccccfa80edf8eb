use std::sync::{Arc, Mutex};

use ac_core::{CancelToken, FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelProvider, ModelRequest, ModelStream, model::Finish};
use async_trait::async_trait;
use futures::StreamExt;

use super::Fallback;

/// `busy` and `cut` fail, the one at once, the other in its stream; `late` fails after it spoke; `bad` is a bad request.
#[derive(Default)]
struct Models(Mutex<Vec<String>>);

#[async_trait]
impl ModelProvider for Models {
    async fn stream(&self, request: ModelRequest, _: CancelToken) -> Result<ModelStream, ModelError> {
        let name = request.model.as_str().to_owned();
        self.0.lock().unwrap().push(name.clone());
        let error = |kind| ModelError::new(kind, name.clone());
        let text = ModelEvent::TextDelta { index: 0, text: name.clone() };
        Ok(match name.as_str() {
            "busy" => return Err(error(ModelErrorKind::Overloaded)),
            "bad" => return Err(error(ModelErrorKind::BadRequest)),
            "cut" => futures::stream::iter(vec![Err(error(ModelErrorKind::Truncated))]).boxed(),
            "late" => futures::stream::iter(vec![Ok(text), Err(error(ModelErrorKind::Truncated))]).boxed(),
            _ => futures::stream::iter(vec![Ok(text), Ok(ModelEvent::Finish(Finish::new(FinishReason::Stop)))]).boxed(),
        })
    }
}

async fn ask(first: &str, then: &[&str]) -> (Vec<String>, Result<usize, String>) {
    let models = Arc::new(Models::default());
    let fallback = Fallback::new(Arc::clone(&models) as Arc<dyn ModelProvider>, then.iter().map(|name| (*name).into()));
    let answer = match fallback.stream(ModelRequest::new(first, vec![]), CancelToken::new()).await {
        Err(error) => Err(error.message),
        Ok(stream) => {
            let events: Vec<_> = stream.collect().await;
            events.iter().find_map(|event| event.as_ref().err()).map_or(Ok(events.len()), |error| Err(error.message.clone()))
        }
    };
    let asked = models.0.lock().unwrap().clone();
    (asked, answer)
}

#[tokio::test]
async fn the_next_model_answers_where_one_failed_before_it_spoke() {
    assert_eq!(ask("busy", &["cut", "good", "unused"]).await, (vec!["busy".into(), "cut".into(), "good".into()], Ok(2)));
    assert_eq!(ask("good", &["unused"]).await, (vec!["good".into()], Ok(2)));
}

#[tokio::test]
async fn nothing_else_is_asked_where_it_would_not_help() {
    assert_eq!(ask("late", &["unused"]).await, (vec!["late".into()], Err("late".into())));
    assert_eq!(ask("bad", &["unused"]).await, (vec!["bad".into()], Err("bad".into())));
    assert_eq!(ask("busy", &["cut"]).await, (vec!["busy".into(), "cut".into()], Err("busy".into())));
}
