use std::sync::Arc;

use ac_core::{Message, MessageId, OwnerId, Role, RunId, ThreadId, Timestamp};
use async_trait::async_trait;

use super::{CHUNK, KvStorage, TRIES, messages::Known, remove};
use crate::{
    Commit, CommitOutcome, Expect, Kv, Lease, Page, RunHeader, RunRecord, RunStage, RunStore, Scan, SessionId, StorageError,
    StorageErrorKind, Stored, ThreadHead, Write,
    domain::OpenRuns,
    keys,
    large::{self, Texts},
    row::{self, ClosedRun, HeadRow, RunOfThread},
};

#[async_trait]
impl<K: Kv> RunStore for KvStorage<K> {
    async fn load(&self, run: &RunId) -> Result<Option<Stored<RunRecord>>, StorageError> {
        self.read_record(run).await
    }

    async fn commit(&self, commit: Commit<'_>) -> Result<CommitOutcome, StorageError> {
        let header = &commit.record.header;
        let (run, thread) = (&header.run, &header.thread);
        let head = self.live_head(thread).await?;
        let before = self.stage_before(run).await?;
        if before.map(|(version, _)| version) != commit.expect {
            return Ok(CommitOutcome::Conflict);
        }
        let holder = head.value.head.active_run.as_ref();
        let may = match before {
            None => holder.is_none(),
            Some((_, RunStage::Closed)) => true,
            Some(_) => holder == Some(run),
        };
        if !may {
            return Ok(CommitOutcome::Conflict);
        }
        let expect = before.map_or(Expect::Absent, |(version, _)| Expect::Version(version));
        let mut texts = Texts::default();
        let mut batch = vec![];
        if matches!(before, Some((_, RunStage::Closed))) {
            if header.stage != RunStage::Closed || !commit.put.is_empty() || commit.usage.is_some() {
                return Err(self.conflict("the run is closed: it can neither be opened again nor write to its thread"));
            }
        } else {
            batch.extend(self.stage_entries(header, before.is_none())?);
            let mut new = head.value.clone();
            new.head.active_run = (header.stage != RunStage::Closed).then(|| run.clone());
            new.head.updated_at = new.head.updated_at.max(header.at);
            if let Some(usage) = commit.usage {
                new.head.usage.add(usage);
            }
            batch.extend(self.put_messages(thread, commit.put, &head.value, &mut new.head.next_position, &mut texts).await?);
            batch.extend(self.put_head(thread, &head, &new)?);
        }
        batch.push(Write { key: keys::run(run), expect, value: Some(self.cut_record(commit.record, &texts).await?) });
        batch.extend(self.put_texts(thread, texts)?);
        match self.kv.write(batch).await {
            Ok(()) => Ok(CommitOutcome::Committed { version: commit.expect.unwrap_or(0) + 1 }),
            Err(error) if error.kind() == StorageErrorKind::Conflict => Ok(CommitOutcome::Conflict),
            Err(error) if error.kind() == StorageErrorKind::Unknown => Ok(CommitOutcome::Unknown),
            Err(error) => Err(error),
        }
    }

    async fn head(&self, thread: &ThreadId) -> Result<Option<Stored<ThreadHead>>, StorageError> {
        Ok(self.read_head(thread).await?.map(|Stored { version, value }| Stored { version, value: value.head }))
    }

    async fn open(&self, query: &OpenRuns) -> Result<Page<RunHeader>, StorageError> {
        if let Some(thread) = &query.thread {
            let mut items = Vec::new();
            if let Some(run) = self.read_head(thread).await?.and_then(|head| head.value.head.active_run)
                && query.after.as_deref().is_none_or(|after| after < run.as_str())
            {
                items.extend(self.read::<RunHeader>(&keys::open_run(&run)).await?.map(|found| found.value));
            }
            items.retain(|header| query.session.as_ref().is_none_or(|session| header.session_id() == *session));
            return Ok(Page { items, next: None });
        }
        if let Some(session) = &query.session {
            return self.open_of(session, query).await;
        }
        let mut after = query.after.as_deref().map(|after| keys::open_run(&after.into()));
        let mut items: Vec<RunHeader> = Vec::new();
        loop {
            let limit = if query.limit == 0 { CHUNK } else { (query.limit - items.len()).saturating_add(1).min(CHUNK) };
            let rows = self.kv.scan(Scan { prefix: keys::open_runs(), after, limit, reverse: false }).await?;
            let more = rows.len() == limit;
            after = rows.last().map(|(key, _)| key.clone());
            for (_, stored) in rows {
                if query.limit > 0 && items.len() == query.limit {
                    return Ok(Page { next: items.last().map(|last| last.run.to_string()), items });
                }
                items.push(self.decode(&stored)?);
            }
            if !more {
                return Ok(Page { items, next: None });
            }
        }
    }

