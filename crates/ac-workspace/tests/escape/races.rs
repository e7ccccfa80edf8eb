//! Attempts in which another thread swaps something between the check and the use. The naive file system compares real paths, which is
//! right at the moment of the check.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use crate::{Act, Confined, Place, Subject, naive::Naive};

/// How long the naive one may take to fall, and how often the confined one is tried at least.
const PATIENCE: Duration = Duration::from_secs(20);
const TRIES: usize = 1500;
const ENOUGH: Duration = Duration::from_millis(900);

/// Swaps what is at `name` between the folder or file of the workspace and a link to its twin outside, without a moment in which nothing is
/// there.
fn swapping(place: &Place, name: &str, outside: &str, work: impl FnOnce()) {
    let (at, link) = (place.base.join(name), place.base.join(".link"));
    symlink(place.outside.join(outside), &link).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(rustix::fs::CWD, &at, rustix::fs::CWD, &link, rustix::fs::RenameFlags::EXCHANGE).ok();
            }
        });
        work();
        over.store(true, Ordering::Relaxed);
    });
}

fn race(name: &str, act: Act, swapped: &str, outside: &str, path: &str) {
    println!("{name}: {act:?}");
    let place = Place::new();
    let mut fell = false;
    swapping(&place, swapped, outside, || {
        let naive = Naive::checking_real_paths(&place.base);
        let started = Instant::now();
        while !fell && started.elapsed() < PATIENCE {
            prepare(&place, act, swapped, outside);
            let before = place.state();
            let seen = naive.act(act, Path::new(path));
            fell = place.escaped(&before, &seen);
        }
    });
    assert!(fell, "{name}: the race cannot be won against a check of real paths");

    let place = Place::new();
    swapping(&place, swapped, outside, || {
        let confined = Confined::new(&place.base);
        let started = Instant::now();
        let mut tries = 0;
        while tries < TRIES && started.elapsed() < ENOUGH {
            prepare(&place, act, swapped, outside);
            let before = place.state();
            let seen = confined.act(act, Path::new(path));
            assert!(!place.escaped(&before, &seen), "{name}: got out at try {tries}: {seen:?}");
            tries += 1;
        }
        assert!(tries > 20, "{name}: only {tries} tries");
    });
}

/// Puts back what an earlier try took away.
fn prepare(place: &Place, act: Act, swapped: &str, outside: &str) {
    let (at, link) = (place.base.join(swapped), place.base.join(".link"));
    match act {
        Act::MoveOut => {
            fs::write(place.base.join("own"), "own").unwrap();
            fs::remove_file(place.base.join("sub/moved")).ok();
        }
        // A file that was replaced may have replaced the link.
        Act::Overwrite if ![&at, &link].iter().any(|path| path.is_symlink()) => {
            fs::remove_file(&link).ok();
            symlink(place.outside.join(outside), &link).ok();
        }
        _ => {}
    }
}

#[test]
fn a_folder_swapped_while_a_file_is_read() {
    race("folder", Act::Read, "sub", "", "sub/secret");
}

#[test]
fn a_file_swapped_while_it_is_read() {
    race("file", Act::Read, "own", "secret", "own");
}

#[test]
fn a_folder_swapped_while_a_file_is_overwritten() {
    race("folder", Act::Overwrite, "sub", "", "sub/secret");
}

#[test]
fn a_file_swapped_while_it_is_overwritten() {
    race("file", Act::Overwrite, "own", "secret", "own");
}

#[test]
fn a_folder_swapped_while_a_folder_is_made() {
    race("folder", Act::MakeDir, "sub", "", "sub/new");
}

#[test]
fn a_folder_swapped_while_it_is_listed() {
    race("folder", Act::List, "sub", "", "sub");
}

#[test]
fn a_folder_swapped_while_a_file_is_moved_there() {
    race("folder", Act::MoveOut, "sub", "", "sub/moved");
}

#[test]
fn a_folder_swapped_while_it_is_walked() {
    race("folder", Act::Walk, "sub", "", "sub");
}

#[test]
fn a_folder_swapped_while_it_is_searched() {
    race("folder", Act::Search, "sub", "", "sub");
}

#[test]
fn a_folder_swapped_while_a_tree_is_removed() {
    race("folder", Act::RemoveTree, "sub", "", "sub/deep");
}
