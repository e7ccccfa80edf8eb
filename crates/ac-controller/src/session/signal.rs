use std::sync::Arc;

use ac_agent::RunErrorKind;
use ac_core::{EventBody, Message, RunId, ThreadId};
use ac_engine::{Input, Refusal};
use ac_storage::StorageErrorKind;
use serde_json::Map;

use super::{
    Session,
    run::{Start, TRIES, contended},
};
use crate::{ControllerError, ControllerErrorKind, Signal, SignalAction, SignalSent, WhenActive, WhenIdle, feed::About};

impl Session {
    /// Lets the model know that something happened: at the next step of the open run, by a run of its own, or with the next message, as the
    /// signal says. Declines nothing. Returns as soon as it is stored.
    ///
    /// # Errors
    /// [`EmptyMessage`](ControllerErrorKind::EmptyMessage), [`NoModel`](ControllerErrorKind::NoModel) where it would start a run, or when
    /// the store does not answer. The signal was not taken then.
    pub async fn send_signal(&self, signal: Signal) -> Result<SignalSent, ControllerError> {
        check(&signal)?;
        let _turn = self.turn().await?;
        let thread = self.bound_thread().await?;
        let (if_active, if_idle) = (signal.if_active, signal.if_idle);
        let message = signal.into_message(self.shared().ids.fresh("message"), self.shared().clock.now());
        let id = message.id.clone();
        let action = self.signal_in_turn(&thread, message, if_active, if_idle).await?;
        Ok(SignalSent { message: id, action })
    }

    /// Puts a signal into a thread of the resource, bound or not; nothing runs for its sake (SPEC S-24).
    ///
    /// # Errors
    /// [`ThreadNotFound`](ControllerErrorKind::ThreadNotFound), also for a thread of somebody else.
    pub async fn send_signal_to_thread(&self, thread: &ThreadId, signal: Signal) -> Result<SignalSent, ControllerError> {
        check(&signal)?;
        let _turn = self.turn().await?;
        self.shared().owned_thread(thread, self.resource()).await?;
        let message = signal.into_message(self.shared().ids.fresh("message"), self.shared().clock.now());
        let id = message.id.clone();
        let action = self.signal_in_turn(thread, message, WhenActive::Persist, WhenIdle::Persist).await?;
        Ok(SignalSent { message: id, action })
    }

    pub(crate) async fn signal_in_turn(
        &self,
        thread: &ThreadId,
        mut message: Message,
        if_active: WhenActive,
        if_idle: WhenIdle,
    ) -> Result<SignalAction, ControllerError> {
        for _ in 0..TRIES {
            if let Some(run) = self.close_finished(thread).await? {
                if if_active == WhenActive::Discard {
                    return Ok(SignalAction::Discarded);
                }
                if let Some(info) = &mut message.meta.signal {
                    info.quiet = if_active == WhenActive::Persist;
                }
                if self.hand_over(&run, &message).await? {
                    let delivered = SignalAction::Delivered { run };
                    return Ok(if if_active == WhenActive::Persist { SignalAction::Persisted } else { delivered });
                }
                continue;
            }
            match if_idle {
                WhenIdle::Discard => return Ok(SignalAction::Discarded),
                WhenIdle::Persist => {
                    if self.put(thread, &message).await? {
                        return Ok(SignalAction::Persisted);
                    }
                }
                WhenIdle::Wake => {
                    let start = Start {
                        thread: thread.clone(),
                        message: message.clone(),
                        request_context: Map::new(),
                        from_queue: false,
                        unattended: false,
                    };
                    match self.start_run(start).await {
                        Err(error) if error.kind() == ControllerErrorKind::Run(RunErrorKind::Busy) => {}
                        other => return Ok(SignalAction::Woke { run: other?.run }),
                    }
                }
            }
        }
        Err(contended())
    }

    /// Gives a message to an open run, without declining anything. Says whether the run took it; one that ended meanwhile did not.
    pub(crate) async fn hand_over(&self, run: &RunId, message: &Message) -> Result<bool, ControllerError> {
        let input = Input::Message { message: message.clone(), decline: false };
        match self.shared().runtime.deliver(self.host_of(run).await?, run, input).await {
            Ok(_) => Ok(true),
            Err(error) => match error.kind() {
                RunErrorKind::NotFound | RunErrorKind::Refused(Refusal::Finished) => Ok(false),
                _ => Err(error.into()),
            },
        }
    }

    /// Puts a message into a thread on which nothing is open, and tells it. Says whether it did; a run that began meanwhile has the thread.
    pub(crate) async fn put(&self, thread: &ThreadId, message: &Message) -> Result<bool, ControllerError> {
        let storage = &self.shared().storage;
        let head = storage.runs().head(thread).await?.ok_or_else(|| ControllerError::thread_not_found(thread))?;
        match storage.messages().put(thread, message, head.version).await {
            Ok(()) => {
                let about = About::thread(thread);
                self.tell(about.clone(), EventBody::MessageStart { message: Arc::new(message.clone()) });
                self.tell(about, EventBody::MessageEnd { id: message.id.clone() });
                Ok(true)
            }
            Err(error) if error.kind() == StorageErrorKind::Conflict => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn check(signal: &Signal) -> Result<(), ControllerError> {
    if signal.is_empty() {
        return Err(ControllerError::new(ControllerErrorKind::EmptyMessage, "a signal needs a text"));
    }
    Ok(())
}
