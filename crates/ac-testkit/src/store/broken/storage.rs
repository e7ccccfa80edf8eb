use std::sync::{Arc, Mutex, PoisonError};

use ac_core::{ControllerId, Message, MessageId, OwnerId, Part, RunId, ThreadId, Timestamp};
use ac_storage::{
    Commit, CommitOutcome, Lease, MemoryStorage, MessageStore, Page, RunHeader, RunRecord, RunStage, RunStore, SessionId, SessionStore,
    StateStore, Storage, StorageError, StorageErrorKind, Stored, ThreadHead, ThreadRecord, ThreadStore,
    domain::{MessageQuery, OpenRuns, ThreadQuery},
    record::StoredMessage,
};
use async_trait::async_trait;
use serde_json::{Value, value::RawValue};

/// What is wrong with a [`BrokenStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Defect {
    /// A new thread loses its metadata.
    DropsMetadata,
    /// Creating a thread that exists is answered as if it had been done.
    CreatesTwice,
    /// Compare-and-set of threads, messages, sessions and state takes any version.
    TakesAnyVersion,
    /// A thread shows the time of its row only.
    IgnoresHeadTime,
    /// Lists go the wrong way round.
    ListsBackwards,
    /// The last entry of each page that has a next one is lost.
    LosesPageEnds,
    /// Filters are not looked at.
    IgnoresFilters,
    /// A deleted thread is only no longer shown.
    DeletesTheRowOnly,
    /// A deleted thread takes writes as if they were done.
    ForgetsTombstones,
    /// Deleting a thread goes on with the others of its resource.
    DeletesNeighbours,
    /// A thread is deleted, so it says, under its run.
    DeletesUnderRuns,
    /// Thread ids end at the first NUL or slash.
    CutsIds,
    /// Parts other than text are lost.
    KeepsTextOnly,
    /// Long text is cut off.
    CutsText,
    /// The same message again is an error.
    RefusesRepeats,
    /// Other words under a known id are answered as if they had been put.
    SwallowsRewrites,
    /// A message beside a run is answered as if it had been put.
    SwallowsConflicts,
    /// Cursors of messages are not looked at.
    IgnoresCursors,
    /// A copy goes to the end of the thread.
    CopiesAll,
    /// A copy into a thread with messages is answered as done.
    CopiesOver,
    /// The head does not tell who holds the thread.
    HidesTheHolder,
    /// Commits that conflict are answered as made.
    HidesConflicts,
    /// A closed run keeps its thread.
    NeverCloses,
    /// A closed run puts its messages all the same.
    WritesAfterTheClose,
    /// Messages of a commit that conflicts are put where that is possible.
    Tears,
    /// A known message is not replaced.
    KeepsFirstBodies,
    /// Usage is lost.
    DropsUsage,
    /// A commit without thread makes one.
    MakesThreads,
    /// Bodies are read and written anew.
    ReformatsBodies,
    /// No run is listed.
    ListsNoRuns,
    /// Every run is listed for ever.
    ListsClosedRuns,
    /// Pruning takes all closed runs.
    PrunesAll,
    /// Pruning does not know about parents.
    ForgetsParents,
    /// Everybody gets the lease.
    LeasesToAll,
    /// A lease has no end.
    LeasesForEver,
    /// A lease of whatever epoch counts.
    IgnoresEpochs,
    /// The holder has to wait for his own lease.
    NeverRenews,
    /// Everybody may give a lease back.
    ReleasesForAll,
    /// A deleted session stays.
    KeepsSessions,
    /// The name of a state is not looked at.
    IgnoresNames,
}

