//! Rules for single commands and paths: `execute_command(git status*)`, `write_file(src/**)`.
//!
//! A rule names a tool and, in parentheses, which of its calls it means. A command line is taken apart by the lexer of a shell: it is
//! denied if any of its commands is denied, asks if any asks, and is allowed only if every one is allowed and nothing in it is hidden
//! (substitutions, redirections to files, assignments, compound commands). Deny beats ask beats allow, in whatever order
//! the rules stand.

mod command;

use std::{
    fmt,
    path::{Component, Path, PathBuf},
    str::FromStr,
};

use ac_core::{Policy, permission::CallVerdict};
use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize, de};
use serde_json::Value;

use self::command::Line;
use crate::{Filesystem, WorkspaceErrorKind};

/// Which calls a rule means: a tool's name alone, or with a pattern of a command or path in parentheses.
///
/// A pattern of a command is compared with the words of each command, quotes and extra blanks removed; `*` stands for anything. For a rule
/// that denies or asks it also covers further words, and a name also covers every path to a program of that name. For a rule that allows
/// nothing is added: `ls` is `ls` alone, `ls *` is `ls` with words, `git status*` is both.
///
/// A pattern of a path is a glob, relative to the workspace folder; without `/` it means names at any depth.
#[derive(Clone, Debug)]
pub struct ToolPattern {
    text: String,
    tool: String,
    inner: Option<Inner>,
}

#[derive(Clone, Debug)]
struct Inner {
    text: String,
    /// For paths, in both cases: exact, and without regard to upper and lower case.
    path: Option<(GlobMatcher, GlobMatcher)>,
}

/// A pattern that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no rule: write a tool's name, or a name with a pattern such as `execute_command(git status*)` or `write_file(src/**)`"
)]
pub struct BadPattern {
    /// What was given.
    pub text: String,
}

impl FromStr for ToolPattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, BadPattern> {
        let bad = || BadPattern { text: text.to_owned() };
        let trimmed = text.trim();
        let (tool, inner) = match trimmed.split_once('(') {
            None => (trimmed, None),
            Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').ok_or_else(bad)?.trim())),
        };
        let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
        if tool.is_empty() || !tool.chars().all(name) || inner.is_some_and(str::is_empty) {
            return Err(bad());
        }
        let inner = inner.map(|inner| Inner { text: inner.to_owned(), path: path_globs(inner) });
        Ok(Self { text: trimmed.to_owned(), tool: tool.to_owned(), inner })
    }
}

