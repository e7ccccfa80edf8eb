//! One driver that runs the engine against model, tools and storage.
//!
//! [`RunHost`] is what a run needs from whoever it works for; the session of a controller is one, the bare agent another.
//!
//! What it must not know: sessions, modes as a concept of their own, channels.
#![deny(missing_docs)]

mod error;
mod host;

pub use error::{RunError, RunErrorKind};
pub use host::{RunHost, RunRef};
