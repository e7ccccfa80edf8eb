//! The supervisor as a program of its own, for hosts that cannot call `ac_workspace::supervisor::run_if_asked` in their `main`.

fn main() -> std::process::ExitCode {
    ac_workspace::supervisor::run_if_asked();
    // Started by hand: there is nothing to supervise.
    std::process::ExitCode::from(64)
}
