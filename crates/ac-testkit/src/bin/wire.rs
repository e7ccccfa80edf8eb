//! Feeds every case of a corpus of recorded provider answers through the real adapters over a real socket.
//!
//! `wire CORPUS_DIR [--options OPTS] [--out FILE]`; the last line is `N passed, N failed`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints its findings")]

use std::{fs, path::PathBuf, process::ExitCode};

use ac_testkit::wire::{self, Options};

const USAGE: &str = "usage: wire CORPUS_DIR [--options OPTS] [--out FILE]";

struct Arguments {
    corpus: PathBuf,
    options: Options,
    out: Option<PathBuf>,
}

fn arguments() -> Result<Arguments, String> {
    let (mut corpus, mut options, mut out) = (None, Options::default(), None);
    let mut words = std::env::args_os().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{} needs a value; {USAGE}", word.display()));
        if word == "--options" {
            options = value()?.to_string_lossy().parse().map_err(|error| format!("{error}"))?;
        } else if word == "--out" {
            out = Some(PathBuf::from(value()?));
        } else if corpus.is_none() && !word.to_string_lossy().starts_with('-') {
            corpus = Some(PathBuf::from(word));
        } else {
            return Err(format!("{} is not understood; {USAGE}", word.display()));
        }
    }
    Ok(Arguments { corpus: corpus.ok_or(USAGE)?, options, out })
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    match run().await {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("wire: {error}");
            ExitCode::from(2)
        }
    }
}

async fn run() -> Result<usize, String> {
    let Arguments { corpus, options, out } = arguments()?;
    let cases = wire::load(&corpus).map_err(|error| format!("the corpus {} cannot be read: {error}", corpus.display()))?;
    let outcomes = wire::run(&cases, &options).await.map_err(|error| error.to_string())?;
    if let Some(out) = out {
        let lines: String = outcomes.iter().map(|outcome| outcome.line() + "\n").collect();
        fs::write(&out, lines).map_err(|error| format!("{} cannot be written: {error}", out.display()))?;
    }
    let failed: Vec<_> = outcomes.iter().filter(|outcome| !outcome.differences.is_empty()).collect();
    for outcome in &failed {
        println!("FAILED {}", outcome.case);
        for difference in &outcome.differences {
            println!("  {}\n    expected {}\n    got      {}", difference.field, short(&difference.expected), short(&difference.got));
        }
    }
    println!("{} passed, {} failed", outcomes.len() - failed.len(), failed.len());
    Ok(failed.len())
}

fn short(value: &serde_json::Value) -> String {
    value.to_string().chars().take(400).collect()
}
