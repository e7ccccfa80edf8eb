use std::collections::{BTreeMap, BTreeSet};

use ac_core::{Message, MessageId, ThreadId};
use serde::Deserialize;

use super::{CHUNK, KvStorage, TRIES, remove};
use crate::{
    Expect, Kv, Scan, StorageError, StorageErrorKind, ThreadRecord, Write,
    blocks::{Block, Blocks},
    keys,
    large::Cut,
    row::{self, Mark},
};

/// Messages that are read at once.
const READ: usize = 1024;
/// A batch is closed with the row with which it has so many bytes, or so many rows.
const BYTES: usize = 4 * 1024 * 1024;
const ROWS: usize = 2048;

/// What is read of a message that is copied as it stands.
#[derive(Deserialize)]
struct Peek {
    id: MessageId,
}

/// A copy under way.
struct Target<'a> {
    thread: &'a ThreadRecord,
    /// Version of the note that the thread has rows and no head; 0 before the first batch.
    note: u64,
    /// Long texts that it has.
    texts: BTreeSet<String>,
    /// Ids and positions of what was copied, by block: all that is held of a message once its batch is written.
    index: BTreeMap<u64, Block>,
    batch: Vec<Write>,
    bytes: usize,
}

impl Target<'_> {
    fn push(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.bytes += key.len() + value.len();
        self.batch.push(Write { key, expect: Expect::Any, value: Some(value) });
    }

    fn is_full(&self) -> bool {
        self.bytes >= BYTES || self.batch.len() >= ROWS
    }

    /// What the note must be for the next batch.
    fn expect(&self) -> Expect {
        if self.note == 0 { Expect::Absent } else { Expect::Version(self.note) }
    }
}

/// A thread comes into being with its copied messages: they are written first, under a note of a thread that has rows and no head, and the
/// last batch makes the thread and takes the note away. So nobody ever sees a part of a copy, and of one that was cut off the note tells
/// that its rows are to be removed. Every batch of either writes the note, on the version that it knows: who goes on with one and who
/// removes it cannot be at it at once.
impl<K: Kv> KvStorage<K> {
    pub(super) async fn copy_thread(&self, from: &ThreadId, to: &ThreadRecord, until: Option<&MessageId>) -> Result<u64, StorageError> {
        let source = self.live_head(from).await?.value;
        let end = match until {
            None => source.head.next_position,
            Some(id) => match self.known_message(from, id, &source).await? {
                Some(stored) => stored.position,
                None => return Err(StorageError::new(StorageErrorKind::NotFound, "the thread has no message of that id to copy up to")),
            },
        };
        let id = &to.info.id;
        for _ in 0..TRIES {
            if self.read_head(id).await?.is_some() {
                return Err(self.taken(id).await?);
            }
            // Of an earlier try, or of a process that died over one.
            if let Some(note) = self.kv.get(&keys::deletion(id)).await? {
                self.drop_copy(id, note.version).await?;
            }
            let mut target = Target { thread: to, note: 0, texts: BTreeSet::new(), index: BTreeMap::new(), batch: Vec::new(), bytes: 0 };
            let failed = match self.copy_rows(from, end, &mut target).await {
                Ok(()) => return Ok(end),
                Err(error) => error,
            };
            // Somebody opened the store meanwhile and took the copy for one that was left behind, or made a thread of this id.
            if failed.kind() == StorageErrorKind::Conflict {
                continue;
            }
            if target.note > 0 {
                // If this fails too the note stays, and whoever opens the store next goes by it.
                let _left = self.drop_copy(id, target.note).await;
            }
            return Err(failed);
        }
        Err(self.conflict("the copy of the thread was taken away by others again and again"))
    }

