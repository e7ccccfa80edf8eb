//! One driver that runs the engine against model, tools and storage.
//!
//! [`Runtime`] moves the runs of one process: it starts them, takes them over after a crash, routes answers to them and parks them.
//! [`RunHost`] is what a run needs from whoever it works for; the session of a controller is one, the bare [`Agent`] another.
//!
//! What it must not know: sessions, modes as a concept of their own, channels.
#![deny(missing_docs)]

mod agent;
mod answer;
mod ask;
mod cap;
mod child;
mod commit;
mod driver;
mod error;
mod gate;
mod handle;
mod history;
mod host;
mod patience;
mod progress;
mod record;
mod runtime;
mod sampling;
mod settings;
mod shared;
mod spans;
mod teller;
mod upward;

pub use agent::{Agent, AgentBuilder, AgentChunk, AgentStream, ChunkBody, StreamOptions};
pub use child::ChildProfile;
pub use error::{RunError, RunErrorKind};
pub use handle::{Accepted, RunHandle, RunStatus};
pub use host::{JudgeContext, Judgement, RunHost, RunRef};
pub use record::RunOrigin;
pub use runtime::Runtime;
pub use settings::RuntimeSettings;
pub use teller::in_doubt_payload;
