//! The server over real sockets.

mod attack;
mod own;
mod recorded;
mod routes;
mod stream;
mod shutdown;
mod support;
