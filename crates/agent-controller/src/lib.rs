//! Runtime for interactive agent applications: durable approvals, questions and plans, modes, threads, events.
//!
//! One crate to depend on. It has no logic: each module is a crate of its own, and each feature says who needs it. An application begins
//! with [`controller`]; who writes a tool or a model provider needs [`core`](mod@core) alone, who writes a store [`storage`].
#![deny(missing_docs)]

/// Agents without sessions: one driver that runs the engine against model, tools and storage.
pub use ac_agent as agent;
/// Chat channels: Slack, Discord, Telegram, signed webhooks.
#[cfg(feature = "channels")]
pub use ac_channels as channels;
/// Controllers and sessions: modes, models, permissions, threads, events.
pub use ac_controller as controller;
/// The data and the contracts: messages, tools, models, permissions, events.
pub use ac_core as core;
/// The run as data: answers, limits, snapshots.
pub use ac_engine as engine;
/// Model providers over HTTP, and the built-in demonstration model.
#[cfg(feature = "openai")]
pub use ac_llm as llm;
/// Tools of MCP servers.
#[cfg(feature = "mcp")]
pub use ac_mcp as mcp;
/// Controllers over HTTP and server-sent events.
#[cfg(feature = "server")]
pub use ac_server as server;
/// Where everything is kept.
pub use ac_storage as storage;
/// Tools: questions, plans, files, commands.
pub use ac_tools as tools;
/// Files below one folder, and commands.
#[cfg(feature = "workspace")]
pub use ac_workspace as workspace;

/// What most applications name: `use agent_controller::prelude::*`.
pub mod prelude {
    pub use ac_controller::{
        AgentConfig, AgentController, Answer, ControllerError, Delivery, GoalJudge, Host, Mode, ModelChoice, NewGoal, Notification,
        Pending, Session, SessionRequest, Settled, Settlement, Signal, StateSchema, Subagent, Submitted, Subscription, TitleGenerator,
        UserMessage,
    };
    pub use ac_core::{
        Event, EventBody, ModelId, ModelProvider, Policy, Tool, ToolCategory, ToolContext, ToolDefinition, ToolEffect, ToolError,
        ToolOutcome, ToolOutput,
        event::{EndReason, MessageUpdate, PendingKind},
    };
    pub use ac_storage::{MemoryStorage, Storage};
    pub use ac_tools::{AskUser, SubmitPlan, task_tools};
}

/// The examples of README, guide and concepts are compiled, and most of them run, with the tests.
#[cfg(all(doctest, feature = "full"))]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide/1-first-agent.md")]
    struct FirstAgent;
    #[doc = include_str!("../../../docs/guide/2-tools.md")]
    struct Tools;
    #[doc = include_str!("../../../docs/guide/3-plan-and-build.md")]
    struct PlanAndBuild;
    #[doc = include_str!("../../../docs/guide/4-approvals.md")]
    struct Approvals;
    #[doc = include_str!("../../../docs/guide/5-restart.md")]
    struct Restart;
    #[doc = include_str!("../../../docs/guide/6-models.md")]
    struct Models;
    #[doc = include_str!("../../../docs/concepts/controller.md")]
    struct Controller;
    #[doc = include_str!("../../../docs/concepts/session.md")]
    struct Sessions;
    #[doc = include_str!("../../../docs/concepts/thread.md")]
    struct Threads;
    #[doc = include_str!("../../../docs/concepts/run.md")]
    struct Runs;
    #[doc = include_str!("../../../docs/concepts/modes.md")]
    struct Modes;
    #[doc = include_str!("../../../docs/models.md")]
    struct ModelsOfProviders;
    #[doc = include_str!("../../../docs/permissions.md")]
    struct Permissions;
    #[doc = include_str!("../../../docs/concepts/suspensions.md")]
    struct Suspensions;
    #[doc = include_str!("../../../docs/subagents.md")]
    struct Subagents;
    #[doc = include_str!("../../../docs/workspace.md")]
    struct Workspaces;
    #[doc = include_str!("../../../docs/channels.md")]
    struct ChatChannels;
    #[doc = include_str!("../../../docs/concepts/storage.md")]
    struct StorageAndDurability;
    #[doc = include_str!("../../../docs/concepts/events.md")]
    struct EventsAndDisplayState;
    #[doc = include_str!("../../../docs/http.md")]
    struct Http;
    #[doc = include_str!("../../../docs/host.md")]
    struct Hosts;
    #[doc = include_str!("../../../docs/goals.md")]
    struct Goals;
    #[doc = include_str!("../../../docs/signals.md")]
    struct Signals;
    #[doc = include_str!("../../../docs/from-typescript.md")]
    struct FromTypeScript;
}
