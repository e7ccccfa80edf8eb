//! Provider wires for agent-controller: server-sent events, request and stream adapters, router, retry policy.
#![deny(missing_docs)]

pub mod demo;
