//! What a run that starts is told besides the message it starts from.

use ac_core::{Message, MessageId, ThreadId};

use super::Session;
use crate::{ControllerError, NotificationStatus};

/// Notes for a run, and what to remember once they are stored with it.
#[derive(Default)]
pub(crate) struct Notes {
    goal: Option<(Message, String)>,
    inbox: Option<(Message, Vec<String>)>,
}

impl Notes {
    /// The messages, in order.
    pub(crate) fn messages(&self) -> impl Iterator<Item = Message> {
        let goal = self.goal.iter().map(|(message, _)| message);
        goal.chain(self.inbox.iter().map(|(message, _)| message)).cloned()
    }
}

impl Session {
    /// What a run on this thread that starts from a message has to be told. What cannot be read keeps no run from starting.
    pub(crate) async fn notes(&self, thread: &ThreadId, start: &MessageId) -> Notes {
        let goal = self.goal_to_tell(thread).await.unwrap_or_else(|error| unread(&error));
        let inbox = self.waiting_notifications(thread, start).await.unwrap_or_else(|error| unread(&error));
        Notes { goal, inbox }
    }

    /// Remembers that a run was told. At worst the next one is told again.
    pub(crate) async fn noted(&self, thread: &ThreadId, notes: Notes) {
        let mut noted = Ok(());
        if let Some((_, key)) = notes.goal {
            noted = self.goal_told(thread, &key).await;
        }
        if let Some((_, ids)) = notes.inbox {
            noted = noted.and(self.mark(thread, &ids, NotificationStatus::Summarized).await.map(drop));
        }
        if let Err(error) = noted {
            tracing::debug!(code = error.code(), "what a run was told was not remembered");
        }
    }
}

fn unread<T>(error: &ControllerError) -> Option<T> {
    tracing::warn!(code = error.code(), "what a run should be told could not be read: {error}");
    None
}
