//! `cargo xtask downstream`: crates outside of the workspace build against the facade, are short, run, and bring nothing unasked.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use crate::{
    cargo,
    report::{Report, Verdict},
    tidy,
};

/// Lines of code that a store, a model, a tool or a channel of one's own may take.
const SHORT: usize = 40;
/// The crates that have to be short.
const PARTS: [&str; 4] = ["channel", "model", "store", "tool"];
/// Builds of the facade whose packages are counted, and the argument that makes each.
const BUILDS: [(&str, &str); 3] = [("minimal", "--no-default-features"), ("default", "--features=default"), ("full", "--features=full")];

/// Runs everything.
pub(crate) fn run(root: &Path, report: &mut Report) {
    let folder = root.join("tests/downstream");
    report.stage("short", "a part of one's own takes 40 lines", || {
        let mut found = Vec::new();
        for part in PARTS {
            let path = format!("tests/downstream/{part}/src/lib.rs");
            let lines = tidy::code_lines(&fs::read_to_string(root.join(&path))?);
            println!("    {part}: {lines} lines");
            found.extend((lines > SHORT).then(|| format!("{path}: {lines} lines of code; {SHORT} must do")));
        }
        Ok(Verdict::check(found))
    });
    report.stage("tree", "the packages that the facade is built from", || {
        let allowed: BTreeMap<String, usize> = toml::from_str(&fs::read_to_string(folder.join("dependencies.toml"))?)?;
        let mut found = Vec::new();
        for (build, argument) in BUILDS {
            let packages = others(&cargo::tree(root, "agent-controller", argument)?);
            println!("    {build}: {packages}");
            found.extend(counted(build, packages, allowed.get(build).copied()));
        }
        Ok(Verdict::check(found))
    });
    report.stage("downstream", "crates outside of the workspace, each with the features that it names", || {
        // The versions of the project; cargo leaves out what these crates do not need.
        fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
        let mut all = Verdict::default();
        for package in cargo::metadata(&folder)?.workspace_packages() {
            let name = package.name.as_str();
            println!("    {name}: {} packages of others", others(&cargo::tree(&folder, name, "--features=")?));
            // Together they would be built with the features of all.
            let mut command = cargo::command(&folder, &["test", "-p", name, "--no-fail-fast"]);
            let one = Verdict::child(&cargo::run(cargo::apart(&mut command))?);
            all.passed += one.passed;
            all.failed += one.failed;
            all.found.extend((one.failed > 0).then(|| format!("{name} failed")));
        }
        Ok(all)
    });
}

/// How many packages of other people are in a tree.
fn others(tree: &crate::layers::Tree) -> usize {
    let ours = |name: &str| name == "agent-controller" || name.starts_with("ac-");
    tree.iter().map(|(package, _)| package.as_str()).filter(|name| !ours(name)).collect::<BTreeSet<_>>().len()
}

fn counted(build: &str, packages: usize, allowed: Option<usize>) -> Option<String> {
    (allowed != Some(packages)).then(|| {
        let known = allowed.map_or("none".to_owned(), |number| number.to_string());
        format!(
            "{build}: {packages} packages, tests/downstream/dependencies.toml says {known}; look at what came or went, then write it down"
        )
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{counted, others};

    #[test]
    fn other_peoples_packages_are_counted_once() {
        let tree = ["agent-controller", "ac-core", "serde", "serde", "tokio"].map(|name| (name.to_owned(), BTreeSet::new()));
        assert_eq!(others(&tree.to_vec()), 2);
    }

    #[test]
    fn a_tree_neither_grows_nor_shrinks_unnoticed() {
        assert_eq!(counted("minimal", 50, Some(50)), None);
        for allowed in [Some(49), Some(51), None] {
            assert!(counted("minimal", 50, allowed).is_some(), "{allowed:?}");
        }
    }
}
