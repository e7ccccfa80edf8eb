//! `cargo xtask deny`: licences, bans and sources, read from `cargo metadata` and judged by `deny.toml`.
//!
//! The file is cargo-deny's own, so that both read the same; cargo-deny is asked as well where it is installed.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    path::Path,
};

use serde::Deserialize;

use crate::cargo;

#[derive(Debug, Deserialize)]
pub(crate) struct Deny {
    licenses: Licences,
    bans: Bans,
}

#[derive(Debug, Deserialize)]
struct Licences {
    allow: BTreeSet<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

#[derive(Debug, Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: BTreeSet<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Debug, Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    /// Crates that may have it all the same: somebody else's, whose choice is not ours.
    #[serde(default)]
    wrappers: BTreeSet<String>,
}

/// A package, as far as the rules look at it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) licence: Option<String>,
    /// Where it comes from; `None` is this workspace.
    pub(crate) source: Option<String>,
    /// Who depends on it directly.
    pub(crate) dependents: BTreeSet<String>,
}

/// Runs the checks on this workspace.
pub(crate) fn run(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let deny: Deny = toml::from_str(&std::fs::read_to_string(root.join("deny.toml"))?)?;
    let metadata = cargo::metadata(root)?;
    let resolve = metadata.resolve.ok_or("cargo metadata names no dependencies")?;
    let names: BTreeMap<_, _> = metadata.packages.iter().map(|package| (package.id.clone(), package.name.to_string())).collect();
    let mut dependents = BTreeMap::<_, BTreeSet<String>>::new();
    for node in resolve.nodes {
        let name = names.get(&node.id).ok_or("cargo metadata names an unknown package")?;
        for dependency in node.deps {
            dependents.entry(dependency.pkg).or_default().insert(name.clone());
        }
    }
    let package = |package: cargo_metadata::Package| Package {
        name: package.name.to_string(),
        licence: package.license,
        source: package.source.map(|source| source.repr),
        dependents: dependents.remove(&package.id).unwrap_or_default(),
    };
    let packages: Vec<_> = metadata.packages.into_iter().map(package).collect();
    println!("    {} packages", packages.len());
    let mut found = judge(&deny, &packages);
    let there = cargo::command(root, &["deny", "--version"]).output().is_ok_and(|out| out.status.success());
    if there {
        // Advisories need a network; they are for who has one.
        let asked = cargo::run(&mut cargo::command(root, &["deny", "--offline", "check", "bans", "licenses", "sources"]))?;
        found.extend((!asked.success).then(|| "cargo deny is not satisfied".to_owned()));
    } else {
        println!("    skipped: cargo-deny is not installed (advisories, duplicate versions)");
    }
    Ok(found)
}

/// What is wrong with the packages.
pub(crate) fn judge(deny: &Deny, packages: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    for package in packages {
        let name = &package.name;
        if let Some(ban) = deny.bans.deny.iter().find(|ban| ban.name == *name) {
            let others: Vec<_> = package.dependents.difference(&ban.wrappers).map(String::as_str).collect();
            if ban.wrappers.is_empty() {
                found.push(format!("{name} is banned in deny.toml"));
            } else if !others.is_empty() {
                found.push(format!("{name} is banned in deny.toml for {}", others.join(", ")));
            }
        }
        if package.source.as_ref().is_some_and(|source| !source.starts_with("registry+")) {
            found.push(format!("{name} comes from {}, not from the registry", package.source.as_deref().unwrap_or_default()));
        }
        let exception = deny.licenses.exceptions.iter().find(|exception| exception.name == *name);
        let allowed =
            |licence: &str| deny.licenses.allow.contains(licence) || exception.is_some_and(|exception| exception.allow.contains(licence));
        match &package.licence {
            None => found.push(format!("{name} names no licence")),
            Some(expression) if !satisfied(expression, &allowed) => {
                found.push(format!("{name}: `{expression}` is not allowed in deny.toml"))
            }
            Some(_) => {}
        }
    }
    found
}

/// Whether an SPDX expression leaves a choice that is allowed. `A/B` is the old spelling of `A OR B`.
pub(crate) fn satisfied(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let good = any(&tokens, &mut at, allowed);
    good && at == tokens.len()
}

fn any(tokens: &[&str], at: &mut usize, allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut good = all(tokens, at, allowed);
    while tokens.get(*at) == Some(&"OR") {
        *at += 1;
        good |= all(tokens, at, allowed);
    }
    good
}

fn all(tokens: &[&str], at: &mut usize, allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut good = one(tokens, at, allowed);
    while tokens.get(*at) == Some(&"AND") {
        *at += 1;
        good &= one(tokens, at, allowed);
    }
    good
}

fn one(tokens: &[&str], at: &mut usize, allowed: &dyn Fn(&str) -> bool) -> bool {
    let token = tokens.get(*at).copied().unwrap_or_default();
    *at += 1;
    if token == "(" {
        let good = any(tokens, at, allowed);
        *at += 1;
        return good;
    }
    if tokens.get(*at) == Some(&"WITH") {
        let with = format!("{token} WITH {}", tokens.get(*at + 1).copied().unwrap_or_default());
        *at += 2;
        return allowed(&with);
    }
    allowed(token)
}

#[cfg(test)]
mod tests;
