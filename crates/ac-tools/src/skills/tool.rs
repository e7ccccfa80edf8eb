use std::{
    path::{Component, PathBuf},
    sync::Arc,
};

use ac_core::{Tool, ToolCategory, ToolContext, ToolDefinition, ToolEffect, ToolError, ToolOutcome, ToolOutput, tool::ToolList};
use ac_workspace::{FileKind, WalkQuery, Workspace, text::Text};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{LONGEST_FILE, Skill, Skills, split};
use crate::workspace::{arguments, clip, tool_error};

/// The most text of one result, in bytes.
const LONGEST_RESULT: usize = 64 << 10;

struct Shared {
    skills: Arc<Skills>,
    workspace: Arc<Workspace>,
}

/// Loads a skill.
struct Load(Arc<Shared>);

/// Reads a file of a skill.
struct Read(Arc<Shared>);

#[derive(Deserialize)]
struct LoadArgs {
    name: String,
}

#[derive(Deserialize)]
struct ReadArgs {
    name: String,
    path: PathBuf,
}

pub(super) fn tools(skills: &Arc<Skills>, workspace: &Arc<Workspace>) -> ToolList {
    let shared = Arc::new(Shared { skills: Arc::clone(skills), workspace: Arc::clone(workspace) });
    vec![Arc::new(Load(Arc::clone(&shared))), Arc::new(Read(shared))]
}

impl Shared {
    fn find(&self, name: &str) -> Result<&Skill, ToolError> {
        self.skills.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.skills.iter().map(|skill| skill.name.as_str()).collect();
            ToolError::failed(format!("there is no skill `{name}`; there are: {}", known.join(", ")))
        })
    }

    async fn text(&self, path: &std::path::Path) -> Result<String, ToolError> {
        let content = self.workspace.filesystem().read(path, LONGEST_FILE).await.map_err(tool_error)?;
        let text = Text::decode(&content.bytes).ok_or_else(|| ToolError::failed(format!("`{}` is a binary file", path.display())))?;
        Ok(text.content)
    }
}

fn cut(text: &str) -> String {
    let kept = clip(text, LONGEST_RESULT);
    if kept.len() == text.len() {
        return text.to_owned();
    }
    format!("{kept}\n[cut: {} of {} bytes]\n", kept.len(), text.len())
}

#[async_trait]
impl Tool for Load {
    fn definition(&self) -> ToolDefinition {
        let names: Vec<&str> = self.0.skills.iter().map(|skill| skill.name.as_str()).collect();
        ToolDefinition::new(
            "skill",
            "Load a skill: instructions for a special task, and the list of files that come with them.",
            json!({
                "type": "object",
                "properties": { "name": { "type": "string", "enum": names } },
                "required": ["name"],
                "additionalProperties": false
            }),
        )
        .category(ToolCategory::Read)
        .effect(ToolEffect::ReadOnly)
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let LoadArgs { name } = arguments(&cx.tool, args)?;
        let skill = self.0.find(&name)?;
        let text = self.0.text(&skill.folder.join("SKILL.md")).await?;
        let mut out = cut(split(&text).map_or(text.as_str(), |(_, body)| body).trim_start());
        let mut query = WalkQuery::new(&skill.folder);
        query.ignored = true;
        query.limit = 100;
        let found = self.0.workspace.filesystem().walk(query, &cx.cancel).await.map_err(tool_error)?;
        let files: Vec<String> = found
            .entries
            .iter()
            .filter(|entry| entry.kind == FileKind::File)
            .filter_map(|entry| Some(entry.path.strip_prefix(&skill.folder).ok()?.to_string_lossy().into_owned()))
            .filter(|file| file != "SKILL.md")
            .collect();
        if !files.is_empty() {
            out.push_str(&format!("\n[files in {}, for skill_read: {}]\n", skill.folder.display(), files.join(", ")));
        }
        Ok(ToolOutcome::Done(ToolOutput::text(out)))
    }
}

#[async_trait]
impl Tool for Read {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new(
            "skill_read",
            "Read a file that comes with a skill.",
            json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string", "minLength": 1, "description": "The skill." },
                    "path": { "type": "string", "minLength": 1, "description": "The file, relative to the skill's folder." }
                },
                "required": ["name", "path"],
                "additionalProperties": false
            }),
        )
        .category(ToolCategory::Read)
        .effect(ToolEffect::ReadOnly)
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let ReadArgs { name, path } = arguments(&cx.tool, args)?;
        let skill = self.0.find(&name)?;
        if path.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(ToolError::args("give a path below the skill's folder"));
        }
        let text = self.0.text(&skill.folder.join(path)).await?;
        Ok(ToolOutcome::Done(ToolOutput::text(cut(&text))))
    }
}
