//! Rows for rules, and how rules say what is wrong.

use std::sync::Arc;

use ac_core::{Message, Part, Role, SessionKey, ThreadId, Timestamp};
use ac_storage::{
    Commit, CommitMark, CommitOutcome, RunHeader, RunPosture, RunRecord, RunStage, Storage, StorageError, StorageErrorKind, ThreadRecord,
    domain::MessageQuery,
};
use serde_json::value::RawValue;

use super::{Verdict, Violation};

/// Fails the rule unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::conformance::Violation::new(format!($($message)+)));
        }
    };
}

/// Fails the rule unless both sides are equal.
macro_rules! ensure_eq {
    ($found:expr, $expected:expr, $($message:tt)+) => {
        match (&$found, &$expected) {
            (found, expected) => if found != expected {
                let message = format!($($message)+);
                return Err($crate::conformance::Violation::new(format!("{message}: found {found:?}, expected {expected:?}")));
            },
        }
    };
}

pub(super) use {ensure, ensure_eq};

pub(super) const fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(super) fn thread(id: &str, resource: &str, millis: i64) -> ThreadRecord {
    ThreadRecord::new(id.into(), resource.into(), at(millis))
}

pub(super) async fn create(store: &dyn Storage, id: &str) -> Verdict {
    Ok(store.threads().create(&thread(id, "resource", 1)).await?)
}

pub(super) fn user(id: &str, text: &str) -> Arc<Message> {
    Arc::new(Message::user(id, text, at(5)))
}

pub(super) fn assistant(id: &str, text: &str) -> Arc<Message> {
    Arc::new(Message::new(id, Role::Assistant, vec![Part::text(text)], at(5)))
}

/// Version `n` of a run, written at `1000 + n`.
pub(super) fn record(run: &str, thread: &str, stage: RunStage, n: u64) -> Result<RunRecord, Violation> {
    let header = RunHeader {
        run: run.into(),
        controller: "controller".into(),
        session: SessionKey::new("resource"),
        thread: thread.into(),
        parent: None,
        stage,
        posture: if stage == RunStage::Open { RunPosture::Moving } else { RunPosture::Finished },
        pending: Vec::new(),
        epoch: 1,
        mark: CommitMark { by: "owner".into(), epoch: 1, n },
        at: at(1000 + n.cast_signed()),
    };
    Ok(RunRecord { header, body: raw(&format!(r#"{{"n":{n}}}"#))? })
}

pub(super) fn raw(json: &str) -> Result<Box<RawValue>, Violation> {
    RawValue::from_string(json.to_owned()).map_err(|error| Violation::new(error.to_string()))
}

/// Commits `record` and expects it to be made.
pub(super) async fn commit(store: &dyn Storage, expect: Option<u64>, record: &RunRecord, put: &[Arc<Message>]) -> Result<u64, Violation> {
    match store.runs().commit(Commit { expect, record, put, usage: None }).await? {
        CommitOutcome::Committed { version } => Ok(version),
        other => Err(Violation::new(format!("a commit that nothing stands against was answered {other:?}"))),
    }
}

/// Commits `record` and expects a conflict.
pub(super) async fn conflict(store: &dyn Storage, expect: Option<u64>, record: &RunRecord, put: &[Arc<Message>]) -> Verdict {
    let outcome = store.runs().commit(Commit { expect, record, put, usage: None }).await?;
    ensure_eq!(outcome, CommitOutcome::Conflict, "a commit on {expect:?} that must not be made");
    Ok(())
}

/// A run from start to close, with messages.
pub(super) async fn whole_run(store: &dyn Storage, run: &str, thread: &str, put: &[Arc<Message>]) -> Verdict {
    let version = commit(store, None, &record(run, thread, RunStage::Open, 1)?, put).await?;
    commit(store, Some(version), &record(run, thread, RunStage::Closed, 2)?, &[]).await?;
    Ok(())
}

/// The text of each message of a thread.
pub(super) async fn texts(store: &dyn Storage, thread: &ThreadId) -> Result<Vec<String>, Violation> {
    let page = store.messages().page(thread, &MessageQuery::default()).await?;
    Ok(page.items.iter().map(|stored| stored.message.text()).collect())
}

/// Version of a thread's head.
pub(super) async fn head_version(store: &dyn Storage, thread: &str) -> Result<u64, Violation> {
    Ok(head(store, thread).await?.version)
}

pub(super) async fn head(store: &dyn Storage, thread: &str) -> Result<ac_storage::Stored<ac_storage::ThreadHead>, Violation> {
    store.runs().head(&thread.into()).await?.ok_or_else(|| Violation::new(format!("thread {thread} has no head")))
}

/// Expects an operation to fail in this way.
pub(super) fn fails<T>(kind: StorageErrorKind, what: &str, outcome: Result<T, StorageError>) -> Verdict {
    match outcome {
        Err(error) if error.kind() == kind => Ok(()),
        Err(error) => Err(Violation::new(format!("{what}: expected {kind:?}, found {}", error.code()))),
        Ok(_) => Err(Violation::new(format!("{what}: expected {kind:?}, but it was done"))),
    }
}
