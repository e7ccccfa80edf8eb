//! Attempts in which something is swapped between the check and the use. The naive file system compares real paths, which is right at the
//! moment of the check: the swap comes right after it, so that it falls every time. The confined one has no such place to step into, and is
//! tried over and over while another thread swaps.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use crate::{Act, Confined, Place, Subject, naive::Naive};

/// How often and how long the confined one is tried, if a swap has met enough of the tries by then.
const TRIES: usize = 1500;
const ENOUGH: Duration = Duration::from_millis(900);
/// How many tries a swap must meet, and how long that may take.
const MET: usize = 20;
const PATIENCE: Duration = Duration::from_secs(20);

/// Exchanges two names, without a moment in which one of them is not there.
fn swap(one: &Path, other: &Path) -> bool {
    rustix::fs::renameat_with(rustix::fs::CWD, one, rustix::fs::CWD, other, rustix::fs::RenameFlags::EXCHANGE).is_ok()
}

/// Set when dropped: a scope waits for its threads also where the work in it panics.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Swaps what is at `at` for what is at `link` and back, as fast as it goes. `work` gets the number of swaps so far.
fn swapping(at: &Path, link: &Path, work: impl FnOnce(&AtomicUsize)) {
    let (over, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                swaps.fetch_add(usize::from(swap(at, link)), Ordering::Relaxed);
            }
        });
        let _over = Over(&over);
        work(&swaps);
    });
}

/// `swapped` is a folder or file of the workspace, `outside` its twin outside, to which a link leads.
fn race(name: &str, act: Act, swapped: &str, outside: &str, path: &str) {
    println!("{name}: {act:?}");
    let place = Place::new();
    let (at, link) = (place.base.join(swapped), place.base.join(".link"));
    symlink(place.outside.join(outside), &link).unwrap();
    prepare(&place, act, swapped, outside);
    let before = place.state();
    let naive = Naive::checking_real_paths(&place.base, move || assert!(swap(&at, &link)));
    let seen = naive.act(act, Path::new(path));
    assert!(place.escaped(&before, &seen), "{name}: {act:?} does not escape from a check of real paths: {seen:?}");

    let place = Place::new();
    let (at, link) = (place.base.join(swapped), place.base.join(".link"));
    symlink(place.outside.join(outside), &link).unwrap();
    swapping(&at, &link, |swaps| {
        let confined = Confined::new(&place.base);
        let started = Instant::now();
        let (mut tries, mut met) = (0, 0);
        while tries < TRIES && started.elapsed() < ENOUGH || met <= MET && started.elapsed() < PATIENCE {
            prepare(&place, act, swapped, outside);
            let before = place.state();
            let swapped_before = swaps.load(Ordering::Relaxed);
            let seen = confined.act(act, Path::new(path));
            met += usize::from(swaps.load(Ordering::Relaxed) != swapped_before);
            assert!(!place.escaped(&before, &seen), "{name}: got out at try {tries}: {seen:?}");
            tries += 1;
        }
        assert!(met > MET, "{name}: a swap met only {met} of {tries} tries");
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
