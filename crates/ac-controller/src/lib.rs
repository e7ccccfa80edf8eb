//! `AgentController` and `Session`: the isolated runtimes of the people who use an agent application.
//!
//! A controller holds the configuration: modes, an agent, tools, a way to models, a store. A [`Session`] is what one person, or one task,
//! works in: it is bound to a thread, has a mode and a model, permissions, a queue, state, and a stream of events. Runs are moved by
//! [`ac_agent`]; whatever a run waits for is stored, and any process that opens the store can answer it.
//!
//! What it must not know: HTTP, chat platforms, terminals.
#![deny(missing_docs)]

mod builder;
mod bus;
mod config;
mod controller;
mod env;
mod error;
mod feed;
mod map;
mod mode;
mod reading;
mod recovery;
mod session;

pub use ac_agent::{Accepted, RunHandle, RunStatus, RuntimeSettings};
pub use ac_engine::{Answer, Limits};
pub use builder::ControllerBuilder;
pub use bus::{BusItem, Cursor, Delivery, EventBus, LocalBus, Resync, Subscription};
pub use config::{AgentConfig, CategoryResolver, Lender, ModelRouter};
pub use controller::{AgentController, SessionRequest};
pub use env::{SystemClock, UuidIds};
pub use error::{ControllerError, ControllerErrorKind};
pub use mode::Mode;
pub use reading::ActiveRun;
pub use session::{
    ApprovalDecision, ModeView, ModelChoice, Pending, Queued, Session, Settled, Settlement, StateUpdate, Submitted, UserMessage,
};
