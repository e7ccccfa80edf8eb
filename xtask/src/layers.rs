//! `cargo xtask layers`: the house stands as `layers.toml` says.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    path::Path,
};

use cargo_metadata::{DependencyKind, Metadata, Package};
use serde::Deserialize;

use crate::{
    cargo,
    source::{self, SourceFile},
    words::{Scope, Words},
};

/// `layers.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    pub(crate) crates: BTreeMap<String, Row>,
    #[serde(default)]
    alone: BTreeMap<String, Vec<String>>,
}

/// A crate's row.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) layer: u8,
    #[serde(default)]
    pub(crate) kind: Kind,
    pub(crate) owns: String,
    pub(crate) blind_to: String,
    externals: Option<BTreeSet<String>>,
    #[serde(default)]
    never: BTreeSet<String>,
    tokio: Option<BTreeSet<String>>,
    #[serde(default)]
    doors: BTreeSet<String>,
    #[serde(default)]
    lends: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    #[default]
    House,
    Dev,
}

/// A workspace member, as far as the rules look at it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) edges: Vec<Edge>,
    /// What each feature turns on.
    pub(crate) features: BTreeMap<String, Vec<String>>,
    pub(crate) published: bool,
}

/// A dependency.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edge {
    /// The package.
    pub(crate) to: String,
    /// What the feature list calls it.
    pub(crate) alias: String,
    pub(crate) ours: bool,
    pub(crate) dev: bool,
    pub(crate) optional: bool,
    pub(crate) default_features: bool,
    pub(crate) features: Vec<String>,
    pub(crate) versioned: bool,
}

/// A package in a crate's tree and the features it is built with.
pub(crate) type Tree = Vec<(String, BTreeSet<String>)>;

pub(crate) fn table(text: &str) -> Result<Table, Box<dyn Error>> {
    Ok(toml::from_str(text)?)
}

/// Runs the checks on this workspace.
pub(crate) fn run(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let table = table(&std::fs::read_to_string(root.join("xtask/layers.toml"))?)?;
    let words = Words::read(root)?;
    let metadata = cargo::metadata(root)?;
    let members: Vec<_> = metadata.workspace_packages().into_iter().map(|package| member(package, &metadata)).collect();
    let mut found = edges(&table, &members);
    for (name, row) in table.crates.iter().filter(|(name, _)| members.iter().any(|member| member.name == **name)) {
        if !row.never.is_empty() {
            found.extend(never(name, row, &cargo::tree(root, name, "--all-features")?));
        }
        if row.tokio.is_some() {
            found.extend(tokio_features(name, row, &cargo::tree(root, name, "--no-default-features")?));
        }
    }
    let files = source::read(root)?;
    found.extend(words.find(&files, |scope| scope != Scope::Text));
    found.extend(kit_in_units(&table, &files));
    Ok(found)
}

fn member(package: &Package, metadata: &Metadata) -> Member {
    let ours: BTreeSet<_> = metadata.workspace_packages().iter().map(|package| package.name.to_string()).collect();
    let edge = |dependency: &cargo_metadata::Dependency| Edge {
        to: dependency.name.clone(),
        alias: dependency.rename.clone().unwrap_or_else(|| dependency.name.clone()),
        ours: ours.contains(&dependency.name),
        dev: dependency.kind == DependencyKind::Development,
        optional: dependency.optional,
        default_features: dependency.uses_default_features,
        features: dependency.features.clone(),
        versioned: dependency.req.to_string() != "*",
    };
    Member {
        name: package.name.to_string(),
        edges: package.dependencies.iter().map(edge).collect(),
        features: package.features.clone(),
        published: package.publish.as_ref().is_none_or(|registries| !registries.is_empty()),
    }
}

/// What is wrong with the direct dependencies of the members.
pub(crate) fn edges(table: &Table, members: &[Member]) -> Vec<String> {
    let mut found = Vec::new();
    for member in members {
        let Some(row) = table.crates.get(&member.name) else {
            found.push(format!("{} has no row in xtask/layers.toml", member.name));
            continue;
        };
        for edge in &member.edges {
            let wrong = if edge.ours { inner_edge(table, member, row, edge) } else { outer_edge(table, member, row, edge) };
            found.extend(wrong.map(|why| format!("{} -> {}: {why}", member.name, edge.to)));
            if edge.ours && member.published && !edge.dev && !edge.versioned {
                found.push(format!("{} -> {}: a path dependency without a version cannot be packaged", member.name, edge.to));
            }
        }
    }
    found
}

