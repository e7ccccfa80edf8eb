//! Durability for `agent-controller`.
//!
//! Two levels. A backend that implements the three methods of [`Kv`] is a complete store through [`KvStorage`]. A backend with richer
//! means (SQL) implements the domain traits behind [`Storage`] natively. Nothing in either contract assumes that only one process has
//! the store open.
//!
//! What it must not know: the inner shape of runs and sessions (they are opaque bodies here), models, tools.
#![deny(missing_docs)]

mod blocks;
pub mod domain;
mod error;
mod keys;
pub mod kv;
mod kv_storage;
mod large;
pub mod memory;
pub mod record;
mod row;
#[cfg(feature = "sled")]
pub mod sled_kv;
mod transfer;
mod verify;

pub use domain::{
    Commit, CommitOutcome, MessageQuery, MessageStore, OpenRuns, RunStore, SessionStore, StateStore, Storage, ThreadQuery, ThreadStore,
};
pub use error::{StorageError, StorageErrorKind};
pub use kv::{Expect, Kv, Scan, Versioned, Write};
pub use kv_storage::KvStorage;
pub use memory::{MemoryKv, MemoryStorage};
pub use record::{
    CommitMark, Lease, MessageCursor, Page, RunHeader, RunParent, RunPosture, RunRecord, RunStage, SessionId, Stored, StoredMessage,
    ThreadHead, ThreadRecord,
};
pub use verify::{Problem, VerifyReport};

#[cfg(feature = "sled")]
pub use sled_kv::{Durability, SledOptions, SledStorage};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
