//! The index of ids: a message has an entry of its own, or one in the block that its id falls into, and each entry has its message.

use ac_core::{Message, MessageId, ThreadId};

use super::{End, Found, Seen};
use crate::{
    Kv, KvStorage, StorageError, StorageErrorKind, Versioned, Write,
    blocks::Block,
    keys,
    row::{self, Position},
};

impl<K: Kv> KvStorage<K> {
    /// Whether a message is found by its id. What is not gets an entry of its own, wherever the entry was that is lost.
    pub(super) async fn check_indexed(
        &self,
        thread: &ThreadId,
        id: &MessageId,
        position: u64,
        end: &End,
    ) -> Result<Option<Found>, StorageError> {
        let entry = keys::position(thread, id);
        let own = self.kv().get(&entry).await?.map(|entry| self.row::<Position>(&entry)).transpose();
        let known = match own {
            Ok(Some(own)) if own.position == position => true,
            // One that leads to another message does not hide the block, one that does not read does.
            Ok(_) => self.block_position(thread, id, end).await? == Some(position),
            Err(_) => false,
        };
        if known {
            return Ok(None);
        }
        Ok(Some(("the message is missing in the index of ids", vec![self.entry(entry, &Position { position })?])))
    }

    async fn block_position(&self, thread: &ThreadId, id: &MessageId, end: &End) -> Result<Option<u64>, StorageError> {
        let Some(blocks) = end.blocks else { return Ok(None) };
        let block = self.kv().get(&keys::block(thread, blocks.of_id(id))).await?;
        Ok(block.and_then(|block| self.row::<Block>(&block).ok()?.position(id)))
    }

    /// An entry of a message's own.
    pub(super) async fn check_position(&self, key: &[u8], stored: &Versioned, gone: Write) -> Result<Option<Found>, StorageError> {
        let Position { position } = self.row(stored)?;
        let (thread, id) = keys::read_position_of(key).ok_or_else(|| row::corrupt_key(self.name(), "message position"))?;
        Ok((!self.stands_at(&thread, &id, position).await?).then(|| ("the index of ids names a message that is not there", vec![gone])))
    }

    /// A block of a copied thread. What is in it can be told from the messages, so one that does not read goes: its messages get entries of
    /// their own.
    pub(super) async fn check_block(
        &self,
        key: &[u8],
        stored: &Versioned,
        seen: &Seen,
        gone: Write,
    ) -> Result<Option<Found>, StorageError> {
        let (thread, number) = keys::read_block(key).ok_or_else(|| row::corrupt_key(self.name(), "message positions"))?;
        let end = match seen.ends.get(&thread) {
            Some(Some(end)) => end,
            Some(None) => {
                return Ok(Some(("the block of the index of ids is of a deleted thread, or of a copy that was not finished", vec![gone])));
            }
            // A head that does not read is told where it stands, and may be one of a newer program.
            None if self.kv().get(&keys::head(&thread)).await?.is_some() => return Ok(None),
            None => return Ok(Some(("the block of the index of ids has no head", vec![gone]))),
        };
        let Some(blocks) = end.blocks.filter(|blocks| number < blocks.count()) else {
            return Ok(Some(("the thread has no such block in its index of ids", vec![gone])));
        };
        let Block { ids } = match self.row(stored) {
            Err(error) if error.kind() == StorageErrorKind::Corrupt => {
                return Ok(Some(("the block of the index of ids does not read", vec![gone])));
            }
            block => block?,
        };
        let (listed, mut kept) = (ids.len(), Vec::with_capacity(ids.len()));
        for (id, position) in ids {
            if blocks.of_id(&id) == number && position < end.messages && self.stands_at(&thread, &id, position).await? {
                kept.push((id, position));
            }
        }
        if kept.len() == listed && listed > 0 {
            return Ok(None);
        }
        let mend = if kept.is_empty() { gone } else { Write { expect: gone.expect, ..self.entry(key.to_vec(), &Block { ids: kept })? } };
        Ok(Some(("a block of the index of ids names a message that is not there", vec![mend])))
    }

    async fn stands_at(&self, thread: &ThreadId, id: &MessageId, position: u64) -> Result<bool, StorageError> {
        let stored = self.kv().get(&keys::message(thread, position)).await?;
        Ok(stored.is_some_and(|stored| self.row::<Message>(&stored).is_ok_and(|message| message.id == *id)))
    }
}

#[cfg(test)]
mod tests;
