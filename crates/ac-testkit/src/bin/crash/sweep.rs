//! Which trials are made, and what is said about them.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    Failure, Sweep, jobs,
    journal::dice,
    life::{self, Kill, Outcome, Trial},
};

/// How often progress is told.
const TELL: Duration = Duration::from_secs(5);
/// A first life never has so many writes; a safeguard against a count that never ends.
const MOST_WRITES: u64 = 5_000;
/// A recovery is killed at one of so many of its first writes.
const EARLY: u64 = 14;

#[derive(Default)]
struct Tally {
    passed: AtomicU64,
    failed: AtomicU64,
    kills: AtomicU64,
    broken: AtomicBool,
    told: Mutex<Option<Instant>>,
    errors: Mutex<Vec<Failure>>,
}

/// Makes all trials. Says whether all went well.
pub(crate) fn sweep(sweep: &Sweep) -> Result<bool, Failure> {
    let jobs: Vec<&'static str> = match sweep.boundaries.as_str() {
        "all" => jobs::JOBS.iter().map(|job| job.name).collect(),
        "none" => vec![],
        name => vec![jobs::job(name).ok_or_else(|| format!("there is no job `{name}`"))?.name],
    };
    let at_once = sweep.at_once.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)).max(1);
    let tally = Tally::default();
    for job in jobs {
        boundaries(sweep, job, at_once, &tally)?;
    }
    if sweep.runs > 0 && !tally.over() {
        moments(sweep, at_once, &tally)?;
    }
    let (passed, failed) = (tally.passed.load(Ordering::Relaxed), tally.failed.load(Ordering::Relaxed));
    println!("{} kills", tally.kills.load(Ordering::Relaxed));
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}

/// Kills a job before and after each of its writes, until it has no more. After each other kill the recovery is killed too.
fn boundaries(sweep: &Sweep, job: &'static str, at_once: usize, tally: &Tally) -> Result<(), Failure> {
    let first = sweep.at.unwrap_or(1);
    // The last write that was hit; two for each write: before and after it.
    let (next, end) = (AtomicU64::new(0), AtomicU64::new(if sweep.at.is_some() { 2 } else { MOST_WRITES }));
    workers(at_once, tally, || {
        let half = next.fetch_add(1, Ordering::Relaxed);
        if half >= end.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let (n, after) = (first + half / 2, half % 2 == 1);
        let mut kills = vec![Kill::Write { n, after }];
        let dice = dice(sweep.seed, &format!("{job} {n} {after}"));
        if dice.is_multiple_of(2) {
            kills.push(Kill::Write { n: 1 + dice / 2 % EARLY, after: dice.is_multiple_of(4) });
        }
        let trial = Trial { seed: sweep.seed, jobs: vec![job], kills, plant: sweep.plant, keep: sweep.keep };
        let outcome = life::run(&trial)?;
        if !outcome.first_hit {
            end.fetch_min(half, Ordering::Relaxed);
        }
        let repeat = format!("--runs 0 --seed {} --boundaries {job} --at {n}", sweep.seed);
        tally.count(sweep, &format!("{job}, {} write {n}", if after { "after" } else { "before" }), &repeat, outcome);
        Ok(true)
    })?;
    println!("{job}: killed at each of about {} writes", next.load(Ordering::Relaxed).min(end.load(Ordering::Relaxed)) / 2);
    Ok(())
}

/// Kills all jobs at once at random moments.
fn moments(sweep: &Sweep, at_once: usize, tally: &Tally) -> Result<(), Failure> {
    let jobs: Vec<&'static str> = jobs::JOBS.iter().map(|job| job.name).collect();
    let calm = Trial { seed: sweep.seed, jobs: jobs.clone(), kills: vec![], plant: sweep.plant, keep: sweep.keep };
    let outcome = life::run(&calm)?;
    let span = outcome.first_life;
    println!("all jobs, not killed: {span:?}, {} writes", outcome.writes);
    tally.count(sweep, "all jobs, not killed", &format!("--runs 1 --seed {} --boundaries none", sweep.seed), outcome);
    let next = AtomicU64::new(0);
    workers(at_once, tally, || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        if at >= sweep.runs {
            return Ok(false);
        }
        let seed = sweep.seed.wrapping_add(at);
        let kills =
            (0..=dice(seed, "kills") % 3).map(|n| Kill::Moment(span.mul_f64((dice(seed, &format!("moment {n}")) % 1000) as f64 / 1000.0)));
        let trial = Trial { seed, jobs: jobs.clone(), kills: kills.collect(), plant: sweep.plant, keep: sweep.keep };
        let outcome = life::run(&trial)?;
        tally.count(sweep, &format!("random run {at}"), &format!("--runs 1 --seed {seed} --boundaries none"), outcome);
        Ok(true)
    })
}

/// Does `work` on several threads until it says that nothing is left.
fn workers(at_once: usize, tally: &Tally, work: impl Fn() -> Result<bool, Failure> + Sync) -> Result<(), Failure> {
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while !tally.over() {
                    match work() {
                        Ok(true) => {}
                        Ok(false) => return,
                        Err(error) => {
                            tally.broken.store(true, Ordering::Relaxed);
                            tally.errors.lock().unwrap_or_else(PoisonError::into_inner).push(error);
                        }
                    }
                }
            });
        }
    });
    tally.errors.lock().unwrap_or_else(PoisonError::into_inner).pop().map_or(Ok(()), Err)
}

impl Tally {
    /// Nothing more is to be tried.
    fn over(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    fn count(&self, sweep: &Sweep, what: &str, repeat: &str, outcome: Outcome) {
        self.kills.fetch_add(outcome.kills, Ordering::Relaxed);
        if outcome.failures.is_empty() {
            self.passed.fetch_add(1, Ordering::Relaxed);
        } else {
            self.failed.fetch_add(1, Ordering::Relaxed);
            let plant = sweep.plant.map(|plant| format!(" --plant {}", plant.name())).unwrap_or_default();
            println!("FAILED {what}\n  {}\n  again: crash {repeat}{plant}", outcome.failures.join("\n  "));
            if sweep.fail_fast {
                self.broken.store(true, Ordering::Relaxed);
            }
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|at| at.elapsed() > TELL) {
            *told = Some(Instant::now());
            let (passed, failed) = (self.passed.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed));
            println!("… {passed} passed, {failed} failed, {} kills, now at {what}", self.kills.load(Ordering::Relaxed));
        }
    }
}
