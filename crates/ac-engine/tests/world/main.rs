//! The machine in a world: a store with the atomic commit, two drivers that crash, are superseded and lose the outcome of commits, and
//! people who answer, abort, write and change their minds. Whatever happens, the oracles hold; and every planted fault is noticed.
//!
//! `CASES=n` sets how many interleavings are tried, `AC_FAST=1` tries few.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]

mod driver;
mod mutant;
mod oracle;
mod owner;
mod script;
mod store;
mod told;
mod world;

use std::{cell::RefCell, collections::BTreeSet};

use ac_engine::transitions::{Place, TRANSITIONS};
use mutant::{Mutant, PLANTED, READINGS};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use script::{actions, scripts};
use world::World;

fn cases(usual: u32) -> u32 {
    if let Some(cases) = std::env::var("CASES").ok().and_then(|cases| cases.parse().ok()) {
        return cases;
    }
    if std::env::var_os("AC_FAST").is_some() { usual / 20 } else { usual }
}

/// What the worlds went through.
#[derive(Default)]
struct Seen {
    moves: BTreeSet<(Place, &'static str, Place)>,
    pairs: BTreeSet<(Place, &'static str, bool, bool)>,
    commits: u64,
    samples: u64,
    doubts: u64,
}

/// Searches for a world in which an oracle does not hold.
fn hunt(mutant: Mutant, calm: bool, cases: u32) -> Result<Seen, String> {
    let seen = RefCell::new(Seen::default());
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: if mutant == Mutant::None { 2000 } else { 0 }, ..Config::default() };
    // A mutant is found by the same worlds each time; the machine itself sees new ones with each run of the tests.
    let mut runner = match mutant {
        Mutant::None => TestRunner::new(config),
        _ => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    };
    let found = runner.run(&(scripts(), actions()), |(script, actions)| {
        let mut world = World::play(script, actions, mutant, calm);
        let bad = world.verdict();
        let mut seen = seen.borrow_mut();
        seen.moves.append(&mut world.log.moves);
        seen.pairs.append(&mut world.log.pairs);
        seen.commits += world.log.commits;
        seen.samples += world.log.samples;
        seen.doubts += world.log.doubts;
        if bad.is_empty() { Ok(()) } else { Err(TestCaseError::fail(bad.join("\n"))) }
    });
    found.map(|()| seen.take()).map_err(|error| error.to_string())
}

/// The machine makes no move that the diagram does not draw; and the worlds get around.
fn check_coverage(seen: &Seen, cases: u32) {
    let drawn: BTreeSet<_> = TRANSITIONS.iter().copied().collect();
    let strange: Vec<_> = seen.moves.iter().filter(|made| !drawn.contains(made)).collect();
    assert!(strange.is_empty(), "moves that are not drawn: {strange:?}");
    let missed: Vec<_> = drawn.iter().filter(|drawn| !seen.moves.contains(drawn)).collect();
    let made = drawn.len() - missed.len();
    println!(
        "{cases} worlds: {} commits, {} model calls, {} times in doubt, {} pairs of place and input, {made} of {} moves, not {missed:?}",
        seen.commits,
        seen.samples,
        seen.doubts,
        seen.pairs.len(),
        drawn.len()
    );
    assert!(cases < 1000 || made * 4 >= drawn.len() * 3, "the worlds make only {made} of {} moves", drawn.len());
}

#[test]
fn the_rules_hold_whatever_crashes_or_is_taken_over() {
    let cases = cases(6500);
    let seen = hunt(Mutant::None, false, cases).unwrap_or_else(|error| panic!("{error}"));
    check_coverage(&seen, cases);
}

#[test]
fn the_rules_hold_in_calm_and_nothing_is_ever_in_doubt() {
    let seen = hunt(Mutant::None, true, cases(3500)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(seen.doubts, 0);
}

fn first_line(error: &str) -> String {
    error.lines().next().unwrap_or_default().chars().take(200).collect()
}

#[test]
fn every_planted_fault_is_noticed() {
    let missed: Vec<_> = PLANTED
        .into_iter()
        .filter(|mutant| match hunt(*mutant, false, 6000) {
            Ok(_) => true,
            Err(error) => {
                println!("{mutant:?}: {}", first_line(&error));
                false
            }
        })
        .collect();
    assert!(missed.is_empty(), "not noticed: {missed:?}");
}

#[test]
fn every_reading_that_fails_is_noticed() {
    let missed: Vec<_> = READINGS
        .into_iter()
        .filter(|(mutant, calm)| match hunt(*mutant, *calm, 6000) {
            Ok(_) => true,
            Err(error) => {
                println!("{mutant:?}: {}", first_line(&error));
                false
            }
        })
        .collect();
    assert!(missed.is_empty(), "not noticed: {missed:?}");
}
