use std::{path::PathBuf, sync::Arc};

use ac_core::{Tool, ToolContext, ToolDefinition, ToolError, ToolOutcome};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Shared, WorkspaceTool, arguments};

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
            "Create a file, or replace all of its content. Folders above it are created. A file that was written with another encoding or with \
             CRLF line ends stays so. To change a part of a file use string_replace.",
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
        let current = self.0.current(&workspace, &path, cx).await?;
        if current.version.is_some() && !overwrite {
            return Err(ToolError::failed(format!("`{}` exists already", path.display())));
        }
        // A model sees and writes plain line ends; a file that has the others keeps them.
        let crlf = current.text.as_ref().is_some_and(ac_workspace::text::Text::is_crlf) && !content.contains('\r');
        let content = if crlf { content.replace('\n', "\r\n") } else { content };
        let told = |shown: &str, bytes: usize| format!("Wrote {bytes} bytes to {shown}.");
        self.0.store(&workspace, current, &content, cx, told).await.map(ToolOutcome::Done)
    }
}
