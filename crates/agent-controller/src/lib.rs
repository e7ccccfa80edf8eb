//! Runtime for interactive agent applications: durable approvals, questions and plans, modes, threads, events.
#![deny(missing_docs)]
