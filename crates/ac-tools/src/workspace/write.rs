use std::{path::PathBuf, sync::Arc};

use ac_core::{Tool, ToolContext, ToolDefinition, ToolError, ToolOutcome, ToolOutput, tool::FileChange};
use ac_workspace::{Expect, WorkspaceErrorKind, diff};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Shared, WorkspaceTool, arguments, tool_error};

/// Creates a file or replaces all of it.
pub(super) struct WriteFile(pub(super) Arc<Shared>);

#[derive(Deserialize)]
struct Args {
    path: PathBuf,
    content: String,
    #[serde(default = "yes")]
    overwrite: bool,
}

fn yes() -> bool {
    true
}

#[async_trait]
impl Tool for WriteFile {
    fn definition(&self) -> ToolDefinition {
        self.0.options.definition(
            WorkspaceTool::WriteFile,
            "Create a file, or replace all of its content. Folders above it are created. To change a part of a file use string_replace.",
            json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "minLength": 1, "description": "Relative to the workspace folder." },
                    "content": { "type": "string", "description": "The whole new content." },
                    "overwrite": { "type": "boolean", "description": "Whether an existing file may be replaced; true when left out." }
                },
                "required": ["path", "content"],
                "additionalProperties": false
            }),
        )
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let Args { path, content, overwrite } = arguments(&cx.tool, args)?;
        let workspace = self.0.workspace(cx);
        self.0.may_change(&workspace, &path).await?;
        let files = workspace.filesystem();
        let before = match files.read(&path, self.0.options.max_read).await {
            Ok(old) => String::from_utf8(old.bytes).ok(),
            Err(error) if error.kind() == WorkspaceErrorKind::NotFound => Some(String::new()),
            // A big or binary file is replaced without a diff.
            Err(error) if error.kind() == WorkspaceErrorKind::TooLarge => None,
            Err(error) => return Err(tool_error(error)),
        };
        let bytes = content.len();
        let expect = if overwrite { Expect::Anything } else { Expect::Absent };
        files.write(&path, content.clone().into_bytes(), expect).await.map_err(tool_error)?;
        let shown = files.resolve(&path).await.unwrap_or(path).to_string_lossy().into_owned();
        let diff = before.and_then(|before| diff::unified(&shown, &before, &content, self.0.options.max_diff));
        let change = FileChange { path: shown.clone(), operation: cx.tool.clone(), diff };
        Ok(ToolOutcome::Done(ToolOutput::text(format!("Wrote {bytes} bytes to {shown}.")).changed([change])))
    }
}
