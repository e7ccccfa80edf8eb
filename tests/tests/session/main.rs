//! Sessions, end to end: a scripted model behind real HTTP, the real driver, a store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod answers;
mod desk;
mod modes;
mod permissions;
mod processes;
mod registry;
mod reports;
mod rules;
mod running;
mod threads;
mod turmoil;
