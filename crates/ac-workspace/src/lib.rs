//! The confined world of an agent: files below one folder, commands that end when they are told to.
//!
//! A [`Workspace`] joins a [`Filesystem`] and a [`Sandbox`]. [`LocalFilesystem`] holds against the kernel, not against strings: every path
//! is resolved relative to an open folder, so links, swapped links and `..` stay inside. `LocalSandbox` (feature `sandbox`) runs commands in a
//! process group of their own, streams and caps what they print and leaves nothing behind.
//!
//! What it must not know: models, sessions, storage.
#![deny(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod diff;
mod error;
mod fs;
mod local_fs;
#[cfg(feature = "sandbox")]
mod local_sandbox;
#[cfg(feature = "rules")]
#[cfg_attr(docsrs, doc(cfg(feature = "rules")))]
pub mod rules;
mod sandbox;
mod search;
#[cfg(feature = "sandbox")]
#[cfg_attr(docsrs, doc(cfg(feature = "sandbox")))]
pub mod supervisor;
pub mod text;
mod walk;
mod workspace;

pub use error::{WorkspaceError, WorkspaceErrorKind};
pub use fs::{DirEntry, Expect, FileContent, FileKind, FileStat, FileVersion, Filesystem};
pub use local_fs::{LocalFilesystem, LocalFilesystemOptions};
#[cfg(feature = "sandbox")]
#[cfg_attr(docsrs, doc(cfg(feature = "sandbox")))]
pub use local_sandbox::{LocalSandbox, LocalSandboxOptions, Supervisor};
pub use sandbox::{
    CommandOutput, CommandRequest, CommandResult, Confinement, Exit, FileLimit, Isolation, NetworkLimit, NoSink, OutputSink, OutputStream,
    ProcessId, ProcessInfo, ProcessState, Sandbox,
};
pub use search::{SearchHit, SearchQuery, SearchResult};
pub use walk::{WalkEntry, WalkQuery, WalkResult};
pub use workspace::Workspace;
