//! The data and the contracts of `agent-controller`.
//!
//! Everything that crosses a crate boundary is defined here: [`Message`] and [`Part`], [`Tool`], [`ModelProvider`], permission
//! [`decide`](permission::decide), [`EventBody`] and the view that a client draws ([`DisplayState`]). Tool and model authors depend on
//! this crate alone.
//!
//! What it must not know: executors, HTTP, disks, and clocks or random numbers that it was not given.
#![deny(missing_docs)]

pub mod assemble;
pub mod cancel;
pub mod display;
pub mod env;
pub mod error;
pub mod event;
pub mod id;
pub mod message;
pub mod model;
pub mod permission;
pub mod text;
pub mod tool;
pub mod wire;

pub use cancel::CancelToken;
pub use display::DisplayState;
pub use env::{Clock, Ids, Timestamp};
pub use error::ErrorInfo;
pub use event::{Event, EventBody};
pub use id::{
    AgentId, ControllerId, EpochId, MessageId, ModeId, ModelId, OwnerId, PendingId, ResourceId, RunId, SessionKey, ThreadId, ToolCallId,
};
pub use message::{Message, Part, Role, ToolCallPart, ToolCallState};
pub use model::{FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelProvider, ModelRequest, ModelStream, Usage};
pub use permission::{Decision, Grant, PermissionRules, Policy};
pub use text::SharedText;
pub use tool::{
    Suspend, SuspendKind, Tool, ToolCategory, ToolContext, ToolDefinition, ToolEffect, ToolError, ToolErrorKind, ToolOutcome, ToolOutput,
    ToolResume,
};