impl Defect {
    /// All of them.
    pub const ALL: [Self; 40] = [
        Self::DropsMetadata,
        Self::CreatesTwice,
        Self::TakesAnyVersion,
        Self::IgnoresHeadTime,
        Self::ListsBackwards,
        Self::LosesPageEnds,
        Self::IgnoresFilters,
        Self::DeletesTheRowOnly,
        Self::ForgetsTombstones,
        Self::DeletesNeighbours,
        Self::DeletesUnderRuns,
        Self::CutsIds,
        Self::KeepsTextOnly,
        Self::CutsText,
        Self::RefusesRepeats,
        Self::SwallowsRewrites,
        Self::SwallowsConflicts,
        Self::IgnoresCursors,
        Self::CopiesAll,
        Self::CopiesOver,
        Self::HidesTheHolder,
        Self::HidesConflicts,
        Self::NeverCloses,
        Self::WritesAfterTheClose,
        Self::Tears,
        Self::KeepsFirstBodies,
        Self::DropsUsage,
        Self::MakesThreads,
        Self::ReformatsBodies,
        Self::ListsNoRuns,
        Self::ListsClosedRuns,
        Self::PrunesAll,
        Self::ForgetsParents,
        Self::LeasesToAll,
        Self::LeasesForEver,
        Self::IgnoresEpochs,
        Self::NeverRenews,
        Self::ReleasesForAll,
        Self::KeepsSessions,
        Self::IgnoresNames,
    ];
}

/// A store with one defect, over a sound one in memory.
#[derive(Debug)]
pub struct BrokenStore {
    sound: MemoryStorage,
    defect: Defect,
    /// What the store saw so far, for defects that remember the wrong things.
    seen: Mutex<Vec<RunHeader>>,
    hidden: Mutex<Vec<ThreadId>>,
}

impl BrokenStore {
    /// An empty store with this defect.
    pub fn new(defect: Defect) -> Self {
        Self { sound: MemoryStorage::new(), defect, seen: Mutex::default(), hidden: Mutex::default() }
    }

    fn is(&self, defect: Defect) -> bool {
        self.defect == defect
    }

    fn hides(&self, thread: &ThreadId) -> bool {
        self.hidden.lock().unwrap_or_else(PoisonError::into_inner).contains(thread)
    }

    fn id(&self, thread: &ThreadId) -> ThreadId {
        let cut = thread.as_str().split(['\0', '/']).next().unwrap_or_default();
        if self.is(Defect::CutsIds) { cut.into() } else { thread.clone() }
    }

    /// Answers an error of this kind as a success while the defect is planted.
    fn swallow<T>(&self, defect: Defect, kind: StorageErrorKind, answer: T, outcome: Result<T, StorageError>) -> Result<T, StorageError> {
        match outcome {
            Err(error) if error.kind() == kind && self.is(defect) => Ok(answer),
            outcome => outcome,
        }
    }

    fn mangle<T>(&self, mut page: Page<T>) -> Page<T> {
        if self.is(Defect::ListsBackwards) {
            page.items.reverse();
        }
        if self.is(Defect::LosesPageEnds) && page.next.is_some() && page.items.len() > 1 {
            page.items.pop();
        }
        page
    }

    fn message(&self, stored: StoredMessage) -> StoredMessage {
        let mut message = (*stored.message).clone();
        if self.is(Defect::KeepsTextOnly) {
            message.parts.retain(|part| matches!(part, Part::Text(_)));
        }
        if self.is(Defect::CutsText) {
            for part in &mut message.parts {
                if let Part::Text(text) = part {
                    text.text = text.text.chars().take(65_535).collect();
                }
            }
        }
        StoredMessage { message: Arc::new(message), ..stored }
    }

    fn body(&self, body: Box<RawValue>) -> Box<RawValue> {
        let reformatted = || RawValue::from_string(serde_json::from_str::<Value>(body.get()).ok()?.to_string()).ok();
        if self.is(Defect::ReformatsBodies) { reformatted().unwrap_or_else(|| body.clone()) } else { body }
    }
}

impl Storage for BrokenStore {
    fn threads(&self) -> &dyn ThreadStore {
        self
    }

    fn messages(&self) -> &dyn MessageStore {
        self
    }

    fn runs(&self) -> &dyn RunStore {
        self
    }

