//! The form of rows: JSON in an envelope `{"schema": n, "row": …}`.
//!
//! A row is never defaulted away. What cannot be read is [`Corrupt`](StorageErrorKind::Corrupt), what a newer program wrote is
//! [`NewerSchema`](StorageErrorKind::NewerSchema), what an older one wrote goes through the upgrade steps of its kind.

use ac_core::{Message, ResourceId, ThreadId, Timestamp};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use crate::{
    Lease, RunHeader, RunRecord, StorageError, StorageErrorKind, ThreadHead, ThreadRecord, Versioned,
    blocks::{Block, Blocks},
};

/// Turns a row of one schema into the next one. Pure; `None` when the row does not have the form of its schema.
pub(crate) type Step = fn(Value) -> Option<Value>;

/// What is stored under a key.
pub(crate) trait Row: Sized + DeserializeOwned {
    /// How messages call it.
    const KIND: &'static str;
    /// Step `i` leads from schema `i + 1` to `i + 2`. The present schema is one more than there are steps.
    const STEPS: &'static [Step] = &[];
    /// The oldest schema whose rows read as they are, so that not a byte of them changes on the way.
    const SAME_SINCE: u32 = schema::<Self>();
}

impl Row for ThreadRecord {
    const KIND: &'static str = "thread";
}

/// Schema 2 of a head: the index of ids may be in blocks. In a head of schema 1 it is not. A program that would not keep what the head says
/// of them must not write it.
const MAY_HAVE_BLOCKS: &[Step] = &[Some];

impl Row for HeadRow {
    const KIND: &'static str = "head";
    const STEPS: &'static [Step] = MAY_HAVE_BLOCKS;
    const SAME_SINCE: u32 = 1;
}

/// Schema 2 of a row: long texts may stand in rows of their own. One of schema 1 has none of those.
const MAY_BE_CUT: &[Step] = &[Some];

impl Row for Message {
    const KIND: &'static str = "message";
    const STEPS: &'static [Step] = MAY_BE_CUT;
    const SAME_SINCE: u32 = 1;
}

impl Row for LargeText {
    const KIND: &'static str = "large text";
}

impl Row for Position {
    const KIND: &'static str = "message position";
}

impl Row for Block {
    const KIND: &'static str = "message positions";
}

impl Row for RunRecord {
    const KIND: &'static str = "run";
    const STEPS: &'static [Step] = MAY_BE_CUT;
    const SAME_SINCE: u32 = 1;
}

impl Row for RunHeader {
    const KIND: &'static str = "open run";
}

impl Row for RunOfThread {
    const KIND: &'static str = "run of thread";
}

impl Row for ClosedRun {
    const KIND: &'static str = "closed run";
}

impl Row for Lease {
    const KIND: &'static str = "lease";
}

impl Row for SessionRow {
    const KIND: &'static str = "session";
}

impl Row for StateRow {
    const KIND: &'static str = "state";
}

impl Row for Mark {
    const KIND: &'static str = "index";
}

/// A head, what is needed to move its entry in the list of the resource's threads, and what is needed to find a message by its id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HeadRow {
    /// The head.
    pub(crate) head: ThreadHead,
    /// In whose list the thread is; `None` when in none (threads of child runs).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resource: Option<ResourceId>,
    /// Those of the index of ids that came with a copy; `None` in a thread that is no copy, and in a copy of nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) blocks: Option<Blocks>,
}

/// Where a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    pub(crate) position: u64,
}

/// Entry of a thread for one of its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunOfThread {
    /// When it was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) closed: Option<Timestamp>,
}

/// Entry of a closed run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClosedRun {
    pub(crate) thread: ThreadId,
    /// The run whose call it served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<ac_core::RunId>,
}

/// The body of a session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SessionRow(pub(crate) Box<RawValue>);

/// A long text of a message, as it stands in the message's JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct LargeText(pub(crate) Box<RawValue>);

/// A value of a thread's state.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct StateRow(pub(crate) Value);

/// An index entry that says all in its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {}

/// The schema in which this program writes rows of a kind.
pub(crate) const fn schema<R: Row>() -> u32 {
    // A table of steps is written by hand; it has no four billion entries.
    #[expect(clippy::cast_possible_truncation, reason = "see above")]
    {
        R::STEPS.len() as u32 + 1
    }
}

/// What can be read of a row without its long texts.
pub(crate) fn peek<R: Row, T: DeserializeOwned>(store: &str, stored: &Versioned) -> Result<T, StorageError> {
    #[derive(Deserialize)]
    #[serde(bound = "T: DeserializeOwned")]
    struct Envelope<T> {
        row: T,
    }
    let read = serde_json::from_slice::<Envelope<T>>(&stored.value);
    read.map(|envelope| envelope.row).map_err(|error| corrupt::<R>(store, &error))
}

