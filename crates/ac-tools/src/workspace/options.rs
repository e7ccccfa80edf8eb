use std::collections::BTreeMap;

use ac_core::{ToolCategory, ToolDefinition, ToolEffect, ToolError, ToolErrorKind};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde_json::Value;

/// Which tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum WorkspaceTool {
    /// Shows a file or a folder.
    View,
    /// Lists files by name.
    FindFiles,
    /// Finds lines by pattern.
    SearchContent,
    /// Creates or replaces a file.
    WriteFile,
    /// Replaces a text in a file.
    StringReplace,
    /// Replaces several texts in a file.
    MultiEdit,
    /// Removes a file or folder.
    Delete,
    /// Moves a file or folder.
    Move,
    /// Makes a folder.
    MakeDir,
    /// Shows what the run changed.
    Diff,
    /// Runs a command.
    ExecuteCommand,
    /// Lists processes in the background.
    ListProcesses,
    /// Shows what a process in the background printed.
    ProcessOutput,
    /// Ends a process in the background.
    KillProcess,
}

impl WorkspaceTool {
    /// All of them, in the order in which they are offered.
    pub const ALL: [Self; 14] = [
        Self::View,
        Self::FindFiles,
        Self::SearchContent,
        Self::Diff,
        Self::WriteFile,
        Self::StringReplace,
        Self::MultiEdit,
        Self::Delete,
        Self::Move,
        Self::MakeDir,
        Self::ExecuteCommand,
        Self::ListProcesses,
        Self::ProcessOutput,
        Self::KillProcess,
    ];

    /// The name unless the host gives another.
    pub const fn default_name(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::FindFiles => "find_files",
            Self::SearchContent => "search_content",
            Self::WriteFile => "write_file",
            Self::StringReplace => "string_replace",
            Self::MultiEdit => "multi_edit",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::MakeDir => "make_dir",
            Self::Diff => "diff",
            Self::ExecuteCommand => "execute_command",
            Self::ListProcesses => "list_processes",
            Self::ProcessOutput => "process_output",
            Self::KillProcess => "kill_process",
        }
    }

    /// What kind of thing it does.
    pub const fn category(self) -> ToolCategory {
        match self {
            Self::View | Self::FindFiles | Self::SearchContent | Self::Diff => ToolCategory::Read,
            Self::WriteFile | Self::StringReplace | Self::MultiEdit | Self::Delete | Self::Move | Self::MakeDir => ToolCategory::Edit,
            Self::ExecuteCommand | Self::ListProcesses | Self::ProcessOutput | Self::KillProcess => ToolCategory::Execute,
        }
    }

    /// What a crash may do to a call of it. Writing the same content twice is the same as once; a replacement or a command is not.
    pub const fn effect(self) -> ToolEffect {
        match self {
            Self::View | Self::FindFiles | Self::SearchContent | Self::Diff | Self::ListProcesses | Self::ProcessOutput => {
                ToolEffect::ReadOnly
            }
            Self::WriteFile | Self::MakeDir | Self::KillProcess => ToolEffect::Idempotent,
            Self::StringReplace | Self::MultiEdit | Self::Delete | Self::Move | Self::ExecuteCommand => ToolEffect::Mutating,
        }
    }
}

/// How one tool is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolSwitch {
    /// Whether it exists.
    pub enabled: bool,
    /// Whether it asks before each call, whatever the rules of its category say.
    pub requires_approval: bool,
    /// Another name.
    pub name: Option<String>,
}

impl Default for ToolSwitch {
    fn default() -> Self {
        Self { enabled: true, requires_approval: false, name: None }
    }
}

/// How the tools of a workspace behave.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkspaceToolOptions {
    /// Switches of single tools.
    pub tools: BTreeMap<WorkspaceTool, ToolSwitch>,
    /// Globs, relative to the workspace folder, of the only paths that may be changed. Empty: all.
    pub write_only: Vec<String>,
    /// Refuses to change a file that the thread has not read. A new file needs no reading.
    pub require_read: bool,
    /// How much text one result may hold, in bytes.
    pub max_result: usize,
    /// The longest file that is read, in bytes.
    pub max_read: u64,
    /// The longest diff that a change carries, in bytes.
    pub max_diff: usize,
}

impl Default for WorkspaceToolOptions {
    fn default() -> Self {
        Self {
            tools: BTreeMap::new(),
            write_only: Vec::new(),
            require_read: false,
            max_result: 48 << 10,
            max_read: 64 << 20,
            max_diff: 256 << 10,
        }
    }
}

impl WorkspaceToolOptions {
    /// The switches of a tool.
    pub fn of(&self, tool: WorkspaceTool) -> ToolSwitch {
        self.tools.get(&tool).cloned().unwrap_or_default()
    }

    /// Changes the switches of a tool.
    #[must_use]
    pub fn with(mut self, tool: WorkspaceTool, change: impl FnOnce(&mut ToolSwitch)) -> Self {
        change(self.tools.entry(tool).or_default());
        self
    }

    /// Limits changes to these globs.
    #[must_use]
    pub fn write_only(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.write_only = globs.into_iter().map(Into::into).collect();
        self
    }

    pub(super) fn definition(&self, tool: WorkspaceTool, description: &str, schema: Value) -> ToolDefinition {
        let switch = self.of(tool);
        let name = switch.name.unwrap_or_else(|| tool.default_name().to_owned());
        let definition = ToolDefinition::new(name, description, schema).category(tool.category()).effect(tool.effect());
        if switch.requires_approval { definition.requires_approval() } else { definition }
    }

    /// A pattern that cannot be read allows nothing.
    pub(super) fn write_filter(&self) -> Result<Option<GlobSet>, ToolError> {
        if self.write_only.is_empty() {
            return Ok(None);
        }
        let broken = |error: globset::Error| {
            ToolError::new(ToolErrorKind::Denied, "the host's list of paths that may be changed cannot be read").with_source(error)
        };
        let mut set = GlobSetBuilder::new();
        for glob in &self.write_only {
            let glob = glob.trim_start_matches("./");
            set.add(GlobBuilder::new(glob).literal_separator(true).build().map_err(broken)?);
        }
        set.build().map(Some).map_err(broken)
    }
}
