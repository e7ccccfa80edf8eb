//! Tools for agent-controller: questions, plans, tasks and the workspace.
#![deny(missing_docs)]
