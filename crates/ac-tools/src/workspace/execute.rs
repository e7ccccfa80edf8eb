use std::{path::PathBuf, sync::Arc, time::Duration};

use ac_core::{Part, Tool, ToolContext, ToolDefinition, ToolError, ToolOutcome, ToolOutput, tool::ToolProgress};
use ac_workspace::{CommandOutput, CommandRequest, CommandResult, Exit, FileLimit, NetworkLimit, OutputSink, OutputStream};
use anstream::adapter::strip_str;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Shared, WorkspaceTool, arguments, tool_error};

/// Runs a command.
pub(super) struct ExecuteCommand(pub(super) Arc<Shared>);

#[derive(Deserialize)]
struct Args {
    command: String,
    #[serde(default)]
    timeout: Option<f64>,
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(default)]
    background: bool,
}

#[async_trait]
impl Tool for ExecuteCommand {
    fn definition(&self) -> ToolDefinition {
        let mut description = "Run a shell command in the workspace and return what it prints and its exit code. It gets no input, so use \
                               flags that do not ask. Long output is cut in the middle."
            .to_owned();
        let confinement = self.0.workspace.sandbox().map(|sandbox| sandbox.confinement()).unwrap_or_default();
        if confinement.files == FileLimit::WriteInside {
            description.push_str(" It can change files only in the workspace and in $TMPDIR.");
        }
        if confinement.network != NetworkLimit::Open {
            description.push_str(" It has no network.");
        }
        self.0.options.definition(
            WorkspaceTool::ExecuteCommand,
            &description,
            json!({
                "type": "object",
                "properties": {
                    "command": { "type": "string", "minLength": 1, "description": "Given to `sh -c`." },
                    "timeout": { "type": "number", "exclusiveMinimum": 0, "description": "Seconds after which it is ended; 120 when left out." },
                    "background": { "type": "boolean", "description": "Start it and return at once; process_output shows how it goes on." },
                    "cwd": { "type": "string", "description": "Folder to run it in, relative to the workspace folder." }
                },
                "required": ["command"],
                "additionalProperties": false
            }),
        )
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let args: Args = arguments(&cx.tool, args)?;
        if args.command.trim().is_empty() || args.command.contains('\0') {
            return Err(ToolError::args("the command is empty or holds a NUL byte"));
        }
        let mut request = CommandRequest::new(args.command);
        request.cwd = args.cwd.unwrap_or(request.cwd);
        request.timeout = match args.timeout.map(Duration::try_from_secs_f64) {
            None => None,
            Some(Ok(timeout)) => Some(timeout),
            Some(Err(error)) => return Err(ToolError::args("timeout must be a number of seconds").with_source(error)),
        };
        let workspace = self.0.workspace(cx);
        let sandbox = workspace.commands().map_err(tool_error)?;
        if args.background {
            let id = sandbox.start(request).await.map_err(tool_error)?;
            let told = format!("Started in the background as process {id}.");
            return Ok(ToolOutcome::Done(
                ToolOutput::new(json!({ "content": told, "process": id.as_str() })).for_model(vec![Part::text(told)]),
            ));
        }
        let result = sandbox.run(request, Arc::new(Progress(cx.clone())), cx.cancel.clone()).await;
        let code = result.as_ref().map_or(-1, |result| result.exit.code());
        cx.report(ToolProgress::Exit { code });
        let result = result.map_err(tool_error)?;
        Ok(ToolOutcome::Done(ToolOutput::text(told(&result))))
    }
}

/// What was printed, for the model: without the control sequences of terminals, and never nothing.
pub(super) fn printed(output: &CommandOutput) -> String {
    let mut text = strip_str(&output.text()).to_string();
    if text.trim().is_empty() {
        text = "[no output]".into();
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// How something ended, in a few words.
pub(super) fn ended(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("ended by signal {signal}"),
        Exit::TimedOut => "ended because it took too long".to_owned(),
        _ => "ended".to_owned(),
    }
}

/// Output first, then how it ended, so that the end is never cut.
fn told(result: &CommandResult) -> String {
    let mut text = printed(&result.output);
    match result.exit {
        Exit::Code(0) => {}
        Exit::TimedOut => text.push_str(&format!("[ended after {:.1} s: it took too long]\n", result.took.as_secs_f64())),
        exit => text.push_str(&format!("[{}]\n", ended(exit))),
    }
    if let Some(id) = &result.background {
        text.push_str(&format!("[what it started still runs, as process {id}; it ends with the session]\n"));
    }
    text
}

struct Progress(ToolContext);

impl OutputSink for Progress {
    fn output(&self, stream: OutputStream, text: &str) {
        self.0.report(ToolProgress::Shell { text: text.to_owned(), stderr: stream == OutputStream::Stderr });
    }
}
