//! The server over real sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice, clippy::print_stderr)]

mod attack;
mod console;
mod every_route;
mod own;
mod recorded;
mod routes;
mod shutdown;
mod stream;
mod support;
mod webhook;
