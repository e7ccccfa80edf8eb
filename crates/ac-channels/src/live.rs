//! What is known in this process of a conversation that something happens in.

use std::sync::{Arc, atomic::AtomicU64};

use tokio::sync::{Mutex, Notify};

use crate::{
    ChannelError,
    channels::Shared,
    event::Conversation,
    record::{Cell, ConversationRecord},
};

/// A conversation that something happens in.
pub(crate) struct Live {
    cell: Mutex<Option<Cell>>,
    pub(crate) nudge: Notify,
    /// How often somebody had something for it.
    pub(crate) wakes: AtomicU64,
}

impl Live {
    pub(crate) fn new() -> Self {
        Self { cell: Mutex::new(None), nudge: Notify::new(), wakes: AtomicU64::new(0) }
    }

    /// Changes the record. In this process one at a time; others are told by the store.
    pub(crate) async fn update<T>(
        &self,
        shared: &Shared,
        conversation: &Conversation,
        change: impl FnMut(&mut ConversationRecord) -> Option<T>,
    ) -> Result<Option<T>, ChannelError> {
        let mut slot = self.cell.lock().await;
        let mut cell = match slot.take() {
            Some(cell) => cell,
            None => shared.records.load_or_new(conversation).await?,
        };
        let done = shared.records.update(&mut cell, change).await;
        // What a failed write left is not known: the next one reads again.
        if done.is_ok() {
            *slot = Some(cell);
        }
        done
    }

    /// The record as this process last knew it.
    pub(crate) async fn record(&self, shared: &Shared, conversation: &Conversation) -> Result<Arc<ConversationRecord>, ChannelError> {
        let mut slot = self.cell.lock().await;
        let cell = match slot.take() {
            Some(cell) => cell,
            None => shared.records.load_or_new(conversation).await?,
        };
        let record = cell.record.clone();
        *slot = Some(cell);
        Ok(record)
    }

    /// Forgets what this process knew; the next read asks the store.
    pub(crate) async fn forget(&self) {
        *self.cell.lock().await = None;
    }
}
