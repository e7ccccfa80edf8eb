//! `acode`: a planning and building agent for the terminal.
#![allow(clippy::print_stdout, clippy::print_stderr)] // This is where people read.
#![allow(dead_code, unused_imports, reason = "the program that joins these parts is the next step")]

mod args;
mod describe;
mod exit;
mod files;
mod input;
mod interrupt;
mod paint;
mod project;
mod reply;
mod safe;
mod sink;
mod socket;

fn main() {}
