//! A typed function becomes a tool: its arguments' type gives the schema, its doc comment the description.

use std::{fmt, future::Future, marker::PhantomData, pin::Pin, sync::Arc};

use ac_core::{Tool, ToolCategory, ToolContext, ToolDefinition, ToolEffect, ToolError, ToolOutcome, ToolOutput};
use async_trait::async_trait;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// A tool made of a function.
///
/// ```
/// use ac_core::{ToolCategory, ToolEffect};
/// use ac_tools::TypedTool;
///
/// /// Adds two numbers.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add {
///     a: f64,
///     b: f64,
/// }
///
/// let add = TypedTool::new("add", |Add { a, b }, _cx| async move { Ok(a + b) })
///     .category(ToolCategory::Read)
///     .effect(ToolEffect::ReadOnly)
///     .build();
/// assert_eq!(add.definition().description, "Adds two numbers.");
/// ```
///
/// The function gets a [`ToolContext`]: it watches `cx.cancel`, reports with `cx.report(…)`, and takes what the host lends with
/// `cx.capability()`. What it returns is shown as JSON; an error is read by the model and does not end the run.
pub struct TypedTool<A> {
    definition: ToolDefinition,
    call: Call<A>,
    arguments: PhantomData<fn(A)>,
}

type Call<A> = Box<dyn Fn(A, ToolContext) -> Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send>> + Send + Sync>;

impl<A: JsonSchema + DeserializeOwned + Send + 'static> TypedTool<A> {
    /// A tool whose result is any value. Its description is the doc comment of `A`.
    pub fn new<F, R, O>(name: impl Into<String>, function: F) -> Self
    where
        F: Fn(A, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: Serialize + Send + 'static,
    {
        Self::with_output(name, move |args, cx| {
            let result = function(args, cx);
            async move {
                let value = serde_json::to_value(result.await?)
                    .map_err(|error| ToolError::failed("the result of this tool is no JSON").with_source(error))?;
                Ok(ToolOutput::new(value))
            }
        })
    }

    /// A tool that makes its own [`ToolOutput`]: other words for the model than for the host, files that it changed.
    pub fn with_output<F, R>(name: impl Into<String>, function: F) -> Self
    where
        F: Fn(A, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let (description, schema) = schema_of::<A>();
        Self {
            definition: ToolDefinition::new(name, description, schema),
            call: Box::new(move |args, cx| Box::pin(function(args, cx))),
            arguments: PhantomData,
        }
    }

    /// Another description than the doc comment.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = description.into();
        self
    }

    /// Sets the category; [`ToolCategory::Other`], which asks, unless set.
    #[must_use]
    pub fn category(mut self, category: ToolCategory) -> Self {
        self.definition.category = category;
        self
    }

    /// Sets the effect; [`ToolEffect::Mutating`], which is never repeated after a crash, unless set.
    #[must_use]
    pub fn effect(mut self, effect: ToolEffect) -> Self {
        self.definition.effect = effect;
        self
    }

    /// Asks before each call.
    #[must_use]
    pub fn requires_approval(mut self) -> Self {
        self.definition.requires_approval = true;
        self
    }

    /// As a tool like any other.
    pub fn build(self) -> Arc<dyn Tool> {
        Arc::new(self)
    }
}

impl<A> fmt::Debug for TypedTool<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedTool").field("definition", &self.definition).finish_non_exhaustive()
    }
}

#[async_trait]
impl<A: JsonSchema + DeserializeOwned + Send + 'static> Tool for TypedTool<A> {
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let name = &self.definition.name;
        let args = serde_json::from_value(args).map_err(|error| ToolError::args(format!("{name}: {error}")).with_source(error))?;
        (self.call)(args, cx.clone()).await.map(ToolOutcome::Done)
    }
}

/// Description and schema of a type: without references, since not every provider follows them, and without a title.
fn schema_of<A: JsonSchema>() -> (String, Value) {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    let mut description = String::new();
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("title");
        if let Some(Value::String(text)) = fields.remove("description") {
            description = text;
        }
        // No arguments at all are an empty object.
        if fields.get("type").is_none_or(|kind| kind == "null") && !fields.contains_key("anyOf") && !fields.contains_key("oneOf") {
            fields.insert("type".into(), "object".into());
        }
    }
    (description, schema)
}

#[cfg(test)]
mod tests;
