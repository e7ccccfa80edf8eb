use std::{collections::VecDeque, sync::Arc};

use ac_core::{ControllerId, MessageId, OwnerId, PendingId, ResourceId, RunId, SessionKey, ThreadId, Timestamp, event::PendingKind};
use ac_storage::{SessionId, Storage, StorageErrorKind, Stored};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    ChannelError, ChannelErrorKind,
    event::{Conversation, Incoming, IncomingKind, Speaker},
    signature::digest,
};

/// Everything that is remembered of a conversation: one row, changed by compare-and-set, so that a delivery is known and queued in the same
/// write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ConversationRecord {
    /// Of this form.
    pub(crate) schema: u32,
    pub(crate) conversation: Conversation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) binding: Option<Binding>,
    /// Deliveries that were taken, oldest first.
    #[serde(default)]
    pub(crate) seen: VecDeque<Seen>,
    /// Taken, and not yet handed on; in order.
    #[serde(default)]
    pub(crate) inbox: VecDeque<Item>,
    /// The number of the next item.
    #[serde(default)]
    pub(crate) next_item: u64,
    /// The number of the next card.
    #[serde(default)]
    pub(crate) next_card: u32,
    /// What people were asked, and what came of it.
    #[serde(default)]
    pub(crate) cards: Vec<Card>,
    /// Everything on the thread up to this position is posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cursor: Option<u64>,
    /// What is posted of messages beyond the cursor.
    #[serde(default)]
    pub(crate) posts: Vec<Posted>,
    /// Lines of the channel itself that are still to be posted.
    #[serde(default)]
    pub(crate) notes: Vec<Note>,
    /// The last message that was posted, as the platform calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<String>,
    /// Who started the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) starter: Option<Starter>,
    /// Which process works on the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lease: Option<Lease>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Binding {
    pub(crate) thread: ThreadId,
    pub(crate) session: SessionKey,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen(String, Timestamp);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) n: u64,
    pub(crate) at: Timestamp,
    pub(crate) event: Incoming,
}

/// Something that a person is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Card {
    pub(crate) n: u32,
    pub(crate) pending: PendingId,
    pub(crate) kind: PendingKind,
    pub(crate) tool: String,
    /// The digest of arguments and payload as they were shown.
    pub(crate) shown: String,
    /// The text of the card, as Markdown.
    pub(crate) text: String,
    /// Labels of the options, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) options: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) several: bool,
    /// An answer in one's own words counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) free_text: bool,
    /// Who started the run that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) starter: Option<Speaker>,
    pub(crate) at: Timestamp,
    /// What was posted last by then: the card stands behind it, and lines of the channel that are posted meanwhile may stand behind the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<String>,
    /// The platform's name of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<Outcome>,
    /// The item of the inbox that decided it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) item: Option<u64>,
    /// The message on the platform does not say so yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) stale: bool,
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// In a few words.
    pub(crate) said: String,
    /// Who decided, where it was somebody in this conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<Speaker>,
}

