//! The acceptance fixture: one controller with small tools, for whoever checks a client against this server.
//!
//! `fixture HOST PORT LLM_BASE_URL MODEL_ID CONTROLLER_ID DB`; `DB` is a folder, made if absent. When it is ready it prints
//! `listening on http://HOST:PORT/api`. SIGTERM parks what runs and ends it.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A program for tests.

#[path = "fixture/controller.rs"]
mod controller;

use std::{process::ExitCode, sync::Arc, time::Duration};

use ac_server::{Limits, Server};
use ac_storage::sled_kv::SledStorage;
use tokio::signal::unix::{SignalKind, signal};

use self::controller::Setup;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [host, port, base_url, model, controller, db] = args.as_slice() else {
        eprintln!("usage: fixture HOST PORT LLM_BASE_URL MODEL_ID CONTROLLER_ID DB");
        return ExitCode::from(64);
    };
    let setup = Setup { base_url: base_url.trim_end_matches('/').to_owned(), model: model.clone(), controller: controller.clone() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let outcome = runtime.block_on(run(host, port, &setup, db));
    // What still hangs is nothing that must be waited for: everything that counts is stored.
    runtime.shutdown_timeout(Duration::from_millis(100));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fixture: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(host: &str, port: &str, setup: &Setup, db: &str) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::create_dir_all(db)?;
    let storage = Arc::new(SledStorage::open(db).await?);
    let served = setup.served(storage.clone())?;
    served.controller().init().await?;
    let mut limits = Limits::default();
    // One client does everything here, as fast as it can.
    (limits.rate, limits.streams, limits.connections) = (None, usize::MAX, 16_384);
    let server = Server::builder().controller(served).limits(limits).build()?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let port: u16 = port.parse()?;
    let listener = tokio::net::TcpListener::bind((host, port)).await?;
    println!("listening on http://{host}:{}/api", listener.local_addr()?.port());
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    server.serve(listener, stop).await?;
    tokio::time::timeout(Duration::from_millis(500), storage.close()).await.ok();
    Ok(())
}
