use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use ac_core::{
    Part, Tool, ToolContext, ToolDefinition, ToolError, ToolOutcome, ToolOutput,
    message::{FilePart, FileSource},
};
use ac_workspace::{
    FileContent, FileKind, Filesystem,
    text::{Encoding, Text},
};
use async_trait::async_trait;
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Shared, WorkspaceTool, arguments, clip, tool_error};

/// Shows a file with line numbers, or what is in a folder.
pub(super) struct View(pub(super) Arc<Shared>);

#[derive(Deserialize)]
struct Args {
    path: PathBuf,
    #[serde(default)]
    offset: Option<u64>,
    #[serde(default)]
    limit: Option<u64>,
}

#[async_trait]
impl Tool for View {
    fn definition(&self) -> ToolDefinition {
        self.0.options.definition(
            WorkspaceTool::View,
            "Show a text file with line numbers, or list a folder. For a long file give offset (first line, from 1) and limit (how many lines).",
            json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "minLength": 1, "description": "Relative to the workspace folder; `.` is the folder itself." },
                    "offset": { "type": "integer", "minimum": 1, "description": "First line to show, from 1." },
                    "limit": { "type": "integer", "minimum": 1, "description": "How many lines to show." }
                },
                "required": ["path"],
                "additionalProperties": false
            }),
        )
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let args: Args = arguments(&cx.tool, args)?;
        let workspace = self.0.workspace(cx);
        let files = workspace.filesystem();
        if files.stat(&args.path).await.map_err(tool_error)?.kind == FileKind::Dir {
            return self.folder(files.as_ref(), &args).await.map(ToolOutcome::Done);
        }
        let content = files.read(&args.path, self.0.options.max_read).await.map_err(tool_error)?;
        let real = files.resolve(&args.path).await.map_err(tool_error)?;
        let Some(text) = Text::decode(&content.bytes) else { return Ok(ToolOutcome::Done(binary(&args.path, content))) };
        self.0.reads.note(&cx.thread, &real, content.version);
        let mut shown = numbered(&args, &text.content, self.0.options.max_result);
        if text.encoding != Encoding::Utf8 {
            shown.push_str(&format!("\n[this file is written in {}]", text.encoding.as_str()));
        }
        Ok(ToolOutcome::Done(ToolOutput::text(shown)))
    }
}

impl View {
    async fn folder(&self, files: &dyn Filesystem, args: &Args) -> Result<ToolOutput, ToolError> {
        let entries = files.list(&args.path).await.map_err(tool_error)?;
        if entries.is_empty() {
            return Ok(ToolOutput::text("[the folder is empty]"));
        }
        let total = entries.len();
        let (mut text, mut shown) = (String::new(), 0);
        for entry in entries {
            let end = match entry.kind {
                FileKind::Dir => "/\n",
                FileKind::Link => "@\n",
                _ => "\n",
            };
            if text.len() + entry.name.len() > self.0.options.max_result {
                break;
            }
            text.push_str(&entry.name);
            text.push_str(end);
            shown += 1;
        }
        if shown < total {
            text.push_str(&format!("[{shown} of {total} entries; use find_files to narrow down]\n"));
        }
        Ok(ToolOutput::text(text))
    }
}

/// The longest picture or document that a model is shown, in bytes: 5 MiB of base64, which all providers take.
const LARGEST_MEDIA: usize = 15 << 18;

/// A picture or a document for the model's eyes; of anything else, what it is.
fn binary(path: &Path, content: FileContent) -> ToolOutput {
    let size = content.bytes.len();
    let Some(media) = media_type(&content.bytes) else {
        return ToolOutput::text(format!("[`{}` is a binary file of {size} bytes]", path.display()));
    };
    let told = format!("[`{}`: {media}, {size} bytes]", path.display());
    if size > LARGEST_MEDIA {
        return ToolOutput::text(format!("{told} It is too large to be shown."));
    }
    let file = FilePart {
        media_type: media.to_owned(),
        source: FileSource::Base64(BASE64.encode(&content.bytes).into()),
        name: path.file_name().map(|name| name.to_string_lossy().into_owned()),
        opaque: None,
    };
    ToolOutput::text(told.clone()).for_model(vec![Part::text(told), Part::File(file)])
}

/// By the first bytes: names lie.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    Some(match bytes {
        [0x89, b'P', b'N', b'G', 0x0D, 0x0A, 0x1A, 0x0A, ..] => "image/png",
        [0xFF, 0xD8, 0xFF, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'%', b'P', b'D', b'F', b'-', ..] => "application/pdf",
        _ => return None,
    })
}

/// Lines of the range with their numbers, as many as fit. One line alone is never longer than a quarter of what fits.
fn numbered(args: &Args, text: &str, max: usize) -> String {
    if text.is_empty() {
        return "[the file is empty]".into();
    }
    let total = text.lines().count() as u64;
    let first = args.offset.unwrap_or(1).max(1);
    if first > total {
        return format!("[the file has {total} lines; line {first} is past its end]");
    }
    let last = first.saturating_add(args.limit.unwrap_or(u64::MAX) - 1).min(total);
    let width = last.to_string().len();
    let mut out = String::new();
    let mut next = first;
    for line in text.lines().skip(usize::try_from(first - 1).unwrap_or(usize::MAX)) {
        if next > last {
            break;
        }
        let kept = clip(line, max / 4);
        if !out.is_empty() && out.len() + kept.len() + width > max {
            break;
        }
        out.push_str(&format!("{next:>width$}\t{kept}"));
        if kept.len() < line.len() {
            out.push_str(&format!(" [… {} more bytes in this line]", line.len() - kept.len()));
        }
        out.push('\n');
        next += 1;
    }
    if next <= total {
        out.push_str(&format!("[lines {first}-{} of {total}; go on with offset {next}]\n", next - 1));
    }
    out
}
