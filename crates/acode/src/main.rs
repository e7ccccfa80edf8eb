//! The terminal app.
fn main() {}
