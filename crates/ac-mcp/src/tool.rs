use std::{collections::HashSet, sync::Arc};

use ac_core::{
    Part, Tool, ToolCategory, ToolContext, ToolDefinition, ToolEffect, ToolError, ToolErrorKind, ToolOutcome, ToolOutput,
    message::{FilePart, FileSource},
};
use async_trait::async_trait;
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value, json};

use crate::McpServer;

/// The longest name that all providers take, and the longest description that a server is granted.
const LONGEST_NAME: usize = 64;
const LONGEST_DESCRIPTION: usize = 4096;
/// The longest picture, in bytes of base64.
const LONGEST_MEDIA: usize = 5 << 20;
/// The kinds of pictures that all providers take. One that they refuse would stand in the thread, and each later request be refused with it.
const PICTURES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/webp"];

/// A tool of a server.
pub(super) struct McpTool {
    server: Arc<McpServer>,
    remote: String,
    definition: ToolDefinition,
}

impl McpTool {
    pub(super) fn new(server: Arc<McpServer>, tool: &rmcp::model::Tool, taken: &mut HashSet<String>) -> Self {
        let name = free_name(&server.config().name, &tool.name, taken);
        let description = clip(tool.description.as_deref().unwrap_or_default(), LONGEST_DESCRIPTION);
        let mut schema = Value::Object(tool.input_schema.as_ref().clone());
        if !schema.get("type").is_some_and(Value::is_string) {
            schema = json!({ "type": "object" });
        }
        let hints = tool.annotations.as_ref().filter(|_| server.config().trust_hints);
        let effect = match hints {
            Some(hints) if hints.read_only_hint == Some(true) => ToolEffect::ReadOnly,
            Some(hints) if hints.idempotent_hint == Some(true) => ToolEffect::Idempotent,
            _ => ToolEffect::Mutating,
        };
        let definition = ToolDefinition::new(name, description, schema).category(ToolCategory::Mcp).effect(effect);
        Self { server, remote: tool.name.to_string(), definition }
    }
}

fn clip(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    text.get(..end).unwrap_or(text)
}

/// `server__tool` in characters that every provider takes, and unlike all others.
fn free_name(server: &str, tool: &str, taken: &mut HashSet<String>) -> String {
    let plain: String = tool.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect();
    let whole = format!("{server}__{plain}");
    let mut name = clip(&whole, LONGEST_NAME).to_owned();
    let mut number = 1;
    while !taken.insert(name.clone()) {
        number += 1;
        let end = format!("_{number}");
        name = format!("{}{end}", clip(&whole, LONGEST_NAME - end.len()));
    }
    name
}

#[async_trait]
impl Tool for McpTool {
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let mut params = CallToolRequestParams::new(self.remote.clone());
        params.arguments = match args {
            Value::Object(fields) => Some(fields),
            Value::Null => None,
            _ => return Err(ToolError::args(format!("{}: the arguments must be an object", self.definition.name))),
        };
        let server = &self.server.config().name;
        let result = tokio::select! {
            result = self.server.call(params) => result.map_err(|why| ToolError::failed(format!("{server}: {why}")))?,
            () = cx.cancel.cancelled() => return Err(ToolError::new(ToolErrorKind::Cancelled, "stopped before the server answered")),
        };
        told(result, self.server.config().max_result).map(ToolOutcome::Done)
    }
}

