use ac_core::{
    MessageId, ThreadId,
    event::{QueueItem, QueueKind},
};
use ac_engine::Input;

use super::{
    Session, Submitted, UserMessage,
    record::{Change, FollowUp, SessionRecord},
    run::Start,
};
use crate::{ControllerError, ControllerErrorKind};

/// A follow-up that was taken.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Queued {
    /// The message; also its id in the queue.
    pub message: MessageId,
    /// The run that began with it, where nothing was before it.
    pub started: Option<Submitted>,
}

/// How much of a text a queue shows.
const SHOWN: usize = 200;

impl Session {
    /// Runs a message after the open run and after what waits before it, as a run of its own; at once where nothing is open (`R8`,
    /// SPEC S-33). A run that does not work because it waits for answers is not waited for: the message joins it, as a sent one would.
    /// Resolves on acceptance: the message is stored.
    ///
    /// # Errors
    /// As [`Session::submit`].
    pub async fn follow_up(&self, message: impl Into<UserMessage>) -> Result<Queued, ControllerError> {
        let turn = self.turn().await?;
        let (start, kept) = self.admit(message.into()).await?;
        let (thread, id) = (start.thread.clone(), start.message.id.clone());
        let waits = self.refresh().await?.queue.iter().any(|item| item.thread == thread);
        let open = if waits { None } else { Some(self.close_finished(&thread).await?) };
        match open {
            Some(None) => match self.start_run(start.clone()).await {
                Err(error) if error.kind() == ControllerErrorKind::Run(ac_agent::RunErrorKind::Busy) => {}
                other => return Ok(Queued { message: id, started: Some(other?) }),
            },
            Some(Some(run)) if !self.is_at_work(&run).await? && self.join(&run, &start.message, false).await? => {
                return Ok(Queued { message: id, started: None });
            }
            _ => {}
        }
        let Start { message, request_context, unattended, .. } = start;
        let item = FollowUp { thread: thread.clone(), message, request_context, unattended };
        self.write(
            |record| {
                record.queue.push(item.clone());
                Ok(Change::Write(()))
            },
            |()| self.show_queue(&thread, true),
        )
        .await?;
        kept.on();
        drop(turn);
        // Who enqueues looks again whether a run is open (R8).
        let started = match self.pump(&thread).await {
            Ok(started) => started.filter(|started| started.message == id),
            // It is taken, and waits for whoever looks next.
            Err(error) => {
                tracing::warn!(code = error.code(), "the next follow-up did not start");
                None
            }
        };
        Ok(Queued { message: id, started })
    }

