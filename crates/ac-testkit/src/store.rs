//! Stores that fail on command, tell what they were asked, or are broken on purpose; and one that several processes share.
//!
//! [`HookedStorage`] and [`HookedKv`] put a [`Hook`] around every call of a store. [`Faults`] is a hook that fails, stalls, conflicts, or
//! does the work and then reports failure, by script or by seed; [`Recorder`] is one that writes down what was called.

pub mod broken;
mod fault;
mod file;
mod hooked;
mod hooked_kv;
mod record;

pub use fault::{Fault, Faults};
pub use file::FileKv;
pub use hooked::{Call, Hook, HookedStorage, Op};
pub use hooked_kv::HookedKv;
pub use record::{Record, Recorder};

/// A store that fails on command.
pub type FaultStore<S> = HookedStorage<S, Faults>;

/// A store that writes down what it was asked.
pub type RecordingStore<S> = HookedStorage<S, Recorder>;
