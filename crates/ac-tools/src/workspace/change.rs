//! A change of one file, from what is there to what is told.

use std::path::{Path, PathBuf};

use ac_core::{ToolContext, ToolError, ToolOutput, tool::FileChange};
use ac_workspace::{Expect, FileVersion, Workspace, WorkspaceErrorKind as Kind, diff, text::Text};

use super::{Shared, changes::Before, tool_error};

/// A file before a change of it.
pub(super) struct Current {
    /// Where the path really leads.
    pub(super) path: PathBuf,
    pub(super) version: Option<FileVersion>,
    /// `None` when there is no file, or one that is no text.
    pub(super) text: Option<Text>,
}

impl Current {
    pub(super) fn shown(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

impl Shared {
    /// What is at a path that is to be changed, after all checks that the change needs.
    pub(super) async fn current(&self, workspace: &Workspace, path: &Path, cx: &ToolContext) -> Result<Current, ToolError> {
        self.may_change(workspace, path).await?;
        let files = workspace.filesystem();
        let real = files.resolve(path).await.map_err(tool_error)?;
        let current = match files.read(path, self.options.max_read).await {
            Ok(content) => Current { path: real, version: Some(content.version), text: Text::decode(&content.bytes) },
            Err(error) if error.kind() == Kind::NotFound => Current { path: real, version: None, text: None },
            Err(error) => return Err(tool_error(error)),
        };
        self.reads.check(&cx.thread, &current.path, current.version, self.options.require_read)?;
        Ok(current)
    }

    /// Writes the new content and tells what was done. The file is as it was when this fails.
    pub(super) async fn store(
        &self,
        workspace: &Workspace,
        current: Current,
        content: &str,
        cx: &ToolContext,
        told: impl FnOnce(&str, usize) -> String,
    ) -> Result<ToolOutput, ToolError> {
        let shown = current.shown();
        let how = current.text.clone().unwrap_or_default();
        let bytes = how.encode(content).ok_or_else(|| {
            let name = how.encoding.as_str();
            ToolError::failed(format!("{shown} is written in {name}, which cannot hold all of these characters; it was left as it is"))
        })?;
        let count = bytes.len();
        let expect = current.version.map_or(Expect::Absent, Expect::Version);
        let version = workspace.filesystem().write(&current.path, bytes, expect).await.map_err(tool_error)?;
        self.reads.note(&cx.thread, &current.path, version);
        let before = current.text.as_ref().map(|text| text.content.as_str());
        let noted = if current.version.is_none() { Before::Absent } else { Before::of(before) };
        self.changes.note(&cx.run, &current.path, noted);
        let known = if current.version.is_none() { Some("") } else { before };
        let diff = known.and_then(|before| diff::unified(&shown, before, content, self.options.max_diff));
        let change = FileChange { path: shown.clone(), operation: cx.tool.clone(), diff };
        Ok(ToolOutput::text(told(&shown, count)).changed([change]))
    }
}