fn is_base64(data: &str) -> bool {
    let digits = data.trim_end_matches('=');
    data.len().is_multiple_of(4)
        && data.len() - digits.len() <= 2
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

/// One result of whatever the server sent: all text is kept up to the limit, pictures are shown, the rest is described.
fn told(result: CallToolResult, max: usize) -> Result<ToolOutput, ToolError> {
    let (mut text, mut files) = (String::new(), Vec::new());
    for block in &result.content {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        match block {
            ContentBlock::Text(part) => text.push_str(&part.text),
            ContentBlock::Image(picture) if !PICTURES.contains(&picture.mime_type.as_str()) || !is_base64(&picture.data) => {
                text.push_str(&format!("[picture: {}, not shown]", picture.mime_type));
            }
            ContentBlock::Image(picture) if picture.data.len() <= LONGEST_MEDIA => {
                text.push_str(&format!("[picture: {}]", picture.mime_type));
                files.push(Part::File(FilePart {
                    media_type: picture.mime_type.clone(),
                    source: FileSource::Base64(picture.data.as_str().into()),
                    name: None,
                    opaque: None,
                }));
            }
            ContentBlock::Image(picture) => text.push_str(&format!("[picture: {}, too large to be shown]", picture.mime_type)),
            ContentBlock::Audio(sound) => text.push_str(&format!("[sound: {}, not shown]", sound.mime_type)),
            ContentBlock::Resource(embedded) => match &embedded.resource {
                ResourceContents::TextResourceContents { uri, text: content, .. } => text.push_str(&format!("[{uri}]\n{content}")),
                ResourceContents::BlobResourceContents { uri, mime_type, .. } => {
                    text.push_str(&format!("[{uri}: {}, not shown]", mime_type.as_deref().unwrap_or("binary")));
                }
                _ => text.push_str("[a resource of a newer kind, not shown]"),
            },
            ContentBlock::ResourceLink(link) => text.push_str(&format!("[link: {} {}]", link.uri, link.name)),
            _ => text.push_str("[content of a newer kind, not shown]"),
        }
    }
    if text.is_empty() {
        text = match &result.structured_content {
            Some(value) => value.to_string(),
            None => "[no content]".to_owned(),
        };
    }
    let kept = clip(&text, max);
    if kept.len() < text.len() {
        text = format!("{kept}\n[cut: {} of {} bytes]", kept.len(), text.len());
    }
    if result.is_error == Some(true) {
        return Err(ToolError::failed(text));
    }
    let value = match result.structured_content {
        Some(value) if value.to_string().len() <= max => value,
        _ => Value::String(text.clone()),
    };
    let mut parts = vec![Part::text(text)];
    parts.extend(files);
    Ok(ToolOutput::new(value).for_model(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(value: Value) -> CallToolResult {
        serde_json::from_value(value).unwrap()
    }

    /// B-136: whatever comes back is exactly one result, with all text in it.
    #[test]
    fn every_kind_of_content_becomes_one_result() {
        for (content, text) in [
            (json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "a\nb"),
            (json!([]), "[no content]"),
            (json!([{"type": "text", "text": "a"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}]), "a\n[picture: image/png]"),
            (json!([{"type": "image", "data": "aGk=", "mimeType": "image/svg+xml"}]), "[picture: image/svg+xml, not shown]"),
            (json!([{"type": "image", "data": "no base64", "mimeType": "image/png"}]), "[picture: image/png, not shown]"),
            (json!([{"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}]), "[sound: audio/wav, not shown]"),
            (json!([{"type": "resource_link", "uri": "file:///x", "name": "x"}]), "[link: file:///x x]"),
            (json!([{"type": "resource", "resource": {"uri": "u:1", "text": "body"}}]), "[u:1]\nbody"),
            (json!([{"type": "resource", "resource": {"uri": "u:1", "blob": "aGk="}}]), "[u:1: binary, not shown]"),
        ] {
            let output = told(result(json!({"content": content})), 1000).unwrap();
            assert_eq!(output.model_text(), text);
            assert_eq!(output.value, json!(text));
        }
        let output = told(result(json!({"content": [], "structuredContent": {"n": 1}})), 1000).unwrap();
        assert_eq!((output.value, output.model.unwrap().len()), (json!({"n": 1}), 1));
        let error = told(result(json!({"content": [{"type": "text", "text": "no"}], "isError": true})), 1000).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ToolErrorKind::Failed, "no"));
    }

    /// B-82: cut on a character border, with the true size.
    #[test]
    fn a_flood_is_cut() {
        let output = told(result(json!({"content": [{"type": "text", "text": "ä".repeat(100)}]})), 25).unwrap();
        assert_eq!(output.model_text(), format!("{}\n[cut: 24 of 200 bytes]", "ä".repeat(12)));
    }

    #[test]
    fn names_are_what_providers_take_and_unlike_one_another() {
        let mut taken = HashSet::new();
        assert_eq!(free_name("s", "a.b/c", &mut taken), "s__a_b_c");
        assert_eq!(free_name("s", "a b c", &mut taken), "s__a_b_c_2");
        let long = free_name("s", &"x".repeat(100), &mut taken);
        assert_eq!(long.len(), 64);
        let again = free_name("s", &"x".repeat(101), &mut taken);
        assert!(again.len() == 64 && again.ends_with("_2"));
    }
}
