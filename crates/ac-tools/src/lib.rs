//! Tools for `agent-controller`, and named sets of them.
//!
//! What it must not know: sessions, providers.
#![deny(missing_docs)]

mod ask_user;
mod hook;
mod set;
#[cfg(feature = "skills")]
pub mod skills;
pub mod subagent;
mod submit_plan;
pub mod tasks;
#[cfg(test)]
mod testing;
#[cfg(feature = "schema")]
mod typed;
mod withheld;
#[cfg(feature = "workspace")]
pub mod workspace;

#[cfg(feature = "rules")]
pub use ac_workspace::rules;
pub use ask_user::AskUser;
pub use hook::{ToolHook, hooked};
pub use set::{DuplicateTool, ToolSet};
pub use subagent::{SubagentKind, SubagentTool};
pub use submit_plan::SubmitPlan;
pub use tasks::{TaskCheck, TaskComplete, TaskUpdate, TaskWrite, task_tools};
#[cfg(feature = "schema")]
pub use typed::TypedTool;
pub use withheld::Withheld;