/// `None` for what is no glob: it may still be a pattern of a command.
fn path_globs(text: &str) -> Option<(GlobMatcher, GlobMatcher)> {
    let trimmed = text.trim_start_matches("./");
    let whole = if trimmed.contains('/') { trimmed.to_owned() } else { format!("**/{trimmed}") };
    let glob = |fold: bool| Some(GlobBuilder::new(&whole).literal_separator(true).case_insensitive(fold).build().ok()?.compile_matcher());
    Some((glob(false)?, glob(true)?))
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for ToolPattern {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for ToolPattern {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Rules with patterns, for all tools of a host.
///
/// ```
/// use ac_core::Policy;
/// use ac_workspace::rules::ToolRules;
/// use serde_json::json;
///
/// let rules = ToolRules::new()
///     .with("execute_command(git status*)", Policy::Allow)?
///     .with("execute_command(git push*)", Policy::Deny)?;
/// let judge = |command: &str| rules.judge("execute_command", &json!({ "command": command }));
/// assert_eq!(judge("git status --short"), Some(Policy::Allow));
/// assert_eq!(judge("git status && git push"), Some(Policy::Deny));
/// assert_eq!(judge("ls"), None);
/// # Ok::<(), ac_workspace::rules::BadPattern>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ToolRules(Vec<(ToolPattern, Policy)>);

impl ToolRules {
    /// No rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule.
    ///
    /// # Errors
    /// When the pattern cannot be read.
    pub fn with(mut self, pattern: &str, policy: Policy) -> Result<Self, BadPattern> {
        self.add(pattern.parse()?, policy);
        Ok(self)
    }

    /// Adds a rule.
    pub fn add(&mut self, pattern: ToolPattern, policy: Policy) {
        self.0.push((pattern, policy));
    }

    /// All rules.
    pub fn iter(&self) -> impl Iterator<Item = (&ToolPattern, Policy)> {
        self.0.iter().map(|(pattern, policy)| (pattern, *policy))
    }

    /// What the rules say of a call. `None`: nothing; other rules decide.
    ///
    /// A call with a `command` is judged as a command line, one with a `path` (or `from` and `to`) by its paths as they are written, any
    /// other by its tool. Where links may be about, see [`ToolRules::judge_in`].
    pub fn judge(&self, tool: &str, args: &Value) -> Option<Policy> {
        self.verdict(tool, args).map(policy)
    }

    /// As [`ToolRules::judge`], with what cannot be told as a verdict of its own: where a rule denies some commands, a line in which a
    /// denied one may hide is [`CallVerdict::Unclear`].
    pub fn verdict(&self, tool: &str, args: &Value) -> Option<CallVerdict> {
        let rules: Vec<(&ToolPattern, Policy)> = self.iter().filter(|(pattern, _)| pattern.tool == tool).collect();
        if rules.is_empty() {
            return None;
        }
        let whole = strictest(rules.iter().filter(|(pattern, _)| pattern.inner.is_none()).map(|(_, policy)| *policy));
        let part = match args.get("command").and_then(Value::as_str) {
            Some(command) => judge_command(&rules, command),
            None => PATHS
                .iter()
                .filter_map(|name| args.get(*name).and_then(Value::as_str))
                .map(|path| judge_path(&rules, path))
                .reduce(both)
                .flatten()
                .map(verdict),
        };
        let part = match below(tool, args) {
            Some(folder) if part != Some(CallVerdict::Deny) && may_hold_denied(&rules, tool, folder) => Some(CallVerdict::Unclear),
            _ => part,
        };
        match (part, whole) {
            // A rule for all calls of a tool that allows them leaves the word to the narrower one.
            (Some(part), None | Some(Policy::Allow)) => Some(part),
            (Some(CallVerdict::Deny), _) | (_, Some(Policy::Deny)) => Some(CallVerdict::Deny),
            (Some(CallVerdict::Unclear), _) => Some(CallVerdict::Unclear),
            (_, whole) => whole.map(verdict),
        }
    }

    /// As [`ToolRules::judge`], with the paths that a file system would really open: a link, a detour or an absolute path is judged as what
    /// it leads to. What leads outside is denied.
    pub async fn judge_in(&self, files: &dyn Filesystem, tool: &str, args: &Value) -> Option<Policy> {
        self.verdict_in(files, tool, args).await.map(policy)
    }

    /// As [`ToolRules::verdict`], with the paths that a file system would really open.
    pub async fn verdict_in(&self, files: &dyn Filesystem, tool: &str, args: &Value) -> Option<CallVerdict> {
        if !self.iter().any(|(pattern, _)| pattern.tool == tool) {
            return None;
        }
        let mut args = args.clone();
        for name in PATHS {
            let Some(path) = args.get(name).and_then(Value::as_str) else { continue };
            let real = match files.resolve(Path::new(path)).await {
                Ok(real) => real.to_string_lossy().into_owned(),
                Err(error) if error.kind() == WorkspaceErrorKind::Escape => return Some(CallVerdict::Deny),
                // The call itself will say what is wrong with it.
                Err(_) => continue,
            };
            if let Some(fields) = args.as_object_mut() {
                fields.insert(name.to_owned(), Value::String(real));
            }
        }
        self.verdict(tool, &args)
    }
}

/// Arguments that name something in the workspace.
const PATHS: [&str; 4] = ["path", "from", "to", "cwd"];

/// The folder that a call takes in with all that is below it.
fn below<'a>(tool: &str, args: &'a Value) -> Option<&'a str> {
    let text = |name: &str| args.get(name).and_then(Value::as_str);
    match tool {
        "search_content" => Some(text("path").unwrap_or(".")),
        "delete" if args.get("recursive").and_then(Value::as_bool) == Some(true) => text("path"),
        "move" => text("from"),
        _ => None,
    }
}

/// Whether something that is denied may be in a folder, by the names that stand before the first sign of a glob.
fn may_hold_denied(rules: &[(&ToolPattern, Policy)], tool: &str, folder: &str) -> bool {
    let parts = |path: &str| -> Vec<String> { path.split('/').filter(|part| !matches!(*part, "" | ".")).map(str::to_lowercase).collect() };
    let folder = parts(folder);
    rules.iter().filter(|(_, policy)| *policy == Policy::Deny).filter_map(|(pattern, _)| pattern.inner.as_ref()).any(|inner| {
        let all = parts(&inner.text);
        let named: Vec<&String> = all.iter().take_while(|part| !part.contains(['*', '?', '[', '{'])).collect();
        let same = named.iter().zip(&folder).all(|(named, folder)| *named == folder);
        // What is moved is still what a pattern without a folder means.
        let anywhere = named.len() < all.len() && tool != "move";
        same && (named.len() >= folder.len() || anywhere)
    })
}

fn rank(policy: Policy) -> u8 {
    match policy {
        Policy::Allow => 0,
        Policy::Ask => 1,
        Policy::Deny => 2,
    }
}

fn stricter(a: Policy, b: Policy) -> Policy {
    if rank(a) >= rank(b) { a } else { b }
}

fn strictest(policies: impl Iterator<Item = Policy>) -> Option<Policy> {
    policies.reduce(stricter)
}

/// Two things that a call touches: it is allowed only if both are.
fn both(a: Option<Policy>, b: Option<Policy>) -> Option<Policy> {
    match (a, b) {
        (Some(a), Some(b)) => Some(stricter(a, b)),
        (Some(Policy::Allow), None) | (None, Some(Policy::Allow)) | (None, None) => None,
        (one, other) => one.or(other),
    }
}

fn judge_path(rules: &[(&ToolPattern, Policy)], path: &str) -> Option<Policy> {
    let path = Path::new(path.trim_start_matches("./"));
    let bare = bare(path);
    strictest(rules.iter().filter_map(|(pattern, policy)| {
        let (exact, folded) = pattern.inner.as_ref()?.path.as_ref()?;
        // Where upper and lower case are one file, another spelling must not get around a rule that holds back.
        let glob = if *policy == Policy::Allow { exact } else { folded };
        (glob.is_match(path) || (*policy != Policy::Allow && glob.is_match(&bare))).then_some(*policy)
    }))
}

/// The path without what some systems leave out of a name: dots and blanks at its end, and the name of a stream in the file (`.env.`,
/// `.env::$DATA` are `.env` there).
fn bare(path: &Path) -> PathBuf {
    path.components()
        .map(|part| match part {
            Component::Normal(name) => {
                let name = name.to_string_lossy();
                let stem = name.split_once(':').map_or(&*name, |(stem, _)| stem);
                let short = stem.trim_end_matches(['.', ' ']);
                if short.is_empty() { name.into_owned() } else { short.to_owned() }
            }
            other => other.as_os_str().to_string_lossy().into_owned(),
        })
        .collect()
}

fn verdict(policy: Policy) -> CallVerdict {
    match policy {
        Policy::Allow => CallVerdict::Allow,
        Policy::Ask => CallVerdict::Ask,
        Policy::Deny => CallVerdict::Deny,
    }
}

fn policy(verdict: CallVerdict) -> Policy {
    match verdict {
        CallVerdict::Allow => Policy::Allow,
        CallVerdict::Ask | CallVerdict::Unclear => Policy::Ask,
        CallVerdict::Deny => Policy::Deny,
    }
}

fn judge_command(rules: &[(&ToolPattern, Policy)], command: &str) -> Option<CallVerdict> {
    let line = Line::read(command);
    let fits = |words: &[String], wanted: Policy| {
        rules.iter().any(|(pattern, policy)| {
            *policy == wanted && pattern.inner.as_ref().is_some_and(|inner| command::fits(&inner.text, words, wanted != Policy::Allow))
        })
    };
    let found = |policy| line.commands.iter().any(|words| fits(words, policy)) || line.hidden.iter().any(|words| fits(words, policy));
    if found(Policy::Deny) {
        return Some(CallVerdict::Deny);
    }
    let denied = || rules.iter().filter(|(_, policy)| *policy == Policy::Deny).filter_map(|(pattern, _)| pattern.inner.as_ref());
    let may_fit = |program: &String| denied().any(|inner| command::may_fit(&inner.text, program));
    let behind_options = |words: &Vec<String>| denied().any(|inner| command::may_fit_behind_options(&inner.text, words));
    let hides = line.open.iter().any(may_fit) || line.commands.iter().chain(&line.hidden).any(behind_options);
    if (line.unread && denied().next().is_some()) || hides {
        return Some(CallVerdict::Unclear);
    }
    if found(Policy::Ask) {
        return Some(CallVerdict::Ask);
    }
    if line.plain {
        let allowed = !line.commands.is_empty() && line.commands.iter().all(|words| fits(words, Policy::Allow));
        return allowed.then_some(CallVerdict::Allow);
    }
    // Something cannot be seen: where anything is held back, a person looks at it.
    let holds_back = rules.iter().any(|(pattern, policy)| *policy != Policy::Allow && pattern.inner.is_some());
    holds_back.then_some(CallVerdict::Ask)
}

#[cfg(test)]
mod tests;
