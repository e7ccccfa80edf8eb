//! The HTTP and SSE surface: controllers served so that the published TypeScript client drives them unchanged.
//!
//! [`Server`] makes an axum `Router` that a host mounts, or serves it itself with the limits that a public socket needs. The reference's
//! routes behave as its client expects; what the reference lacks stands beside them: typed outcomes of answers, a stream that resumes
//! without loss, resources that belong to principals, limits, metrics, and a description generated from the route table.
//!
//! What it must not know: terminals.
#![deny(missing_docs)]

mod auth;
mod call;
mod console;
mod failure;
mod frames;
mod handlers;
mod history;
mod limits;
mod metrics;
mod openapi;
mod origin;
mod owners;
mod plain;
mod query;
mod route;
mod serve;
mod server;
mod shape;
mod stream;
mod tokens;
mod webhook;

pub use auth::{Auth, Principal};
pub use limits::Limits;
pub use openapi::document;
pub use server::{ModelEntry, Served, Server, ServerBuilder, ServerError};
pub use tokens::{TokenFile, new_token};
