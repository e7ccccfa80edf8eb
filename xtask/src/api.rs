//! `cargo xtask api`: the public API of each published library as a text that is reviewed, `docs/api/CRATE.txt`. A type of others in it is
//! listed in `api.toml`, with the reason.
//!
//! What is public is told by rustdoc itself: while the documentation is built, [`document`] stands in its place and has it write its JSON
//! beside each page. That form is not stable, so it is turned on for these calls alone, and the crate that reads it goes with the pinned
//! toolchain. The flag that `cargo` gets along makes documentation that was built without it count as old.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    ffi::OsString,
    fs,
    path::Path,
    process::{Command, ExitCode},
};

use cargo_metadata::Metadata;
use rustdoc_types::{Crate, Id, Item, ItemEnum};
use serde::Deserialize;

use crate::cargo;

mod line;

/// Tells this program that it is called as rustdoc, and for which crates it says what is public: their names, between commas.
const CRATES: &str = "AC_XTASK_API";
/// What rustdoc gets, beside what turns warnings into errors.
const FLAGS: &str = "-D warnings --cfg public_api";
/// Crates whose types every library may show.
const OF_RUST: [&str; 3] = ["alloc", "core", "std"];
/// How many different lines of one crate are shown.
const SHOWN: usize = 30;

/// `api.toml`: crates of others, and what of them may be in the API.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Allowed {
    foreign: BTreeMap<String, Foreign>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Foreign {
    /// For who reads the list.
    #[serde(rename = "why")]
    _why: String,
    items: BTreeSet<String>,
}

/// The API of one crate.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    name: String,
    lines: Vec<String>,
    /// What of other people's crates is in it, by the path where it is defined.
    foreign: BTreeSet<String>,
}

/// A `cargo doc` that says what is public as well.
pub(crate) fn documentation(root: &Path, features: &str) -> Result<Command, Box<dyn Error>> {
    let names: Vec<_> = libraries(&cargo::metadata(root)?).into_iter().map(|name| name.replace('-', "_")).collect();
    let mut command = cargo::command(root, &["doc", "--workspace", "--no-deps", "--features", features, "--keep-going"]);
    command.env("RUSTDOCFLAGS", FLAGS).env("RUSTDOC", std::env::current_exe()?).env(CRATES, names.join(","));
    Ok(command)
}

/// Stands in for rustdoc, if this program was called as such.
pub(crate) fn document() -> Option<ExitCode> {
    let crates = std::env::var(CRATES).ok()?;
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let after = |flag: &str| args.iter().skip_while(|arg| *arg != flag).nth(1).and_then(|name| name.to_str());
    let called = |extra: &[&str], unstable: bool| {
        let mut rustdoc = Command::new("rustdoc");
        rustdoc.args(&args).args(extra).env_remove(CRATES).env_remove("RUSTDOC");
        if unstable {
            rustdoc.env("RUSTC_BOOTSTRAP", "1");
        }
        rustdoc.status().is_ok_and(|status| status.success())
    };
    let mut good = called(&[], false);
    if good && after("--crate-name").is_some_and(|name| crates.split(',').any(|known| known == name)) {
        good = called(&["-Z", "unstable-options", "--output-format", "json"], true);
    }
    Some(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Compares what is public with what was reviewed; the documentation has been built.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let listings = listings(root)?;
    let mut found = Vec::new();
    for listing in &listings {
        let path = format!("docs/api/{}.txt", listing.name);
        found.extend(differences(&path, &fs::read_to_string(root.join(&path)).unwrap_or_default(), &listing.text()));
    }
    let allowed: Allowed = toml::from_str(&fs::read_to_string(root.join("xtask/api.toml"))?)?;
    found.extend(unlisted(&allowed, &listings));
    for entry in fs::read_dir(root.join("docs/api"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !listings.iter().any(|listing| format!("{}.txt", listing.name) == name) {
            found.push(format!("docs/api/{name}: there is no such library"));
        }
    }
    Ok(found)
}

/// Writes what is public.
pub(crate) fn write(root: &Path) -> Result<(), Box<dyn Error>> {
    for listing in listings(root)? {
        let path = root.join(format!("docs/api/{}.txt", listing.name));
        let text = listing.text();
        if fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            fs::write(&path, text)?;
            println!("    wrote docs/api/{}.txt", listing.name);
        }
    }
    Ok(())
}

/// The published libraries.
fn libraries(metadata: &Metadata) -> Vec<String> {
    let members = metadata.workspace_packages().into_iter();
    let published = members.filter(|package| package.publish.as_ref().is_none_or(|registries| !registries.is_empty()));
    published.filter(|package| package.targets.iter().any(|target| target.is_lib())).map(|package| package.name.to_string()).collect()
}

fn listings(root: &Path) -> Result<Vec<Listing>, Box<dyn Error>> {
    let names = libraries(&cargo::metadata(root)?);
    let ours: BTreeSet<_> = names.iter().map(|name| name.replace('-', "_")).collect();
    names.iter().map(|name| listing(name, &ours)).collect()
}

fn listing(name: &str, ours: &BTreeSet<String>) -> Result<Listing, Box<dyn Error>> {
    let path = cargo::target_dir().join("doc").join(format!("{}.json", name.replace('-', "_")));
    let text =
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}; remove the folder it is in and try again", path.display()))?;
    let api = public_api::Builder::from_rustdoc_json(&path).omit_blanket_impls(true).omit_auto_trait_impls(true).build()?;
    let documented: Crate = serde_json::from_str(&text)?;
    let mut out = Listing { name: name.to_owned(), ..Listing::default() };
    let mut known = BTreeSet::new();
    for public in api.items() {
        let Some(item) = documented.index.get(&public.id()) else { continue };
        let parent = public.parent_id().and_then(|id| documented.index.get(&id));
        if parent.is_some_and(|parent| follows(parent, item)) {
            continue;
        }
        if let Some(line) = line::shown(&public.to_string()) {
            // An implementation is listed with the trait and with the type.
            if !line.starts_with("impl") || known.insert(line.clone()) {
                out.lines.push(line);
            }
        }
        let named = named(item, &documented)?;
        out.foreign.extend(named.into_iter().filter(|path| {
            let home = path.split("::").next().unwrap_or_default();
            !ours.contains(home) && !OF_RUST.contains(&home)
        }));
    }
    Ok(out)
}

