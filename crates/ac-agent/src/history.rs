//! What a run knows of its thread, read once and kept up to date by its own commits.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use ac_core::{Message, MessageId, Role, ThreadId, ToolCallId};
use ac_storage::{Storage, domain::MessageQuery};

use crate::{RunError, patience::Patience};

/// The newest messages of a thread, oldest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    messages: Vec<Arc<Message>>,
    index: HashMap<MessageId, usize>,
    calls: HashSet<ToolCallId>,
}

impl History {
    /// Reads the thread.
    pub(crate) async fn load(storage: &dyn Storage, thread: &ThreadId, limit: Option<usize>) -> Result<Self, RunError> {
        let query = MessageQuery { after: None, newest_first: limit.is_some(), limit: limit.unwrap_or(0) };
        let mut page = {
            let mut patience = Patience::default();
            loop {
                match storage.messages().page(thread, &query).await {
                    Err(error) if patience.allows(&error).await => {}
                    other => break other?,
                }
            }
        }
        .items;
        if limit.is_some() {
            page.reverse();
        }
        let mut history = Self::default();
        for stored in page {
            history.put(stored.message);
        }
        Ok(history)
    }

    /// Takes a message that was stored.
    pub(crate) fn put(&mut self, message: Arc<Message>) {
        self.calls.extend(message.tool_calls().map(|call| call.id.clone()));
        match self.index.get(&message.id).and_then(|at| self.messages.get_mut(*at)) {
            Some(slot) => *slot = message,
            None => {
                self.index.insert(message.id.clone(), self.messages.len());
                self.messages.push(message);
            }
        }
    }

    /// What a model is sent: pointers, no copies. It begins with a person or a signal, where the thread was cut, and leaves out answers
    /// that say nothing.
    pub(crate) fn request(&self, limit: Option<usize>) -> Vec<Arc<Message>> {
        let from = limit.map_or(0, |limit| self.messages.len().saturating_sub(limit));
        let cut = from > 0;
        self.messages
            .iter()
            .skip(from)
            .skip_while(|message| cut && message.role == Role::Assistant)
            .filter(|message| !message.parts.is_empty())
            .cloned()
            .collect()
    }

    /// Whether a call of this id is in the thread.
    pub(crate) fn has_call(&self, id: &ToolCallId) -> bool {
        self.calls.contains(id)
    }
}
