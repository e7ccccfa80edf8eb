//! What people begin with is explained: every crate denies items without documentation, and each entry type has an example.

use crate::source::SourceFile;

/// Where people begin to read the API documentation.
const ENTRIES: [&str; 24] = [
    "Agent",
    "AgentController",
    "ChannelHooks",
    "Channels",
    "ControllerBuilder",
    "DisplayState",
    "Event",
    "Guide",
    "Host",
    "Kv",
    "McpServer",
    "MemoryStorage",
    "Mode",
    "ModelProvider",
    "Router",
    "Server",
    "Session",
    "SledOptions",
    "Storage",
    "Subagent",
    "ThreadInfo",
    "Tool",
    "TypedTool",
    "Workspace",
];

/// Crates that let items be without documentation, and entry types without an example.
pub(crate) fn unexplained(files: &[SourceFile]) -> Vec<String> {
    let library = |file: &&SourceFile| file.path.starts_with("crates/") && file.path.ends_with("/src/lib.rs");
    let careless = files.iter().filter(library).filter(|file| !file.text.contains("#![deny(missing_docs)]"));
    let mut found: Vec<String> = careless.map(|file| format!("{}: #![deny(missing_docs)] is missing", file.path)).collect();
    for name in ENTRIES {
        match files.iter().filter(|file| file.is_rust() && !file.is_test()).find_map(|file| documentation(&file.text, name)) {
            None => found.push(format!("xtask/src/entries.rs: there is no public `{name}`")),
            Some(text) if !text.contains("/// ```") => found.push(format!("`{name}` has no example in its documentation")),
            Some(_) => {}
        }
    }
    found
}

/// The comment above the definition of a public type or trait.
fn documentation(text: &str, name: &str) -> Option<String> {
    let mut comment = String::new();
    for line in text.lines() {
        if line.starts_with("///") {
            comment.push_str(line);
            comment.push('\n');
        } else if ["pub struct ", "pub trait ", "pub type "].iter().any(|kind| {
            let rest = line.strip_prefix(kind).and_then(|rest| rest.strip_prefix(name));
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        }) {
            return Some(comment);
        } else if !line.starts_with("#[") {
            comment.clear();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{documentation, unexplained};
    use crate::source::SourceFile;

    #[test]
    fn a_comment_belongs_to_the_type_below_it() {
        let text =
            "/// Other.\npub struct Host2;\n\n/// A host.\n///\n/// ```\n/// a();\n/// ```\n#[derive(Debug)]\npub struct Host {\n}\n";
        assert_eq!(documentation(text, "Host").as_deref(), Some("/// A host.\n///\n/// ```\n/// a();\n/// ```\n"));
        assert_eq!(documentation(text, "Session"), None);
    }

    #[test]
    fn what_is_not_explained_is_found() {
        let file = |path: &str, text: &str| SourceFile { path: path.to_owned(), text: text.to_owned() };
        let found = unexplained(&[file("crates/a/src/lib.rs", ""), file("crates/a/src/host.rs", "/// A host.\npub struct Host;\n")]);
        assert!(found.contains(&"crates/a/src/lib.rs: #![deny(missing_docs)] is missing".to_owned()), "{found:?}");
        assert!(found.contains(&"`Host` has no example in its documentation".to_owned()), "{found:?}");
        assert!(found.contains(&"xtask/src/entries.rs: there is no public `Session`".to_owned()), "{found:?}");
    }
}