    fn sessions(&self) -> &dyn SessionStore {
        self
    }

    fn state(&self) -> &dyn StateStore {
        self
    }
}

#[async_trait]
impl ThreadStore for BrokenStore {
    async fn create(&self, thread: &ThreadRecord) -> Result<(), StorageError> {
        let mut thread = thread.clone();
        if self.is(Defect::DropsMetadata) {
            thread.info.metadata.clear();
        }
        let outcome = self.sound.threads().create(&thread).await;
        let outcome = self.swallow(Defect::ForgetsTombstones, StorageErrorKind::Deleted, (), outcome);
        self.swallow(Defect::CreatesTwice, StorageErrorKind::Exists, (), outcome)
    }

    async fn get(&self, id: &ThreadId) -> Result<Option<Stored<ThreadRecord>>, StorageError> {
        if self.hides(id) {
            return Ok(None);
        }
        let mut found = self.sound.threads().get(id).await?;
        if let (Defect::IgnoresHeadTime, Some(stored)) = (self.defect, &mut found) {
            stored.value.info.updated_at = stored.value.info.created_at;
        }
        Ok(found)
    }

    async fn update(&self, thread: &ThreadRecord, expect: u64) -> Result<(), StorageError> {
        let present = self.sound.threads().get(&thread.info.id).await?.map(|stored| stored.version);
        let expect = present.filter(|_| self.is(Defect::TakesAnyVersion)).unwrap_or(expect);
        self.sound.threads().update(thread, expect).await
    }

    async fn list(&self, query: &ThreadQuery) -> Result<Page<ThreadRecord>, StorageError> {
        let mut query = query.clone();
        if self.is(Defect::IgnoresFilters) {
            query.metadata.clear();
            query.hidden = true;
        }
        let mut page = self.sound.threads().list(&query).await?;
        page.items.retain(|thread| !self.hides(&thread.info.id));
        Ok(self.mangle(page))
    }

    async fn delete(&self, id: &ThreadId) -> Result<(), StorageError> {
        if self.is(Defect::DeletesTheRowOnly) {
            self.hidden.lock().unwrap_or_else(PoisonError::into_inner).push(id.clone());
            return Ok(());
        }
        if let (Defect::DeletesNeighbours, Some(stored)) = (self.defect, self.sound.threads().get(id).await?) {
            let query = ThreadQuery { resource: Some(stored.value.info.resource), ..ThreadQuery::default() };
            for thread in self.sound.threads().list(&query).await?.items {
                self.sound.threads().delete(&thread.info.id).await?;
            }
        }
        self.swallow(Defect::DeletesUnderRuns, StorageErrorKind::Conflict, (), self.sound.threads().delete(id).await)
    }
}

#[async_trait]
impl MessageStore for BrokenStore {
    async fn put(&self, thread: &ThreadId, message: &Message, expect: u64) -> Result<(), StorageError> {
        let repeated = self.is(Defect::RefusesRepeats) && self.sound.messages().get(thread, &message.id).await?.is_some();
        if repeated {
            return Err(StorageError::new(StorageErrorKind::Exists, "planted"));
        }
        let head = self.sound.runs().head(thread).await?.map(|head| head.version);
        let expect = head.filter(|_| self.is(Defect::TakesAnyVersion)).unwrap_or(expect);
        let outcome = self.sound.messages().put(thread, message, expect).await;
        let outcome = self.swallow(Defect::SwallowsRewrites, StorageErrorKind::Exists, (), outcome);
        let outcome = self.swallow(Defect::ForgetsTombstones, StorageErrorKind::Deleted, (), outcome);
        self.swallow(Defect::SwallowsConflicts, StorageErrorKind::Conflict, (), outcome)
    }

    async fn page(&self, thread: &ThreadId, query: &MessageQuery) -> Result<Page<StoredMessage>, StorageError> {
        let mut query = query.clone();
        if self.is(Defect::IgnoresCursors) {
            query.after = None;
        }
        let page = self.sound.messages().page(&self.id(thread), &query).await?;
        let items = page.items.into_iter().map(|stored| self.message(stored)).collect();
        Ok(self.mangle(Page { items, next: page.next }))
    }

