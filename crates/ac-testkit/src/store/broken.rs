//! Stores that are broken on purpose, so that it is known of each conformance rule that it finds something.

mod kv;
mod storage;

pub use kv::{BrokenKv, KvDefect};
pub use storage::{BrokenStore, Defect};