    async fn copy_rows(&self, from: &ThreadId, end: u64, target: &mut Target<'_>) -> Result<(), StorageError> {
        let to = &target.thread.info.id.clone();
        let blocks = Blocks::of(end);
        let mut copied = 0;
        while copied < end {
            let after = copied.checked_sub(1).map(|position| keys::message(from, position));
            let limit = READ.min(usize::try_from(end - copied).unwrap_or(READ));
            let rows = self.kv.scan(Scan { prefix: keys::messages(from), after, limit, reverse: false }).await?;
            if rows.is_empty() {
                return Err(self.deleted());
            }
            for (key, stored) in rows {
                if keys::read_position(&key) != Some(copied) {
                    return Err(self.deleted());
                }
                if target.is_full() {
                    self.write_part(target).await?;
                }
                let Peek { id } = row::known::<Message, _>(&self.name, &stored)?;
                if let Some(cut) = Cut::read::<Message>(&stored.value) {
                    self.copy_texts(from, &cut, target).await?;
                }
                target.push(keys::message(to, copied), stored.value.to_vec());
                if let Some(blocks) = blocks {
                    target.index.entry(blocks.of_id(&id)).or_default().ids.push((id, copied));
                }
                copied += 1;
            }
        }
        // Each goes as soon as it is written down: what is still to be written is in memory once.
        while let Some((number, block)) = target.index.pop_first() {
            if target.is_full() {
                self.write_part(target).await?;
            }
            target.push(keys::block(to, number), row::encode::<Block>(&block)?);
        }
        let mut batch = std::mem::take(&mut target.batch);
        batch.extend(self.new_thread(target.thread, end)?);
        if target.note > 0 {
            batch.push(Write { key: keys::deletion(to), expect: target.expect(), value: None });
        }
        self.kv.write(batch).await
    }

    /// The long texts of a message, as far as the copy does not have them yet.
    async fn copy_texts(&self, from: &ThreadId, cut: &Cut, target: &mut Target<'_>) -> Result<(), StorageError> {
        for (_, hash) in &cut.large {
            if target.texts.insert(hash.clone()) {
                let Some(text) = self.kv.get(&keys::large_text(from, hash)).await? else {
                    return Err(self.lost_text::<Message>(from).await);
                };
                target.push(keys::large_text(&target.thread.info.id, hash), text.value.to_vec());
            }
        }
        Ok(())
    }

    async fn write_part(&self, target: &mut Target<'_>) -> Result<(), StorageError> {
        let key = keys::deletion(&target.thread.info.id);
        let mut batch = std::mem::take(&mut target.batch);
        batch.push(self.put::<Mark>(key, target.expect(), &Mark {})?);
        target.bytes = 0;
        // Before the outcome is known: one that cannot be told may have been written.
        target.note += 1;
        self.kv.write(batch).await
    }

    /// Removes the rows of a copy that was not finished, unless somebody else goes on with it or removes it. `note` is the version of its
    /// note.
    pub(super) async fn drop_copy(&self, id: &ThreadId, mut note: u64) -> Result<(), StorageError> {
        for prefix in [keys::messages(id), keys::positions(id), keys::blocks(id), keys::large_texts(id)] {
            loop {
                let rows = self.chunk(&prefix, None).await?;
                let last = rows.len() < CHUNK;
                let mut batch = vec![
                    self.put::<Mark>(keys::deletion(id), Expect::Version(note), &Mark {})?,
                    Write { key: keys::head(id), expect: Expect::Absent, value: None },
                ];
                batch.extend(rows.into_iter().map(|(key, _)| remove(key)));
                match self.kv.write(batch).await {
                    Err(error) if error.kind() == StorageErrorKind::Conflict => return Ok(()),
                    done => done?,
                }
                note += 1;
                if last {
                    break;
                }
            }
        }
        let gone = Write { key: keys::deletion(id), expect: Expect::Version(note), value: None };
        match self.kv.write(vec![gone]).await {
            Err(error) if error.kind() == StorageErrorKind::Conflict => Ok(()),
            done => done,
        }
    }
}