    async fn get(&self, thread: &ThreadId, id: &MessageId) -> Result<Option<StoredMessage>, StorageError> {
        Ok(self.sound.messages().get(thread, id).await?.map(|stored| self.message(stored)))
    }

    async fn copy(&self, from: &ThreadId, to: &ThreadRecord, until: Option<&MessageId>) -> Result<u64, StorageError> {
        let until = until.filter(|_| !self.is(Defect::CopiesAll));
        self.swallow(Defect::CopiesOver, StorageErrorKind::Exists, 0, self.sound.messages().copy(from, to, until).await)
    }
}

#[async_trait]
impl RunStore for BrokenStore {
    async fn load(&self, run: &RunId) -> Result<Option<Stored<RunRecord>>, StorageError> {
        let found = self.sound.runs().load(run).await?;
        Ok(found.map(|Stored { version, value: RunRecord { header, body } }| Stored {
            version,
            value: RunRecord { header, body: self.body(body) },
        }))
    }

    async fn commit(&self, commit: Commit<'_>) -> Result<CommitOutcome, StorageError> {
        let mut record = commit.record.clone();
        let mut put = commit.put.to_vec();
        let mut usage = commit.usage;
        let thread = record.header.thread.clone();
        match self.defect {
            Defect::NeverCloses if record.header.stage == RunStage::Closed => record.header.stage = RunStage::Finished,
            Defect::ForgetsParents => record.header.parent = None,
            Defect::DropsUsage => usage = None,
            Defect::KeepsFirstBodies => {
                let mut new = Vec::new();
                for message in put {
                    if self.sound.messages().get(&thread, &message.id).await?.is_none() {
                        new.push(message);
                    }
                }
                put = new;
            }
            Defect::WritesAfterTheClose if record.header.stage == RunStage::Closed => put.clear(),
            Defect::MakesThreads if self.sound.threads().get(&thread).await?.is_none() => {
                self.sound.threads().create(&ThreadRecord::new(thread.clone(), "nobody".into(), record.header.at)).await?;
            }
            Defect::ListsClosedRuns => self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(record.header.clone()),
            _ => {}
        }
        let outcome = self.sound.runs().commit(Commit { expect: commit.expect, record: &record, put: &put, usage }).await;
        let made = CommitOutcome::Committed { version: commit.expect.unwrap_or(0) + 1 };
        let outcome = self.swallow(Defect::ForgetsTombstones, StorageErrorKind::Deleted, made, outcome);
        let outcome = self.swallow(Defect::SwallowsRewrites, StorageErrorKind::Exists, made, outcome)?;
        if outcome != CommitOutcome::Conflict {
            return Ok(outcome);
        }
        if self.is(Defect::Tears) {
            for message in &put {
                if let Some(head) = self.sound.runs().head(&thread).await? {
                    // Where a run holds the thread there is no way to.
                    let _put = self.sound.messages().put(&thread, message, head.version).await;
                }
            }
        }
        Ok(if self.is(Defect::HidesConflicts) { made } else { outcome })
    }

    async fn head(&self, thread: &ThreadId) -> Result<Option<Stored<ThreadHead>>, StorageError> {
        let mut found = self.sound.runs().head(thread).await?;
        if let (Defect::HidesTheHolder, Some(head)) = (self.defect, &mut found) {
            head.value.active_run = None;
        }
        Ok(found)
    }

    async fn open(&self, query: &OpenRuns) -> Result<Page<RunHeader>, StorageError> {
        let mut query = query.clone();
        match self.defect {
            Defect::ListsNoRuns => return Ok(Page { items: Vec::new(), next: None }),
            Defect::ListsClosedRuns => {
                return Ok(Page { items: self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone(), next: None });
            }
            Defect::IgnoresFilters => (query.thread, query.session) = (None, None),
            _ => {}
        }
        Ok(self.mangle(self.sound.runs().open(&query).await?))
    }

