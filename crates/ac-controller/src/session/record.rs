use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use ac_core::{Grant, Message, MessageId, ModeId, ModelId, PermissionRules, RunId, ThreadId, Timestamp};
use ac_storage::{SessionId, SessionStore, Stored};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use super::forks::Fork;
use crate::{ControllerError, ControllerErrorKind};

/// What survives of a session: everything that a person laid down in it. Ends with `delete_session`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionRecord {
    /// Of this form.
    pub(crate) schema: u32,
    /// The thread that the session is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) thread: Option<ThreadId>,
    /// The mode of the session.
    pub(crate) mode: ModeId,
    /// When a person, or a plan, last set the mode. A plan that was decided before does not set it again.
    #[serde(default)]
    pub(crate) mode_at: Timestamp,
    /// What was chosen for a thread, where that differs from the defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) threads: BTreeMap<ThreadId, ThreadChoice>,
    /// Rules.
    #[serde(default)]
    pub(crate) rules: PermissionRules,
    /// Grants for the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) grants: Vec<Grant>,
    /// Follow-ups, in order (`R8`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) queue: Vec<FollowUp>,
    /// Copies of threads that are to be deleted when the runs that wanted them are over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) forks: Vec<Fork>,
    /// The last outbox item that was applied of a run, for the runs that were applied last (`R1b`).
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub(crate) applied: VecDeque<(RunId, u64)>,
    /// The host's state, where it is to survive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<Map<String, Value>>,
}

/// What a person chose while the session was on a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ThreadChoice {
    /// The mode that the thread was left in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<ModeId>,
    /// The model of each mode.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) models: BTreeMap<ModeId, ModelId>,
}

/// A message that waits for a run of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FollowUp {
    /// The thread it is for.
    pub(crate) thread: ThreadId,
    /// The message.
    pub(crate) message: Message,
    /// What its run is given.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) request_context: Map<String, Value>,
    /// Nobody can be asked where it comes from.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) unattended: bool,
}

impl FollowUp {
    /// Ids are a thread's alone.
    pub(crate) fn is(&self, thread: &ThreadId, id: &MessageId) -> bool {
        self.message.id == *id && self.thread == *thread
    }
}

impl SessionRecord {
    /// The form that this version writes.
    const SCHEMA: u32 = 1;
    /// How many runs are remembered as applied. A process that still helps a run that closed so many runs ago does not exist.
    const APPLIED: usize = 64;

    pub(crate) fn new(mode: ModeId, at: Timestamp) -> Self {
        Self {
            schema: Self::SCHEMA,
            thread: None,
            mode,
            mode_at: at,
            threads: BTreeMap::new(),
            rules: PermissionRules::default(),
            grants: vec![],
            queue: vec![],
            forks: vec![],
            applied: VecDeque::new(),
            state: None,
        }
    }

    /// Whether an outbox item was applied before.
    pub(crate) fn is_applied(&self, run: &RunId, n: u64) -> bool {
        self.applied.iter().any(|(known, upto)| known == run && *upto >= n)
    }

    pub(crate) fn mark_applied(&mut self, run: &RunId, n: u64) {
        self.applied.retain(|(known, _)| known != run);
        self.applied.push_back((run.clone(), n));
        while self.applied.len() > Self::APPLIED {
            self.applied.pop_front();
        }
    }

    pub(crate) fn choice(&self, thread: &ThreadId) -> Option<&ThreadChoice> {
        self.threads.get(thread)
    }

    /// Changes what was chosen for a thread; what says nothing is not kept.
    pub(crate) fn choose(&mut self, thread: &ThreadId, change: impl FnOnce(&mut ThreadChoice)) {
        let choice = self.threads.entry(thread.clone()).or_default();
        change(choice);
        if *choice == ThreadChoice::default() {
            self.threads.remove(thread);
        }
    }

    /// Whether something is kept here of a thread.
    pub(crate) fn knows(&self, thread: &ThreadId) -> bool {
        self.thread.as_ref() == Some(thread) || self.threads.contains_key(thread) || self.queue.iter().any(|item| item.thread == *thread)
    }

    /// A thread is gone, and with it what was chosen for it and what waited there.
    pub(crate) fn forget(&mut self, thread: &ThreadId) {
        self.threads.remove(thread);
        self.queue.retain(|item| item.thread != *thread);
        if self.thread.as_ref() == Some(thread) {
            self.thread = None;
        }
    }

    /// Whether follow-ups wait in a stored record. Reads no more of it than it must; what cannot be read has none.
    pub(crate) fn may_wait(body: &RawValue) -> bool {
        #[derive(Deserialize)]
        struct Queue {
            #[serde(default)]
            queue: Vec<serde::de::IgnoredAny>,
        }
        serde_json::from_str::<Queue>(body.get()).is_ok_and(|record| !record.queue.is_empty())
    }