/// As [`peek`], of a row that is passed on as it stands: one of a newer program is not.
pub(crate) fn known<R: Row, T: DeserializeOwned>(store: &str, stored: &Versioned) -> Result<T, StorageError> {
    #[derive(Deserialize)]
    #[serde(bound = "T: DeserializeOwned")]
    struct Envelope<T> {
        schema: u32,
        row: T,
    }
    let envelope = serde_json::from_slice::<Envelope<T>>(&stored.value).map_err(|error| corrupt::<R>(store, &error))?;
    if envelope.schema > schema::<R>() { Err(newer::<R>(store, envelope.schema)) } else { Ok(envelope.row) }
}

/// The JSON of a row that may be cut.
pub(crate) fn text<R: Row>(row: &(impl Serialize + ?Sized)) -> Result<String, StorageError> {
    serde_json::to_string(row).map_err(|_| no_json::<R>())
}

fn no_json<R: Row>() -> StorageError {
    StorageError::new(StorageErrorKind::Corrupt, format!("a {} row cannot be written as JSON; nothing was stored", R::KIND))
}

/// Room for most rows, so that their bytes are not moved while they are written.
const USUAL: usize = 1024;

/// The bytes of a row. `row` is `R` or a borrowed twin with the same form.
pub(crate) fn encode<R: Row>(row: &(impl Serialize + ?Sized)) -> Result<Vec<u8>, StorageError> {
    #[derive(Serialize)]
    struct Envelope<'a, T: ?Sized> {
        schema: u32,
        row: &'a T,
    }
    let mut bytes = Vec::with_capacity(USUAL);
    serde_json::to_writer(&mut bytes, &Envelope { schema: schema::<R>(), row }).map_err(|_| no_json::<R>())?;
    Ok(bytes)
}

/// Reads a row of the store called `store`.
pub(crate) fn decode<R: Row>(store: &str, stored: &Versioned) -> Result<R, StorageError> {
    #[derive(Deserialize)]
    #[serde(bound = "T: DeserializeOwned")]
    struct Envelope<T> {
        schema: u32,
        row: T,
    }
    #[derive(Deserialize)]
    struct Probe {
        schema: u32,
    }
    let bytes: &[u8] = &stored.value;
    let direct = serde_json::from_slice::<Envelope<R>>(bytes);
    if let Ok(envelope) = &direct
        && (R::SAME_SINCE..=schema::<R>()).contains(&envelope.schema)
    {
        return direct.map(|envelope| envelope.row).map_err(|error| corrupt::<R>(store, &error));
    }
    let found = serde_json::from_slice::<Probe>(bytes).map_err(|error| corrupt::<R>(store, &error))?.schema;
    if found > schema::<R>() {
        return Err(newer::<R>(store, found));
    }
    if found == schema::<R>() {
        return direct.map(|envelope| envelope.row).map_err(|error| corrupt::<R>(store, &error));
    }
    let old = serde_json::from_slice::<Envelope<Value>>(bytes).map_err(|error| corrupt::<R>(store, &error))?;
    let row = upgrade(R::STEPS, found, old.row).ok_or_else(|| corrupt_because::<R>(store, &format!("schema {found} does not read")))?;
    serde_json::from_value(row).map_err(|error| corrupt::<R>(store, &error))
}

fn newer<R: Row>(store: &str, found: u32) -> StorageError {
    StorageError::new(
        StorageErrorKind::NewerSchema,
        format!(
            "a {} row in {store} has schema {found}, this program knows {}; it was left as it is: use the program that wrote it, or newer",
            R::KIND,
            schema::<R>()
        ),
    )
}

/// Leads a row of schema `from` through the steps that are left.
pub(crate) fn upgrade(steps: &[Step], from: u32, row: Value) -> Option<Value> {
    let done = usize::try_from(from).ok()?.checked_sub(1)?;
    steps.get(done..)?.iter().try_fold(row, |row, step| step(row))
}

/// The words of serde are left out: they quote what is stored.
fn corrupt<R: Row>(store: &str, error: &serde_json::Error) -> StorageError {
    let what = match error.classify() {
        serde_json::error::Category::Data => "has not the form of its schema",
        serde_json::error::Category::Io | serde_json::error::Category::Syntax => "is no JSON",
        serde_json::error::Category::Eof => "is cut off",
    };
    corrupt_because::<R>(store, &format!("{what} (line {}, column {})", error.line(), error.column()))
}

fn corrupt_because<R: Row>(store: &str, why: &str) -> StorageError {
    StorageError::new(
        StorageErrorKind::Corrupt,
        format!("a {} row in {store} {why}; it was left as it is: restore it from a backup or an export", R::KIND),
    )
}

/// A key of this kind of row that no key of ours can be.
pub(crate) fn corrupt_key(store: &str, kind: &str) -> StorageError {
    StorageError::new(
        StorageErrorKind::Corrupt,
        format!("{store} holds a {kind} entry under a damaged key; it was left as it is: restore the store from a backup or an export"),
    )
}

#[cfg(test)]
mod tests;