    async fn prune(&self, before: Timestamp) -> Result<u64, StorageError> {
        let before = if self.is(Defect::PrunesAll) { Timestamp::from_millis(i64::MAX) } else { before };
        self.sound.runs().prune(before).await
    }

    async fn lease(&self, run: &RunId) -> Result<Option<Lease>, StorageError> {
        self.sound.runs().lease(run).await
    }

    async fn take_lease(&self, run: &RunId, lease: &Lease, now: Timestamp) -> Result<bool, StorageError> {
        let held = self.sound.runs().lease(run).await?;
        let valid = held.as_ref().filter(|held| held.expires > now);
        let others = valid.is_some_and(|held| held.owner != lease.owner);
        match self.defect {
            Defect::LeasesToAll => return self.sound.runs().take_lease(run, lease, now).await.map(|_| true),
            Defect::LeasesForEver if held.as_ref().is_some_and(|held| held.owner != lease.owner) => return Ok(false),
            Defect::IgnoresEpochs if others => return Ok(false),
            Defect::NeverRenews if valid.is_some() && !others => return Ok(false),
            _ => {}
        }
        self.sound.runs().take_lease(run, lease, now).await
    }

    async fn release_lease(&self, run: &RunId, owner: &OwnerId, epoch: u64) -> Result<(), StorageError> {
        if let (Defect::ReleasesForAll, Some(held)) = (self.defect, self.sound.runs().lease(run).await?) {
            return self.sound.runs().release_lease(run, &held.owner, held.epoch).await;
        }
        self.sound.runs().release_lease(run, owner, epoch).await
    }
}

#[async_trait]
impl SessionStore for BrokenStore {
    async fn load(&self, id: &SessionId) -> Result<Option<Stored<Box<RawValue>>>, StorageError> {
        let found = self.sound.sessions().load(id).await?;
        Ok(found.map(|Stored { version, value }| Stored { version, value: self.body(value) }))
    }

    async fn save(&self, id: &SessionId, expect: Option<u64>, body: &RawValue) -> Result<u64, StorageError> {
        let present = self.sound.sessions().load(id).await?.map(|stored| stored.version);
        self.sound.sessions().save(id, if self.is(Defect::TakesAnyVersion) { present } else { expect }, body).await
    }

    async fn list(&self, controller: &ControllerId, after: Option<&str>, limit: usize) -> Result<Page<SessionId>, StorageError> {
        Ok(self.mangle(self.sound.sessions().list(controller, after, limit).await?))
    }

    async fn delete(&self, id: &SessionId) -> Result<(), StorageError> {
        if self.is(Defect::KeepsSessions) { Ok(()) } else { self.sound.sessions().delete(id).await }
    }
}

#[async_trait]
impl StateStore for BrokenStore {
    async fn get(&self, thread: &ThreadId, name: &str) -> Result<Option<Stored<Value>>, StorageError> {
        let name = if self.is(Defect::IgnoresNames) { "" } else { name };
        self.sound.state().get(thread, name).await
    }

    async fn put(&self, thread: &ThreadId, name: &str, expect: Option<u64>, value: &Value) -> Result<u64, StorageError> {
        let name = if self.is(Defect::IgnoresNames) { "" } else { name };
        let present = self.sound.state().get(thread, name).await?.map(|stored| stored.version);
        let any = self.is(Defect::TakesAnyVersion) || self.is(Defect::IgnoresNames);
        if self.is(Defect::MakesThreads) && self.sound.threads().get(thread).await?.is_none() {
            self.sound.threads().create(&ThreadRecord::new(thread.clone(), "nobody".into(), Timestamp::default())).await?;
        }
        let outcome = self.sound.state().put(thread, name, if any { present } else { expect }, value).await;
        self.swallow(Defect::ForgetsTombstones, StorageErrorKind::Deleted, 1, outcome)
    }
}
