//! `cargo xtask generate`: the generated parts of documents. `tidy` checks that they are fresh.
//!
//! A generated part stands between `<!-- generated: NAME -->` and `<!-- end: NAME -->`.

use std::{collections::BTreeMap, error::Error, fmt::Write as _, path::Path};

use cargo_metadata::Metadata;

use crate::{
    bench,
    layers::{self, Kind, Table},
    routes,
    source::SourceFile,
};

/// Documents whose generated parts are not what the code says.
pub(crate) fn stale(root: &Path, files: &[SourceFile], metadata: &Metadata) -> Result<Vec<String>, Box<dyn Error>> {
    let parts = parts(root, files, metadata)?;
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        match filled(&file.text, &parts) {
            Ok(text) if text != file.text => {
                found.push(format!("{}: not what the code says any more; run `cargo xtask generate`", file.path))
            }
            Ok(_) => {}
            Err(why) => found.push(format!("{}: {why}", file.path)),
        }
    }
    Ok(found)
}

/// Writes the generated parts.
pub(crate) fn write(root: &Path, files: &[SourceFile], metadata: &Metadata) -> Result<(), Box<dyn Error>> {
    let parts = parts(root, files, metadata)?;
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let text = filled(&file.text, &parts).map_err(|why| format!("{}: {why}", file.path))?;
        if text != file.text {
            std::fs::write(root.join(&file.path), text)?;
            println!("    wrote {}", file.path);
        }
    }
    Ok(())
}

fn parts(root: &Path, files: &[SourceFile], metadata: &Metadata) -> Result<BTreeMap<&'static str, String>, Box<dyn Error>> {
    let table = layers::table(&std::fs::read_to_string(root.join("xtask/layers.toml"))?)?;
    let present: Vec<_> = metadata.workspace_packages().iter().map(|package| package.name.to_string()).collect();
    let facade = files.iter().find(|file| file.path == "crates/agent-controller/Cargo.toml").map(|file| file.text.as_str());
    Ok(BTreeMap::from([
        ("layers", layer_table(&table, &present)),
        ("crates", crate_table(&table, &present)),
        ("features", feature_table(facade.unwrap_or_default())),
        ("codes", code_table(files)),
        ("routes", routes::table(&std::fs::read_to_string(root.join("crates/ac-server/openapi.json"))?)?),
        ("refusals", routes::refusals(files)?),
        ("measured", bench::table(root)?),
        ("events", event_table(files)),
    ]))
}

/// A document with its generated parts put in.
pub(crate) fn filled(text: &str, parts: &BTreeMap<&'static str, String>) -> Result<String, String> {
    let mut out = String::new();
    let mut skipping: Option<String> = None;
    for line in text.split_inclusive('\n') {
        let mark = |word: &str| line.trim().strip_prefix(word)?.strip_suffix("-->").map(|name| name.trim().to_owned());
        if let Some(name) = mark("<!-- generated:") {
            let part = parts.get(name.as_str()).ok_or_else(|| format!("nothing generates `{name}`"))?;
            write!(out, "{line}\n{}\n\n", part.trim_end()).ok();
            skipping = Some(name);
        } else if let Some(name) = mark("<!-- end:") {
            if skipping.take().as_ref() != Some(&name) {
                return Err(format!("the end of `{name}` has no beginning"));
            }
            out.push_str(line);
        } else if skipping.is_none() {
            out.push_str(line);
        }
    }
    skipping.map_or(Ok(out), |name| Err(format!("the part `{name}` has no end")))
}

fn layer_table(table: &Table, present: &[String]) -> String {
    let mut rows: Vec<_> = table.crates.iter().filter(|(name, _)| present.contains(name)).collect();
    rows.sort_by_key(|(name, row)| (row.kind == Kind::Dev, row.layer, name.as_str()));
    let mut out = String::from("| layer | crate | owns | must not know |\n|---|---|---|---|\n");
    for (name, row) in rows {
        let layer = if row.kind == Kind::Dev { "dev".to_owned() } else { row.layer.to_string() };
        writeln!(out, "| {layer} | `{name}` | {} | {} |", row.owns, row.blind_to).ok();
    }
    out
}

fn crate_table(table: &Table, present: &[String]) -> String {
    let mut rows: Vec<_> = table.crates.iter().filter(|(name, _)| present.contains(name)).collect();
    rows.sort_by_key(|(name, row)| (row.kind == Kind::Dev, std::cmp::Reverse(row.layer), name.as_str()));
    let mut out = String::from("| crate | what |\n|---|---|\n");
    for (name, row) in rows {
        let folder = if matches!(name.as_str(), "examples" | "xtask" | "tests") { name.clone() } else { format!("crates/{name}") };
        writeln!(out, "| [`{name}`]({folder}) | {} |", row.owns).ok();
    }
    out
}

/// Features and the comment above each.
pub(crate) fn feature_table(manifest: &str) -> String {
    let mut out = String::from("| feature | for whom | turns on |\n|---|---|---|\n");
    let mut comment = Vec::new();
    let section = manifest.split("\n[features]\n").nth(1).unwrap_or_default();
    for line in section.lines().take_while(|line| !line.starts_with('[')) {
        if let Some(words) = line.strip_prefix("# ") {
            comment.push(words);
        } else if let Some((name, on)) = line.split_once(" = ") {
            let on = on.trim_matches(['[', ']']).replace('"', "`");
            writeln!(out, "| `{name}` | {} | {} |", comment.join(" "), if on.is_empty() { "nothing more" } else { &on }).ok();
            comment.clear();
        }
    }
    out
}

