//! Whether a store is what it should be, and mending what can be derived.

mod index;

use std::collections::BTreeMap;

use ac_core::{Message, ThreadId};

use crate::{
    Expect, Kv, KvStorage, Lease, RunHeader, RunRecord, RunStage, Scan, StorageError, StorageErrorKind, ThreadRecord, Versioned, Write,
    blocks::Blocks,
    keys::{self, Follows},
    large::{self, Cut},
    row::{self, ClosedRun, HeadRow, LargeText, Mark, Row, RunOfThread, SessionRow, StateRow},
    transfer::escape,
};

/// Rows read at once.
const CHUNK: usize = 256;
/// How often a repair looks again.
const PASSES: usize = 4;

/// What [`KvStorage::verify`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Rows that were looked at.
    pub rows: u64,
    /// What is wrong, in the order of keys. Empty is good.
    pub problems: Vec<Problem>,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Something that is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Its key, bytes that are no plain ASCII as `%XX`.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// Whether [`KvStorage::repair`] mends it. What cannot be derived from other rows is left as it is.
    pub mendable: bool,
}

/// A problem and the writes that mend it.
struct Finding {
    key: Vec<u8>,
    what: String,
    mend: Vec<Write>,
}

impl<K: Kv> KvStorage<K> {
    /// Reads every row and compares each with those that belong to it: messages with their index and the head, open and closed runs with
    /// their records, lists with threads. Changes nothing. The store should be at rest: what changes meanwhile may look wrong.
    ///
    /// # Errors
    /// When the store does not answer. Rows that are corrupt or of a newer program are problems, not errors.
    pub async fn verify(&self) -> Result<VerifyReport, StorageError> {
        let (rows, findings) = self.inspect().await?;
        let problem = |Finding { key, what, mend }| Problem { key: escape(&key), what, mendable: !mend.is_empty() };
        Ok(VerifyReport { rows, problems: findings.into_iter().map(problem).collect() })
    }

    /// Mends what [`KvStorage::verify`] finds and other rows tell how to: index entries that are missing or left over, deletions that were
    /// not finished. Never touches a row that cannot be read, but for those of the index of ids, all of which can be told from the messages.
    /// Returns what is left.
    ///
    /// # Errors
    /// As [`KvStorage::verify`], and [`Full`](StorageErrorKind::Full).
    pub async fn repair(&self) -> Result<VerifyReport, StorageError> {
        self.finish_deletions().await?;
        // Mending one row may lay open another: the index entry of a message that was removed.
        for _ in 0..PASSES {
            let mends: Vec<_> = self.inspect().await?.1.into_iter().map(|finding| finding.mend).filter(|mend| !mend.is_empty()).collect();
            if mends.is_empty() {
                break;
            }
            for mend in mends {
                self.kv().write(mend).await?;
            }
        }
        self.verify().await
    }

