//! Runtime for interactive agent applications: durable approvals, questions and plans, modes, threads, events.
//!
//! One crate to depend on. It has no logic: each module is a crate of its own, and each feature says who needs it. An application begins
//! with [`controller`]; who writes a tool or a model provider needs [`core`](mod@core) alone, who writes a store [`storage`]. What their
//! signatures name of other crates is in [`external`].
//!
//! Without any feature this is the contracts and the runtime, the store in memory and the demonstration model.
#![deny(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

/// Agents without sessions: one driver that runs the engine against model, tools and storage.
pub use ac_agent as agent;
/// Chat channels: Slack, Discord, Telegram, signed webhooks.
#[cfg(feature = "channels")]
#[cfg_attr(docsrs, doc(cfg(feature = "channels")))]
pub use ac_channels as channels;
/// Controllers and sessions: modes, models, permissions, threads, events.
pub use ac_controller as controller;
/// The data and the contracts: messages, tools, models, permissions, events.
pub use ac_core as core;
/// The run as data: answers, limits, snapshots.
pub use ac_engine as engine;
/// Models by name, providers over HTTP (features `openai`, `anthropic`, `gemini`), and the built-in demonstration model.
pub use ac_llm as llm;
/// Tools of MCP servers.
#[cfg(feature = "mcp")]
#[cfg_attr(docsrs, doc(cfg(feature = "mcp")))]
pub use ac_mcp as mcp;
/// Controllers over HTTP and server-sent events.
#[cfg(feature = "server")]
#[cfg_attr(docsrs, doc(cfg(feature = "server")))]
pub use ac_server as server;
/// Where everything is kept.
pub use ac_storage as storage;
/// What tests of a store, a model or a tool of one's own need: conformance suites, a scripted model, a given clock.
#[cfg(feature = "testkit")]
#[cfg_attr(docsrs, doc(cfg(feature = "testkit")))]
pub use ac_testkit as testkit;
/// Tools: questions, plans, task lists, and with further features files, commands, skills, typed functions.
#[cfg(feature = "tools")]
#[cfg_attr(docsrs, doc(cfg(feature = "tools")))]
pub use ac_tools as tools;
/// Files below one folder, and with the feature `sandbox` commands.
#[cfg(feature = "workspace")]
#[cfg_attr(docsrs, doc(cfg(feature = "workspace")))]
pub use ac_workspace as workspace;
/// The contracts are traits with asynchronous methods; implementations of them carry this attribute.
pub use async_trait::async_trait;

/// Other people's crates whose types are in this API, in the versions that it uses.
pub mod external {
    #[cfg(feature = "server")]
    #[cfg_attr(docsrs, doc(cfg(feature = "server")))]
    pub use axum;
    #[cfg(feature = "channels")]
    #[cfg_attr(docsrs, doc(cfg(feature = "channels")))]
    pub use bytes;
    pub use futures;
    #[cfg(feature = "channels")]
    #[cfg_attr(docsrs, doc(cfg(feature = "channels")))]
    pub use http;
    #[cfg(feature = "schema")]
    #[cfg_attr(docsrs, doc(cfg(feature = "schema")))]
    pub use schemars;
    pub use serde_json;
}

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
    #[cfg(feature = "schema")]
    #[cfg_attr(docsrs, doc(cfg(feature = "schema")))]
    pub use ac_tools::TypedTool;
    #[cfg(feature = "tools")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tools")))]
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
