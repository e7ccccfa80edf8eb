//! Sessions: see [`Session`].

mod apply;
mod bind;
mod children;
mod forks;
mod goal;
mod handle;
mod host;
mod inbox;
mod kept;
mod live;
mod message;
mod modes;
mod notes;
mod pending;
mod permissions;
mod queue;
mod reading;
mod record;
mod run;
mod signal;
mod state;
mod subagents;
mod thread_state;
mod threads;
mod title;

pub(crate) use handle::Inner;
pub use handle::Session;
pub use message::UserMessage;
pub use modes::{ModeView, ModelChoice};
pub use pending::{ApprovalDecision, Pending};
pub use queue::Queued;
pub(crate) use record::SessionRecord;
pub use run::{Settled, Settlement, Submitted};
pub use state::{StateUpdate, is_protected_state_key};
