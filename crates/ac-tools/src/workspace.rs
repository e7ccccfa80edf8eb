//! Tools over a [`Workspace`]: look, search, change, run.

mod change;
mod changes;
mod compare;
mod edit;
mod execute;
mod find;
mod folder;
mod options;
mod process;
mod reads;
#[cfg(feature = "rules")]
mod rules;
mod search;
mod view;
mod write;

use std::{path::Path, sync::Arc};

use ac_core::{Tool, ToolCategory, ToolContext, ToolError, ToolErrorKind, tool::ToolList};
use ac_workspace::{Workspace, WorkspaceError, WorkspaceErrorKind};
pub use options::{ToolSwitch, WorkspaceTool, WorkspaceToolOptions};
#[cfg(feature = "rules")]
pub use rules::WorkspaceRules;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::{changes::Changes, reads::Reads};

/// The tools of a workspace, in a fixed order. A workspace that may only be read has no changing tools, one without a sandbox no
/// tools for commands and processes.
pub fn tools(workspace: Arc<Workspace>, options: WorkspaceToolOptions) -> ToolList {
    let shared = Arc::new(Shared { workspace, options, reads: Reads::default(), changes: Changes::default() });
    let read_only = shared.workspace.filesystem().read_only();
    let runs = shared.workspace.sandbox().is_some();
    let mut tools: ToolList = Vec::new();
    for kind in WorkspaceTool::ALL {
        let there = match kind {
            kind if kind.category() == ToolCategory::Execute => runs,
            WorkspaceTool::Diff => !read_only,
            kind => kind.category() != ToolCategory::Edit || !read_only,
        };
        if there && shared.options.of(kind).enabled {
            tools.push(kind.build(&shared));
        }
    }
    tools
}

impl WorkspaceTool {
    fn build(self, shared: &Arc<Shared>) -> Arc<dyn Tool> {
        let shared = Arc::clone(shared);
        match self {
            Self::View => Arc::new(view::View(shared)),
            Self::FindFiles => Arc::new(find::FindFiles(shared)),
            Self::SearchContent => Arc::new(search::SearchContent(shared)),
            Self::WriteFile => Arc::new(write::WriteFile(shared)),
            Self::StringReplace => Arc::new(edit::StringReplace(shared)),
            Self::MultiEdit => Arc::new(edit::MultiEdit(shared)),
            Self::Delete => Arc::new(folder::Delete(shared)),
            Self::Move => Arc::new(folder::Move(shared)),
            Self::MakeDir => Arc::new(folder::MakeDir(shared)),
            Self::Diff => Arc::new(compare::Diff(shared)),
            Self::ExecuteCommand => Arc::new(execute::ExecuteCommand(shared)),
            Self::ListProcesses => Arc::new(process::ListProcesses(shared)),
            Self::ProcessOutput => Arc::new(process::ProcessOutput(shared)),
            Self::KillProcess => Arc::new(process::KillProcess(shared)),
        }
    }
}

/// What all tools of one workspace share.
#[derive(Debug)]
struct Shared {
    workspace: Arc<Workspace>,
    options: WorkspaceToolOptions,
    reads: Reads,
    changes: Changes,
}

impl Shared {
    /// The workspace of this call: the one that the host lends the session, else the one that the tools were made with.
    fn workspace(&self, cx: &ToolContext) -> Arc<Workspace> {
        cx.capabilities.get::<Workspace>().unwrap_or_else(|| Arc::clone(&self.workspace))
    }

    /// Refuses a change outside of the paths that the host allows. Judged is where the path really leads.
    async fn may_change(&self, workspace: &Workspace, path: &Path) -> Result<(), ToolError> {
        if self.options.write_only.is_empty() {
            return Ok(());
        }
        self.allowed(&workspace.filesystem().resolve(path).await.map_err(tool_error)?)
    }

    /// As [`Shared::may_change`], for a path whose links were followed.
    fn allowed(&self, real: &Path) -> Result<(), ToolError> {
        let Some(filter) = self.options.write_filter()? else { return Ok(()) };
        if filter.is_match(real) {
            return Ok(());
        }
        Err(ToolError::new(
            ToolErrorKind::Denied,
            format!("`{}` may not be changed here; allowed are {}", real.display(), self.options.write_only.join(", ")),
        ))
    }
}

pub(crate) fn arguments<T: DeserializeOwned>(tool: &str, args: Value) -> Result<T, ToolError> {
    serde_json::from_value(args).map_err(|error| ToolError::args(format!("{tool}: {error}")).with_source(error))
}

pub(crate) fn tool_error(error: WorkspaceError) -> ToolError {
    use WorkspaceErrorKind as Kind;
    let kind = match error.kind() {
        Kind::Escape | Kind::ReadOnly | Kind::Denied | Kind::Isolation => ToolErrorKind::Denied,
        Kind::Invalid => ToolErrorKind::Args,
        Kind::Cancelled => ToolErrorKind::Cancelled,
        _ => ToolErrorKind::Failed,
    };
    ToolError::new(kind, error.to_string()).with_source(error)
}

/// At most `max` bytes, never half a character.
pub(crate) fn clip(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    text.get(..end).unwrap_or(text)
}

#[cfg(test)]
mod tests;
