use std::{cmp::Reverse, collections::BTreeSet};

use ac_core::{ResourceId, ThreadId, Timestamp};
use async_trait::async_trait;

use super::{CHUNK, KvStorage, TRIES, remove};
use crate::{
    Expect, Kv, Page, RunHeader, Scan, StorageError, StorageErrorKind, Stored, ThreadHead, ThreadRecord, ThreadStore, Write,
    blocks::Blocks,
    domain::ThreadQuery,
    keys::{self, Follows},
    row::{self, HeadRow, RunOfThread},
};

#[async_trait]
impl<K: Kv> ThreadStore for KvStorage<K> {
    async fn create(&self, thread: &ThreadRecord) -> Result<(), StorageError> {
        match self.kv.write(self.new_thread(thread, 0)?).await {
            Err(error) if error.kind() == StorageErrorKind::Conflict => Err(self.taken(&thread.info.id).await?),
            done => done,
        }
    }

    async fn get(&self, id: &ThreadId) -> Result<Option<Stored<ThreadRecord>>, StorageError> {
        Ok(self.read_thread(id).await?.map(|found| found.shown))
    }

    async fn update(&self, thread: &ThreadRecord, expect: u64) -> Result<(), StorageError> {
        let id = &thread.info.id;
        let head = match self.live_head(id).await {
            Err(error) if error.kind() == StorageErrorKind::Deleted => return Err(self.no_thread()),
            head => head?,
        };
        let Some(old) = self.read::<ThreadRecord>(&keys::thread(id)).await? else { return Err(self.no_thread()) };
        let stale = || self.conflict("the thread was changed by somebody else");
        if old.version != expect {
            return Err(stale());
        }
        let mut batch = vec![self.put::<ThreadRecord>(keys::thread(id), Expect::Version(expect), thread)?];
        let (was, is) = (row_entry(&old.value), row_entry(thread));
        if was != is {
            batch.extend(was.map(remove));
            if let Some(is) = is {
                batch.push(self.mark(is)?);
            }
        }
        if head.value.resource != listed_in(thread) {
            batch.extend(self.put_head(id, &head, &HeadRow { resource: listed_in(thread), ..head.value.clone() })?);
        }
        if old.value.parent != thread.parent {
            batch.extend(old.value.parent.iter().map(|parent| remove(keys::child(&parent.run, id))));
            if let Some(parent) = &thread.parent {
                let key = keys::child(&parent.run, id);
                batch.retain(|write| write.key != key);
                batch.push(self.mark(key)?);
            }
        }
        match self.kv.write(batch).await {
            Err(error) if error.kind() == StorageErrorKind::Conflict => Err(stale()),
            done => done,
        }
    }

    async fn list(&self, query: &ThreadQuery) -> Result<Page<ThreadRecord>, StorageError> {
        let after = query.after.as_deref().map(read_cursor).transpose()?;
        match &query.resource {
            Some(resource) => self.list_of(resource, query, after).await,
            None => self.list_all(query, after).await,
        }
    }

    async fn delete(&self, id: &ThreadId) -> Result<(), StorageError> {
        match self.bury(id, false).await? {
            true => self.clear(id).await,
            false => Ok(()),
        }
    }
}

/// A thread, and when its two rows were written.
struct Found {
    shown: Stored<ThreadRecord>,
    row_at: Timestamp,
    head_at: Timestamp,
}

impl<K: Kv> KvStorage<K> {
    /// The writes that make a thread with so many messages, where there is none of its id. The index of their ids is in blocks.
    pub(super) fn new_thread(&self, thread: &ThreadRecord, messages: u64) -> Result<Vec<Write>, StorageError> {
        let info = &thread.info;
        let head = ThreadHead { updated_at: info.updated_at, next_position: messages, ..ThreadHead::default() };
        let head = HeadRow { head, resource: listed_in(thread), blocks: Blocks::of(messages) };
        let mut batch = vec![
            self.put::<ThreadRecord>(keys::thread(&info.id), Expect::Absent, thread)?,
            self.put::<HeadRow>(keys::head(&info.id), Expect::Absent, &head)?,
        ];
        if let Some(resource) = &head.resource {
            for follows in [Follows::Head, Follows::Row] {
                batch.push(self.mark(keys::recency(resource, info.updated_at, &info.id, follows))?);
            }
        }
        if let Some(parent) = &thread.parent {
            batch.push(self.mark(keys::child(&parent.run, &info.id))?);
        }
        Ok(batch)
    }

