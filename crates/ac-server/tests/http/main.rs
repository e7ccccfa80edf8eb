//! The server over real sockets.

mod attack;
mod console;
mod own;
mod recorded;
mod routes;
mod shutdown;
mod stream;
mod support;