    async fn inspect(&self) -> Result<(u64, Vec<Finding>), StorageError> {
        let (mut rows, mut findings, mut after) = (0, Vec::new(), None);
        let mut seen = Seen::default();
        loop {
            let chunk = match self.kv().scan(Scan { after: after.clone(), limit: CHUNK, ..Scan::default() }).await {
                // One value that cannot be read fails the scan: find it by reading one at a time.
                Err(error) if error.kind() == StorageErrorKind::Corrupt => {
                    self.kv().scan(Scan { after: after.clone(), limit: 1, ..Scan::default() }).await
                }
                chunk => chunk,
            };
            let chunk = match chunk {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == StorageErrorKind::Corrupt => {
                    let what = format!("what follows cannot be read: {error}");
                    findings.push(Finding { key: after.unwrap_or_default(), what, mend: Vec::new() });
                    return Ok((rows, findings));
                }
                Err(error) => return Err(error),
            };
            let Some((last, _)) = chunk.last() else { break };
            after = Some(last.clone());
            for (key, stored) in &chunk {
                rows += 1;
                match self.check(key, stored, &mut seen).await {
                    Ok(None) => {}
                    Ok(Some((what, mend))) => findings.push(Finding { key: key.clone(), what: what.to_owned(), mend }),
                    Err(error) if matches!(error.kind(), StorageErrorKind::Corrupt | StorageErrorKind::NewerSchema) => {
                        findings.push(Finding { key: key.clone(), what: error.to_string(), mend: Vec::new() });
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        for (thread, counts) in seen.ends {
            if let Some(End { messages: expected, found, .. }) = counts
                && expected != found
            {
                let what = format!("the head counts {expected} messages, {found} are there");
                findings.push(Finding { key: keys::head(&thread), what, mend: Vec::new() });
            }
        }
        // While anything is lost, what nothing refers to may be what is left of it.
        let lost = findings.iter().any(|finding| finding.mend.is_empty());
        for (key, (gone, _)) in seen.texts.into_iter().filter(|(_, (_, used))| !used) {
            let mend = if lost { Vec::new() } else { vec![gone] };
            findings.push(Finding { key, what: "no message has the long text".to_owned(), mend });
        }
        Ok((rows, findings))
    }

    /// What is wrong with a row, and what mends it.
    async fn check(&self, key: &[u8], stored: &Versioned, seen: &mut Seen) -> Result<Option<Found>, StorageError> {
        let gone = || Write { key: key.to_vec(), expect: Expect::Version(stored.version), value: None };
        let found = match key.get(..2) {
            Some(b"t/") => self.check_thread(&self.row(stored)?).await?,
            Some(b"h/") => {
                let HeadRow { head, resource, blocks } = self.row(stored)?;
                let thread = self.id(b"h/", key)?;
                seen.ends.insert(thread.clone(), (!head.deleted).then_some(End { messages: head.next_position, found: 0, blocks }));
                if head.deleted {
                    return Ok(None);
                }
                let entry = resource.map(|resource| keys::recency(&resource, head.updated_at, &thread, Follows::Head));
                match &head.active_run {
                    _ if self.kv().get(&keys::thread(&thread)).await?.is_none() => Some(("the head has no thread", Vec::new())),
                    Some(run) if self.kv().get(&keys::open_run(run)).await?.is_none() => {
                        Some(("a run holds the thread that is not open", Vec::new()))
                    }
                    _ => self.missing(entry, "the thread is missing in the list of its resource").await?,
                }
            }
            Some(b"m/") => {
                let (thread, position) = keys::read_message(key).ok_or_else(|| row::corrupt_key(self.name(), "message"))?;
                seen.refers::<Message>(&thread, stored);
                let message: Message = self.decode_cut(&thread, stored).await.map_err(|error| self.as_damage(error))?;
                match seen.ends.get_mut(&thread) {
                    None => Some(("the message has no head", Vec::new())),
                    Some(None) => Some(("the message is of a deleted thread, or of a copy that was not finished", vec![gone()])),
                    Some(Some(end)) if position >= end.messages => Some(("the message was never finished", vec![gone()])),
                    Some(Some(end)) => {
                        end.found += 1;
                        self.check_indexed(&thread, &message.id, position, end).await?
                    }
                }
            }
            Some(b"n/") => self.check_position(key, stored, gone()).await?,
            Some(b"i/") => self.check_block(key, stored, seen, gone()).await?,
            Some(b"b/") => {
                let LargeText(text) = self.row(stored)?;
                let (_, hash) = keys::read_large_text(key).ok_or_else(|| row::corrupt_key(self.name(), "large text"))?;
                if large::hash(text.get()) == hash {
                    seen.texts.insert(key.to_vec(), (gone(), false));
                    None
                } else {
                    Some(("the long text is not the one that its key names", Vec::new()))
                }
            }
            Some(b"r/") => {
                let run = self.decode_record(stored).await.map_err(|error| self.as_damage(error))?;
                seen.refers::<RunRecord>(&run.header.thread, stored);
                self.check_run(&run).await?
            }
            Some(b"q/") => {
                let _: Mark = self.row(stored)?;
                let run = keys::read_open_run_of(key).ok_or_else(|| row::corrupt_key(self.name(), "open run of session"))?;
                self.left_over(keys::open_run(&run), "a session lists an open run that is not there", gone()).await?
            }
            Some(b"o/") => {
                let header: RunHeader = self.row(stored)?;
                let run = match self.kv().get(&keys::run(&header.run)).await? {
                    Some(run) => Some(self.decode_record(&run).await.map_err(|error| self.as_damage(error))?),
                    None => None,
                };
                match run {
                    Some(run) if run.header == header && header.stage != RunStage::Closed => {
                        let entry = keys::open_run_of(&header.session_id(), &header.run);
                        self.missing(Some(entry), "the run is missing among the open runs of its session").await?
                    }
                    _ => Some(("the list of open runs does not agree with the run", vec![gone()])),
                }
            }
            Some(b"x/") => {
                let _: RunOfThread = self.row(stored)?;
                let (_, run) = keys::read_run_of(key).ok_or_else(|| row::corrupt_key(self.name(), "run of thread"))?;
                self.left_over(keys::run(&run), "the thread lists a run that is not there", gone()).await?
            }
            Some(b"z/") => {
                let _: ClosedRun = self.row(stored)?;
                let (_, run) = keys::read_closed_run(key).ok_or_else(|| row::corrupt_key(self.name(), "closed run"))?;
                self.left_over(keys::run(&run), "the list of closed runs has one that is not there", gone()).await?
            }
            Some(b"u/") => {
                let _: Mark = self.row(stored)?;
                let (_, thread, _) = keys::read_recency(key).ok_or_else(|| row::corrupt_key(self.name(), "thread list"))?;
                self.left_over(keys::thread(&thread), "a list has a thread that is not there", gone()).await?
            }
            Some(b"c/") => {
                let _: Mark = self.row(stored)?;
                let (_, thread) = keys::read_child(key).ok_or_else(|| row::corrupt_key(self.name(), "child thread"))?;
                self.left_over(keys::thread(&thread), "a run lists a child's thread that is not there", gone()).await?
            }
            Some(b"d/") => {
                let _: Mark = self.row(stored)?;
                let thread = self.id(b"d/", key)?;
                if self.kv().get(&keys::head(&thread)).await?.is_some() {
                    return Ok(Some(("the deletion of the thread is not finished", Vec::new())));
                }
                seen.ends.insert(thread, None);
                Some(("the copy that the thread is to be was not finished", Vec::new()))
            }
            Some(b"l/") => {
                let _: Lease = self.row(stored)?;
                None
            }
            Some(b"s/") => {
                let _: SessionRow = self.row(stored)?;
                keys::read_session(key).ok_or_else(|| row::corrupt_key(self.name(), "session"))?;
                None
            }
            Some(b"v/") => {
                let _: StateRow = self.row(stored)?;
                None
            }
            _ if key == keys::layout() => None,
            _ => Some(("the row is of no known kind", Vec::new())),
        };
        Ok(found)
    }

    async fn check_thread(&self, thread: &ThreadRecord) -> Result<Option<Found>, StorageError> {
        let info = &thread.info;
        if self.kv().get(&keys::head(&info.id)).await?.is_none() {
            return Ok(Some(("the thread has no head", Vec::new())));
        }
        if self.kv().get(&keys::deletion(&info.id)).await?.is_some() {
            return Ok(None);
        }
        if let Some(parent) = &thread.parent {
            return self.missing(Some(keys::child(&parent.run, &info.id)), "the thread is missing among the children of its parent").await;
        }
        let entry = keys::recency(&info.resource, info.updated_at, &info.id, Follows::Row);
        self.missing(Some(entry), "the thread is missing in the list of its resource").await
    }

    async fn check_run(&self, run: &RunRecord) -> Result<Option<Found>, StorageError> {
        let (id, thread) = (&run.header.run, &run.header.thread);
        let Some(listed) = self.kv().get(&keys::run_of(thread, id)).await? else {
            let closed = (run.header.stage == RunStage::Closed).then_some(run.header.at);
            let mut mend = vec![self.entry(keys::run_of(thread, id), &RunOfThread { closed })?];
            mend.extend(closed.map(|at| self.closed_entry(at, &run.header)).transpose()?);
            return Ok(Some(("the run is missing among the runs of its thread", mend)));
        };
        let listed: RunOfThread = self.row(&listed)?;
        let open = self.kv().get(&keys::open_run(id)).await?;
        if run.header.stage != RunStage::Closed {
            let agrees = open.is_some_and(|open| self.row::<RunHeader>(&open).is_ok_and(|open| open == run.header));
            let mend = vec![self.entry(keys::open_run(id), &run.header)?];
            return Ok((!agrees).then_some(("the list of open runs does not agree with the run", mend)));
        }
        let at = listed.closed.unwrap_or(run.header.at);
        match self.kv().get(&keys::closed_run(at, id)).await? {
            Some(_) => Ok(None),
            None => Ok(Some(("the run is missing in the list of closed runs", vec![self.closed_entry(at, &run.header)?]))),
        }
    }

    fn closed_entry(&self, at: ac_core::Timestamp, header: &RunHeader) -> Result<Write, StorageError> {
        let row = ClosedRun { thread: header.thread.clone(), parent: header.parent.as_ref().map(|parent| parent.run.clone()) };
        self.entry(keys::closed_run(at, &header.run), &row)
    }

    fn entry<R: Row + serde::Serialize>(&self, key: Vec<u8>, row: &R) -> Result<Write, StorageError> {
        Ok(Write { key, expect: Expect::Any, value: Some(row::encode::<R>(row)?) })
    }

    /// A mark that should be there.
    async fn missing(&self, entry: Option<Vec<u8>>, what: &'static str) -> Result<Option<Found>, StorageError> {
        let Some(entry) = entry else { return Ok(None) };
        match self.kv().get(&entry).await? {
            Some(_) => Ok(None),
            None => Ok(Some((what, vec![self.entry(entry, &Mark {})?]))),
        }
    }

    /// A row that should not be there without `other`.
    async fn left_over(&self, other: Vec<u8>, what: &'static str, gone: Write) -> Result<Option<Found>, StorageError> {
        Ok(self.kv().get(&other).await?.is_none().then(|| (what, vec![gone])))
    }

    /// A text that is missing because its thread was deleted is as wrong here as any other: deletions are finished before.
    fn as_damage(&self, error: StorageError) -> StorageError {
        match error.kind() {
            StorageErrorKind::Deleted | StorageErrorKind::NotFound => StorageError::new(
                StorageErrorKind::Corrupt,
                format!("a row in {} has long texts of a thread that is not there", self.name()),
            ),
            _ => error,
        }
    }

    fn row<R: Row>(&self, stored: &Versioned) -> Result<R, StorageError> {
        row::decode(self.name(), stored)
    }

    fn id(&self, prefix: &[u8], key: &[u8]) -> Result<ThreadId, StorageError> {
        keys::read_id(prefix, key).map(Into::into).ok_or_else(|| row::corrupt_key(self.name(), "head"))
    }
}

/// What is wrong, and what mends it.
type Found = (&'static str, Vec<Write>);

/// What rows that come first in the order of keys say about those that come later.
#[derive(Default)]
struct Seen {
    ends: Ends,
    /// Long texts: the write that removes one, and whether something refers to it.
    texts: BTreeMap<Vec<u8>, (Write, bool)>,
}

impl Seen {
    fn refers<R: Row>(&mut self, thread: &ThreadId, stored: &Versioned) {
        for (_, hash) in Cut::read::<R>(&stored.value).into_iter().flat_map(|cut| cut.large) {
            if let Some((_, used)) = self.texts.get_mut(&keys::large_text(thread, &hash)) {
                *used = true;
            }
        }
    }
}

/// What heads say, by thread; `None` for a tombstone. Heads come before blocks and messages in the order of keys.
type Ends = BTreeMap<ThreadId, Option<End>>;

/// What a head says of the messages.
struct End {
    /// How many it counts.
    messages: u64,
    /// How many were found.
    found: u64,
    /// Those of the index of ids.
    blocks: Option<Blocks>,
}

#[cfg(test)]
mod tests;
