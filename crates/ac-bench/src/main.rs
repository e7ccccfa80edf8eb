//! What the runtime costs. Prints one row for each figure, at its stated size and at a tenth of it: a cost that grows with the thread, the
//! reply or the number of sessions shows as a difference between the two.
//!
//! Each row is measured in a process of its own, so that no row pays for another; the model is a scripted HTTP server in one more process,
//! so that its work is not counted. `docs/benchmarks.md` has method and results.
#![allow(clippy::print_stdout, clippy::print_stderr)] // This is where people read.

mod desk;
mod gauge;
mod measure;
mod model;
mod orchestra;
mod row;
mod trouble;

use std::process::ExitCode;

use clap::Parser;

use crate::{measure::Measure, trouble::Trouble};

/// What the runtime costs.
#[derive(Parser)]
#[command(after_help = "Run it in release, on a quiet machine: cargo run -q --release -p ac-bench -- --json")]
struct Arguments {
    /// One JSON object a row, {name, value, unit, n, cpu_ms, rss_kb}; a table otherwise.
    #[arg(long)]
    json: bool,
    /// Only the rows of this name.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Serve the scripted model. The program starts itself in this way.
    #[arg(long, hide = true)]
    serve_model: bool,
    /// Measure in this process, against the model server at this address. The program starts itself in this way.
    #[arg(long, hide = true, requires = "row", requires = "size")]
    model_url: Option<String>,
    /// What to measure in this process.
    #[arg(long, hide = true)]
    row: Option<String>,
    /// At which size.
    #[arg(long, hide = true)]
    size: Option<usize>,
    /// When the process was started, on the machine's monotonic clock.
    #[arg(long, hide = true)]
    born: Option<u64>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(trouble) => {
            eprintln!("{trouble}");
            ExitCode::from(2)
        }
    }
}

/// Whether every row is within its limit.
fn run(arguments: Arguments) -> Result<bool, Trouble> {
    if arguments.serve_model {
        model::serve()?;
        return Ok(true);
    }
    let (Some(url), Some(row), Some(size)) = (arguments.model_url, arguments.row, arguments.size) else {
        return orchestra::play(arguments.only.as_deref(), arguments.json);
    };
    let measure = Measure::named(&row).ok_or_else(|| Trouble::new(format!("there is no measure called `{row}`")))?;
    for row in measure.take(&url, size, arguments.born)? {
        println!("{}", serde_json::to_string(&row)?);
    }
    Ok(true)
}
