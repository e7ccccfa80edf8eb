//! The program `channels`, briefly: it passes, and it finds what is broken on purpose.

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

#[test]
fn deliveries_that_are_forgotten_are_found_without_waiting_for_long() {
    for seed in ["1", "2", "3"] {
        let begun = std::time::Instant::now();
        let plan = ["--deliveries", "60", "--conversations", "6", "--kills", "0", "--duplicates", "60", "--forgetful", "--seed", seed];
        let (content, said) = channels(&plan);
        assert!(!content && said.contains("was answered 2 times"), "seed {seed}: {said}");
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "seed {seed} took {:?}: {said}", begun.elapsed());
    }
}
