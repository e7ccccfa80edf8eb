//! A store with the atomic commit, thread heads and leases of the design.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use ac_core::{Message, MessageId, Role, RunId, ThreadId};
use ac_engine::{Input, RunSnapshot};

#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    pub(crate) active: Option<RunId>,
    pub(crate) next: u64,
    pub(crate) tokens: u64,
}

/// Who committed, and which of its commits it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) life: u64,
    pub(crate) n: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) version: u64,
    pub(crate) mark: Mark,
    pub(crate) run: RunSnapshot,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    pub(crate) mode: String,
    pub(crate) grants: BTreeSet<String>,
    pub(crate) queue: VecDeque<Message>,
    pub(crate) applied: BTreeMap<RunId, u64>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    pub(crate) heads: BTreeMap<ThreadId, Head>,
    pub(crate) rows: BTreeMap<RunId, Row>,
    pub(crate) messages: BTreeMap<(ThreadId, MessageId), (u64, Arc<Message>)>,
    pub(crate) session: Session,
    /// By run: whose life it is, and the epoch it was taken in.
    pub(crate) leases: BTreeMap<RunId, (u64, u64)>,
    /// Only for the readings that put inputs into rows of their own.
    pub(crate) inbox: BTreeMap<RunId, Vec<Input>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Conflict,
    /// A person's message of that id is there already.
    Exists,
}

pub(crate) struct Commit<'a> {
    pub(crate) expect: Option<u64>,
    pub(crate) mark: Mark,
    pub(crate) run: &'a RunSnapshot,
    pub(crate) put: &'a [Arc<Message>],
    pub(crate) tokens: u64,
    /// What counts as closed, for the reading that gets it wrong.
    pub(crate) closed: fn(&RunSnapshot) -> bool,
    pub(crate) replace_people: bool,
}

impl Store {
    pub(crate) fn run(&self, run: &RunId) -> &RunSnapshot {
        &self.rows[run].run
    }

    pub(crate) fn thread(&self, thread: &ThreadId) -> Vec<Arc<Message>> {
        let mut found: Vec<_> = self.messages.iter().filter(|((of, _), _)| of == thread).map(|(_, row)| row.clone()).collect();
        found.sort_by_key(|(position, _)| *position);
        found.into_iter().map(|(_, message)| message).collect()
    }

    pub(crate) fn has(&self, thread: &ThreadId, id: &MessageId) -> bool {
        self.messages.contains_key(&(thread.clone(), id.clone()))
    }

    pub(crate) fn active(&self, thread: &ThreadId) -> Option<RunId> {
        self.heads.get(thread)?.active.clone()
    }

    /// A new message gets the next position; a known one is replaced where it stands.
    pub(crate) fn put(&mut self, thread: &ThreadId, message: &Arc<Message>) {
        let head = self.heads.entry(thread.clone()).or_default();
        let row = self.messages.entry((thread.clone(), message.id.clone())).or_insert_with(|| {
            head.next += 1;
            (head.next, message.clone())
        });
        row.1 = message.clone();
    }

    /// Record, head and messages as one (`R1`).
    pub(crate) fn commit(&mut self, commit: &Commit<'_>) -> Result<u64, Refused> {
        let Commit { expect, run, put, .. } = commit;
        let row = self.rows.get(&run.run);
        let active = self.active(&run.thread);
        let was_closed = row.is_some_and(|row| (commit.closed)(&row.run));
        let head_fits = match expect {
            None => active.is_none(),
            Some(_) => was_closed || active.as_ref() == Some(&run.run),
        };
        if row.map(|row| row.version) != *expect || !head_fits {
            return Err(Refused::Conflict);
        }
        if !commit.replace_people && put.iter().any(|message| message.role == Role::User && self.has(&run.thread, &message.id)) {
            return Err(Refused::Exists);
        }
        for message in *put {
            self.put(&run.thread, message);
        }
        let head = self.heads.entry(run.thread.clone()).or_default();
        head.tokens += commit.tokens;
        // A run that was closed before never touches the head again.
        if !was_closed {
            head.active = (!(commit.closed)(run)).then(|| run.run.clone());
        }
        let version = expect.unwrap_or(0) + 1;
        self.rows.insert(run.run.clone(), Row { version, mark: commit.mark, run: (*run).clone() });
        Ok(version)
    }
}
