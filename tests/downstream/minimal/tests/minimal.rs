//! It runs, and the model answers.

use std::process::Command;

#[test]
fn the_demonstration_model_answers() {
    let out = Command::new(env!("CARGO_BIN_EXE_minimal")).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(String::from_utf8_lossy(&out.stdout).contains("demo/guide"));
}
