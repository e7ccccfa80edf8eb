//! Delivers to chat channels, kills the process that answers, and looks whether every message was answered exactly once.
//!
//! The *parent* is the three platforms (a real HTTP server, with their limits and their pauses) and the people on them: each conversation
//! has one who writes, presses buttons, and sees what the platform shows. It delivers as platforms do: what is not answered with 2xx comes
//! again, a fifth comes twice, late, and after restarts. The *child* is a controller with its channels on a sled store; it dies by SIGKILL
//! at random moments. At the end everything that people can see, and everything that the tool really did, is counted.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports on its terminal")]

mod account;
mod fate;
mod heart;
mod life;
mod model;
mod people;
mod tally;
mod work;
mod world;

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};

/// Delivers to chat channels, kills the process that answers, and checks that every message was answered exactly once.
///
/// Exits with 1 if anything failed; the last line is `N passed, N failed`.
#[derive(Debug, Parser)]
#[command(name = "channels", args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    role: Option<Role>,
    #[command(flatten)]
    plan: Plan,
}

/// What is to be tried.
#[derive(Clone, Debug, Args)]
pub(crate) struct Plan {
    /// How many deliveries reach the webhooks, duplicates included.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) deliveries: u64,
    /// Decides on messages, decisions, duplicates and moments of death.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Over how many conversations.
    #[arg(long, default_value_t = 100)]
    pub(crate) conversations: u64,
    /// How often the process is killed.
    #[arg(long, default_value_t = 5)]
    pub(crate) kills: u64,
    /// How often the process gets no processor for one to twenty seconds.
    #[arg(long, default_value_t = 0)]
    pub(crate) pauses: u64,
    /// How many in a hundred deliveries are made twice.
    #[arg(long, default_value_t = 20)]
    pub(crate) duplicates: u64,
    /// The child forgets which deliveries it took: the check must find that.
    #[arg(long)]
    pub(crate) forgetful: bool,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// The child. Started by the program itself.
    #[command(hide = true)]
    Work(Work),
}

/// One life of the child.
#[derive(Clone, Debug, Args)]
pub(crate) struct Work {
    /// The folder of the run.
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// Where each platform's API is.
    #[arg(long)]
    pub(crate) slack: String,
    #[arg(long)]
    pub(crate) telegram: String,
    #[arg(long)]
    pub(crate) discord: String,
    /// Breaks on purpose.
    #[arg(long)]
    pub(crate) forgetful: bool,
}

/// What keeps the program from going on.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match &cli.role {
        None => people::run(&cli.plan),
        Some(Role::Work(work)) => work::work(work),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("channels: {error}");
            ExitCode::from(2)
        }
    }
}
