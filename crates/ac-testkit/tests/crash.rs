//! The crash program, briefly: it passes, and it finds each fault that is planted.
#![allow(clippy::unwrap_used)]

use std::process::Command;

/// Runs the program; whether it was content, and what it said.
fn crash(args: &[&str]) -> (bool, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_crash")).args(args).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    (out.status.success(), said)
}

/// The last line, as numbers.
fn tally(said: &str) -> (u64, u64) {
    let last = said.trim_end().lines().last().unwrap();
    let (passed, failed) = last.split_once(" passed, ").unwrap();
    (passed.parse().unwrap(), failed.strip_suffix(" failed").unwrap().parse().unwrap())
}

#[test]
fn a_job_survives_a_kill_at_each_of_its_writes() {
    let (content, said) = crash(&["--runs", "0", "--boundaries", "parallel"]);
    let (passed, failed) = tally(&said);
    assert!(content && failed == 0 && passed > 20, "{said}");
}

#[test]
fn all_jobs_survive_kills_at_random_moments() {
    let (content, said) = crash(&["--runs", "5", "--boundaries", "none"]);
    assert!(content && tally(&said) == (6, 0), "{said}");
}

/// A fault that shows in every run.
fn is_found(plant: &str, as_what: &str) {
    let (content, said) = crash(&["--runs", "1", "--boundaries", "none", "--fail-fast", "--plant", plant]);
    assert!(!content && tally(&said).1 > 0, "{said}");
    assert!(said.contains(as_what), "{said}");
}

#[test]
fn a_lost_message_is_found() {
    is_found("lose", "was acknowledged and is lost");
}

#[test]
fn a_doubled_message_is_found() {
    is_found("double", "is stored 2 times");
}

#[test]
fn a_call_without_its_result_is_found() {
    is_found("orphan", "has no result");
}

/// Only a kill shows it, between the deed and its result.
#[test]
fn a_repeated_deed_is_found() {
    let (content, said) = crash(&["--runs", "0", "--boundaries", "parallel", "--fail-fast", "--plant", "repeat"]);
    assert!(!content && tally(&said).1 > 0, "{said}");
    assert!(said.contains("acted 2 times, 1 allowed"), "{said}");
}

#[test]
fn two_processes_that_want_the_same_runs_never_advance_one_twice() {
    let (content, said) = crash(&["contest", "--hand-overs", "12"]);
    assert!(content && tally(&said).1 == 0, "{said}");
}

#[test]
fn a_process_that_commits_over_another_is_found() {
    let (content, said) = crash(&["contest", "--hand-overs", "24", "--blind"]);
    assert!(!content && tally(&said).1 > 0, "{said}");
}
