use std::{path::PathBuf, sync::Arc};

use ac_core::{Tool, ToolContext, ToolDefinition, ToolError, ToolOutcome, ToolOutput};
use ac_workspace::{FileKind, WalkQuery};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Shared, WorkspaceTool, arguments, tool_error};

/// Lists files by name.
pub(super) struct FindFiles(pub(super) Arc<Shared>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    #[serde(default)]
    pattern: Option<Patterns>,
    #[serde(default)]
    path: Option<PathBuf>,
    #[serde(default)]
    exclude: Option<Patterns>,
    #[serde(default)]
    max_depth: Option<usize>,
    #[serde(default)]
    hidden: bool,
    #[serde(default)]
    ignored: bool,
    #[serde(default)]
    folders: bool,
}

/// One glob or several.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Patterns {
    One(String),
    Several(Vec<String>),
}

impl Patterns {
    pub(super) fn list(patterns: Option<Self>) -> Vec<String> {
        match patterns {
            None => Vec::new(),
            Some(Self::One(pattern)) => vec![pattern],
            Some(Self::Several(patterns)) => patterns,
        }
    }

    pub(super) fn schema(description: &str) -> Value {
        json!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }], "description": description })
    }
}

#[async_trait]
impl Tool for FindFiles {
    fn definition(&self) -> ToolDefinition {
        self.0.options.definition(
            WorkspaceTool::FindFiles,
            "List files whose path fits a glob. Ignore files are respected and hidden files left out unless asked for.",
            json!({
                "type": "object",
                "properties": {
                    "pattern": Patterns::schema("Glob or globs, such as `*.rs` or `src/**/*.ts`. All files when left out."),
                    "path": { "type": "string", "description": "Folder to look in; the workspace folder when left out." },
                    "exclude": Patterns::schema("Glob or globs of what to leave out."),
                    "maxDepth": { "type": "integer", "minimum": 1, "description": "How many levels deep." },
                    "hidden": { "type": "boolean", "description": "Also names that start with a dot." },
                    "ignored": { "type": "boolean", "description": "Also what ignore files leave out." },
                    "folders": { "type": "boolean", "description": "Also folders." }
                },
                "additionalProperties": false
            }),
        )
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let args: Args = arguments(&cx.tool, args)?;
        let mut query = WalkQuery::new(args.path.unwrap_or_else(|| ".".into()));
        query.patterns = Patterns::list(args.pattern);
        query.exclude = Patterns::list(args.exclude);
        query.max_depth = args.max_depth;
        (query.hidden, query.ignored, query.dirs) = (args.hidden, args.ignored, args.folders);
        let found = self.0.workspace(cx).filesystem().walk(query, &cx.cancel).await.map_err(tool_error)?;
        if found.total == 0 {
            return Ok(ToolOutcome::Done(ToolOutput::text("[no files]")));
        }
        let (mut text, mut shown) = (String::new(), 0);
        for entry in &found.entries {
            let line = entry.path.to_string_lossy();
            if text.len() + line.len() > self.0.options.max_result {
                break;
            }
            text.push_str(&line);
            text.push_str(if entry.kind == FileKind::Dir { "/\n" } else { "\n" });
            shown += 1;
        }
        if shown < found.total {
            text.push_str(&format!("[{shown} of {} shown; use a narrower pattern or path]\n", found.total));
        }
        if found.skipped > 0 {
            text.push_str(&format!("[{} folders could not be read]\n", found.skipped));
        }
        Ok(ToolOutcome::Done(ToolOutput::text(text)))
    }
}