    /// What waits for its turn on the bound thread: messages for the open run, then follow-ups.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn queue(&self) -> Result<Vec<QueueItem>, ControllerError> {
        let Some(thread) = self.thread_id() else { return Ok(vec![]) };
        let mut items = vec![];
        if let Some(run) = self.active_run(&thread).await?
            && let Some((_, snapshot)) = self.shared().runtime.load(&run).await?
        {
            items.extend(snapshot.queued.iter().map(|message| QueueItem {
                id: message.id.clone(),
                kind: QueueKind::Message,
                thread: thread.clone(),
                text: shown(&message.text()),
            }));
        }
        items.extend(self.refresh().await?.follow_ups(&thread));
        Ok(items)
    }

    /// Takes something back that waits.
    ///
    /// # Errors
    /// [`QueueItemNotFound`](ControllerErrorKind::QueueItemNotFound): it is delivered already, or never waited.
    pub async fn remove_queued(&self, id: &MessageId) -> Result<(), ControllerError> {
        let _turn = self.turn().await?;
        self.settle_outbox().await?;
        let not_found = || ControllerError::new(ControllerErrorKind::QueueItemNotFound, format!("nothing waits under `{id}`"));
        let Some(thread) = self.thread_id() else { return Err(not_found()) };
        let removed = self
            .write(
                |record| {
                    let before = record.queue.len();
                    record.queue.retain(|item| !item.is(&thread, id));
                    Ok(if record.queue.len() < before { Change::Write(true) } else { Change::Nothing(false) })
                },
                |removed| {
                    if *removed {
                        self.show_queue(&thread, true);
                    }
                },
            )
            .await?;
        if removed {
            self.shared().transient.forget_message(&thread, id);
            return Ok(());
        }
        let Some(run) = self.active_run(&thread).await? else { return Err(not_found()) };
        match self.shared().runtime.deliver(self.host_of(&run).await?, &run, Input::Withdraw { message: id.clone() }).await {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.kind(), ac_agent::RunErrorKind::Refused(_)) => Err(not_found()),
            Err(error) => Err(error.into()),
        }
    }

    /// Puts follow-ups in this order; those that are not named keep theirs, behind.
    ///
    /// # Errors
    /// [`QueueItemNotFound`](ControllerErrorKind::QueueItemNotFound) for an id that is no follow-up of the bound thread; nothing changed.
    pub async fn reorder_queue(&self, order: &[MessageId]) -> Result<(), ControllerError> {
        let _turn = self.turn().await?;
        self.settle_outbox().await?;
        let Some(thread) = self.thread_id() else { return Ok(()) };
        self.write(
            |record| {
                let unknown = order.iter().find(|id| !record.queue.iter().any(|item| item.is(&thread, id)));
                if let Some(id) = unknown {
                    let message = format!("no follow-up waits under `{id}`");
                    return Err(ControllerError::new(ControllerErrorKind::QueueItemNotFound, message));
                }
                let place = |item: &FollowUp| order.iter().position(|id| item.is(&thread, id)).unwrap_or(usize::MAX);
                record.queue.sort_by_key(place);
                Ok(Change::Write(()))
            },
            |()| self.show_queue(&thread, true),
        )
        .await
    }

    /// Shows the follow-ups of a thread, if it is the bound one.
    pub(crate) fn show_queue(&self, thread: &ThreadId, tell: bool) {
        let record = self.view().record;
        if record.thread.as_ref() == Some(thread) {
            self.feed().follow_ups(record.follow_ups(thread).collect(), tell);
        }
    }

    /// Starts the next follow-up of a thread, if nothing is open on it. The item leaves the queue through the run's outbox, so that it is
    /// neither lost nor started twice.
    pub(crate) async fn pump(&self, thread: &ThreadId) -> Result<Option<Submitted>, ControllerError> {
        loop {
            let _turn = self.turn().await?;
            let record = self.refresh().await?;
            if record.thread.as_ref() != Some(thread) {
                return Ok(None);
            }
            let Some(item) = record.queue.iter().find(|item| item.thread == *thread) else { return Ok(None) };
            if self.close_finished(thread).await?.is_some() {
                return Ok(None);
            }
            let FollowUp { message, request_context, unattended, .. } = item.clone();
            // A run that closed meanwhile may have begun with this item.
            if self.shared().storage.messages().get(thread, &message.id).await?.is_some() {
                let id = message.id;
                self.write(
                    |record| {
                        record.queue.retain(|item| !item.is(thread, &id));
                        Ok(Change::Write(()))
                    },
                    |()| self.show_queue(thread, true),
                )
                .await?;
                self.shared().transient.forget_message(thread, &id);
                continue;
            }
            let start = Start { thread: thread.clone(), message, request_context, from_queue: true, unattended };
            return match self.start_run(start).await {
                Err(error) if error.kind() == ControllerErrorKind::Run(ac_agent::RunErrorKind::Busy) => Ok(None),
                other => other.map(Some),
            };
        }
    }

    /// As [`Session::pump`], by a task of its own: another process may have put something into the queue (`R8`).
    pub(crate) fn pump_soon(&self, thread: &ThreadId) {
        let (session, thread) = (self.clone(), thread.clone());
        self.spawn(async move {
            if let Err(error) = session.pump(&thread).await {
                tracing::warn!(code = error.code(), "the next follow-up did not start; it is looked at again");
            }
        });
    }

    /// As [`Session::pump_soon`], where a follow-up waits for its turn on the bound thread, as far as this process knows.
    pub(crate) fn pump_waiting(&self) {
        let record = self.view().record;
        if let Some(thread) = record.thread.as_ref().filter(|thread| record.queue.iter().any(|item| item.thread == **thread)) {
            self.pump_soon(thread);
        }
    }
}

impl SessionRecord {
    /// The follow-ups of a thread, as they are shown.
    pub(crate) fn follow_ups(&self, thread: &ThreadId) -> impl Iterator<Item = QueueItem> {
        self.queue.iter().filter(|item| item.thread == *thread).map(|item| QueueItem {
            id: item.message.id.clone(),
            kind: QueueKind::FollowUp,
            thread: item.thread.clone(),
            text: shown(&item.message.text()),
        })
    }
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}
