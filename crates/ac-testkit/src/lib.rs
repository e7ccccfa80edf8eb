//! Kit for testing against agent-controller: scripted model server, injected ids and clock, faulty stores, conformance suites.
//!
//! What a test of this runtime must not do is pretend: the model here is a real HTTP server ([`ScriptedServer`]) that follows a script,
//! checks that each request is a legal history, and can fail in every way that a network can. Time and ids are given
//! ([`ManualClock`], [`SequentialIds`]), so that a [`Transcript`] reads the same every time and needs no filters.
//!
//! A library author takes the kit with `default-features = false`: it stands on the contracts alone.
#![deny(missing_docs)]

pub mod clock;
pub mod conformance;
pub mod ids;
pub mod model;
pub mod pairing;
#[cfg(feature = "platforms")]
pub mod platforms;
#[cfg(feature = "bins")]
pub mod scenario;
pub mod server;
pub mod shared;
pub mod store;
pub mod transcript;
#[cfg(feature = "wire")]
pub mod wire;

pub use clock::ManualClock;
pub use ids::SequentialIds;
pub use model::ScriptedModel;
pub use server::{Framing, ScriptedServer, Turn};
pub use transcript::Transcript;
