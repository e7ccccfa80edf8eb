//! `acode`: a planning and building agent for the terminal.
#![allow(clippy::print_stdout, clippy::print_stderr)] // This is where people read.

mod app;
mod args;
mod chat;
mod describe;
mod dispatch;
mod exit;
mod files;
mod follow;
mod input;
mod interrupt;
mod listing;
mod models;
mod paint;
mod project;
mod remote;
mod reply;
mod safe;
mod screen;
mod serve;
mod settings;
mod sink;
mod socket;
mod store;
mod talk;
mod waits;

use std::process::ExitCode;

use clap::Parser;

use crate::{
    args::{Cli, Command, TokenCommand},
    exit::{Exit, Failure},
    interrupt::Interrupts,
    project::Project,
};

fn main() -> ExitCode {
    // Commands run under a copy of this program that watches over them.
    agent_controller::workspace::supervisor::run_if_asked();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; everything else is wrong usage. Who closed the output gets nothing.
            let _ = error.print();
            if error.use_stderr() && args::wants_json(std::env::args_os()) {
                talk::report(&Failure::usage(error.render().to_string().trim()));
            }
            return if error.use_stderr() { Exit::Usage } else { Exit::Complete }.into();
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            talk::complain(&format!("cannot start: {error}"));
            return Exit::Failed.into();
        }
    };
    let exit = runtime.block_on(run(&cli)).unwrap_or_else(|failure| {
        failure.complain();
        if cli.options.json.is_some() {
            talk::report(&failure);
        }
        failure.exit
    });
    // What still hangs is nothing that must be waited for: everything that counts is stored.
    runtime.shutdown_background();
    exit.into()
}

async fn run(cli: &Cli) -> Result<Exit, Failure> {
    cli.check().map_err(Failure::usage)?;
    let folder =
        std::env::current_dir().map_err(|error| Failure::failed("project.folder", format!("cannot find the current folder: {error}")))?;
    let project = Project::open(&folder, cli.options.data.as_deref()).map_err(|message| Failure::failed("project.folder", message))?;
    let mut interrupts = Interrupts::listen().map_err(|error| Failure::failed("signals", format!("cannot listen for Ctrl-C: {error}")))?;
    match &cli.command {
        None => chat::chat(&project, &cli.options, &mut interrupts).await,
        Some(Command::Exec { task }) => talk::exec(&project, &cli.options, task.as_deref(), &mut interrupts).await,
        Some(Command::Serve { listen, auth }) => serve::serve(&project, &cli.options, *listen, auth.as_deref(), &mut interrupts).await,
        Some(Command::Token { command: TokenCommand::Add { name, auth, rights } }) => {
            serve::add_token(&project, name, auth.as_deref(), rights)
        }
        Some(Command::Store { command }) => store::store(&project, *command, &cli.options).await,
        Some(command) => remote::command(&project, command, &cli.options, &mut interrupts).await,
    }
}
