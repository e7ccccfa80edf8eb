use std::{path::PathBuf, sync::Arc};

use ac_core::{Tool, ToolContext, ToolDefinition, ToolError, ToolOutcome, ToolOutput, tool::FileChange};
use ac_workspace::{FileKind, Workspace, text::Text};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Shared, WorkspaceTool, arguments, changes::Before, tool_error};

/// Removes a file or a folder.
pub(super) struct Delete(pub(super) Arc<Shared>);

/// Moves or renames a file or a folder.
pub(super) struct Move(pub(super) Arc<Shared>);

/// Makes a folder.
pub(super) struct MakeDir(pub(super) Arc<Shared>);

#[derive(Deserialize)]
struct DeleteArgs {
    path: PathBuf,
    #[serde(default)]
    recursive: bool,
}

#[derive(Deserialize)]
struct MoveArgs {
    from: PathBuf,
    to: PathBuf,
}

#[derive(Deserialize)]
struct MakeDirArgs {
    path: PathBuf,
}

impl Shared {
    /// Remembers a file as it is before it goes.
    async fn note_before(&self, workspace: &Workspace, path: &std::path::Path, cx: &ToolContext) {
        let files = workspace.filesystem();
        let text = match files.stat(path).await.map(|stat| stat.kind) {
            Ok(FileKind::File) => files.read(path, 1 << 20).await.ok().and_then(|content| Text::decode(&content.bytes)),
            Ok(_) => None,
            Err(_) => return,
        };
        self.changes.note(&cx.run, path, Before::of(text.as_ref().map(|text| text.content.as_str())));
    }

    fn changed(&self, path: &std::path::Path, cx: &ToolContext) -> FileChange {
        FileChange { path: path.to_string_lossy().into_owned(), operation: cx.tool.clone(), diff: None }
    }
}

/// The path of a thing itself: links above it are followed, it is not.
async fn itself(workspace: &Workspace, path: &std::path::Path) -> Result<PathBuf, ToolError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ToolError::args(format!("`{}` does not name a file or folder in the workspace", path.display())));
    };
    let parent = if parent.as_os_str().is_empty() { std::path::Path::new(".") } else { parent };
    let above = workspace.filesystem().resolve(parent).await.map_err(tool_error)?;
    Ok(if above == std::path::Path::new(".") { PathBuf::from(name) } else { above.join(name) })
}

#[async_trait]
impl Tool for Delete {
    fn definition(&self) -> ToolDefinition {
        self.0.options.definition(
            WorkspaceTool::Delete,
            "Delete a file, or a folder; one that is not empty only with recursive.",
            json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "minLength": 1, "description": "Relative to the workspace folder." },
                    "recursive": { "type": "boolean", "description": "Delete a folder with everything in it." }
                },
                "required": ["path"],
                "additionalProperties": false
            }),
        )
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let DeleteArgs { path, recursive } = arguments(&cx.tool, args)?;
        let workspace = self.0.workspace(cx);
        let path = itself(&workspace, &path).await?;
        self.0.allowed(&path)?;
        self.0.note_before(&workspace, &path, cx).await;
        workspace.filesystem().remove(&path, recursive).await.map_err(tool_error)?;
        self.0.reads.forget(&cx.thread, &path);
        let told = format!("Deleted {}.", path.display());
        Ok(ToolOutcome::Done(ToolOutput::text(told).changed([self.0.changed(&path, cx)])))
    }
}

#[async_trait]
impl Tool for Move {
    fn definition(&self) -> ToolDefinition {
        let place = |description| json!({ "type": "string", "minLength": 1, "description": description });
        self.0.options.definition(
            WorkspaceTool::Move,
            "Move or rename a file or folder. Never replaces anything; folders above the new place are created.",
            json!({
                "type": "object",
                "properties": { "from": place("Where it is."), "to": place("Where it goes, with its name.") },
                "required": ["from", "to"],
                "additionalProperties": false
            }),
        )
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let MoveArgs { from, to } = arguments(&cx.tool, args)?;
        let workspace = self.0.workspace(cx);
        let (from, to) = (itself(&workspace, &from).await?, itself(&workspace, &to).await?);
        self.0.allowed(&from)?;
        self.0.allowed(&to)?;
        self.0.note_before(&workspace, &from, cx).await;
        workspace.filesystem().rename(&from, &to).await.map_err(tool_error)?;
        self.0.reads.forget(&cx.thread, &from);
        if workspace.filesystem().stat(&to).await.is_ok_and(|stat| stat.kind == FileKind::File) {
            self.0.changes.note(&cx.run, &to, Before::Absent);
        }
        let told = format!("Moved {} to {}.", from.display(), to.display());
        Ok(ToolOutcome::Done(ToolOutput::text(told).changed([self.0.changed(&from, cx), self.0.changed(&to, cx)])))
    }
}

#[async_trait]
impl Tool for MakeDir {
    fn definition(&self) -> ToolDefinition {
        self.0.options.definition(
            WorkspaceTool::MakeDir,
            "Make a folder, and the folders above it. One that exists is fine.",
            json!({
                "type": "object",
                "properties": { "path": { "type": "string", "minLength": 1, "description": "Relative to the workspace folder." } },
                "required": ["path"],
                "additionalProperties": false
            }),
        )
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let MakeDirArgs { path } = arguments(&cx.tool, args)?;
        let workspace = self.0.workspace(cx);
        self.0.may_change(&workspace, &path).await?;
        workspace.filesystem().make_dir(&path).await.map_err(tool_error)?;
        Ok(ToolOutcome::Done(ToolOutput::text(format!("Made the folder {}.", path.display()))))
    }
}