/// Whether an item says nothing that its parent did not say: the functions of a trait's implementation.
fn follows(parent: &Item, item: &Item) -> bool {
    matches!(&parent.inner, ItemEnum::Impl(implementation) if implementation.trait_.is_some())
        && !matches!(item.inner, ItemEnum::AssocType { .. } | ItemEnum::AssocConst { .. })
}

/// The paths, where they are defined, of everything that a signature names.
fn named(item: &Item, documented: &Crate) -> Result<Vec<String>, Box<dyn Error>> {
    let mut out = Vec::new();
    if let ItemEnum::Use(used) = &item.inner {
        out.push(used.id.and_then(|id| home(id, documented)).unwrap_or_else(|| used.source.clone()));
    }
    let mut waiting = vec![serde_json::to_value(&item.inner)?];
    while let Some(value) = waiting.pop() {
        match value {
            serde_json::Value::Object(fields) => {
                let id = fields.get("id").filter(|_| fields.contains_key("path") && fields.contains_key("args"));
                let id = id.and_then(serde_json::Value::as_u64).and_then(|id| u32::try_from(id).ok());
                out.extend(id.and_then(|id| home(Id(id), documented)));
                waiting.extend(fields.into_values());
            }
            serde_json::Value::Array(values) => waiting.extend(values),
            _ => {}
        }
    }
    Ok(out)
}

fn home(id: Id, documented: &Crate) -> Option<String> {
    documented.paths.get(&id).map(|summary| summary.path.join("::"))
}

impl Listing {
    fn text(&self) -> String {
        let foreign = self.foreign.iter().map(|path| format!("# names {path}\n")).collect::<String>();
        format!("# {}, with every feature; `cargo xtask api --write` renews this\n{foreign}\n{}\n", self.name, self.lines.join("\n"))
    }
}

/// Lines that came or went.
fn differences(path: &str, reviewed: &str, now: &str) -> Vec<String> {
    if reviewed == now {
        return Vec::new();
    }
    let (old, new): (BTreeSet<_>, BTreeSet<_>) = (reviewed.lines().collect(), now.lines().collect());
    let went = old.difference(&new).map(|line| format!("- {line}"));
    let lines: Vec<_> = went.chain(new.difference(&old).map(|line| format!("+ {line}"))).collect();
    let more = lines.len().saturating_sub(SHOWN);
    let mut out = vec![format!(
        "{path}: the API is another one; if it shall be, `cargo xtask api --write`, and say in CHANGELOG.md whom it concerns"
    )];
    out.extend(lines.into_iter().take(SHOWN).map(|line| format!("  {line}")));
    out.extend((more > 0).then(|| format!("  and {more} lines more")));
    out
}

/// What of others is in the API and not in the list, or in the list and not in the API.
fn unlisted(allowed: &Allowed, listings: &[Listing]) -> Vec<String> {
    let listed =
        |path: &str| allowed.foreign.iter().any(|(home, foreign)| path.split("::").next() == Some(home) && foreign.items.contains(path));
    let mut found = Vec::new();
    for listing in listings {
        for path in listing.foreign.iter().filter(|path| !listed(path)) {
            found.push(format!(
                "{}: `{path}` is in its API; hide it behind a type of our own, or list it in xtask/api.toml and say why",
                listing.name
            ));
        }
    }
    for path in allowed.foreign.values().flat_map(|foreign| &foreign.items) {
        if !listings.iter().any(|listing| listing.foreign.contains(path)) {
            found.push(format!("xtask/api.toml: `{path}` is in no API any more"));
        }
    }
    found
}

#[cfg(test)]
mod tests;
