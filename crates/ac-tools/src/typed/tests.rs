use ac_core::{ToolErrorKind, tool::ToolProgress};
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::testing::context;

/// Adds two numbers.
///
/// Slowly.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// The first.
    a: i64,
    b: Option<i64>,
    #[serde(default)]
    how: How,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum How {
    #[default]
    Plain,
    Negated,
}

fn add() -> Arc<dyn Tool> {
    TypedTool::new("add", |Add { a, b, how }, cx: ToolContext| async move {
        cx.report(ToolProgress::Update(json!("adding")));
        let sum = a.checked_add(b.unwrap_or_default()).ok_or_else(|| ToolError::failed("the sum is too large"))?;
        Ok(if matches!(how, How::Negated) { -sum } else { sum })
    })
    .category(ToolCategory::Read)
    .effect(ToolEffect::ReadOnly)
    .build()
}

#[test]
fn the_type_gives_description_and_schema() {
    let definition = add().definition();
    assert_eq!(definition.description, "Adds two numbers.\n\nSlowly.");
    let schema = definition.input_schema;
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["required"], json!(["a"]));
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["a"]["description"], "The first.");
    assert!(!schema.to_string().contains("$ref"), "{schema}");
    assert!(schema.get("title").is_none());
    assert_eq!((definition.category, definition.effect), (ToolCategory::Read, ToolEffect::ReadOnly));
}

#[tokio::test]
async fn the_function_is_called_with_typed_arguments() {
    let call = |args| async move { add().call(args, &context("add")).await };
    assert_eq!(call(json!({"a": 2, "b": 3})).await.unwrap(), ToolOutcome::Done(ToolOutput::new(json!(5))));
    assert_eq!(call(json!({"a": 2, "how": "negated"})).await.unwrap(), ToolOutcome::Done(ToolOutput::new(json!(-2))));
    assert_eq!(call(json!({"a": "2"})).await.unwrap_err().kind(), ToolErrorKind::Args);
    assert_eq!(call(json!({"a": 2, "c": 3})).await.unwrap_err().kind(), ToolErrorKind::Args);
    assert_eq!(call(json!({"a": i64::MAX, "b": 1})).await.unwrap_err().to_string(), "the sum is too large");
}

/// Says nothing.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn a_careful_default_and_an_output_of_its_own() {
    let tool = TypedTool::with_output("quiet", |_: Nothing, _| async { Ok(ToolOutput::text("done")) }).requires_approval().build();
    let definition = tool.definition();
    assert_eq!((definition.category, definition.effect, definition.requires_approval), (ToolCategory::Other, ToolEffect::Mutating, true));
    assert_eq!(definition.input_schema["type"], "object");
    assert_eq!(tool.call(json!({}), &context("quiet")).await.unwrap(), ToolOutcome::Done(ToolOutput::text("done")));
}