/// Documented variants: enum, variant, what it says.
type Variants<'a> = BTreeMap<(&'a str, &'a str), String>;

fn variants<'a>(files: impl Iterator<Item = &'a SourceFile>) -> Variants<'a> {
    let mut out = BTreeMap::new();
    for file in files {
        let mut inside = None;
        let mut doc: Vec<&str> = Vec::new();
        for line in file.text.lines() {
            if let Some(name) = line.strip_prefix("pub enum ") {
                inside = Some(name.trim_end_matches([' ', '{']));
            } else if line == "}" {
                inside = None;
            }
            let variant = line.strip_prefix("    ").filter(|rest| rest.starts_with(char::is_uppercase));
            if let Some(words) = line.strip_prefix("    /// ") {
                doc.push(words);
            } else if let (Some(of), Some(variant)) = (inside, variant) {
                let name = variant.split(['(', ',', ' ', '{']).next().unwrap_or_default();
                out.insert((of, name), doc.join(" "));
                doc.clear();
            } else if !line.trim_start().starts_with("#[") {
                doc.clear();
            }
        }
    }
    out
}

fn library(files: &[SourceFile]) -> impl Iterator<Item = &SourceFile> {
    files.iter().filter(|file| file.is_rust() && !file.is_test() && file.path.starts_with("crates/ac-"))
}

/// Every error code of the libraries, with what its kind says.
pub(crate) fn code_table(files: &[SourceFile]) -> String {
    let known = variants(library(files));
    let mut codes: BTreeMap<String, (String, &str)> = BTreeMap::new();
    for file in library(files) {
        let own = variants(std::iter::once(file));
        for (pattern, code) in file.text.lines().filter_map(arm).filter(|(_, code)| is_code(code)) {
            let meaning = pattern.rsplit(" | ").find_map(|one| {
                let (of, variant) = path(one)?;
                let same = || own.iter().find(|((_, name), _)| *name == variant).map(|(_, says)| says.clone());
                // `Self`, or a short name of an enum of the same file.
                known.get(&(of, variant)).cloned().or_else(same)
            });
            codes.entry(code.to_owned()).or_insert((meaning.unwrap_or_default(), file.member()));
        }
        for made in file.text.split("ErrorInfo::new(\"").skip(1) {
            let mut words = made.split('"');
            let (code, message) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
            if is_code(code) {
                codes.entry(code.to_owned()).or_insert((message.to_owned(), file.member()));
            }
        }
    }
    let mut out = String::from("| code | means | from |\n|---|---|---|\n");
    for (code, (meaning, member)) in codes {
        writeln!(out, "| `{code}` | {} | `{member}` |", meaning.replace('|', "\\|")).ok();
    }
    out
}

/// Every event, with what its variant says.
pub(crate) fn event_table(files: &[SourceFile]) -> String {
    let known = variants(library(files));
    let mut out = String::from("| event | when |\n|---|---|\n");
    let event = files.iter().find(|file| file.path == "crates/ac-core/src/event.rs");
    for (pattern, name) in event.iter().flat_map(|file| file.text.lines()).filter_map(arm) {
        let Some((_, variant)) = path(pattern) else { continue };
        if let Some(says) = known.get(&("EventBody", variant)).filter(|_| snake(variant) == name) {
            writeln!(out, "| `{name}` | {says} |").ok();
        }
    }
    out
}

/// The code of each kind of error of the libraries: enum, variant.
pub(crate) fn kinds(files: &[SourceFile]) -> BTreeMap<(&str, &str), String> {
    let known = variants(library(files));
    let mut out = BTreeMap::new();
    for file in library(files) {
        let own = variants(std::iter::once(file));
        for (pattern, code) in file.text.lines().filter_map(arm).filter(|(_, code)| is_code(code)) {
            for (of, variant) in pattern.split(" | ").filter_map(path) {
                let here = own.keys().find(|(_, name)| *name == variant);
                let of = if known.contains_key(&(of, variant)) { of } else { here.map_or(of, |(of, _)| of) };
                out.entry((of, variant)).or_insert_with(|| code.to_owned());
            }
        }
    }
    out
}

/// `concern.kind`.
pub(crate) fn is_code(text: &str) -> bool {
    text.contains('.') && text.split('.').all(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
}

/// `PATTERN => "text",`.
fn arm(line: &str) -> Option<(&str, &str)> {
    let (pattern, rest) = line.trim().split_once(" => \"")?;
    Some((pattern, rest.strip_suffix("\",")?))
}

/// The enum and the variant of the innermost path in a pattern.
fn path(pattern: &str) -> Option<(&str, &str)> {
    let inner = pattern.rsplit('(').find(|part| part.contains("::"))?;
    let (of, variant) = inner.split_once("::")?;
    Some((of, variant.split([')', ' ', '{']).next()?))
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

#[cfg(test)]
mod tests;