    /// The model that was chosen for a mode on a thread.
    pub(crate) fn chosen_model(&self, thread: Option<&ThreadId>, mode: &ModeId) -> Option<&ModelId> {
        self.choice(thread?)?.models.get(mode)
    }
}

/// A record and its version, and the way to write it.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) record: Arc<SessionRecord>,
    version: Option<u64>,
}

impl Cell {
    /// How often a change is tried again when another process was faster.
    const TRIES: usize = 16;

    /// Reads the record, or begins with `fresh`.
    pub(crate) async fn load(store: &dyn SessionStore, id: &SessionId, fresh: SessionRecord) -> Result<Self, ControllerError> {
        Ok(match store.load(id).await? {
            Some(Stored { version, value }) => Self { record: Arc::new(read(&value)?), version: Some(version) },
            None => Self { record: Arc::new(fresh), version: None },
        })
    }

    /// Whether the session was ever written.
    pub(crate) fn is_stored(&self) -> bool {
        self.version.is_some()
    }

    /// Reads again what another process may have written. Says whether it had.
    pub(crate) async fn refresh(&mut self, store: &dyn SessionStore, id: &SessionId) -> Result<bool, ControllerError> {
        let Some(Stored { version, value }) = store.load(id).await?.filter(|stored| self.version != Some(stored.version)) else {
            return Ok(false);
        };
        self.record = Arc::new(read(&value)?);
        self.version = Some(version);
        Ok(true)
    }

    /// Changes the record by compare-and-set. `change` runs again on what another process wrote; it says whether there is something to
    /// write.
    pub(crate) async fn update<T>(
        &mut self,
        store: &dyn SessionStore,
        id: &SessionId,
        mut change: impl FnMut(&mut SessionRecord) -> Result<Change<T>, ControllerError>,
    ) -> Result<T, ControllerError> {
        for _ in 0..Self::TRIES {
            let mut next = self.record.as_ref().clone();
            let value = match change(&mut next)? {
                Change::Nothing(value) => return Ok(value),
                Change::Write(value) => value,
            };
            match store.save(id, self.version, raw(&next)?.as_ref()).await {
                Ok(version) => {
                    self.version = Some(version);
                    self.record = Arc::new(next);
                    return Ok(value);
                }
                Err(error) if error.kind() == ac_storage::StorageErrorKind::Conflict => match store.load(id).await? {
                    Some(Stored { version, value }) => {
                        self.record = Arc::new(read(&value)?);
                        self.version = Some(version);
                    }
                    // Deleted by another process meanwhile: what this one knows is written anew.
                    None => self.version = None,
                },
                // It may or may not be written: what is stored tells.
                Err(error) if error.kind() == ac_storage::StorageErrorKind::Unknown => {
                    let Some(Stored { version, value: body }) = store.load(id).await? else { continue };
                    let found = read(&body)?;
                    self.version = Some(version);
                    let done = found == next;
                    self.record = Arc::new(found);
                    if done {
                        return Ok(value);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(ControllerError::new(ControllerErrorKind::Contended, "other processes keep changing this session; try again"))
    }
}

/// What came of a change to a record.
#[derive(Debug)]
pub(crate) enum Change<T> {
    /// Nothing to write.
    Nothing(T),
    /// It is written.
    Write(T),
}

fn raw(record: &SessionRecord) -> Result<Box<RawValue>, ControllerError> {
    serde_json::value::to_raw_value(record).map_err(|error| {
        ControllerError::new(ControllerErrorKind::InvalidState, "the session cannot be written as JSON").with_source(error)
    })
}

fn read(body: &RawValue) -> Result<SessionRecord, ControllerError> {
    #[derive(Deserialize)]
    struct Version {
        schema: u32,
    }
    let corrupt = |error: serde_json::Error| {
        let kind = ControllerErrorKind::Storage(ac_storage::StorageErrorKind::Corrupt);
        ControllerError::new(kind, "what is stored of this session cannot be read; it is left as it is").with_source(error)
    };
    let Version { schema } = serde_json::from_str(body.get()).map_err(corrupt)?;
    if schema > SessionRecord::SCHEMA {
        let message = format!(
            "this session was written by a newer version (schema {schema}, this one reads up to {}); use that version",
            SessionRecord::SCHEMA
        );
        return Err(ControllerError::new(ControllerErrorKind::NewerSchema, message));
    }
    serde_json::from_str(body.get()).map_err(corrupt)
}

#[cfg(test)]
mod tests;