/// What is posted of one message of the thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Posted {
    pub(crate) message: MessageId,
    pub(crate) slots: Vec<Slot>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Slot {
    pub(crate) key: String,
    /// The platform's name of the message.
    pub(crate) at: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) key: String,
    pub(crate) text: String,
    pub(crate) at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Starter {
    pub(crate) run: RunId,
    pub(crate) speaker: Speaker,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lease {
    pub(crate) owner: OwnerId,
    pub(crate) expires: Timestamp,
}

/// So long a delivery is surely recognised, in milliseconds: platforms deliver again for minutes.
const SURELY: i64 = 15 * 60 * 1000;
/// And so long where there is room: some deliver again for a day.
const AT_MOST: i64 = 24 * 60 * 60 * 1000;
/// Room for deliveries beyond the sure time, and for all.
const ROOM: usize = 256;
const ALL_ROOM: usize = 8192;
/// How many decided cards are remembered, so that a late click hears what was decided.
const OLD_CARDS: usize = 32;
/// How much may wait in one conversation: events, and bytes of what people wrote. All of it is one row.
const MAX_INBOX: usize = 256;
const MAX_WAITING: usize = 4 * 1024 * 1024;

impl ConversationRecord {
    const SCHEMA: u32 = 1;

    pub(crate) fn new(conversation: Conversation) -> Self {
        Self {
            schema: Self::SCHEMA,
            conversation,
            binding: None,
            seen: VecDeque::new(),
            inbox: VecDeque::new(),
            next_item: 0,
            next_card: 1,
            cards: vec![],
            cursor: None,
            posts: vec![],
            notes: vec![],
            last: None,
            starter: None,
            lease: None,
        }
    }

    /// Takes an event, unless it was taken before. Says whether it is new.
    pub(crate) fn take(&mut self, event: &Incoming, now: Timestamp) -> bool {
        self.take_at(self.inbox.len(), event, now)
    }

    /// Takes what was said after an item, in its order, where it was not taken before. Says whether anything is new.
    pub(crate) fn take_behind(&mut self, item: u64, events: &[Incoming], now: Timestamp) -> bool {
        let mut at = self.inbox.iter().position(|known| known.n == item).map_or(0, |at| at + 1);
        let mut new = false;
        for event in events {
            if let Some(known) = self.inbox.iter().position(|known| known.event.ids.iter().any(|id| event.ids.contains(id))) {
                at = at.max(known + 1);
            } else if !self.is_full() && self.take_at(at, event, now) {
                at += 1;
                new = true;
            }
        }
        new
    }

    fn take_at(&mut self, at: usize, event: &Incoming, now: Timestamp) -> bool {
        let ids: Vec<String> = event.ids.iter().map(|id| digest(id)).collect();
        if self.seen.iter().any(|seen| ids.contains(&seen.0)) {
            return false;
        }
        while let Some(Seen(_, at)) = self.seen.front() {
            let age = now.millis_since(*at);
            let drop = age > AT_MOST || (age > SURELY && self.seen.len() >= ROOM) || self.seen.len() >= ALL_ROOM;
            if !drop {
                break;
            }
            self.seen.pop_front();
        }
        self.seen.extend(ids.into_iter().map(|id| Seen(id, now)));
        self.inbox.insert(at.min(self.inbox.len()), Item { n: self.next_item, at: now, event: event.clone() });
        self.next_item += 1;
        true
    }

    /// Whether nothing more may wait here.
    pub(crate) fn is_full(&self) -> bool {
        let written = |item: &Item| match &item.event.kind {
            IncomingKind::Message(said) => said.text.len(),
            IncomingKind::Click(click) => click.text.as_ref().map_or(0, String::len),
        };
        self.inbox.len() >= MAX_INBOX || self.inbox.iter().map(written).sum::<usize>() >= MAX_WAITING
    }

    pub(crate) fn open_cards(&self) -> impl Iterator<Item = &Card> {
        self.cards.iter().filter(|card| card.outcome.is_none())
    }

    pub(crate) fn card_mut(&mut self, n: u32) -> Option<&mut Card> {
        self.cards.iter_mut().find(|card| card.n == n)
    }

    /// Who in the conversation started a run, or the run that a subagent's belongs to.
    pub(crate) fn starter_of(&self, run: &RunId) -> Option<Speaker> {
        let root = run.as_str().split('~').next().unwrap_or_default();
        self.starter.as_ref().filter(|starter| starter.run.as_str() == root).map(|starter| starter.speaker.clone())
    }

    /// Settles a card, if it is open. The message on the platform is to say so.
    pub(crate) fn settle(&mut self, n: u32, outcome: Outcome) -> bool {
        let Some(card) = self.card_mut(n).filter(|card| card.outcome.is_none()) else { return false };
        card.outcome = Some(outcome);
        card.stale = true;
        let mut old = self.cards.iter().filter(|card| card.outcome.is_some()).count();
        self.cards.retain(|card| {
            let drop = old > OLD_CARDS && card.outcome.is_some() && !card.stale;
            if drop {
                old -= 1;
            }
            !drop
        });
        true
    }

    /// Remembers where a part of a message is posted.
    pub(crate) fn post(&mut self, message: &MessageId, slot: Slot) {
        if !self.posts.iter().any(|posted| posted.message == *message) {
            self.posts.push(Posted { message: message.clone(), slots: vec![] });
        }
        for posted in self.posts.iter_mut().filter(|posted| posted.message == *message) {
            posted.slots.retain(|known| known.key != slot.key);
            posted.slots.push(slot.clone());
        }
    }

    /// Where a part of a message is posted.
    pub(crate) fn slot(&self, message: &MessageId, key: &str) -> Option<&Slot> {
        self.posts.iter().find(|posted| posted.message == *message)?.slots.iter().find(|slot| slot.key == key)
    }

    /// Whether something is left to be done without anybody asking.
    pub(crate) fn is_busy(&self) -> bool {
        !self.inbox.is_empty()
            || !self.posts.is_empty()
            || !self.notes.is_empty()
            || self.cards.iter().any(|card| card.outcome.is_none() || card.stale)
    }
}

/// Where the records of one controller's channels are: among the sessions of the store, under a controller id of their own. The store keeps
/// such bodies as they are, changes them by compare-and-set and lists them, which is all that is needed here.
#[derive(Clone)]
pub(crate) struct Records {
    storage: Arc<dyn Storage>,
    controller: ControllerId,
}

/// A record, and the version that the next write is made on.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) record: Arc<ConversationRecord>,
    version: Option<u64>,
}

