use serde_json::json;

use super::folder::{Folder, extension};

/// What is to be made, and from what.
#[derive(Debug)]
pub(super) struct Brief<'a> {
    /// The task, in one line.
    pub(super) task: &'a str,
    /// Findings about the folder, one sentence each.
    pub(super) findings: &'a [String],
    /// What the person asked for since.
    pub(super) changes: &'a [String],
}

/// A file name in running text: `notes.md`, `src/hello.py`.
pub(super) fn named_file(text: &str) -> Option<&str> {
    text.split(|c: char| c.is_whitespace() || "`'\"(),;<>".contains(c)).map(|word| word.trim_end_matches(['.', '!', '?', ':'])).find(
        |word| {
            let known = extension(word).is_some_and(|kind| kind.len() <= 5 && kind.chars().all(|c| c.is_ascii_alphanumeric()));
            known && !word.contains("://") && word.chars().any(char::is_alphabetic) && !matches!(*word, "e.g" | "i.e")
        },
    )
}

/// A short name for a task, safe as a file name.
pub(super) fn slug(task: &str) -> String {
    let mut slug = String::new();
    for word in task.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        if slug.len() + word.len() > 40 {
            break;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(&word.to_ascii_lowercase());
    }
    if slug.is_empty() { "task".into() } else { slug }
}

/// A path that does not exist yet: `notes.md`, else `notes-2.md`, …
pub(super) fn fresh(folder: &Folder, stem: &str, kind: &str) -> String {
    let names = (1..).map(|n| if n == 1 { format!("{stem}.{kind}") } else { format!("{stem}-{n}.{kind}") });
    names.take(1000).find(|name| !folder.has(name)).unwrap_or_else(|| format!("{stem}-new.{kind}"))
}

/// The content of a file of this kind. It does what a recipe can do: it says what was asked for and what was found.
pub(super) fn content(path: &str, brief: &Brief<'_>) -> String {
    let says = quoted(brief.task).unwrap_or(brief.task);
    match extension(path).unwrap_or_default() {
        "sh" => {
            let mut text = format!("#!/bin/sh\n# {}\n", brief.task);
            brief.changes.iter().for_each(|change| text.push_str(&format!("# {change}\n")));
            text.push_str(&format!("echo {}\n", shell(says)));
            text
        }
        "py" => format!("# {}\nprint({})\n", brief.task, json!(says)),
        "js" | "ts" | "mjs" => format!("// {}\nconsole.log({});\n", brief.task, json!(says)),
        "rs" => format!("// {}\nfn main() {{\n    println!(\"{{}}\", {says:?});\n}}\n", brief.task),
        "json" => format!("{:#}\n", json!({ "task": brief.task, "found": brief.findings, "changes": brief.changes })),
        "toml" => format!("task = {}\n", json!(brief.task)),
        "yaml" | "yml" => format!("task: {}\n", json!(brief.task)),
        "html" => format!("<!doctype html>\n<title>{0}</title>\n<p>{0}</p>\n", says.replace('&', "&amp;").replace('<', "&lt;")),
        "txt" => format!("{says}\n"),
        _ => {
            let mut text = format!("# {}\n\n", brief.task);
            brief.findings.iter().for_each(|finding| text.push_str(&format!("- {finding}\n")));
            brief.changes.iter().for_each(|change| text.push_str(&format!("- Asked for since: {change}\n")));
            text
        }
    }
}

/// The command that shows that the file is there, or runs it where that needs nothing but a shell.
pub(super) fn command(path: &str) -> String {
    let quoted = if path.chars().all(|c| c.is_ascii_alphanumeric() || "._/-".contains(c)) { path.to_owned() } else { shell(path) };
    // A path that begins with a dash would be read as an option.
    let quoted = if quoted.starts_with('-') { format!("./{quoted}") } else { quoted };
    if extension(path) == Some("sh") { format!("sh {quoted}") } else { format!("cat {quoted}") }
}

fn shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// What stands between the first pair of double quotes.
fn quoted(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('"')?;
    let (inner, _) = rest.split_once('"')?;
    (!inner.trim().is_empty()).then_some(inner)
}

/// Text on one line, without control characters, cut at `limit` characters.
pub(super) fn one_line(text: &str, limit: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    if line.chars().count() <= limit { line } else { format!("{}…", line.chars().take(limit).collect::<String>().trim_end()) }
}
