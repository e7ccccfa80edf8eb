use std::{path::PathBuf, sync::Arc};

use ac_core::{Tool, ToolContext, ToolDefinition, ToolError, ToolOutcome, ToolOutput, tool::FileChange};
use ac_workspace::{Expect, diff};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Shared, WorkspaceTool, arguments, text_of, tool_error};

/// Replaces a text in a file.
pub(super) struct StringReplace(pub(super) Arc<Shared>);

#[derive(Deserialize)]
struct Args {
    path: PathBuf,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

#[async_trait]
impl Tool for StringReplace {
    fn definition(&self) -> ToolDefinition {
        self.0.options.definition(
            WorkspaceTool::StringReplace,
            "Replace a text in a file. old_string must be exactly what the file holds, without line numbers, and must occur once unless \
             replace_all is set.",
            json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "minLength": 1, "description": "Relative to the workspace folder." },
                    "old_string": { "type": "string", "minLength": 1, "description": "The text to replace, with enough around it to be unique." },
                    "new_string": { "type": "string", "description": "What takes its place." },
                    "replace_all": { "type": "boolean", "description": "Replace every occurrence." }
                },
                "required": ["path", "old_string", "new_string"],
                "additionalProperties": false
            }),
        )
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let Args { path, old_string, new_string, replace_all } = arguments(&cx.tool, args)?;
        let workspace = self.0.workspace(cx);
        self.0.may_change(&workspace, &path).await?;
        let files = workspace.filesystem();
        let content = files.read(&path, self.0.options.max_read).await.map_err(tool_error)?;
        let version = content.version;
        let before = text_of(&path, content)?;
        let places = places(&before, &old_string);
        let shown = files.resolve(&path).await.map_err(tool_error)?.to_string_lossy().into_owned();
        if old_string == new_string {
            return Err(ToolError::args("old_string and new_string are the same"));
        }
        match places.as_slice() {
            [] => {
                return Err(ToolError::failed(format!(
                    "old_string does not occur in {shown}; view the file and quote it exactly, with its white space"
                )));
            }
            [_] => {}
            _ if replace_all => {}
            _ => {
                let lines: Vec<String> = places.iter().take(20).map(ToString::to_string).collect();
                return Err(ToolError::failed(format!(
                    "old_string occurs {} times in {shown} (lines {}); quote more of what is around it, or set replace_all",
                    places.len(),
                    lines.join(", ")
                )));
            }
        }
        let after = before.replace(&old_string, &new_string);
        files.write(&path, after.clone().into_bytes(), Expect::Version(version)).await.map_err(tool_error)?;
        let diff = diff::unified(&shown, &before, &after, self.0.options.max_diff);
        let change = FileChange { path: shown.clone(), operation: cx.tool.clone(), diff };
        let times = if places.len() == 1 { String::new() } else { format!(" {} times", places.len()) };
        let line = places.first().copied().unwrap_or(1);
        Ok(ToolOutcome::Done(ToolOutput::text(format!("Replaced{times} in {shown}, first at line {line}.")).changed([change])))
    }
}

/// The lines, from 1, at which a text occurs.
fn places(text: &str, wanted: &str) -> Vec<usize> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let (mut line, mut at) = (1, 0);
    text.match_indices(wanted)
        .map(|(found, _)| {
            line += text.get(at..found).unwrap_or_default().matches('\n').count();
            at = found;
            line
        })
        .collect()
}