/// How often a change is tried again when another process was faster.
const TRIES: usize = 32;

impl Records {
    pub(crate) fn new(storage: Arc<dyn Storage>, controller: &ControllerId) -> Self {
        Self { storage, controller: format!("{controller}/channels").into() }
    }

    fn id(&self, conversation: &str) -> SessionId {
        SessionId { controller: self.controller.clone(), key: SessionKey::new(ResourceId::from(conversation)) }
    }

    pub(crate) async fn load(&self, conversation: &str) -> Result<Option<Cell>, ChannelError> {
        let found = self.storage.sessions().load(&self.id(conversation)).await?;
        found.map(|Stored { version, value }| Ok(Cell { record: Arc::new(read(&value)?), version: Some(version) })).transpose()
    }

    pub(crate) async fn load_or_new(&self, conversation: &Conversation) -> Result<Cell, ChannelError> {
        let found = self.load(&conversation.id).await?;
        Ok(found.unwrap_or_else(|| Cell { record: Arc::new(ConversationRecord::new(conversation.clone())), version: None }))
    }

    /// Changes a record by compare-and-set. `change` runs again on what another process wrote; it answers `None` when there is nothing to
    /// write.
    pub(crate) async fn update<T>(
        &self,
        cell: &mut Cell,
        mut change: impl FnMut(&mut ConversationRecord) -> Option<T>,
    ) -> Result<Option<T>, ChannelError> {
        let id = self.id(&cell.record.conversation.id);
        for _ in 0..TRIES {
            let mut next = cell.record.as_ref().clone();
            let Some(value) = change(&mut next) else { return Ok(None) };
            let body = serde_json::value::to_raw_value(&next).map_err(|error| {
                ChannelError::new(ChannelErrorKind::Storage, "a conversation cannot be written as JSON").with_source(error)
            })?;
            match self.storage.sessions().save(&id, cell.version, &body).await {
                Ok(version) => {
                    *cell = Cell { record: Arc::new(next), version: Some(version) };
                    return Ok(Some(value));
                }
                Err(error) if matches!(error.kind(), StorageErrorKind::Conflict | StorageErrorKind::Unknown) => {
                    let conversation = cell.record.conversation.clone();
                    *cell = self.load_or_new(&conversation).await?;
                    // It may have been written before the answer got lost.
                    if error.kind() == StorageErrorKind::Unknown && *cell.record == next {
                        return Ok(Some(value));
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(ChannelError::new(ChannelErrorKind::Storage, "other processes keep changing this conversation; try again"))
    }

    /// The conversations that there are, page by page.
    pub(crate) async fn list(&self, after: Option<&str>) -> Result<(Vec<String>, Option<String>), ChannelError> {
        let page = self.storage.sessions().list(&self.controller, after, 256).await?;
        Ok((page.items.into_iter().map(|id| id.key.resource.as_str().to_owned()).collect(), page.next))
    }
}

fn read(body: &RawValue) -> Result<ConversationRecord, ChannelError> {
    #[derive(Deserialize)]
    struct Version {
        schema: u32,
    }
    let corrupt = |error: serde_json::Error| {
        ChannelError::new(ChannelErrorKind::Storage, "what is stored of a conversation cannot be read; it is left as it is")
            .with_source(error)
    };
    let Version { schema } = serde_json::from_str(body.get()).map_err(corrupt)?;
    if schema > ConversationRecord::SCHEMA {
        let message =
            format!("a conversation was written by a newer version (schema {schema}, this one reads up to {})", ConversationRecord::SCHEMA);
        return Err(ChannelError::new(ChannelErrorKind::Storage, message));
    }
    serde_json::from_str(body.get()).map_err(corrupt)
}

#[cfg(test)]
mod tests;
