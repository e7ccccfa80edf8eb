//! Checks of this workspace; `cargo xtask help`.
fn main() {}
