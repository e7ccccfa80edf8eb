use std::{path::PathBuf, sync::Arc};

use ac_core::{Tool, ToolContext, ToolDefinition, ToolError, ToolOutcome, ToolOutput};
use ac_workspace::{Workspace, WorkspaceErrorKind, diff, text::Text};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Shared, WorkspaceTool, arguments, changes::Before, tool_error};

/// Shows what this run changed.
pub(super) struct Diff(pub(super) Arc<Shared>);

#[derive(Deserialize)]
struct Args {
    #[serde(default)]
    path: Option<PathBuf>,
}

#[async_trait]
impl Tool for Diff {
    fn definition(&self) -> ToolDefinition {
        self.0.options.definition(
            WorkspaceTool::Diff,
            "Show what the file tools changed since this task began, as a unified diff. What commands changed is not in it.",
            json!({
                "type": "object",
                "properties": { "path": { "type": "string", "minLength": 1, "description": "Only this file or folder." } },
                "additionalProperties": false
            }),
        )
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let Args { path } = arguments(&cx.tool, args)?;
        let workspace = self.0.workspace(cx);
        let below = match path {
            None => None,
            Some(path) => Some(workspace.filesystem().resolve(&path).await.map_err(tool_error)?),
        };
        let mut text = String::new();
        for (path, before) in self.0.changes.of(&cx.run, below.as_deref()) {
            let one = self.one(&workspace, &path, before).await?;
            if text.len() + one.len() > self.0.options.max_result {
                text.push_str("[there are more changes; give a path]\n");
                break;
            }
            text.push_str(&one);
        }
        if text.is_empty() {
            text.push_str("[no changes]");
        }
        Ok(ToolOutcome::Done(ToolOutput::text(text)))
    }
}

impl Diff {
    async fn one(&self, workspace: &Workspace, path: &std::path::Path, before: Before) -> Result<String, ToolError> {
        let shown = path.to_string_lossy();
        let after = match workspace.filesystem().read(path, self.0.options.max_read).await {
            Ok(content) => Text::decode(&content.bytes).map(|text| text.content),
            Err(error) if error.kind() == WorkspaceErrorKind::NotFound => {
                return Ok(match before {
                    Before::Absent => String::new(),
                    Before::Text(_) | Before::Unknown => format!("deleted: {shown}\n"),
                });
            }
            Err(error) => return Err(tool_error(error)),
        };
        Ok(match (before, after) {
            (Before::Unknown, _) | (_, None) => format!("changed, too long or no text: {shown}\n"),
            (Before::Absent, Some(after)) => {
                diff::unified(&shown, "", &after, self.0.options.max_diff).unwrap_or_else(|| format!("created: {shown}\n"))
            }
            (Before::Text(before), Some(after)) if before == after => String::new(),
            (Before::Text(before), Some(after)) => {
                diff::unified(&shown, &before, &after, self.0.options.max_diff).unwrap_or_else(|| format!("changed: {shown}\n"))
            }
        })
    }
}
