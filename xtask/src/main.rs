//! Checks of this workspace; `cargo xtask help` says which.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

mod api;
mod bench;
mod browser;
mod cargo;
mod downstream;
mod entries;
mod features;
mod layers;
mod licences;
mod package;
mod page;
mod report;
mod routes;
mod soak;
mod source;
mod tidy;
mod words;

use std::{error::Error, path::Path, process::ExitCode};

use report::{Report, Verdict};

const HELP: &str = "\
cargo xtask TASK

  ci         all that a change must pass, in this order: fmt, layers, tidy, clippy, test, features, docs,
             api, package, deny
  layers     the house stands as xtask/layers.toml says: dependencies, trees, forbidden code
  tidy       sizes and names of files, first lines, words, links, invariants and their checks, examples of entry types, generated text
  features   every crate with none, each, the default and all of its features; --pairs: each pair as well
  downstream crates outside of the workspace: short, run, and their trees as tests/downstream/dependencies.toml says
  package    what is published says what it is, packs, and holds the Rust version that it promises
  generate   writes the generated parts of documents
  docs       generate, then the API documentation without a warning
  api        docs, then the public API of every library as docs/api says, types of others as xtask/api.toml says; --write renews docs/api
  bench      measures what the runtime costs, some minutes on a quiet machine, and writes docs/benchmarks; --from FILE: takes lines that
             `ac-bench --json` printed
  deny       licences, bans and sources, as deny.toml says
  soak       what is too long for ci; --only STEP, --skip STEP (see below)
  help       this

Everything builds in CARGO_TARGET_DIR, by default in ~/.cache/agent-controller/target. All stages run even if one fails; the last line
is `N passed, N failed` over tests and checks, and the exit code is 1 if something failed.
";

fn main() -> ExitCode {
    if let Some(code) = api::document() {
        return code;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let task = args.first().map_or("help", String::as_str);
    let root = source::root();
    let mut report = Report::default();
    match task {
        "ci" => ci(&root, &mut report),
        "layers" => layer_stage(&root, &mut report),
        "tidy" => tidy_stage(&root, &mut report),
        "features" => {
            let depth = if args.iter().any(|arg| arg == "--pairs") { features::Depth::Pairs } else { features::Depth::Each };
            feature_stage(&root, depth, &mut report);
        }
        "downstream" => downstream::run(&root, &mut report),
        "package" => package::run(&root, &mut report),
        "generate" => generate_stage(&root, &mut report),
        "docs" => {
            generate_stage(&root, &mut report);
            docs_stage(&root, &mut report);
        }
        "api" => {
            docs_stage(&root, &mut report);
            api_stage(&root, args.iter().any(|arg| arg == "--write"), &mut report);
        }
        "bench" => {
            let from = args.iter().skip_while(|arg| *arg != "--from").nth(1).map(String::as_str);
            report.stage("bench", "what the runtime costs, as table and plot", || bench::run(&root, from));
        }
        "deny" => deny_stage(&root, &mut report),
        "soak" => {
            if let Err(error) = soak::run(&root, &args, &mut report) {
                eprintln!("soak: {error}");
                return ExitCode::FAILURE;
            }
        }
        "help" | "--help" | "-h" => {
            println!("{HELP}\nsteps of soak: {}", soak::names());
            return ExitCode::SUCCESS;
        }
        other => {
            eprintln!("there is no task `{other}`; `cargo xtask help` lists them");
            return ExitCode::from(64);
        }
    }
    println!("{}", report.summary());
    if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn ci(root: &Path, report: &mut Report) {
    println!("building in {}", cargo::target_dir().display());
    child(root, report, "fmt", "every file is formatted", &["fmt", "--all", "--check"]);
    layer_stage(root, report);
    tidy_stage(root, report);
    let Some(features) = every_feature(root, report) else { return };
    let lint = ["clippy", "--workspace", "--all-targets", "--features", &features, "--keep-going", "--", "-D", "warnings"];
    child(root, report, "clippy", "no warning in any target with any feature", &lint);
    // The same features as for clippy; without --all-targets, which would leave the examples in documentation out.
    let test = ["test", "--workspace", "--features", &features, "--no-fail-fast"];
    child(root, report, "test", "every test and every example in documentation", &test);
    feature_stage(root, features::Depth::Each, report);
    docs_stage(root, report);
    api_stage(root, false, report);
    package::run(root, report);
    deny_stage(root, report);
}

fn layer_stage(root: &Path, report: &mut Report) {
    report.stage("layers", "dependencies point downward, code stays where it belongs", || Ok(Verdict::check(layers::run(root)?)));
}

fn tidy_stage(root: &Path, report: &mut Report) {
    report.stage("tidy", "sizes, names, words, links, invariants, generated text", || Ok(Verdict::check(tidy::run(root)?)));
}

fn feature_stage(root: &Path, depth: features::Depth, report: &mut Report) {
    report.stage("features", "every crate with different sets of features", || {
        let (passed, found) = features::run(root, depth)?;
        Ok(Verdict { passed, failed: found.len() as u64, found, skipped: false })
    });
}

fn generate_stage(root: &Path, report: &mut Report) {
    report.stage("generate", "the generated parts of documents", || {
        page::write(root, &source::read(root)?, &cargo::metadata(root)?)?;
        Ok(Verdict::check(Vec::new()))
    });
}

/// As `--features` takes them; `None`, with a failed stage in the report, where cargo does not tell them.
fn every_feature(root: &Path, report: &mut Report) -> Option<String> {
    let features = cargo::every_feature(root);
    match features {
        Ok(features) => Some(features),
        Err(error) => {
            report.stage("metadata", "what features there are", || Err(error));
            None
        }
    }
}

fn docs_stage(root: &Path, report: &mut Report) {
    let Some(features) = every_feature(root, report) else { return };
    report.stage("docs", "the API documentation builds without a warning", || {
        Ok(Verdict::child(&cargo::run(&mut api::documentation(root, &features)?)?))
    });
}

fn api_stage(root: &Path, write: bool, report: &mut Report) {
    report.stage("api", "what is public is what was reviewed, and every type of others in it is listed", || {
        if write {
            api::write(root)?;
        }
        Ok(Verdict::check(api::check(root)?))
    });
}

fn deny_stage(root: &Path, report: &mut Report) {
    report.stage("deny", "licences, bans and sources", || Ok(Verdict::check(licences::run(root)?)));
}

fn child(root: &Path, report: &mut Report, name: &str, what: &str, args: &[&str]) {
    report.stage(name, what, || -> Result<Verdict, Box<dyn Error>> { Ok(Verdict::child(&cargo::run(&mut cargo::command(root, args))?)) });
}
