//! Chat channels: the same controller answers in Slack, Discord, Telegram, or whatever signs its webhooks.
//!
//! One conversation on a platform is one stored thread and one session. What comes in is verified ([`ChannelAdapter`]), stored with the
//! conversation in the same write that makes it known, and answered within the platform's time, whatever the model does; a task of the
//! conversation hands it on in order. What goes out follows from the stored thread: answers grow by edits, approvals and questions are
//! cards with signed buttons, and a restart goes on where the process stopped. Begin with [`Channels::builder`].
//!
//! What it must not know: the HTTP server that carries it.
#![deny(missing_docs)]

pub mod adapter;
mod button;
mod caller;
mod cards;
mod channels;
mod conversation;
mod discord;
mod error;
pub mod event;
pub mod hooks;
mod live;
mod prepared;
mod record;
mod registry;
pub mod render;
mod settings;
mod signature;
mod slack;
mod telegram;
mod webhook;

pub use adapter::{Button, ButtonStyle, Capabilities, ChannelAdapter, LengthUnit, Menu, Post, PostKey, Received, Refused, Upload};
pub use button::wants_reply;
pub use channels::{Channels, ChannelsBuilder};
pub use discord::Discord;
pub use error::{ChannelError, ChannelErrorKind};
pub use event::{Attachment, Click, Conversation, Earlier, Incoming, IncomingKind, Said, Speaker};
pub use hooks::{About, ChannelHooks, Deciding, NoHooks, SessionRefused};
pub use registry::ChannelRegistry;
pub use settings::{ChannelSettings, ToolDisplay, WithoutButtons};
pub use signature::same_secret;
pub use slack::Slack;
pub use telegram::Telegram;
pub use webhook::SignedWebhook;
