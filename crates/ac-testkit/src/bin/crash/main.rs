//! Kills a process that works, again and again, and looks whether anything was lost, repeated or invented.
//!
//! Three processes take part. The *child* works through scripted jobs on the real controller, a sled store and a scripted model behind
//! real HTTP; it says on a pipe what it acknowledged, and its tools write each side effect to a log. The *parent* is the model server
//! and the killer: with SIGKILL before and after the first write of the child, the second, and so on until none is left, and at random
//! moments; after each kill a new child opens the store, recovers, and goes on as a person would who knows only what was acknowledged.
//! The *checker* knows the pipe, the log of side effects, the store through its public face and the requests that the model server saw.
//! It holds that
//!
//! - every acknowledged message is stored once, and the model saw it once; one that was not acknowledged at most once;
//! - every acknowledged answer counts: what was declined never ran, what was approved was not denied, a reply reached the tool;
//! - the side effect of a `Mutating` call happened at most once, and once more for each time that a person said "run it again";
//!   no result claims an effect that never was, no effect belongs to a call that is not in the history;
//! - every stored call has its result, and every request was a legal history, also the last one on each thread;
//! - what was deleted is gone, a copy has what it was made of, a grant holds until it is taken back and not longer;
//! - every run closed, every queue is empty, nothing is pending, and the store is sound.
//!
//! `--plant` breaks the child on purpose: a run with it must end in failures. A failure is printed with the command that repeats it.
//! Kill moments depend on the machine, so a random failure may need a few tries.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports on its terminal")]

mod check;
mod contest;
mod desk;
mod jobs;
mod journal;
mod life;
mod plant;
mod sweep;
mod tools;
mod work;

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};

use self::plant::Plant;

/// Kills a process that works, recovers, and checks that nothing was lost, repeated or invented.
///
/// First each job alone, killed at each of its writes to the store in turn; then all jobs at once, killed at random moments. Exits with 1
/// if anything failed; the last line is `N passed, N failed`.
#[derive(Debug, Parser)]
#[command(name = "crash", args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    role: Option<Role>,
    #[command(flatten)]
    sweep: Sweep,
}

/// What is to be tried.
#[derive(Clone, Debug, Args)]
pub(crate) struct Sweep {
    /// How many runs are killed at random moments; each is killed one to three times.
    #[arg(long, default_value_t = 50)]
    pub(crate) runs: u64,
    /// Decides on answers and kill moments. Random run number i uses seed + i.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Whose writes are tried in turn: `all`, `none`, or the name of a job.
    #[arg(long, default_value = "all")]
    pub(crate) boundaries: String,
    /// Only this write, from 1.
    #[arg(long)]
    pub(crate) at: Option<u64>,
    /// Breaks the child on purpose.
    #[arg(long)]
    pub(crate) plant: Option<Plant>,
    /// How many runs go on at the same time; by default as many as there are cores.
    #[arg(long)]
    pub(crate) at_once: Option<usize>,
    /// Ends at the first failure.
    #[arg(long)]
    pub(crate) fail_fast: bool,
    /// Keeps the folder of each failed run and names it.
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// The child. Started by the program itself.
    #[command(hide = true)]
    Work(Work),
    /// The checker. Started by the program itself.
    #[command(hide = true)]
    Check {
        /// The folder of the run.
        dir: PathBuf,
    },
    /// Two processes on one store that want the same runs, again and again: both answer at once, and one goes on that was asleep while the
    /// other took its run over. No run may be advanced twice, and who comes second must stop cleanly.
    Contest(Contest),
    /// One of the two. Started by the program itself.
    #[command(hide = true)]
    Rival(Rival),
}

/// Two processes on one store.
#[derive(Clone, Debug, Args)]
pub(crate) struct Contest {
    /// How many times a run is contested, at least.
    #[arg(long, default_value_t = 100)]
    pub(crate) hand_overs: u64,
    /// Decides on answers and moments.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Breaks one of the two on purpose: it commits over what the other stored. Must end in failures.
    #[arg(long)]
    pub(crate) blind: bool,
    /// How many stores are contested at the same time; by default as many as there are cores.
    #[arg(long)]
    pub(crate) at_once: Option<usize>,
}

/// One of the two.
#[derive(Clone, Debug, Args)]
pub(crate) struct Rival {
    /// The folder of the store.
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// Where the model is.
    #[arg(long)]
    pub(crate) url: String,
    /// Which of the two.
    #[arg(long)]
    pub(crate) name: String,
    /// Commits over what the other stored.
    #[arg(long)]
    pub(crate) blind: bool,
}

/// One life of the child.
#[derive(Clone, Debug, Args)]
pub(crate) struct Work {
    /// The folder of the run.
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// Where the model is.
    #[arg(long)]
    pub(crate) url: String,
    /// Decides on answers.
    #[arg(long)]
    pub(crate) seed: u64,
    /// Which life this is, from 0.
    #[arg(long)]
    pub(crate) life: u32,
    /// Jobs by name.
    #[arg(long = "job")]
    pub(crate) jobs: Vec<String>,
    /// Dies at this write, from 1.
    #[arg(long)]
    pub(crate) die_at: Option<u64>,
    /// Dies after that write was made, and before anybody hears of it.
    #[arg(long)]
    pub(crate) die_after: bool,
    /// Commits survive a power cut too.
    #[arg(long)]
    pub(crate) power: bool,
    /// Breaks on purpose.
    #[arg(long)]
    pub(crate) plant: Option<Plant>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match &cli.role {
        None => sweep::sweep(&cli.sweep),
        Some(Role::Work(work)) => work::work(work),
        Some(Role::Check { dir }) => check::check(dir),
        Some(Role::Contest(contest)) => contest::contest(contest),
        Some(Role::Rival(rival)) => contest::rival::rival(rival),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("crash: {error}");
            ExitCode::from(2)
        }
    }
}

/// What keeps the program from going on.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
