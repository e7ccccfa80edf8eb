//! Models over the wire: provider protocols as they really are.
//!
//! Each protocol is an adapter of two pure halves. The request half ([`request::build`]) makes a neutral
//! [`ModelRequest`](ac_core::ModelRequest) into an HTTP request; the stream half ([`decode::AnswerReader`]) makes the bytes of an answer
//! into [`ModelEvent`](ac_core::ModelEvent)s. Neither knows a socket, a clock or a key, so both are tested with nothing but data.
//! [`HttpProvider`] joins them over a [`Transport`], which a host may replace.
//!
//! # How a provider is written
//!
//! A server that speaks a known protocol needs no code, only a [`Profile`]: its name, its base URL, where its key comes from, and how its
//! wire differs. A new protocol is a folder with two files. `request.rs` walks the turns of the history (calls are already paired with
//! their results there) and writes the body. `stream.rs` takes one payload at a time and tells text, thinking and calls to the shared
//! part writer, which gives indexes, keeps what the provider wants back, and closes each part once. What ends an answer is known to the
//! decoder alone: a body that ends without it is [`Truncated`](ac_core::ModelErrorKind::Truncated). A provider over something else than
//! HTTP implements [`ModelProvider`](ac_core::ModelProvider) itself.
//!
//! Nothing here retries: [`retry::next`] is a pure policy for whoever drives a run.
//!
//! # Features
//!
//! `openai`, `anthropic` and `gemini` hold the adapters; all three are on by default. A provider whose adapter is left out is known by name
//! still, and asking it is an error that names the feature. `transport-reqwest` brings the transport, `rustls` and `native-tls` the
//! encryption of its connections; with both, rustls is used.
#![deny(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(all(feature = "openai", feature = "anthropic", feature = "gemini")),
    allow(dead_code, reason = "what only an adapter uses that is left out")
)]

#[cfg(feature = "anthropic")]
pub mod anthropic;
pub mod catalog;
pub mod decode;
pub mod demo;
mod error;
pub mod fallback;
#[cfg(feature = "gemini")]
pub mod gemini;
mod history;
pub mod key;
mod lines;
#[cfg(any(feature = "anthropic", feature = "openai"))]
mod media;
pub mod mode;
mod name;
#[cfg(feature = "openai")]
pub mod ollama;
#[cfg(feature = "openai")]
pub mod openai_chat;
#[cfg(feature = "openai")]
pub mod openai_responses;
mod parts;
pub mod profile;
pub mod provider;
pub mod request;
pub mod retry;
pub mod router;
mod schema;
mod shape;
pub mod sse;
pub mod transport;

pub use catalog::{AuthStatus, ModelInfo};
pub use fallback::Fallback;
pub use key::{EnvKeys, Keys};
pub use mode::{ToolCallMode, UnknownMode};
pub use profile::{Api, Auth, ModelNames, Profile};
#[cfg(feature = "openai")]
pub use provider::OpenAiCompatible;
pub use provider::{HttpProvider, Timeouts};
pub use router::Router;
/// What a key is kept in: it shows itself nowhere, and is wiped when it goes.
pub use secrecy::SecretString;
#[cfg(feature = "transport-reqwest")]
pub use transport::ReqwestTransport;
pub use transport::Transport;
