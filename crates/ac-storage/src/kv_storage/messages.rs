use std::sync::Arc;

use ac_core::{Message, MessageId, Role, ThreadId};
use async_trait::async_trait;
use serde::Deserialize;

use super::{CHUNK, KvStorage};
use crate::{
    Expect, Kv, MessageStore, Page, Scan, StorageError, StorageErrorKind, ThreadRecord, Versioned, Write,
    blocks::Block,
    domain::MessageQuery,
    keys,
    large::{Cut, Texts},
    record::{MessageCursor, StoredMessage},
    row::{self, HeadRow, Position},
};

#[async_trait]
impl<K: Kv> MessageStore for KvStorage<K> {
    async fn put(&self, thread: &ThreadId, message: &Message, expect: u64) -> Result<(), StorageError> {
        let head = self.live_head(thread).await?;
        let mut texts = Texts::default();
        let cut = self.cut_message(message, &mut texts)?;
        if let Some(known) = self.known(thread, message, &cut, &head.value).await? {
            return if known.same { Ok(()) } else { Err(self.other_words()) };
        }
        if head.value.head.active_run.is_some() {
            return Err(self.conflict("a run holds the thread; give the message to the run"));
        }
        let stale = || self.conflict("the thread was written to by somebody else");
        if head.version != expect {
            return Err(stale());
        }
        let mut new = head.value.clone();
        let position = new.head.next_position;
        new.head.next_position += 1;
        new.head.updated_at = new.head.updated_at.max(message.at);
        let mut batch = self.put_head(thread, &head, &new)?;
        batch.extend(self.insert(thread, message, &cut, position)?);
        batch.extend(self.put_texts(thread, texts)?);
        match self.kv.write(batch).await {
            Err(error) if error.kind() == StorageErrorKind::Conflict => Err(stale()),
            done => done,
        }
    }

    async fn page(&self, thread: &ThreadId, query: &MessageQuery) -> Result<Page<StoredMessage>, StorageError> {
        let nothing = Page { items: Vec::new(), next: None };
        let Some(head) = self.read_head(thread).await?.filter(|head| !head.value.head.deleted) else { return Ok(nothing) };
        let end = head.value.head.next_position;
        let after = match &query.after {
            None => query.newest_first.then_some(end),
            Some(MessageCursor::Position(position)) => Some(*position),
            Some(MessageCursor::Message(id)) => match self.known_message(thread, id, &head.value).await? {
                Some(stored) => Some(stored.position),
                None => return Err(StorageError::new(StorageErrorKind::NotFound, "the thread has no message of the cursor's id")),
            },
        };
        let mut after = after.map(|position| if query.newest_first { position.min(end) } else { position });
        let mut items: Vec<StoredMessage> = Vec::new();
        loop {
            let limit = if query.limit == 0 { CHUNK } else { (query.limit - items.len()).min(CHUNK) };
            let scan = Scan {
                prefix: keys::messages(thread),
                after: after.map(|position| keys::message(thread, position)),
                limit,
                reverse: query.newest_first,
            };
            let rows = self.kv.scan(scan).await?;
            let mut more = rows.len() == limit;
            for (key, stored) in rows {
                let position = keys::read_position(&key).ok_or_else(|| row::corrupt_key(&self.name, "message"))?;
                after = Some(position);
                // Rows beyond the head are no messages yet: a copy is under way, or a process died over one.
                if position >= end {
                    more = false;
                    break;
                }
                match self.decode_cut(thread, &stored).await {
                    Err(error) if error.kind() == StorageErrorKind::Deleted => return Ok(nothing),
                    message => items.push(StoredMessage { position, message: Arc::new(message?) }),
                }
            }
            if !more {
                return Ok(Page { items, next: None });
            }
            if query.limit > 0 && items.len() == query.limit {
                let next = items.last().map(|last| last.position).filter(|last| {
                    // Positions have no gaps, so the last one is known without another look.
                    if query.newest_first { *last > 0 } else { last + 1 < end }
                });
                return Ok(Page { items, next: next.map(|position| position.to_string()) });
            }
        }
    }

    async fn get(&self, thread: &ThreadId, id: &MessageId) -> Result<Option<StoredMessage>, StorageError> {
        match self.read_head(thread).await? {
            Some(head) if !head.value.head.deleted => self.known_message(thread, id, &head.value).await,
            _ => Ok(None),
        }
    }

