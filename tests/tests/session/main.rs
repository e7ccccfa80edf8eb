//! Sessions, end to end: a scripted model behind real HTTP, the real driver, a store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod answers;
mod contexts;
mod desk;
mod goals;
mod histories;
mod hosts;
mod memory;
mod modes;
mod owners;
mod permissions;
mod processes;
mod registry;
mod repeats;
mod reports;
mod rivals;
mod rules;
mod running;
mod signals;
mod subagents;
mod suspensions;
mod tasks;
mod threads;
mod turmoil;
