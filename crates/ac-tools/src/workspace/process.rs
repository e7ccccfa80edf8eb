use std::{sync::Arc, time::Duration};

use ac_core::{Tool, ToolContext, ToolDefinition, ToolError, ToolOutcome, ToolOutput};
use ac_workspace::{ProcessId, ProcessInfo, ProcessState};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Shared, WorkspaceTool, arguments, execute, tool_error};

/// Lists processes in the background.
pub(super) struct ListProcesses(pub(super) Arc<Shared>);

/// Shows what a process in the background printed.
pub(super) struct ProcessOutput(pub(super) Arc<Shared>);

/// Ends a process in the background.
pub(super) struct KillProcess(pub(super) Arc<Shared>);

#[derive(Deserialize)]
struct OutputArgs {
    id: String,
    #[serde(default)]
    wait: Option<f64>,
}

#[derive(Deserialize)]
struct KillArgs {
    id: String,
}

/// The longest that one call waits for a process.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

fn id_schema() -> Value {
    json!({ "type": "string", "minLength": 1, "description": "The process, as execute_command or list_processes named it." })
}

fn line(process: &ProcessInfo) -> String {
    let state = match process.state {
        ProcessState::Running => "running".to_owned(),
        ProcessState::Exited(exit) => execute::ended(exit),
        _ => "unknown".to_owned(),
    };
    format!("{}  {state}  {:.0} s  {}", process.id, process.age.as_secs_f64(), process.command)
}

#[async_trait]
impl Tool for ListProcesses {
    fn definition(&self) -> ToolDefinition {
        self.0.options.definition(
            WorkspaceTool::ListProcesses,
            "List the processes that run in the background, and those that ended lately.",
            json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        )
    }

    async fn call(&self, _: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let workspace = self.0.workspace(cx);
        let processes = workspace.commands().map_err(tool_error)?.processes();
        let text = match processes.as_slice() {
            [] => "[no processes]".to_owned(),
            processes => processes.iter().map(|process| line(process) + "\n").collect(),
        };
        Ok(ToolOutcome::Done(ToolOutput::text(text)))
    }
}

#[async_trait]
impl Tool for ProcessOutput {
    fn definition(&self) -> ToolDefinition {
        self.0.options.definition(
            WorkspaceTool::ProcessOutput,
            "Show what a background process printed until now and whether it still runs. With wait it is given that many seconds to end.",
            json!({
                "type": "object",
                "properties": {
                    "id": id_schema(),
                    "wait": { "type": "number", "minimum": 0, "maximum": 600, "description": "Seconds to wait for its end." }
                },
                "required": ["id"],
                "additionalProperties": false
            }),
        )
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let OutputArgs { id, wait } = arguments(&cx.tool, args)?;
        let wait = Duration::try_from_secs_f64(wait.unwrap_or_default())
            .map_err(|error| ToolError::args("wait must be a number of seconds").with_source(error))?
            .min(LONGEST_WAIT);
        let workspace = self.0.workspace(cx);
        let sandbox = workspace.commands().map_err(tool_error)?;
        let (process, output) = sandbox.output(&ProcessId::new(id), wait, cx.cancel.clone()).await.map_err(tool_error)?;
        let text = format!("{}[{}]\n", execute::printed(&output), line(&process));
        Ok(ToolOutcome::Done(ToolOutput::text(text)))
    }
}

#[async_trait]
impl Tool for KillProcess {
    fn definition(&self) -> ToolDefinition {
        self.0.options.definition(
            WorkspaceTool::KillProcess,
            "End a background process and everything that it started.",
            json!({ "type": "object", "properties": { "id": id_schema() }, "required": ["id"], "additionalProperties": false }),
        )
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let KillArgs { id } = arguments(&cx.tool, args)?;
        let workspace = self.0.workspace(cx);
        let process = workspace.commands().map_err(tool_error)?.kill(&ProcessId::new(id)).await.map_err(tool_error)?;
        Ok(ToolOutcome::Done(ToolOutput::text(line(&process))))
    }
}
