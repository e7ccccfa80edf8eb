//! What a tool call is about to do, in words, and what came of it.

use serde_json::Value;
use similar::TextDiff;

/// The longest change that is shown in full, in lines.
const LONGEST_CHANGE: usize = 400;

/// A call, as it is announced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deed {
    /// One line: what is done.
    pub(crate) title: String,
    /// What the person must see before it is done.
    pub(crate) detail: Detail,
}

/// What belongs to a deed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Nothing.
    #[default]
    None,
    /// A file becomes this.
    Write {
        /// The file.
        path: String,
        /// Its new content.
        content: String,
    },
    /// A piece of a file is replaced.
    Replace {
        /// The file.
        path: String,
        /// The old piece.
        old: String,
        /// The new piece.
        new: String,
    },
    /// A command, as it is run.
    Command(String),
    /// Anything else, as JSON.
    Args(String),
}

/// What a call of a tool does; `None` for one that is shown when it asks (a question, a plan).
pub(crate) fn deed(tool: &str, args: &Value) -> Option<Deed> {
    let text = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let place = |path: String| if path.is_empty() || path == "." { "this folder".to_owned() } else { path };
    Some(match tool {
        "ask_user" | "submit_plan" => return None,
        "view" => Deed { title: format!("Read {}", text("path")), detail: Detail::None },
        "find_files" => Deed { title: format!("Look for files in {}", place(text("path"))), detail: Detail::None },
        "search_content" => Deed { title: format!("Search for {} in {}", text("pattern"), place(text("path"))), detail: Detail::None },
        "write_file" => {
            Deed { title: format!("Write {}", text("path")), detail: Detail::Write { path: text("path"), content: text("content") } }
        }
        "string_replace" => {
            let first = |names: [&str; 2]| names.into_iter().map(text).find(|text| !text.is_empty()).unwrap_or_default();
            let (old, new) = (first(["old_string", "old"]), first(["new_string", "new"]));
            let all = args.get("replace_all").and_then(Value::as_bool) == Some(true);
            let everywhere = if all { ", every occurrence" } else { "" };
            Deed { title: format!("Change {}{everywhere}", text("path")), detail: Detail::Replace { path: text("path"), old, new } }
        }
        "execute_command" => Deed { title: run(args), detail: Detail::Command(text("command")) },
        other => Deed { title: format!("Call {other}"), detail: Detail::Args(format!("{args:#}")) },
    })
}

/// Where and how long a command runs, where that is not as usual.
fn run(args: &Value) -> String {
    let folder = args.get("cwd").and_then(Value::as_str).filter(|folder| !matches!(*folder, "" | "." | "./"));
    let folder = folder.map_or_else(String::new, |folder| format!(" in {folder}"));
    let limit = args.get("timeout").and_then(Value::as_f64).map_or_else(String::new, |limit| format!(", at most {limit} s"));
    format!("Run{folder}{limit}")
}

/// The lines of a change, each with what happens to it (` `, `-`, `+`, `@`). `before` is `None` for a file that does not exist yet.
pub(crate) fn change(before: Option<&str>, after: &str) -> Vec<(char, String)> {
    let before = before.unwrap_or_default();
    let diff = TextDiff::from_lines(before, after);
    let unified = diff.unified_diff().context_radius(3).to_string();
    let lines: Vec<_> = unified
        .lines()
        .filter_map(|line| {
            let mark = line.chars().next()?;
            match mark {
                '@' => Some(('@', line.to_owned())),
                ' ' | '-' | '+' => Some((mark, line.get(1..).unwrap_or_default().to_owned())),
                _ => None,
            }
        })
        .collect();
    let left = lines.len().saturating_sub(LONGEST_CHANGE);
    let mut shown: Vec<_> = lines.into_iter().take(LONGEST_CHANGE).collect();
    if left > 0 {
        shown.push(('@', format!("… and {left} more lines that are not shown here")));
    }
    shown
}

/// What came of a call, in one line; empty when its output was shown while it ran.
pub(crate) fn result(tool: &str, value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => match value.get("content").and_then(Value::as_str) {
            Some(content) => content.to_owned(),
            None => value.to_string(),
        },
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    match tool {
        "view" | "find_files" | "search_content" => match lines {
            0 => "nothing".into(),
            1 => text.trim().to_owned(),
            lines => format!("{lines} lines"),
        },
        _ => text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_call_says_what_it_will_do() {
        let title = |tool, args: Value| deed(tool, &args).map(|deed| deed.title);
        assert_eq!(title("view", json!({"path": "a.rs"})).unwrap(), "Read a.rs");
        assert_eq!(title("find_files", json!({})).unwrap(), "Look for files in this folder");
        assert_eq!(title("ask_user", json!({})), None);
        assert_eq!(deed("execute_command", &json!({"command": "ls -l"})).unwrap().detail, Detail::Command("ls -l".into()));
        assert_eq!(title("execute_command", json!({"command": "ls", "cwd": "sub", "timeout": 5})).unwrap(), "Run in sub, at most 5 s");
        assert_eq!(title("string_replace", json!({"path": "a", "replace_all": true})).unwrap(), "Change a, every occurrence");
        let other = deed("deploy", &json!({"to": "moon"})).unwrap();
        assert_eq!((other.title.as_str(), &other.detail), ("Call deploy", &Detail::Args("{\n  \"to\": \"moon\"\n}".into())));
    }

    #[test]
    fn a_change_is_shown_as_the_lines_that_differ() {
        let marks: String = change(Some("one\ntwo\n"), "one\nthree\n").iter().map(|(mark, _)| *mark).collect();
        assert_eq!(marks, "@ -+");
        assert_eq!(change(None, "new\n").last().unwrap(), &('+', "new".into()));
        assert!(change(Some("same\n"), "same\n").is_empty());
        let long: String = (0..1000).map(|n| format!("{n}\n")).collect();
        let shown = change(None, &long);
        assert!(shown.len() == LONGEST_CHANGE + 1 && shown.last().unwrap().1.contains("601"), "{:?}", shown.last());
    }

    #[test]
    fn a_result_is_one_line() {
        assert_eq!(result("find_files", &json!("a\nb\n")), "2 lines");
        assert_eq!(result("view", &json!("")), "nothing");
        assert_eq!(result("ask_user", &json!({"content": "User answered: x"})), "User answered: x");
        assert_eq!(result("write_file", &json!("\nwrote 3 bytes\nmore")), "wrote 3 bytes");
    }
}
