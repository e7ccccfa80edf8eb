//! The run machine as data: a serialisable state machine without IO, time or randomness.
#![deny(missing_docs)]
