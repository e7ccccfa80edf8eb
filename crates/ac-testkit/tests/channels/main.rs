//! Chat channels against platforms on the own machine: routing, decisions, posts, attacks.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod attacks;
mod choices;
mod decisions;
mod desk;
mod files;
mod lost;
mod ordinary;
mod posts;
mod program;
mod routing;
mod unattended;
