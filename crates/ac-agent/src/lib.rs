//! Agent: one driver that runs the engine against model, tools and storage.
#![deny(missing_docs)]