fn inner_edge(table: &Table, member: &Member, row: &Row, edge: &Edge) -> Option<String> {
    let to = table.crates.get(&edge.to)?;
    if edge.dev {
        return dev_edge(member, row, edge, to);
    }
    if let Some(feature) = row.lends.get(&edge.to) {
        return lent(member, edge, feature);
    }
    if to.kind == Kind::Dev && row.kind != Kind::Dev {
        return Some("the house does not stand on its tools; only dev edges may".to_owned());
    }
    if to.layer < row.layer {
        return None;
    }
    if row.kind == Kind::Dev && row.doors.is_empty() && to.layer == row.layer && to.kind == Kind::House {
        return None;
    }
    if edge.optional && !row.doors.is_empty() {
        return beyond_doors(member, row, edge);
    }
    Some(format!("layer {} may depend on layers below it only, not on layer {}", row.layer, to.layer))
}

fn dev_edge(member: &Member, row: &Row, edge: &Edge, to: &Row) -> Option<String> {
    if edge.to == member.name || row.kind == Kind::Dev {
        return None;
    }
    if to.kind == Kind::House {
        return (to.layer >= row.layer)
            .then(|| format!("a dev edge from layer {} to layer {} is an upward edge all the same", row.layer, to.layer));
    }
    if edge.to != "ac-testkit" {
        return Some("a dev edge may point to ac-testkit alone".to_owned());
    }
    (edge.default_features || !edge.features.is_empty())
        .then(|| "the kit is taken with default-features = false and nothing on top".to_owned())
}

/// A kit that is handed on under a feature of its own: nothing else turns it on, and nothing of it that is more than the contracts.
fn lent(member: &Member, edge: &Edge, feature: &str) -> Option<String> {
    let opens = |what: &String| what.contains(edge.alias.as_str()) || what == feature;
    let openers = member.features.iter().filter(|(_, on)| on.iter().any(opens)).map(|(name, _)| name.as_str());
    if !edge.optional || edge.default_features || !edge.features.is_empty() {
        return Some("a kit that is lent is optional, with default-features = false and nothing on top".to_owned());
    }
    openers.into_iter().find(|name| *name != feature).map(|name| format!("only the feature `{feature}` may open it, `{name}` does"))
}

/// An optional edge upward is legal only if nothing but the doors opens it.
fn beyond_doors(member: &Member, row: &Row, edge: &Edge) -> Option<String> {
    let (explicit, inside) = (format!("dep:{}", edge.alias), format!("{}/", edge.alias));
    let weak = format!("{}?/", edge.alias);
    let opens = |what: &String| *what == explicit || *what == edge.alias || (what.starts_with(&inside) && !what.starts_with(&weak));
    let openers: Vec<_> = member.features.iter().filter(|(_, on)| on.iter().any(opens)).map(|(feature, _)| feature).collect();
    openers
        .iter()
        .find(|feature| !row.doors.contains(**feature))
        .map(|feature| format!("only {:?} may open it, `{feature}` does", row.doors))
}

fn outer_edge(table: &Table, member: &Member, row: &Row, edge: &Edge) -> Option<String> {
    if edge.dev {
        return None;
    }
    if row.externals.as_ref().is_some_and(|allowed| !allowed.contains(&edge.to)) {
        return Some("not among the foreign crates that this crate may name".to_owned());
    }
    let alone = table.alone.get(&edge.to)?;
    (row.layer < 9 && !alone.contains(&member.name)).then(|| format!("only {} may name it", alone.join(", ")))
}

/// Foreign crates that must not be in a tree.
pub(crate) fn never(name: &str, row: &Row, tree: &Tree) -> Vec<String> {
    let banned: BTreeSet<_> = tree.iter().map(|(package, _)| package).filter(|package| row.never.contains(*package)).collect();
    banned
        .into_iter()
        .map(|package| format!("{name}: {package} is in its tree (cargo tree -p {name} --all-features -i {package})"))
        .collect()
}

/// Features of tokio that must not be in a tree.
pub(crate) fn tokio_features(name: &str, row: &Row, tree: &Tree) -> Vec<String> {
    let allowed = row.tokio.clone().unwrap_or_default();
    let on = tree.iter().filter(|(package, _)| package == "tokio").flat_map(|(_, features)| features);
    let extra: BTreeSet<_> = on.filter(|feature| !allowed.contains(*feature)).collect();
    extra.into_iter().map(|feature| format!("{name}: tokio is in its tree with the feature `{feature}`")).collect()
}

/// A crate of layer 0 or 1 that used the kit in its unit tests would be built twice, once as its own dependency.
pub(crate) fn kit_in_units(table: &Table, files: &[SourceFile]) -> Vec<String> {
    let low = |file: &&SourceFile| table.crates.get(file.member()).is_some_and(|row| row.layer <= 1) && file.path.contains("/src/");
    let uses = |file: &&SourceFile| file.is_rust() && source::code(&file.text).contains("ac_testkit");
    let found = files.iter().filter(low).filter(uses);
    found.map(|file| format!("{}: layers 0 and 1 use the kit in tests/, not in unit tests", file.path)).collect()
}

#[cfg(test)]
mod tests;
