//! Tools for `agent-controller`, and named sets of them.
//!
//! What it must not know: sessions, providers.
#![deny(missing_docs)]

mod set;

pub use set::{DuplicateTool, ToolSet};