    /// Why no thread of this id can be made.
    pub(super) async fn taken(&self, id: &ThreadId) -> Result<StorageError, StorageError> {
        Ok(match self.read_head(id).await? {
            Some(head) if head.value.head.deleted => self.deleted(),
            _ => StorageError::new(StorageErrorKind::Exists, "a thread with this id exists already; choose another id"),
        })
    }

    async fn read_thread(&self, id: &ThreadId) -> Result<Option<Found>, StorageError> {
        let Some(mut shown) = self.read::<ThreadRecord>(&keys::thread(id)).await? else { return Ok(None) };
        let Some(head) = self.read_head(id).await? else { return Ok(None) };
        if head.value.head.deleted {
            return Ok(None);
        }
        let (row_at, head_at) = (shown.value.info.updated_at, head.value.head.updated_at);
        shown.value.info.updated_at = row_at.max(head_at);
        Ok(Some(Found { shown, row_at, head_at }))
    }

    /// Reads as many entries of the resource's list as the page needs.
    async fn list_of(
        &self,
        resource: &ResourceId,
        query: &ThreadQuery,
        after: Option<(Timestamp, ThreadId)>,
    ) -> Result<Page<ThreadRecord>, StorageError> {
        let prefix = keys::recency_of(resource);
        let mut after = after.map(|(at, thread)| keys::recency_after(resource, at, &thread));
        let mut items: Vec<ThreadRecord> = Vec::new();
        let mut seen = BTreeSet::new();
        loop {
            // A thread has up to two entries, and one more item tells whether there is another page.
            let limit = if query.limit == 0 { CHUNK } else { (query.limit - items.len()).saturating_add(1).saturating_mul(2).min(CHUNK) };
            let entries = self.kv.scan(Scan { prefix: prefix.clone(), after, limit, reverse: false }).await?;
            let last = entries.len() < limit;
            after = entries.last().map(|(key, _)| key.clone());
            for (key, _) in entries {
                let (at, id, follows) = keys::read_recency(&key).ok_or_else(|| row::corrupt_key(&self.name, "thread list"))?;
                let Some(found) = self.read_thread(&id).await? else { continue };
                let (now_at, latest) = match follows {
                    Follows::Head => (found.head_at, found.head_at >= found.row_at),
                    Follows::Row => (found.row_at, found.row_at > found.head_at),
                };
                // An entry that moved on between the scan and the look is shown where it was, lest the thread be missed.
                let shown = if now_at == at { latest } else { true };
                let thread = found.shown.value;
                if !shown || thread.info.resource != *resource || !fits(&thread, query) || !seen.insert(id) {
                    continue;
                }
                if query.limit > 0 && items.len() == query.limit {
                    return Ok(Page { next: items.last().map(cursor), items });
                }
                items.push(thread);
            }
            if last {
                return Ok(Page { items, next: None });
            }
        }
    }

