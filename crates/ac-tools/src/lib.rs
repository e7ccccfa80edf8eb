//! Tools for `agent-controller`, and named sets of them.
//!
//! What it must not know: sessions, providers.
#![deny(missing_docs)]

mod ask_user;
mod set;
mod submit_plan;
#[cfg(test)]
mod testing;
#[cfg(feature = "workspace")]
pub mod workspace;

pub use ask_user::AskUser;
pub use set::{DuplicateTool, ToolSet};
pub use submit_plan::SubmitPlan;
