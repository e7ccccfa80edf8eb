use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use ac_core::{Tool, ToolContext, ToolDefinition, ToolError, ToolOutcome, ToolOutput};
use ac_workspace::SearchQuery;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Shared, WorkspaceTool, arguments, find::Patterns, tool_error};

/// Finds lines by pattern.
pub(super) struct SearchContent(pub(super) Arc<Shared>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    pattern: String,
    #[serde(default)]
    path: Option<PathBuf>,
    #[serde(default)]
    files: Option<Patterns>,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    context: usize,
    #[serde(default)]
    hidden: bool,
    #[serde(default)]
    ignored: bool,
    #[serde(default)]
    limit: Option<usize>,
}

#[async_trait]
impl Tool for SearchContent {
    fn definition(&self) -> ToolDefinition {
        self.0.options.definition(
            WorkspaceTool::SearchContent,
            "Find lines that match a regular expression in the files of the workspace. Binary, hidden and ignored files are left out.",
            json!({
                "type": "object",
                "properties": {
                    "pattern": { "type": "string", "minLength": 1, "description": "Regular expression (Rust syntax), matched line by line." },
                    "path": { "type": "string", "description": "Folder or file to search; the workspace folder when left out." },
                    "files": Patterns::schema("Glob or globs of the files to search, such as `*.rs`."),
                    "literal": { "type": "boolean", "description": "Take the pattern as plain text." },
                    "ignoreCase": { "type": "boolean" },
                    "context": { "type": "integer", "minimum": 0, "maximum": 20, "description": "Lines to show before and after each hit." },
                    "hidden": { "type": "boolean", "description": "Also files whose name starts with a dot." },
                    "ignored": { "type": "boolean", "description": "Also files that ignore files leave out." },
                    "limit": { "type": "integer", "minimum": 1, "maximum": 1000, "description": "How many hits at most; 200 when left out." }
                },
                "required": ["pattern"],
                "additionalProperties": false
            }),
        )
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let args: Args = arguments(&cx.tool, args)?;
        let mut query = SearchQuery::new(args.pattern, args.path.unwrap_or_else(|| ".".into()));
        (query.literal, query.ignore_case, query.context) = (args.literal, args.ignore_case, args.context.min(20));
        query.limit = args.limit.unwrap_or(query.limit).min(1000);
        query.files.patterns = Patterns::list(args.files);
        (query.files.hidden, query.files.ignored) = (args.hidden, args.ignored);
        let found = self.0.workspace(cx).filesystem().search(query, &cx.cancel).await.map_err(tool_error)?;
        if found.hits.is_empty() {
            let told =
                if found.truncated { "[no matches in what was read; some of it is too long to be searched]" } else { "[no matches]" };
            return Ok(ToolOutcome::Done(ToolOutput::text(told)));
        }
        let mut text = String::new();
        let mut file: Option<&Path> = None;
        let mut cut = found.truncated;
        for hit in &found.hits {
            if text.len() + hit.text.len() > self.0.options.max_result {
                cut = true;
                break;
            }
            if file != Some(hit.path.as_path()) {
                text.push_str(if file.is_some() { "\n" } else { "" });
                text.push_str(&format!("{}\n", hit.path.display()));
                file = Some(&hit.path);
            }
            text.push_str(&format!("{}{} {}\n", hit.line, if hit.context { '-' } else { ':' }, hit.text));
        }
        if cut {
            text.push_str("[there are more matches; use a narrower pattern, path or files]\n");
        }
        Ok(ToolOutcome::Done(ToolOutput::text(text)))
    }
}
