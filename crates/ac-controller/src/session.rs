//! Sessions: see [`Session`].

mod apply;
mod bind;
mod children;
mod handle;
mod host;
mod live;
mod message;
mod modes;
mod pending;
mod permissions;
mod queue;
mod reading;
mod record;
mod run;
mod state;
mod threads;

pub(crate) use handle::Inner;
pub use handle::Session;
pub use message::UserMessage;
pub use modes::{ModeView, ModelChoice};
pub use pending::{ApprovalDecision, Pending};
pub use queue::Queued;
pub use run::{Settled, Settlement, Submitted};
pub use state::StateUpdate;
