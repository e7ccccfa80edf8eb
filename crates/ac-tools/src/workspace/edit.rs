use std::{path::PathBuf, sync::Arc};

use ac_core::{Tool, ToolContext, ToolDefinition, ToolError, ToolOutcome, ToolOutput};
use ac_workspace::text::{ReplaceError, replace};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Shared, WorkspaceTool, arguments, change::Current, tool_error};

/// Replaces a text in a file.
pub(super) struct StringReplace(pub(super) Arc<Shared>);

/// Replaces several texts in a file, all or none.
pub(super) struct MultiEdit(pub(super) Arc<Shared>);

#[derive(Deserialize)]
struct One {
    path: PathBuf,
    #[serde(flatten)]
    edit: Edit,
}

#[derive(Deserialize)]
struct Many {
    path: PathBuf,
    edits: Vec<Edit>,
}

#[derive(Deserialize)]
struct Edit {
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

/// How many edits one call may make.
const MOST: usize = 200;

fn edit_properties() -> Value {
    json!({
        "old_string": { "type": "string", "minLength": 1, "description": "The text to replace, with enough around it to be unique." },
        "new_string": { "type": "string", "description": "What takes its place." },
        "replace_all": { "type": "boolean", "description": "Replace every occurrence." }
    })
}

#[async_trait]
impl Tool for StringReplace {
    fn definition(&self) -> ToolDefinition {
        let mut properties = edit_properties();
        if let Some(fields) = properties.as_object_mut() {
            fields.insert("path".into(), json!({ "type": "string", "minLength": 1, "description": "Relative to the workspace folder." }));
        }
        self.0.options.definition(
            WorkspaceTool::StringReplace,
            "Replace a text in a file. old_string must be exactly what the file holds, without line numbers, and must occur once unless \
             replace_all is set.",
            json!({
                "type": "object",
                "properties": properties,
                "required": ["path", "old_string", "new_string"],
                "additionalProperties": false
            }),
        )
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let One { path, edit } = arguments(&cx.tool, args)?;
        apply(&self.0, path, vec![edit], cx).await.map(ToolOutcome::Done)
    }
}

#[async_trait]
impl Tool for MultiEdit {
    fn definition(&self) -> ToolDefinition {
        self.0.options.definition(
            WorkspaceTool::MultiEdit,
            "Replace several texts in one file, one after the other. Either all of them are replaced or none.",
            json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "minLength": 1, "description": "Relative to the workspace folder." },
                    "edits": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": MOST,
                        "items": {
                            "type": "object",
                            "properties": edit_properties(),
                            "required": ["old_string", "new_string"],
                            "additionalProperties": false
                        }
                    }
                },
                "required": ["path", "edits"],
                "additionalProperties": false
            }),
        )
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let Many { path, edits } = arguments(&cx.tool, args)?;
        if edits.is_empty() || edits.len() > MOST {
            return Err(ToolError::args(format!("give 1 to {MOST} edits")));
        }
        apply(&self.0, path, edits, cx).await.map(ToolOutcome::Done)
    }
}

async fn apply(shared: &Shared, path: PathBuf, edits: Vec<Edit>, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
    let workspace = shared.workspace(cx);
    let current = shared.current(&workspace, &path, cx).await?;
    if current.version.is_none() {
        let missing = ac_workspace::WorkspaceError::new(
            ac_workspace::WorkspaceErrorKind::NotFound,
            format!("there is nothing at `{}`", path.display()),
        );
        return Err(tool_error(missing));
    }
    let content = edited(&current, edits).await?;
    let (content, places, first) = content;
    let told = |shown: &str, _: usize| match places {
        1 => format!("Replaced in {shown}, first at line {first}."),
        _ => format!("Replaced {places} times in {shown}, first at line {first}."),
    };
    shared.store(&workspace, current, &content, cx, told).await
}

/// The new content, how many places were replaced, and the line of the first.
async fn edited(current: &Current, edits: Vec<Edit>) -> Result<(String, usize, usize), ToolError> {
    let shown = current.shown();
    let Some(text) = &current.text else {
        return Err(ToolError::failed(format!("{shown} is a binary file; it was left as it is")));
    };
    let several = edits.len() > 1;
    let (mut content, mut places, mut first) = (text.content.clone(), 0, usize::MAX);
    for (number, edit) in edits.into_iter().enumerate() {
        let which = if several { format!("edit {}: ", number + 1) } else { String::new() };
        let Edit { old_string, new_string, replace_all } = edit;
        let done = replace(&content, &old_string, &new_string, replace_all).map_err(|error| match error {
            ReplaceError::Missing => ToolError::failed(format!(
                "{which}old_string does not occur in {shown}; view the file and quote it exactly, with its white space"
            )),
            ReplaceError::Ambiguous(lines) => {
                let shown_lines: Vec<String> = lines.iter().take(20).map(ToString::to_string).collect();
                ToolError::failed(format!(
                    "{which}old_string occurs {} times in {shown} (lines {}); quote more of what is around it, or set replace_all",
                    lines.len(),
                    shown_lines.join(", ")
                ))
            }
            ReplaceError::TooLong => {
                ToolError::failed(format!("{which}{shown} would grow beyond what a file may hold; nothing was changed"))
            }
            _ => ToolError::args(format!("{which}old_string is empty or the same as new_string")),
        })?;
        content = done.content;
        places += done.lines.len();
        first = first.min(done.lines.first().copied().unwrap_or(first));
    }
    Ok((content, places, first))
}