    async fn prune(&self, before: Timestamp) -> Result<u64, StorageError> {
        let (mut pruned, mut last) = (0, None);
        loop {
            let rows = self.chunk(&keys::closed_runs(), last).await?;
            last = rows.last().map(|(key, _)| key.clone());
            let mut more = rows.len() == CHUNK;
            let mut batch = Vec::new();
            for (key, stored) in rows {
                let (at, run) = keys::read_closed_run(&key).ok_or_else(|| row::corrupt_key(&self.name, "closed run"))?;
                if at >= before {
                    more = false;
                    break;
                }
                let entry: ClosedRun = self.decode(&stored)?;
                if let Some(parent) = &entry.parent
                    && self.kv.get(&keys::open_run(parent)).await?.is_some()
                {
                    continue;
                }
                batch.extend([remove(keys::run(&run)), remove(keys::run_of(&entry.thread, &run)), remove(keys::lease(&run)), remove(key)]);
                pruned += 1;
            }
            if !batch.is_empty() {
                self.kv.write(batch).await?;
            }
            if !more {
                return Ok(pruned);
            }
        }
    }

    async fn lease(&self, run: &RunId) -> Result<Option<Lease>, StorageError> {
        Ok(self.read::<Lease>(&keys::lease(run)).await?.map(|lease| lease.value))
    }

    async fn take_lease(&self, run: &RunId, lease: &Lease, now: Timestamp) -> Result<bool, StorageError> {
        for _ in 0..TRIES {
            let held = self.read::<Lease>(&keys::lease(run)).await?;
            if held.as_ref().is_some_and(|held| bars(&held.value, lease, now)) {
                return Ok(false);
            }
            let expect = held.map_or(Expect::Absent, |held| Expect::Version(held.version));
            match self.kv.write(vec![self.put::<Lease>(keys::lease(run), expect, lease)?]).await {
                Err(error) if error.kind() == StorageErrorKind::Conflict => {}
                done => return done.map(|()| true),
            }
        }
        Ok(false)
    }

    async fn release_lease(&self, run: &RunId, owner: &OwnerId, epoch: u64) -> Result<(), StorageError> {
        for _ in 0..TRIES {
            let Some(held) = self.read::<Lease>(&keys::lease(run)).await? else { return Ok(()) };
            if held.value.owner != *owner || held.value.epoch != epoch {
                return Ok(());
            }
            let release = Write { key: keys::lease(run), expect: Expect::Version(held.version), value: None };
            match self.kv.write(vec![release]).await {
                Err(error) if error.kind() == StorageErrorKind::Conflict => {}
                done => return done,
            }
        }
        Err(self.contended("lease"))
    }
}

/// Whether `held` keeps somebody from taking `wanted`. A valid lease of an older epoch bars nobody; one of a newer epoch also bars its own
/// holder, whose older driver must not push the newer one's lease aside.
fn bars(held: &Lease, wanted: &Lease, now: Timestamp) -> bool {
    held.expires > now && if held.owner == wanted.owner { held.epoch > wanted.epoch } else { held.epoch >= wanted.epoch }
}

impl<K: Kv> KvStorage<K> {
    /// Version and stage of a run. The header of an open run is a row of its own, written in every commit like the record and as often;
    /// so the record, which may be long, need not be read.
    async fn stage_before(&self, run: &RunId) -> Result<Option<(u64, RunStage)>, StorageError> {
        if let Some(open) = self.read::<RunHeader>(&keys::open_run(run)).await? {
            return Ok(Some((open.version, open.value.stage)));
        }
        Ok(self.load(run).await?.map(|found| (found.version, found.value.header.stage)))
    }

