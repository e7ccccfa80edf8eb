//! The run machine as data.
//!
//! [`RunSnapshot::step`] takes an input and answers with effects. It is pure: no IO, no time, no randomness, no await. A snapshot may be
//! stored between any two inputs and continued by any process that can read it.
//!
//! Only [`Input::Dispatch`], which the owner of a run's lease alone gives, yields effects that act ([`Effect::Sample`],
//! [`Effect::RunTool`]). Every other input moves data only, so anybody may commit it (`R2`).
//!
//! What it must not know: async, time, randomness, storage, models.
#![deny(missing_docs)]

mod answer;
mod effect;
mod input;
mod pending;
mod profile;
mod slot;
mod snapshot;
mod step;
pub mod transitions;
mod wording;

pub use answer::{Answer, PlanReply, Refusal, Resolution};
pub use effect::{Effect, Moment};
pub use input::{CallPlan, Gate, Input, StartRun, ToolResult};
pub use profile::{Budget, Limits, Profile};
pub use slot::{ResumeData, Slot, SlotStatus, Wait};
pub use snapshot::{Cancel, Outbox, OutboxAction, Outcome, Phase, Posture, RunSnapshot};
pub use transitions::diagram;
