//! A model provider of one's own: says back what it was told, louder.

use agent_controller::{
    async_trait,
    core::{
        CancelToken, FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelProvider, ModelRequest, ModelStream, Part, Role, Usage,
        model::Finish,
    },
};
use futures::{StreamExt as _, stream};

pub struct Shout;

#[async_trait]
impl ModelProvider for Shout {
    async fn stream(&self, request: ModelRequest, cancel: CancelToken) -> Result<ModelStream, ModelError> {
        let said = request.messages.iter().rfind(|message| message.role == Role::User);
        let text = said.map(|message| message.text().to_uppercase()).unwrap_or_default();
        let words = text.split_inclusive(' ').map(|word| ModelEvent::TextDelta { index: 0, text: word.to_owned() });
        let mut finish = Finish::new(FinishReason::Stop);
        finish.usage = Some(Usage::new(1, 1));
        let end = [ModelEvent::PartDone { index: 0, part: Part::text(&text) }, ModelEvent::Finish(finish)];
        let events: Vec<_> = words.chain(end).collect();
        Ok(stream::iter(events)
            .scan(false, move |ended, event| {
                let stop = cancel.is_cancelled();
                let next = if stop { Err(ModelError::new(ModelErrorKind::Cancelled, "stopped")) } else { Ok(event) };
                let over = std::mem::replace(ended, stop);
                async move { (!over).then_some(next) }
            })
            .boxed())
    }
}