    /// Reads the entries of the session, and of each the header.
    async fn open_of(&self, session: &SessionId, query: &OpenRuns) -> Result<Page<RunHeader>, StorageError> {
        let mut after = query.after.as_deref().map(|after| keys::open_run_of(session, &after.into()));
        let mut items: Vec<RunHeader> = Vec::new();
        loop {
            let rows = self.chunk(&keys::open_runs_of(session), after).await?;
            let more = rows.len() == CHUNK;
            after = rows.last().map(|(key, _)| key.clone());
            for (key, _) in rows {
                if query.limit > 0 && items.len() == query.limit {
                    return Ok(Page { next: items.last().map(|last| last.run.to_string()), items });
                }
                let run = keys::read_open_run_of(&key).ok_or_else(|| row::corrupt_key(&self.name, "open run of session"))?;
                // One that is closed by now is no open run any more.
                items.extend(self.read::<RunHeader>(&keys::open_run(&run)).await?.map(|header| header.value));
            }
            if !more {
                return Ok(Page { items, next: None });
            }
        }
    }

    /// The index entries of a run that was not closed before.
    fn stage_entries(&self, header: &RunHeader, first: bool) -> Result<Vec<Write>, StorageError> {
        let (run, thread) = (&header.run, &header.thread);
        let entry = |closed| self.put::<RunOfThread>(keys::run_of(thread, run), Expect::Any, &RunOfThread { closed });
        if header.stage == RunStage::Closed {
            let closed = ClosedRun { thread: thread.clone(), parent: header.parent.as_ref().map(|parent| parent.run.clone()) };
            let closed = self.put::<ClosedRun>(keys::closed_run(header.at, run), Expect::Any, &closed)?;
            // Whoever holds the lease, nobody moves the run any more.
            let listed = [keys::open_run(run), keys::open_run_of(&header.session_id(), run), keys::lease(run)];
            return Ok(listed.map(remove).into_iter().chain([entry(Some(header.at))?, closed]).collect());
        }
        let mut writes = vec![self.put::<RunHeader>(keys::open_run(run), Expect::Any, header)?];
        if first {
            writes.extend([entry(None)?, self.mark(keys::open_run_of(&header.session_id(), run))?]);
        }
        Ok(writes)
    }

    /// The writes that put these messages; `head` is what the thread has, `next` is the next free position and moves on.
    async fn put_messages(
        &self,
        thread: &ThreadId,
        put: &[Arc<Message>],
        head: &HeadRow,
        next: &mut u64,
        texts: &mut Texts,
    ) -> Result<Vec<Write>, StorageError> {
        let mut placed: Vec<(&MessageId, u64, &Arc<Message>)> = Vec::with_capacity(put.len());
        let mut writes = Vec::with_capacity(put.len() * 2);
        for message in put {
            let here = placed.iter().position(|(id, ..)| **id == message.id);
            let json = row::text::<Message>(&**message)?;
            let (cut, cut_out) = large::cut(&json, |_| true);
            let known = match here.and_then(|at| placed.get(at)) {
                Some((_, position, earlier)) => {
                    Some(Known { position: *position, role: earlier.role, same: ***earlier == **message, cut: None })
                }
                None => self.known(thread, message, &cut, head).await?,
            };
            let known = match known {
                Some(known) if known.same => {
                    known.cut.iter().for_each(|stored| texts.know(stored));
                    continue;
                }
                Some(known) if known.role != Role::Assistant || message.role != Role::Assistant => return Err(self.other_words()),
                known => known,
            };
            known.iter().filter_map(|known| known.cut.as_ref()).for_each(|stored| texts.know(stored));
            texts.take(cut_out);
            let position = match known {
                None => {
                    writes.extend(self.insert(thread, message, &cut, *next)?);
                    *next += 1;
                    *next - 1
                }
                Some(known) => {
                    let write = self.put_message(thread, &cut, known.position);
                    writes.retain(|earlier: &Write| earlier.key != write.key);
                    writes.push(write);
                    known.position
                }
            };
            match here.and_then(|at| placed.get_mut(at)) {
                Some(place) => place.2 = message,
                None => placed.push((&message.id, position, message)),
            }
        }
        Ok(writes)
    }
}

#[cfg(test)]
mod tests;
