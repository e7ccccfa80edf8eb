//! Search through a hundred thousand files, beside `rg` on the same machine, tree and pattern.
//!
//! `cargo bench -p ac-workspace --bench search`. `AC_BENCH_FILES` and `AC_BENCH_TREE` choose another size and a folder that is kept.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use ac_core::CancelToken;
use ac_workspace::{Filesystem, LocalFilesystem, SearchQuery};

/// Each side is measured so often, in turns; the median counts.
const ROUNDS: usize = 11;
const FILES_OF_A_FOLDER: usize = 50;

fn main() {
    let files: usize = std::env::var("AC_BENCH_FILES").ok().and_then(|files| files.parse().ok()).unwrap_or(100_000);
    let temp = tempfile::tempdir().unwrap();
    let tree = std::env::var_os("AC_BENCH_TREE").map_or_else(|| temp.path().join("tree"), PathBuf::from);
    if !tree.exists() {
        grow(&tree, files);
    }
    println!("{files} files in {}", tree.display());
    println!("{:<34} {:>9} {:>9} {:>7} {:>7}", "pattern", "ours ms", "rg ms", "ratio", "hits");
    for (name, pattern) in
        [("a word of one file in a hundred", "needle_word"), ("nothing", "no_such_word_here"), ("letters and digits", r"fn \w+_7\b")]
    {
        let (mut ours, mut theirs) = (vec![], vec![]);
        let mut hits = (0, 0);
        for _ in 0..ROUNDS {
            let (took, count) = search(&tree, pattern);
            ours.push(took);
            hits.0 = count;
            let Some((took, count)) = ripgrep(&tree, pattern) else { continue };
            theirs.push(took);
            hits.1 = count;
        }
        let ours = median(ours);
        if theirs.is_empty() {
            println!("{name:<34} {ours:>9.1} {:>9} {:>7} {:>7}", "no rg", "", hits.0);
            continue;
        }
        assert_eq!(hits.0, hits.1, "both must find the same");
        let theirs = median(theirs);
        println!("{name:<34} {ours:>9.1} {theirs:>9.1} {:>7.2} {:>7}", ours / theirs, hits.0);
    }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

fn search(tree: &Path, pattern: &str) -> (Duration, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    // Opened anew each time, as a program that is started anew does.
    let started = Instant::now();
    let files = LocalFilesystem::open(tree).unwrap();
    let mut query = SearchQuery::new(pattern, ".");
    query.limit = 1_000_000;
    let found = runtime.block_on(files.search(query, &CancelToken::new())).unwrap();
    assert!(!found.truncated);
    (started.elapsed(), found.hits.len())
}

fn ripgrep(tree: &Path, pattern: &str) -> Option<(Duration, usize)> {
    let started = Instant::now();
    let output = Command::new("rg")
        .args(["--line-number", "--no-config", "--no-heading", pattern, "."])
        .current_dir(tree)
        .stdin(Stdio::null())
        .output();
    let took = started.elapsed();
    Some((took, output.ok()?.stdout.iter().filter(|byte| **byte == b'\n').count()))
}

/// Source files of one to four thousand bytes, in folders of folders, with ignore files.
fn grow(tree: &Path, files: usize) {
    fs::create_dir_all(tree.join(".git")).unwrap();
    fs::write(tree.join(".gitignore"), "target/\n*.o\n").unwrap();
    let mut text = String::new();
    for number in 0..files {
        let folder = number / FILES_OF_A_FOLDER;
        let path = tree.join(format!("part{}/module{}", folder / 20, folder % 20));
        if number % FILES_OF_A_FOLDER == 0 {
            fs::create_dir_all(&path).unwrap();
        }
        text.clear();
        for line in 0..20 + number % 40 {
            writeln!(text, "    fn item_{line}(value: usize) -> usize {{ value * {number} + {line} }} // a line of code").unwrap();
        }
        if number % 100 == 37 {
            text.push_str("// needle_word\n");
        }
        fs::write(path.join(format!("file{number}.rs")), &text).unwrap();
    }
}
