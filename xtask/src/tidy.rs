//! `cargo xtask tidy`: what a program can tell about the shape of files.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    path::Path,
};

use crate::{
    bench, cargo, entries, page,
    source::{self, SourceFile},
    words::{Scope, Words},
};

/// Lines of code that a file may have without an exception.
const LIMIT: usize = 400;
/// Lines of code that no exception lifts.
const HARD_STOP: usize = 600;
/// How far an exception may stand above the file.
const SLACK: usize = 20;

/// Runs the checks on this workspace.
pub(crate) fn run(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let files = source::read(root)?;
    let ratchet: BTreeMap<String, usize> = toml::from_str(&std::fs::read_to_string(root.join("xtask/ratchet.toml"))?)?;
    let mut found = sizes(&files, &ratchet);
    found.extend(names(&files));
    found.extend(first_lines(&files));
    found.extend(manifests(&files));
    found.extend(invariants(&files));
    found.extend(links(&files));
    found.extend(hidden_lines(&files));
    found.extend(entries::unexplained(&files));
    found.extend(Words::read(root)?.find(&files, |scope| scope == Scope::Text));
    found.extend(page::stale(root, &files, &cargo::metadata(root)?)?);
    found.extend(bench::stale(root)?);
    Ok(found)
}

/// Lines that are neither blank nor comment, up to an inline test module.
pub(crate) fn code_lines(text: &str) -> usize {
    let code = source::code(text);
    source::without_tests(&code).lines().filter(|line| !line.trim().is_empty()).count()
}

/// Files that are too long, and exceptions that are not needed.
pub(crate) fn sizes(files: &[SourceFile], ratchet: &BTreeMap<String, usize>) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is_rust() && !file.is_test()) {
        let lines = code_lines(&file.text);
        let allowed = ratchet.get(&file.path).copied().unwrap_or(LIMIT);
        if lines > HARD_STOP {
            found.push(format!("{}: {lines} lines of code; {HARD_STOP} is the hard stop", file.path));
        } else if lines > allowed {
            found.push(format!("{}: {lines} lines of code, {allowed} are allowed; split it by its nouns", file.path));
        }
    }
    for (path, allowed) in ratchet {
        let lines = files.iter().find(|file| file.path == *path).map_or(0, |file| code_lines(&file.text));
        if lines <= LIMIT {
            found.push(format!("xtask/ratchet.toml: {path} needs no exception any more"));
        } else if lines + SLACK < *allowed {
            found.push(format!("xtask/ratchet.toml: {path} has {lines} lines of code; lower its number"));
        }
    }
    found
}

/// Files that are not named for the noun they hold, and leftovers.
pub(crate) fn names(files: &[SourceFile]) -> Vec<String> {
    let vague = ["mod", "util", "utils", "helper", "helpers", "common", "misc"];
    let stem = |path: &str| Path::new(path).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let mut found = Vec::new();
    for file in files {
        if file.is_rust() && vague.contains(&stem(&file.path).as_str()) {
            found.push(format!("{}: name it for the noun it holds", file.path));
        }
        if file.path.ends_with(".snap.new") || file.path.ends_with(".pending-snap") {
            found.push(format!("{}: a snapshot that nobody accepted or threw away", file.path));
        }
    }
    found
}

/// Public modules and roots of crates that do not begin by saying what they are.
pub(crate) fn first_lines(files: &[SourceFile]) -> Vec<String> {
    let known: BTreeMap<_, _> = files.iter().map(|file| (file.path.as_str(), file)).collect();
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let root = ["/src/lib.rs", "/src/main.rs"].iter().any(|root| file.path.ends_with(root)) || file.path.contains("/src/bin/");
        if root {
            wanted.insert(file.path.clone());
        }
        let folder = if root || file.path.ends_with("/mod.rs") {
            file.path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned()
        } else {
            file.path.trim_end_matches(".rs").to_owned()
        };
        let code = source::code(&file.text);
        let modules = code.lines().filter_map(|line| line.trim().strip_prefix("pub mod ")?.strip_suffix(';'));
        wanted.extend(modules.map(|module| format!("{folder}/{}.rs", module.trim())));
    }
    let silent = |path: &&String| known.get(path.as_str()).is_some_and(|file| !file.text.starts_with("//!"));
    wanted.iter().filter(silent).map(|path| format!("{path}: the first line says what it is, with `//!`")).collect()
}

