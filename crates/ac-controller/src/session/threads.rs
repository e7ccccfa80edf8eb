use ac_core::{EventBody, MessageId, ThreadId, event::ThreadInfo};
use ac_storage::{
    Page, StorageErrorKind,
    domain::{MessageQuery, ThreadQuery},
    record::{MessageCursor, StoredMessage},
};
use serde_json::{Map, Value};

use super::{Session, record::Change, title::PINNED};
use crate::{ControllerError, ControllerErrorKind, feed::About};

/// How often a row is written again when somebody else was faster.
const TRIES: usize = 16;

/// How far a copy of a thread goes.
#[derive(Clone, Copy)]
enum Extent<'a> {
    /// To the end.
    All,
    /// Up to a message, and without it.
    Until(&'a MessageId),
    /// Up to and with a message.
    With(&'a MessageId),
}

impl Session {
    /// Makes a thread and moves to it. What moves on the old one is aborted; what waits there goes on waiting.
    ///
    /// # Errors
    /// [`ThreadExists`](ControllerErrorKind::ThreadExists); the session stays where it was, its run goes on.
    pub async fn create_thread(&self, id: Option<ThreadId>, title: impl Into<String>) -> Result<ThreadInfo, ControllerError> {
        let _turn = self.turn().await?;
        self.create_in_turn(id, title.into()).await
    }

    pub(crate) async fn create_in_turn(&self, id: Option<ThreadId>, title: String) -> Result<ThreadInfo, ControllerError> {
        let info = self.store_thread(id, title).await?;
        self.move_to_new(&info).await?;
        Ok(info)
    }

    async fn move_to_new(&self, info: &ThreadInfo) -> Result<(), ControllerError> {
        if let Some(old) = self.thread_id() {
            self.leave(&old).await?;
        }
        self.settle_outbox().await?;
        let default = &self.shared().config.default_mode;
        let thread = info.id.clone();
        self.write(
            |record| {
                record.carry_over(&thread, default);
                Ok(Change::Write(()))
            },
            |()| {
                self.feed().show(Some(thread.clone()), |state| state.is_running = false);
                self.tell(About::thread(&thread), EventBody::ThreadCreated { thread: Box::new(info.clone()) });
                self.show_queue(&thread, true);
            },
        )
        .await
    }

    /// Moves to a thread of the resource. What moves on the old one is aborted; what waits there goes on waiting. Its mode and models come
    /// with it. Moving to where the session is changes nothing.
    ///
    /// # Errors
    /// [`ThreadNotFound`](ControllerErrorKind::ThreadNotFound); the session stays where it was, its run goes on.
    pub async fn switch_thread(&self, thread: &ThreadId) -> Result<(), ControllerError> {
        let _turn = self.turn().await?;
        let info = self.shared().owned_thread(thread, self.resource()).await?;
        if self.is_at(thread) {
            return Ok(());
        }
        self.switch_in_turn(&info).await
    }

    /// Whether the session is bound to a thread and shows it. Who was stopped in the middle of a move is not there yet.
    pub(crate) fn is_at(&self, thread: &ThreadId) -> bool {
        self.thread_id().as_ref() == Some(thread) && self.feed().shows().as_ref() == Some(thread)
    }

    pub(crate) async fn switch_in_turn(&self, info: &ThreadInfo) -> Result<(), ControllerError> {
        let previous = self.feed().shows();
        if let Some(old) = self.thread_id().filter(|old| *old != info.id) {
            self.leave(&old).await?;
        }
        self.settle_outbox().await?;
        let old_mode = self.mode();
        // Whatever can fail comes before the move; what follows it waits for nothing.
        let brought = self.brought(&info.id).await?;
        self.write_binding(&info.id).await?;
        let mode = self.mode();
        if mode != old_mode {
            self.tell(About::default(), EventBody::ModeChanged { mode, previous: old_mode });
        }
        let thread = info.id.clone();
        self.feed().show(Some(thread.clone()), |_| {});
        self.feed().tell_and(About::thread(&thread), EventBody::ThreadChanged { thread: thread.clone(), previous }, |state| {
            brought.into_view(state);
        });
        self.show_queue(&thread, true);
        self.pump_soon(&thread);
        Ok(())
    }

    /// Threads of the resource, newest first; those of subagents' forks are left out unless asked for.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn threads(&self, mut query: ThreadQuery) -> Result<Page<ThreadInfo>, ControllerError> {
        query.resource = Some(self.resource().clone());
        self.shared().list_threads(&query).await
    }

    /// A thread of the resource.
    ///
    /// # Errors
    /// [`ThreadNotFound`](ControllerErrorKind::ThreadNotFound), also for one of somebody else.
    pub async fn thread(&self, thread: &ThreadId) -> Result<ThreadInfo, ControllerError> {
        self.shared().owned_thread(thread, self.resource()).await
    }

    /// Names a thread of the resource; the bound one, where none is given. No model names it from then on (SPEC H-30).
    ///
    /// # Errors
    /// [`ThreadNotFound`](ControllerErrorKind::ThreadNotFound).
    pub async fn rename_thread(&self, thread: Option<&ThreadId>, title: impl Into<String>) -> Result<(), ControllerError> {
        let title = title.into();
        let thread = self.named_or_bound(thread)?;
        self.change_thread(&thread, |info| {
            info.title.clone_from(&title);
            info.metadata.insert(PINNED.to_owned(), true.into());
        })
        .await?;
        self.tell(About::thread(&thread), EventBody::ThreadTitleUpdated { thread: thread.clone(), title });
        Ok(())
    }

    /// Keeps a setting with a thread of the resource; `None` takes it away. Writers of different keys do not overwrite each other.
    ///
    /// # Errors
    /// [`ThreadNotFound`](ControllerErrorKind::ThreadNotFound).
    pub async fn set_thread_setting(&self, thread: Option<&ThreadId>, key: &str, value: Option<Value>) -> Result<(), ControllerError> {
        let thread = self.named_or_bound(thread)?;
        self.change_thread(&thread, |info| match value.clone() {
            Some(value) => drop(info.metadata.insert(key.to_owned(), value)),
            None => drop(info.metadata.remove(key)),
        })
        .await
    }

    /// The settings and tags of a thread of the resource.
    ///
    /// # Errors
    /// [`ThreadNotFound`](ControllerErrorKind::ThreadNotFound).
    pub async fn thread_settings(&self, thread: Option<&ThreadId>) -> Result<Map<String, Value>, ControllerError> {
        let thread = self.named_or_bound(thread)?;
        Ok(self.shared().owned_thread(&thread, self.resource()).await?.metadata)
    }

    /// Deletes a thread of the resource with everything that is its own: its run is aborted, moving or waiting, before it goes.
    ///
    /// # Errors
    /// [`ThreadNotFound`](ControllerErrorKind::ThreadNotFound), or [`Contended`](ControllerErrorKind::Contended) when its run does not end.
    pub async fn delete_thread(&self, thread: &ThreadId) -> Result<(), ControllerError> {
        let _turn = self.turn().await?;
        match self.shared().owned_thread(thread, self.resource()).await {
            Ok(_) => self.clear_thread(thread).await?,
            // It is gone, and the session does not know yet: another one deleted it, or this one was stopped over it.
            Err(error) if error.kind() == ControllerErrorKind::ThreadNotFound && self.refresh().await?.knows(thread) => {}
            Err(error) => return Err(error),
        }
        self.shared().transient.forget_thread(thread);
        let bound = self.thread_id().as_ref() == Some(thread);
        self.write(
            |record| {
                record.forget(thread);
                Ok(Change::Write(()))
            },
            |()| {
                self.tell(About::default(), EventBody::ThreadDeleted { thread: thread.clone(), unbound: bound });
                if bound {
                    self.feed().show(None, |state| state.is_running = false);
                    self.feed().follow_ups(vec![], true);
                }
            },
        )
        .await
    }

    /// Aborts what holds the thread and deletes it.
    async fn clear_thread(&self, thread: &ThreadId) -> Result<(), ControllerError> {
        for _ in 0..TRIES {
            if let Some(run) = self.close_finished(thread).await? {
                self.end_run(thread, &run).await?;
                // Its last commit may have left an outbox.
                self.close_finished(thread).await?;
            }
            match self.shared().storage.threads().delete(thread).await {
                Ok(()) => return Ok(()),
                // Somebody started another run meanwhile.
                Err(error) if error.kind() == StorageErrorKind::Conflict => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ControllerError::new(ControllerErrorKind::Contended, "the thread's run does not end; try again"))
    }

    /// Messages of a thread of the resource; of the bound one, where none is given.
    ///
    /// # Errors
    /// [`ThreadNotFound`](ControllerErrorKind::ThreadNotFound).
    pub async fn messages(&self, thread: Option<&ThreadId>, query: MessageQuery) -> Result<Page<StoredMessage>, ControllerError> {
        let Some(thread) = thread.cloned().or_else(|| self.thread_id()) else { return Ok(Page { items: vec![], next: None }) };
        self.shared().owned_thread(&thread, self.resource()).await?;
        Ok(self.shared().storage.messages().page(&thread, &query).await?)
    }

    /// Copies a thread of the resource (the bound one, where none is given) up to, and without, the message of an open step or `until`, and
    /// moves to the copy.
    ///
    /// # Errors
    /// [`ThreadNotFound`](ControllerErrorKind::ThreadNotFound), or [`Contended`](ControllerErrorKind::Contended) when the thread grows all
    /// the time. There is no new thread then, nor after a process that died over it.
    pub async fn clone_thread(
        &self,
        source: Option<&ThreadId>,
        title: Option<String>,
        until: Option<&MessageId>,
    ) -> Result<ThreadInfo, ControllerError> {
        let _turn = self.turn().await?;
        let source = self.named_or_bound(source)?;
        self.copy_in_turn(&source, title, until.map_or(Extent::All, Extent::Until)).await
    }

    /// Copies a thread of the resource (the bound one, where none is given) up to and with a message, and moves to the copy.
    ///
    /// # Errors
    /// As [`Session::clone_thread`]; [`MessageNotFound`](ControllerErrorKind::MessageNotFound).
    pub async fn branch_thread(
        &self,
        source: Option<&ThreadId>,
        at: &MessageId,
        title: Option<String>,
    ) -> Result<ThreadInfo, ControllerError> {
        let _turn = self.turn().await?;
        let source = self.named_or_bound(source)?;
        self.copy_in_turn(&source, title, Extent::With(at)).await
    }

    async fn copy_in_turn(&self, source: &ThreadId, title: Option<String>, extent: Extent<'_>) -> Result<ThreadInfo, ControllerError> {
        let from = self.shared().owned_thread(source, self.resource()).await?;
        let title = title.unwrap_or_else(|| format!("Copy of {}", if from.title.is_empty() { source.as_str() } else { &from.title }));
        let storage = &self.shared().storage;
        for _ in 0..TRIES {
            let before = storage.runs().head(source).await?.map(|head| head.version);
            let until = self.end_of(source, extent).await?;
            let row = self.new_thread(None, title.clone()).await?;
            storage.messages().copy(source, &row, until.as_ref()).await?;
            // Without an end, the copy may have what was stored meanwhile: a step that is open, or what was not asked for.
            if until.is_some() || storage.runs().head(source).await?.map(|head| head.version) == before {
                self.move_to_new(&row.info).await?;
                return Ok(row.info);
            }
            storage.threads().delete(&row.info.id).await?;
        }
        Err(ControllerError::new(ControllerErrorKind::Contended, "the thread grows while it is copied; try again"))
    }

    /// Before which message a copy ends.
    async fn end_of(&self, source: &ThreadId, extent: Extent<'_>) -> Result<Option<MessageId>, ControllerError> {
        match extent {
            Extent::Until(until) => Ok(Some(until.clone())),
            // The open step of a run is no history yet.
            Extent::All => match self.active_run(source).await? {
                Some(run) => {
                    let stored = self.shared().runtime.load(&run).await?;
                    Ok(stored.and_then(|(_, snapshot)| snapshot.message.map(|open| open.id.clone())))
                }
                None => Ok(None),
            },
            Extent::With(at) => {
                let messages = self.shared().storage.messages();
                if messages.get(source, at).await?.is_none() {
                    let message = format!("the thread has no message `{at}`");
                    return Err(ControllerError::new(ControllerErrorKind::MessageNotFound, message));
                }
                let query = MessageQuery { after: Some(MessageCursor::Message(at.clone())), limit: 1, ..MessageQuery::default() };
                Ok(messages.page(source, &query).await?.items.into_iter().next().map(|next| next.message.id.clone()))
            }
        }
    }

    pub(crate) fn named_or_bound(&self, thread: Option<&ThreadId>) -> Result<ThreadId, ControllerError> {
        thread.cloned().or_else(|| self.thread_id()).ok_or_else(|| {
            ControllerError::new(ControllerErrorKind::ThreadNotFound, "the session is bound to no thread; name one, or create one")
        })
    }

    pub(crate) async fn change_thread(&self, thread: &ThreadId, mut change: impl FnMut(&mut ThreadInfo)) -> Result<(), ControllerError> {
        let threads = self.shared().storage.threads();
        for _ in 0..TRIES {
            let row = match threads.get(thread).await? {
                Some(row) if self.shared().is_for(&row.value, self.resource()) => row,
                _ => return Err(ControllerError::thread_not_found(thread)),
            };
            let mut next = row.value;
            change(&mut next.info);
            next.info.updated_at = self.shared().clock.now();
            match threads.update(&next, row.version).await {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == StorageErrorKind::Conflict => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ControllerError::new(ControllerErrorKind::Contended, "others keep changing this thread; try again"))
    }
}
