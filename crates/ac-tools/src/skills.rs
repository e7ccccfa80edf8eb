//! What a workspace tells its agents: skills (`SKILL.md` folders) and `AGENTS.md`.
//!
//! Both are text that somebody put into the workspace. They become a part of the instructions, so their length is limited, and nothing in
//! them gives a right: what a skill asks for runs through the same tools, rules and approvals as everything else.

mod agents;
mod tool;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use ac_core::tool::ToolList;
use ac_workspace::{FileKind, Workspace, WorkspaceErrorKind};
pub use agents::{AGENTS_FILE, agents_instructions};
use serde::Deserialize;

/// Where skills are looked for unless the host says otherwise.
pub const SKILL_FOLDERS: [&str; 2] = [".agents/skills", ".claude/skills"];

/// The most skills of one workspace; the longest `SKILL.md`; the longest catalogue, in bytes.
const MOST: usize = 200;
const LONGEST_FILE: u64 = 256 << 10;
const LONGEST_CATALOGUE: usize = 16 << 10;

/// A skill: what it is for, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// Its name, that of its folder.
    pub name: String,
    /// When it is of use.
    pub description: String,
    /// Its folder.
    pub folder: PathBuf,
}

/// The skills of a workspace.
///
/// ```
/// use ac_tools::skills::Skills;
/// use ac_workspace::Workspace;
///
/// # async fn run(workspace: &Workspace) {
/// let skills = Skills::discover(workspace, &[".skills"]).await;
/// for skill in skills.iter() {
///     println!("{}: {}", skill.name, skill.description);
/// }
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Skills {
    by_name: BTreeMap<String, Skill>,
    problems: Vec<String>,
}

#[derive(Deserialize)]
struct FrontMatter {
    name: String,
    description: String,
}

impl Skills {
    /// Looks into folders of the workspace; the first skill of a name counts. A folder that is not there holds none; a skill that cannot be
    /// read is left out and told by [`Skills::problems`].
    pub async fn discover(workspace: &Workspace, folders: &[impl AsRef<Path>]) -> Self {
        let mut skills = Self::default();
        for folder in folders {
            let folder = folder.as_ref();
            let entries = match workspace.filesystem().list(folder).await {
                Ok(entries) => entries,
                Err(error) => {
                    if error.kind() != WorkspaceErrorKind::NotFound {
                        skills.problems.push(error.to_string());
                    }
                    continue;
                }
            };
            for entry in entries {
                if !matches!(entry.kind, FileKind::Dir | FileKind::Link) {
                    continue;
                }
                if skills.by_name.len() >= MOST {
                    skills.problems.push(format!("only the first {MOST} skills are used"));
                    return skills;
                }
                match read(workspace, folder.join(&entry.name), &entry.name).await {
                    Ok(Some(skill)) => drop(skills.by_name.entry(skill.name.clone()).or_insert(skill)),
                    Ok(None) => {}
                    Err(problem) => skills.problems.push(problem),
                }
            }
        }
        skills
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Skill> {
        self.by_name.values()
    }

    /// The skill of this name.
    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.by_name.get(name)
    }

    /// What was left out, and why.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// What the instructions say of them: name and description of each. `None` without skills.
    pub fn instructions(&self) -> Option<String> {
        if self.by_name.is_empty() {
            return None;
        }
        let mut text =
            String::from("Skills are instructions for special tasks. When one fits the task, load it with the tool `skill` first.\n");
        for skill in self.iter() {
            let line = format!("- {}: {}\n", skill.name, skill.description);
            if text.len() + line.len() > LONGEST_CATALOGUE {
                text.push_str("- (there are more)\n");
                break;
            }
            text.push_str(&line);
        }
        Some(text)
    }

    /// The tools `skill` and `skill_read`. None without skills.
    pub fn tools(self: &Arc<Self>, workspace: &Arc<Workspace>) -> ToolList {
        if self.by_name.is_empty() {
            return Vec::new();
        }
        tool::tools(self, workspace)
    }
}

async fn read(workspace: &Workspace, folder: PathBuf, name: &str) -> Result<Option<Skill>, String> {
    let path = folder.join("SKILL.md");
    let content = match workspace.filesystem().read(&path, LONGEST_FILE).await {
        Ok(content) => content,
        Err(error) if matches!(error.kind(), WorkspaceErrorKind::NotFound | WorkspaceErrorKind::NotDirectory) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let wrong = |why: &str| format!("`{}`: {why}", path.display());
    let text = String::from_utf8(content.bytes).map_err(|_| wrong("it is not UTF-8"))?;
    let (front, _) = split(&text).ok_or_else(|| wrong("it does not begin with front matter between two lines `---`"))?;
    let front: FrontMatter = serde_saphyr::from_str(front).map_err(|error| wrong(&format!("its front matter cannot be read: {error}")))?;
    let usable = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if front.name != name || front.name.len() > 64 || !front.name.chars().all(usable) {
        return Err(wrong("its name must be that of its folder: up to 64 lower-case letters, digits and hyphens"));
    }
    let description: String = front.description.split_whitespace().collect::<Vec<_>>().join(" ");
    if description.is_empty() || description.len() > 1024 {
        return Err(wrong("its description must have 1 to 1024 bytes"));
    }
    Ok(Some(Skill { name: front.name, description, folder }))
}

/// Front matter and body.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"))?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((rest.get(..at)?, rest.get(at + line.len()..)?));
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests;
