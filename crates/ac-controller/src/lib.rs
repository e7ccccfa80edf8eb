//! AgentController and Session: modes, models, permissions, threads, events.
#![deny(missing_docs)]