/// Members that do not take the workspace's lints.
pub(crate) fn manifests(files: &[SourceFile]) -> Vec<String> {
    let member = |file: &&SourceFile| {
        let at = file.path.strip_suffix("/Cargo.toml").unwrap_or_default();
        matches!(at, "xtask" | "tests") || at.strip_prefix("crates/").is_some_and(|name| !name.contains('/'))
    };
    let careless = |file: &&SourceFile| !file.text.contains("[lints]\nworkspace = true");
    files.iter().filter(member).filter(careless).map(|file| format!("{}: [lints] workspace = true is missing", file.path)).collect()
}

/// Invariants of `docs/architecture.md` whose check does not exist. A row of a table whose head ends with `held by` names its checks
/// between backticks: a test function, or a stage of xtask, a lint, a compiler's rule.
pub(crate) fn invariants(files: &[SourceFile]) -> Vec<String> {
    let Some(document) = files.iter().find(|file| file.path == "docs/architecture.md") else {
        return vec!["docs/architecture.md: missing".to_owned()];
    };
    let tests: BTreeSet<&str> = files.iter().filter(|file| file.is_rust()).flat_map(|file| functions(&file.text)).collect();
    let mut found = Vec::new();
    let mut inside = false;
    for (n, line) in document.text.lines().enumerate() {
        if !line.starts_with('|') {
            inside = false;
        } else if line.trim_end().ends_with("| held by |") {
            inside = true;
        } else if inside && !line.starts_with("|-") && !line.starts_with("| -") {
            let cell = line.trim_end().trim_end_matches('|').rsplit('|').next().unwrap_or_default();
            let checks: Vec<_> = cell.split('`').skip(1).step_by(2).collect();
            if checks.is_empty() {
                found.push(format!("docs/architecture.md:{}: an invariant without a named check", n + 1));
            }
            let missing = checks.iter().filter(|check| !is_rule(check) && !tests.contains(**check));
            found.extend(missing.map(|check| format!("docs/architecture.md:{}: there is no test `{check}`", n + 1)));
        }
    }
    found
}

fn is_rule(check: &str) -> bool {
    ["xtask ", "clippy::", "rustc: ", "deny("].iter().any(|rule| check.starts_with(rule))
}

fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let rest = line.trim_start().trim_start_matches("pub ").trim_start_matches("pub(crate) ").trim_start_matches("async ");
        rest.strip_prefix("fn ")?.split(['(', '<']).next()
    })
}

/// Links in Markdown to files of the repository that are not there.
pub(crate) fn links(files: &[SourceFile]) -> Vec<String> {
    let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let there =
        |path: &str| paths.contains(path) || paths.iter().any(|known| known.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')));
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        for target in file.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = target.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.contains(' ') || target.starts_with("mailto:") {
                continue;
            }
            let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let resolved = resolve(folder, target);
            if !there(resolved.trim_end_matches('/')) {
                found.push(format!("{}: the link to {target} leads nowhere", file.path));
            }
        }
    }
    found
}

/// Lines of Rust in Markdown that only the tests should see. Who reads the page sees them, copies them, and they do not compile.
pub(crate) fn hidden_lines(files: &[SourceFile]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let mut inside = false;
        for (n, line) in file.text.lines().enumerate() {
            if line.starts_with("```") {
                inside = !inside && line.starts_with("```rust");
            } else if inside && (line.starts_with("# ") || line == "#") {
                found.push(format!("{}:{}: a hidden line of an example; readers of the page see it", file.path, n + 1));
            }
        }
    }
    found
}

fn resolve(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests;
