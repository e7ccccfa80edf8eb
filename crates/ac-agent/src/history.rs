//! What a run knows of its thread, read once and kept up to date by its own commits.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use ac_core::{Message, MessageId, Role, RunId, ThreadId, Timestamp, ToolCallId};
use ac_storage::{Storage, domain::MessageQuery, record::MessageCursor};

use crate::{RunError, patience::Patience};

/// The newest messages of a thread, oldest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    messages: Vec<Arc<Message>>,
    index: HashMap<MessageId, usize>,
    calls: HashSet<ToolCallId>,
}

/// How many messages beyond the limit are read at once: most runs are shorter.
const AHEAD: usize = 32;

impl History {
    /// Reads the thread: all of it, or the run's own messages and `limit` before them.
    pub(crate) async fn load(storage: &dyn Storage, thread: &ThreadId, run: &RunId, limit: Option<usize>) -> Result<Self, RunError> {
        let mut query =
            MessageQuery { after: None, newest_first: limit.is_some(), limit: limit.map_or(0, |limit| limit.saturating_add(AHEAD)) };
        let mut read = vec![];
        loop {
            let mut patience = Patience::default();
            let page = loop {
                match storage.messages().page(thread, &query).await {
                    Err(error) if patience.allows(&error).await => {}
                    other => break other?,
                }
            };
            read.extend(page.items.into_iter().map(|stored| stored.message));
            let Some(limit) = limit else { break };
            // Oldest first, as everybody else sees them.
            read.reverse();
            let enough = begin(&read, run) > limit;
            let next = page.next.filter(|_| !enough).and_then(|next| next.parse().ok());
            let Some(next) = next else { break };
            read.reverse();
            query.after = Some(MessageCursor::Position(next));
        }
        let mut history = Self::default();
        for message in read {
            history.put(message);
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

    /// What a model is sent: pointers, no copies. The run's own messages are never cut. A conversation begins with a person; where it was
    /// cut before an answer, a point stands for what the person said. Answers that say nothing are left out.
    pub(crate) fn request(&self, run: &RunId, limit: Option<usize>) -> Vec<Arc<Message>> {
        let from = limit.map_or(0, |limit| begin(&self.messages, run).saturating_sub(limit));
        let sent = || self.messages.iter().skip(from).filter(|message| !message.parts.is_empty());
        let headless = from > 0 && sent().next().is_some_and(|message| message.role == Role::Assistant);
        let head = headless.then(|| Arc::new(Message::user("cut", ".", Timestamp::default())));
        head.into_iter().chain(sent().cloned()).collect()
    }

    /// Whether a call of this id is in the thread.
    pub(crate) fn has_call(&self, id: &ToolCallId) -> bool {
        self.calls.contains(id)
    }
}

/// Where the run's own messages begin: with what a person said before its first answer.
fn begin(messages: &[Arc<Message>], run: &RunId) -> usize {
    let wrote = |message: &Arc<Message>| message.role == Role::Assistant;
    let first = messages.iter().position(|message| message.meta.run.as_ref() == Some(run)).unwrap_or(messages.len());
    messages.iter().take(first).rposition(wrote).map_or(0, |before| before + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `u` is a person, a letter is an answer of that run.
    fn thread(roles: &str) -> History {
        let mut history = History::default();
        for (at, role) in roles.chars().enumerate() {
            let mut message = Message::user(at.to_string(), "said", Timestamp::default());
            if role != 'u' {
                message.role = Role::Assistant;
                message.meta.run = Some(RunId::from(role.to_string()));
            }
            history.put(Arc::new(message));
        }
        history
    }

    fn sent(roles: &str, run: &str, limit: Option<usize>) -> Vec<String> {
        thread(roles).request(&RunId::from(run), limit).iter().map(|message| message.id.to_string()).collect()
    }

    #[test]
    fn a_limit_counts_what_was_before_the_run_and_never_cuts_the_run_itself() {
        assert_eq!(sent("uauau", "b", Some(2)), ["2", "3", "4"]);
        assert_eq!(sent("uaubbbb", "b", Some(0)), ["2", "3", "4", "5", "6"], "what the run was asked stays, however long it gets");
        assert_eq!(sent("uaububb", "b", Some(0)), ["2", "3", "4", "5", "6"], "also when a person joins in");
        assert_eq!(sent("uau", "b", None), ["0", "1", "2"]);
    }

    #[test]
    fn a_conversation_that_was_cut_before_an_answer_still_begins_with_a_person() {
        assert_eq!(sent("uauau", "b", Some(3)), ["cut", "1", "2", "3", "4"]);
    }
}