    async fn copy(&self, from: &ThreadId, to: &ThreadRecord, until: Option<&MessageId>) -> Result<u64, StorageError> {
        self.copy_thread(from, to, until).await
    }
}

/// A message that is stored, as far as who puts one of the same id must know it.
pub(super) struct Known {
    pub(super) position: u64,
    pub(super) role: Role,
    /// It is the one that is put.
    pub(super) same: bool,
    /// Without its long texts.
    pub(super) cut: Option<Cut>,
}

/// What is read of a message without its long texts.
#[derive(Deserialize)]
struct Peek {
    id: MessageId,
    role: Role,
}

impl<K: Kv> KvStorage<K> {
    /// Position and row of the message of this id. It has an entry of its own, or one in a block if it came with a copy.
    async fn known_row(&self, thread: &ThreadId, id: &MessageId, head: &HeadRow) -> Result<Option<(u64, Versioned, Role)>, StorageError> {
        if let Some(index) = self.read::<Position>(&keys::position(thread, id)).await?
            && let Some(known) = self.row_at(thread, id, index.value.position, head).await?
        {
            return Ok(Some(known));
        }
        let Some(blocks) = head.blocks else { return Ok(None) };
        let block = self.read::<Block>(&keys::block(thread, blocks.of_id(id))).await?;
        match block.and_then(|block| block.value.position(id)) {
            Some(position) => self.row_at(thread, id, position, head).await,
            None => Ok(None),
        }
    }

    /// The message of this id, if it stands at this position and before the head's next one. Index entries of a copy that was never
    /// finished do not count.
    async fn row_at(
        &self,
        thread: &ThreadId,
        id: &MessageId,
        position: u64,
        head: &HeadRow,
    ) -> Result<Option<(u64, Versioned, Role)>, StorageError> {
        if position >= head.head.next_position {
            return Ok(None);
        }
        let Some(stored) = self.kv.get(&keys::message(thread, position)).await? else { return Ok(None) };
        let peek: Peek = row::peek::<Message, _>(&self.name, &stored)?;
        Ok((peek.id == *id).then_some((position, stored, peek.role)))
    }

    pub(super) async fn known_message(
        &self,
        thread: &ThreadId,
        id: &MessageId,
        head: &HeadRow,
    ) -> Result<Option<StoredMessage>, StorageError> {
        let Some((position, stored, _)) = self.known_row(thread, id, head).await? else { return Ok(None) };
        match self.decode_cut(thread, &stored).await {
            Err(error) if error.kind() == StorageErrorKind::Deleted => Ok(None),
            message => Ok(Some(StoredMessage { position, message: Arc::new(message?) })),
        }
    }

    /// What is stored under the id of a message that is to be put. Its long texts are compared by their hashes.
    pub(super) async fn known(
        &self,
        thread: &ThreadId,
        message: &Message,
        cut: &Cut,
        head: &HeadRow,
    ) -> Result<Option<Known>, StorageError> {
        let Some((position, stored, role)) = self.known_row(thread, &message.id, head).await? else { return Ok(None) };
        let same = *stored.value == *cut.encode::<Message>()
            // One that an older version wrote, or another form of the same.
            || (Cut::read::<Message>(&stored.value).is_none() && self.decode::<Message>(&stored)? == *message);
        Ok(Some(Known { position, role, same, cut: Cut::read::<Message>(&stored.value) }))
    }

    /// The writes of a new message. They expect nothing: the head, which is always in the same batch, guards the position.
    pub(super) fn insert(&self, thread: &ThreadId, message: &Message, cut: &Cut, position: u64) -> Result<[Write; 2], StorageError> {
        Ok([
            self.put_message(thread, cut, position),
            self.put::<Position>(keys::position(thread, &message.id), Expect::Any, &Position { position })?,
        ])
    }

    #[expect(clippy::unused_self, reason = "reads as its neighbours do")]
    pub(super) fn put_message(&self, thread: &ThreadId, cut: &Cut, position: u64) -> Write {
        Write { key: keys::message(thread, position), expect: Expect::Any, value: Some(cut.encode::<Message>()) }
    }

    pub(super) fn other_words(&self) -> StorageError {
        StorageError::new(StorageErrorKind::Exists, "a message of this id is stored already with other words; messages are not rewritten")
    }
}
