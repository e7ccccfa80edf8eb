//! Asking the model.

use std::sync::Arc;

use ac_core::{CancelToken, EventBody, Message, ModelError, ModelErrorKind, ModelEvent, ModelRequest, Part, PendingId, ToolCallId};
use ac_engine::{Input, Refusal};
use futures::FutureExt;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::{Driver, Go};
use crate::{RunError, RunErrorKind, gate, history::History, sampling::Sampled, sampling::Sampling, spans};

impl Driver {
    /// Asks the model, as the profile says, with the history as it stands.
    pub(super) async fn start_sample(&mut self, attempt: u32) -> Result<(), RunError> {
        let messages = self.messages().await?;
        let profile = &self.snapshot.profile;
        let cancel = self.cancel.child();
        let mut request = ModelRequest::new(profile.model.clone(), messages);
        request.instructions.clone_from(&profile.instructions);
        request.options.clone_from(&profile.options);
        request.tools = self.host.tools(profile).choose(&profile.tools);
        let provider = self.host.provider(&profile.model);
        let token: CancelToken = cancel.clone();
        let span = spans::chat(&profile.model, &self.snapshot.thread, attempt);
        let connect = async move { provider?.stream(request, token).await }.instrument(span.clone()).boxed();
        self.sampling = Some(Sampling::new(attempt, cancel, span, connect));
        Ok(())
    }

    async fn messages(&mut self) -> Result<Vec<Arc<Message>>, RunError> {
        let limit = self.shared.settings.history;
        if self.history.is_none() {
            self.history = Some(History::load(self.shared.storage.as_ref(), &self.snapshot.thread, &self.snapshot.run, limit).await?);
        }
        Ok(self.history.as_ref().map(|history| history.request(&self.snapshot.run, limit)).unwrap_or_default())
    }

    /// Drops the model call; what was shown is kept.
    pub(super) fn stop_sample(&mut self, attempt: u32) {
        if self.sampling.as_ref().is_some_and(|sampling| sampling.attempt == attempt) {
            self.stopped = true;
        }
    }

    /// Reports a model call that was stopped.
    pub(super) async fn report_stopped(&mut self) -> Result<Go, RunError> {
        self.stopped = false;
        let Some(sampling) = self.sampling.take() else { return Ok(Go::On) };
        let (attempt, partial) = (sampling.attempt, sampling.into_partial());
        self.report(Input::SampleStopped { attempt, partial }).await
    }

    /// Something came from the model. What arrived together is taken together.
    pub(super) async fn sampled(&mut self, mut sampled: Sampled) -> Result<Go, RunError> {
        loop {
            match sampled {
                Sampled::Event(event) => self.model_event(event),
                Sampled::Finished(finish) => {
                    let Some(sampling) = self.sampling.take() else { return Ok(Go::On) };
                    let attempt = sampling.attempt;
                    let parts = sampling.into_parts();
                    let profile = &self.snapshot.profile;
                    let ended = finish.reason;
                    let calls = gate::plan_calls(self.host.as_ref(), &self.run, profile, &self.shared.schemas, &parts, ended).await;
                    return self.report(Input::Sampled { attempt, parts, calls, finish }).await;
                }
                Sampled::Failed(error) => {
                    let Some(sampling) = self.sampling.take() else { return Ok(Go::On) };
                    return self.sample_failed(sampling, &error).await;
                }
            }
            match self.sampling.as_mut().and_then(Sampling::arrived) {
                Some(next) => sampled = next,
                None => return Ok(Go::On),
            }
        }
    }

    async fn sample_failed(&mut self, sampling: Sampling, error: &ModelError) -> Result<Go, RunError> {
        let attempt = sampling.attempt;
        let partial = sampling.into_partial();
        if error.kind == ModelErrorKind::Cancelled && self.snapshot.cancel.is_some() {
            return self.report(Input::SampleStopped { attempt, partial }).await;
        }
        let tries = self.snapshot.failures + 1;
        let wait = self.shared.retry(&self.snapshot.run, error, tries, self.snapshot.profile.limits.attempts);
        if let Some(wait) = wait {
            self.backoff = Some(Instant::now() + wait);
            self.teller.retry_delay_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        }
        let input = Input::SampleFailed { attempt, error: error.into(), retry: wait.is_some(), partial };
        let go = self.report(input).await;
        if self.snapshot.is_finished() || self.snapshot.cancel.is_some() {
            self.backoff = None;
        }
        go
    }

    /// Gives a report to the machine. One about something that is no longer going on says nothing.
    pub(super) async fn report(&mut self, input: Input) -> Result<Go, RunError> {
        match self.feed(Some(input)).await {
            Err(error) if error.kind() == RunErrorKind::Refused(Refusal::Stale) => Ok(Go::On),
            other => other,
        }
    }

    /// Shows what streams and takes it into the answer.
    fn model_event(&mut self, event: ModelEvent) {
        let clock = self.shared.clock.as_ref();
        let event = match event {
            ModelEvent::TextDelta { index, text } => {
                if !text.is_empty() {
                    self.teller.text(&self.snapshot, clock, index, text.clone());
                }
                ModelEvent::TextDelta { index, text }
            }
            ModelEvent::ReasoningDelta { index, text } => {
                if !text.is_empty() {
                    self.teller.reasoning(&self.snapshot, clock, index, text.clone());
                }
                ModelEvent::ReasoningDelta { index, text }
            }
            ModelEvent::ToolInputStart { index, id, name } => {
                let call = self.settle_call(index, id.as_deref().unwrap_or(""));
                if self.sampling.as_mut().is_some_and(|sampling| sampling.begins_input(index)) {
                    self.teller.tell(EventBody::ToolInputStart { call: call.clone(), tool: name.clone() });
                }
                ModelEvent::ToolInputStart { index, id: Some(call.to_string()), name }
            }
            ModelEvent::ToolInputDelta { index, text } => {
                if let Some(call) = self.sampling.as_ref().and_then(|sampling| sampling.call(index)).cloned() {
                    self.teller.tell(EventBody::ToolInputDelta { call, delta: text.clone() });
                }
                ModelEvent::ToolInputDelta { index, text }
            }
            ModelEvent::PartDone { index, part: Part::ToolCall(mut part) } => {
                let call = self.settle_call(index, part.id.as_str());
                if self.sampling.as_mut().is_some_and(|sampling| sampling.ends_input(index)) {
                    self.teller.tell(EventBody::ToolInputEnd { call: call.clone() });
                }
                part.id = call;
                ModelEvent::PartDone { index, part: Part::ToolCall(part) }
            }
            other => other,
        };
        if let Some(sampling) = &mut self.sampling {
            sampling.take(event);
        }
    }

    fn settle_call(&mut self, index: u32, wanted: &str) -> ToolCallId {
        let step = self.snapshot.step;
        let child = self.snapshot.parent.as_ref().map(|(run, call)| ordinal(run, call));
        let history = self.history.as_ref();
        let Some(sampling) = &mut self.sampling else { return wanted.into() };
        sampling.settle_call(index, |place, taken| {
            gate::fresh_call(wanted, step, place, child.as_deref(), |id| {
                taken.contains(id) || history.is_some_and(|history| history.has_call(id))
            })
        })
    }
}

/// Tells the calls of child runs apart from their parent's and from one another's.
fn ordinal(parent: &ac_core::RunId, call: &ToolCallId) -> String {
    let id = PendingId { run: parent.clone(), step: 0, call: call.clone(), n: 0 }.to_string();
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{:x}", hash & 0xffff)
}
