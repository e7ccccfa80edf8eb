//! The confined world of an agent: files below one folder, commands that end when they are told to.
#![deny(missing_docs)]
