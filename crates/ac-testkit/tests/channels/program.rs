//! The program `channels`, briefly.

use std::process::Command;

fn channels(args: &[&str]) -> (bool, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_channels")).args(args).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    (out.status.success(), said)
}

#[test]
fn every_message_is_answered_once_whatever_dies() {
    let (content, said) = channels(&["--deliveries", "120", "--conversations", "9", "--kills", "1", "--seed", "3"]);
    assert!(content && said.trim_end().ends_with(" 0 failed"), "{said}");
}