    /// Reads every thread of the store, for each page.
    async fn list_all(&self, query: &ThreadQuery, after: Option<(Timestamp, ThreadId)>) -> Result<Page<ThreadRecord>, StorageError> {
        let order = |at: Timestamp, id: &ThreadId| (Reverse(at), id.clone());
        let after = after.map(|(at, id)| order(at, &id));
        let mut items = Vec::new();
        let mut last = None;
        loop {
            let rows = self.chunk(&keys::threads(), last).await?;
            last = rows.last().map(|(key, _)| key.clone());
            let more = rows.len() == CHUNK;
            for (key, _) in rows {
                let id = keys::read_id(&keys::threads(), &key).ok_or_else(|| row::corrupt_key(&self.name, "thread"))?;
                let Some(found) = self.read_thread(&id.into()).await? else { continue };
                let thread = found.shown.value;
                let place = order(thread.info.updated_at, &thread.info.id);
                if fits(&thread, query) && after.as_ref().is_none_or(|after| place > *after) {
                    items.push((place, thread));
                }
            }
            if !more {
                break;
            }
        }
        items.sort_by(|(a, _), (b, _)| a.cmp(b));
        let more = query.limit > 0 && items.len() > query.limit;
        if more {
            items.truncate(query.limit);
        }
        let items: Vec<_> = items.into_iter().map(|(_, thread)| thread).collect();
        Ok(Page { next: items.last().filter(|_| more).map(cursor), items })
    }

    /// Writes the tombstone, and the note that rows are left to remove. Returns whether any are.
    async fn bury(&self, id: &ThreadId, orphan: bool) -> Result<bool, StorageError> {
        for _ in 0..TRIES {
            let Some(head) = self.read_head(id).await? else { return Ok(false) };
            if head.value.head.deleted {
                return Ok(self.kv.get(&keys::deletion(id)).await?.is_some());
            }
            if head.value.head.active_run.is_some() && !orphan {
                return Err(self.conflict("a run holds the thread; abort it and wait for its end first"));
            }
            let tomb = ThreadHead { deleted: true, updated_at: head.value.head.updated_at, ..ThreadHead::default() };
            let mut batch = self.put_head(id, &head, &HeadRow { head: tomb, resource: None, blocks: None })?;
            batch.push(self.mark(keys::deletion(id))?);
            match self.kv.write(batch).await {
                Err(error) if error.kind() == StorageErrorKind::Conflict => {}
                done => return done.map(|()| true),
            }
        }
        Err(self.contended("head"))
    }

    /// Removes what belongs to a buried thread: first what its runs' children have, last the note that there is something to remove.
    async fn clear(&self, id: &ThreadId) -> Result<(), StorageError> {
        let mut family = vec![id.clone()];
        let mut next = 0;
        while let Some(thread) = family.get(next).cloned() {
            next += 1;
            for run in self.runs_of(&thread).await? {
                let prefix = keys::children(&run);
                let mut last = None;
                loop {
                    let rows = self.chunk(&prefix, last).await?;
                    last = rows.last().map(|(key, _)| key.clone());
                    let more = rows.len() == CHUNK;
                    for (key, _) in rows {
                        let child: ThreadId =
                            keys::read_id(&prefix, &key).ok_or_else(|| row::corrupt_key(&self.name, "child thread"))?.into();
                        // Its parent is over, so nobody waits for what a run on it may still do.
                        if !family.contains(&child) {
                            self.bury(&child, true).await?;
                            family.push(child);
                        }
                    }
                    if !more {
                        break;
                    }
                }
            }
        }
        for thread in family.iter().rev() {
            self.clear_one(thread).await?;
        }
        Ok(())
    }

    async fn runs_of(&self, thread: &ThreadId) -> Result<Vec<ac_core::RunId>, StorageError> {
        let prefix = keys::runs_of(thread);
        let (mut runs, mut last) = (Vec::new(), None);
        loop {
            let rows = self.chunk(&prefix, last).await?;
            last = rows.last().map(|(key, _)| key.clone());
            let more = rows.len() == CHUNK;
            for (key, _) in rows {
                runs.push(keys::read_id(&prefix, &key).ok_or_else(|| row::corrupt_key(&self.name, "run of thread"))?.into());
            }
            if !more {
                return Ok(runs);
            }
        }
    }

