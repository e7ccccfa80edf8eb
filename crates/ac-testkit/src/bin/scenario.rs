//! Plays scenarios on the real controller, and compares them with golden recordings.
//!
//! `scenario FILE… --out DIR` plays and writes; `scenario --compare GOLDEN_DIR [NAME…]` plays the scenarios of a folder of golden
//! recordings and compares. Exits with 0 when all files were written and nothing failed, with 1 when a comparison failed, with 2 when a
//! scenario could not be played.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports on its terminal")]

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use ac_testkit::scenario::{
    self, Recording, Scenario, ScenarioError,
    compare::{self, Deviation, Deviations, Verdict},
};
use clap::Parser;
use futures::StreamExt;

/// Plays scenarios on the real controller: its store is sled in a temporary folder, the model answers over a real socket.
///
/// Examples: `scenario one.scenario.json two.scenario.json --out recordings` plays two files;
/// `scenario --compare ../shared/cases/golden` plays and compares all of a folder;
/// `scenario --compare ../shared/cases/golden 05a_ask_free 12` only those whose name begins with one of these words.
/// The last line of a comparison is `same N, deviating N, failed N`.
#[derive(Debug, Parser)]
#[command(name = "scenario")]
struct Cli {
    /// Scenario files; with `--compare` also beginnings of names.
    files: Vec<String>,
    /// Where NAME.events.jsonl, NAME.requests.jsonl and NAME.final.json are written.
    #[arg(long)]
    out: Option<PathBuf>,
    /// A folder of golden recordings to compare with.
    #[arg(long)]
    compare: Option<PathBuf>,
    /// Prints what differs and is not listed as JSON, ready for the list of deviations.
    #[arg(long)]
    propose: bool,
    /// Prints the part of the documentation that is made from the list of deviations.
    #[arg(long)]
    page: bool,
    /// How many scenarios are played at once.
    #[arg(long, default_value_t = 12)]
    at_once: usize,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 4)]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let mut said = error.to_string();
            let mut cause = std::error::Error::source(&error);
            while let Some(because) = cause {
                said.push_str(&format!(": {because}"));
                cause = because.source();
            }
            eprintln!("scenario: {said}");
            ExitCode::from(2)
        }
    }
}

async fn run(cli: &Cli) -> Result<bool, ScenarioError> {
    let listed = Deviations::ours()?;
    if cli.page {
        print!("{}", listed.page());
        return Ok(true);
    }
    let files = files(cli);
    if files.is_empty() {
        eprintln!("scenario: nothing to play; see --help");
        return Ok(false);
    }
    // All are read first: a file that cannot be played stops before anything is written.
    let scenarios = files.iter().map(|file| Scenario::read(file)).collect::<Result<Vec<_>, _>>()?;
    for scenario in &scenarios {
        for field in scenario.unknown_fields() {
            eprintln!("scenario: {}: the field `{field}` of the set-up has no effect", scenario.name);
        }
    }
    let recordings: Vec<_> = futures::stream::iter(scenarios.iter().map(scenario::run)).buffered(cli.at_once.max(1)).collect().await;
    let mut recordings = recordings.into_iter().collect::<Result<Vec<_>, _>>()?;
    if let Some(golden) = &cli.compare {
        // Its moments are real time: one that fails among the others is played once more alone.
        for (scenario, recording) in scenarios.iter().zip(&mut recordings) {
            let expected = Recording::read(golden, &scenario.name)?;
            if !cli.propose && matches!(compare::compare(&expected, recording, &listed), Verdict::Failed(_)) {
                *recording = scenario::run(scenario).await?;
            }
        }
    }
    for recording in &recordings {
        let Some(folder) = &cli.out else { continue };
        if let Err(error) = recording.write(folder) {
            eprintln!("scenario: {} cannot be written to: {error}", folder.display());
            return Ok(false);
        }
        if cli.compare.is_none() {
            println!("{}: written", recording.name);
        }
    }
    match &cli.compare {
        Some(golden) => compare_all(golden, &recordings, &listed, cli.propose),
        None => Ok(true),
    }
}

/// The files that are meant. Of a folder of golden recordings those whose names begin with one of the words, or all.
fn files(cli: &Cli) -> Vec<PathBuf> {
    let (mut files, words): (Vec<PathBuf>, Vec<&String>) = match &cli.compare {
        None => (cli.files.iter().map(PathBuf::from).collect(), vec![]),
        Some(_) => {
            let is_file = |word: &&String| Path::new(word).is_file();
            (cli.files.iter().filter(is_file).map(PathBuf::from).collect(), cli.files.iter().filter(|word| !is_file(word)).collect())
        }
    };
    if let Some(folder) = &cli.compare
        && (files.is_empty() || !words.is_empty())
    {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        files.extend(entries.filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.ends_with(".scenario.json") && (words.is_empty() || words.iter().any(|word| name.starts_with(word.as_str())))
        }));
    }
    files.sort();
    files
}

fn compare_all(folder: &Path, recordings: &[Recording], listed: &Deviations, propose: bool) -> Result<bool, ScenarioError> {
    let (mut same, mut deviating, mut failed) = (0, 0, 0);
    let mut proposed = Deviations { rules: listed.rules.clone(), ..Deviations::default() };
    for ours in recordings {
        let golden = Recording::read(folder, &ours.name)?;
        match compare::compare(&golden, ours, listed) {
            Verdict::Same => {
                same += 1;
                println!("same       {}", ours.name);
            }
            Verdict::Deviating(rules) => {
                deviating += 1;
                println!("deviating  {}  {}", ours.name, rules.join(", "));
            }
            Verdict::Failed(why) => {
                failed += 1;
                println!("FAILED     {}", ours.name);
                for why in why {
                    println!("    {why}");
                }
            }
        }
        let differences = compare::differences(&golden, ours);
        let rule = |what: &compare::Difference| {
            let known = listed.scenarios.get(&ours.name).into_iter().flatten().find(|deviation| deviation.what == *what);
            known.map_or_else(|| "?".to_owned(), |deviation| deviation.rule.clone())
        };
        if !differences.is_empty() {
            let all = differences.into_iter().map(|what| Deviation { rule: rule(&what), what, or: vec![] }).collect();
            proposed.scenarios.insert(ours.name.clone(), all);
        }
    }
    if propose {
        println!("{:#}", serde_json::json!(proposed));
    }
    println!("same {same}, deviating {deviating}, failed {failed}");
    Ok(failed == 0)
}
