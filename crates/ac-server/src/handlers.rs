//! What the routes do.

pub(crate) mod answers;
pub(crate) mod controllers;
pub(crate) mod goals;
pub(crate) mod own;
pub(crate) mod permissions;
pub(crate) mod sessions;
pub(crate) mod system;
pub(crate) mod talk;
pub(crate) mod threads;