    async fn clear_one(&self, id: &ThreadId) -> Result<(), StorageError> {
        for prefix in [keys::messages(id), keys::positions(id), keys::blocks(id), keys::states(id)] {
            self.clear_prefix(&prefix).await?;
        }
        let prefix = keys::runs_of(id);
        loop {
            let rows = self.chunk(&prefix, None).await?;
            if rows.is_empty() {
                break;
            }
            let mut batch = Vec::new();
            for (key, stored) in rows {
                let run = keys::read_id(&prefix, &key).ok_or_else(|| row::corrupt_key(&self.name, "run of thread"))?.into();
                let closed = self.decode::<RunOfThread>(&stored)?.closed;
                batch.extend(closed.map(|at| remove(keys::closed_run(at, &run))));
                if let Some(open) = self.read::<RunHeader>(&keys::open_run(&run)).await? {
                    batch.push(remove(keys::open_run_of(&open.value.session_id(), &run)));
                }
                batch.extend([remove(keys::run(&run)), remove(keys::open_run(&run)), remove(keys::lease(&run)), remove(key)]);
            }
            self.kv.write(batch).await?;
        }
        // After everything that refers to them.
        self.clear_prefix(&keys::large_texts(id)).await?;
        let mut batch = vec![remove(keys::thread(id)), remove(keys::deletion(id))];
        if let Some(row) = self.read::<ThreadRecord>(&keys::thread(id)).await? {
            batch.extend(row_entry(&row.value).map(remove));
            batch.extend(row.value.parent.iter().map(|parent| remove(keys::child(&parent.run, id))));
        }
        self.kv.write(batch).await
    }

    async fn clear_prefix(&self, prefix: &[u8]) -> Result<(), StorageError> {
        loop {
            let rows = self.chunk(prefix, None).await?;
            if rows.is_empty() {
                return Ok(());
            }
            self.kv.write(rows.into_iter().map(|(key, _)| remove(key)).collect()).await?;
        }
    }

    /// Goes on with deletions that a process did not live to finish, and removes the rows of copies that it did not.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn finish_deletions(&self) -> Result<u64, StorageError> {
        let prefix = keys::deletions();
        let mut finished = 0;
        loop {
            let rows = self.chunk(&prefix, None).await?;
            if rows.is_empty() {
                return Ok(finished);
            }
            for (key, note) in rows {
                let thread = keys::read_id(&prefix, &key).ok_or_else(|| row::corrupt_key(&self.name, "deletion"))?.into();
                match self.read_head(&thread).await? {
                    Some(head) if head.value.head.deleted => self.clear(&thread).await?,
                    // A copy that was not finished.
                    None => self.drop_copy(&thread, note.version).await?,
                    // A thread was made in the place of such a copy. What was copied lies beyond its messages.
                    Some(_) => self.kv.write(vec![remove(key)]).await?,
                }
                finished += 1;
            }
        }
    }
}

/// In whose list a thread is.
fn listed_in(thread: &ThreadRecord) -> Option<ResourceId> {
    thread.parent.is_none().then(|| thread.info.resource.clone())
}

/// The entry that follows the thread's row.
fn row_entry(thread: &ThreadRecord) -> Option<Vec<u8>> {
    listed_in(thread).map(|resource| keys::recency(&resource, thread.info.updated_at, &thread.info.id, Follows::Row))
}

fn fits(thread: &ThreadRecord, query: &ThreadQuery) -> bool {
    thread.parent.is_none()
        && (query.hidden || !thread.hidden)
        && query.metadata.iter().all(|(name, value)| thread.info.metadata.get(name) == Some(value))
}

fn cursor(thread: &ThreadRecord) -> String {
    format!("{}.{}", thread.info.updated_at.as_millis(), thread.info.id)
}

fn read_cursor(text: &str) -> Result<(Timestamp, ThreadId), StorageError> {
    text.split_once('.')
        .and_then(|(at, id)| Some((Timestamp::from_millis(at.parse().ok()?), id.into())))
        .ok_or_else(|| StorageError::new(StorageErrorKind::NotFound, "no page of threads begins there; use the `next` of a page as it is"))
}
