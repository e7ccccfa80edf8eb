//! The server over real sockets.

mod attack;
mod own;
mod recorded;
mod routes;
mod shutdown;
mod stream;
mod support;
