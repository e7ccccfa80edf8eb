//! One question to a model, outside of any run: what judges and namers do.

use std::{sync::Arc, time::Duration};

use ac_core::{CancelToken, Message, ModelError, ModelErrorKind, ModelId, ModelRequest, Part, Role, Usage, assemble::Assembler};
use futures::StreamExt;

use crate::controller::Shared;

/// How often a question is asked at most, when the model fails in a way that may pass.
const TRIES: u32 = 3;

/// The wait before it is asked again, doubled each time.
const WAIT: Duration = Duration::from_millis(250);

/// What a model said to one question.
pub(crate) struct Answered {
    pub(crate) text: String,
    pub(crate) usage: Option<Usage>,
}

impl Shared {
    /// Asks a model one thing. Ends when `cancel` fires.
    ///
    /// # Errors
    /// What the model says; [`ModelErrorKind::Timeout`] when it says nothing in time, retries included.
    pub(crate) async fn ask_model(
        &self,
        model: &ModelId,
        instructions: &Arc<str>,
        text: String,
        timeout: Duration,
        cancel: &CancelToken,
    ) -> Result<Answered, ModelError> {
        let message = Arc::new(Message::new("question", Role::User, vec![Part::text(text)], self.clock.now()));
        let asking = async {
            let mut wait = WAIT;
            for _ in 1..TRIES {
                match self.ask_once(model, instructions, &message, cancel).await {
                    Err(error) if error.kind.is_retryable() => {
                        tokio::time::sleep(wait).await;
                        wait *= 2;
                    }
                    other => return other,
                }
            }
            self.ask_once(model, instructions, &message, cancel).await
        };
        match tokio::time::timeout(timeout, asking).await {
            Ok(answered) => answered,
            Err(_) => Err(ModelError::new(ModelErrorKind::Timeout, format!("{model} said nothing in {} seconds", timeout.as_secs_f64()))),
        }
    }

    async fn ask_once(
        &self,
        model: &ModelId,
        instructions: &Arc<str>,
        message: &Arc<Message>,
        cancel: &CancelToken,
    ) -> Result<Answered, ModelError> {
        let mut request = ModelRequest::new(model.clone(), vec![message.clone()]);
        request.instructions = Some(instructions.clone());
        let mut stream = self.config.router.provider(model)?.stream(request, cancel.child()).await?;
        let mut answer = Assembler::new();
        while let Some(event) = stream.next().await {
            answer.push(event?);
        }
        let (parts, finish) = answer.into_parts();
        Ok(Answered { text: parts.iter().filter_map(Part::as_text).collect(), usage: finish.and_then(|finish| finish.usage) })
    }
}
