//! `AgentController` and `Session`: the isolated runtimes of the people who use an agent application.
//!
//! A controller holds the configuration: modes, an agent, tools, a way to models, a store. A [`Session`] is what one person, or one task,
//! works in: it is bound to a thread, has a mode and a model, permissions, a queue, state, and a stream of events. Runs are moved by
//! [`ac_agent`]; whatever a run waits for is stored, and any process that opens the store can answer it.
//!
//! What it must not know: HTTP, chat platforms, terminals.
#![deny(missing_docs)]

mod ask;
mod builder;
mod bus;
mod config;
mod controller;
mod env;
mod error;
mod feed;
mod goal;
mod host;
mod interval;
mod listener;
mod map;
mod mode;
mod models;
mod notification;
mod reading;
mod recovery;
mod request_context;
mod resources;
mod session;
mod signal;
mod state_schema;
mod subagent;
mod title;

pub use ac_agent::{Accepted, RunErrorKind, RunHandle, RunStatus, RuntimeSettings};
pub use ac_engine::{Answer, Limits};
pub use builder::ControllerBuilder;
pub use bus::{BusItem, Cursor, Delivery, EventBus, LocalBus, Resync, Subscription};
pub use config::{AgentConfig, CategoryResolver, Lender, ModelRouter, NotificationPolicy};
pub use controller::{AgentController, SessionRequest};
pub use env::{SystemClock, UuidIds};
pub use error::{ControllerError, ControllerErrorKind};
pub use goal::{Goal, GoalJudge, GoalStatus, GoalUpdate, NewGoal};
pub use host::{Host, HostBuilder};
pub use interval::Interval;
pub use listener::ListenerId;
pub use mode::Mode;
pub use models::{CatalogModel, ModelAuth, ModelCatalog};
pub use notification::{
    InboxItem, Notification, NotificationDecision, NotificationPriority, NotificationRoute, NotificationSent, NotificationStatus,
};
pub use reading::ActiveRun;
pub use request_context::is_reserved_context_key;
pub use session::{
    ApprovalDecision, ModeView, ModelChoice, Pending, Queued, Session, Settled, Settlement, StateUpdate, Submitted, UserMessage,
    is_protected_state_key,
};
pub use signal::{Signal, SignalAction, SignalSent, WhenActive, WhenIdle};
pub use state_schema::StateSchema;
pub use subagent::Subagent;
pub use title::TitleGenerator;
