//! The machine, input by input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod calls;
mod diagram;
mod golden;
mod samples;
mod support;
mod table;
