//! `acode` as people and scripts use it: the real program, through pipes, pseudo-terminals, signals and sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

mod bad_input;
mod exec;
mod harness;
mod held;
mod killed;
mod pipe;
mod rules;
mod serve;
mod store;
mod terminal;
