//! A tool that is shown and does not act.

use ac_core::{Tool, ToolContext, ToolDefinition, ToolError, ToolOutcome, ToolOutput};
use async_trait::async_trait;
use serde_json::Value;

/// Stands where a tool must be shown and must not act: the request a model gets stays the same, byte for byte, and a call is answered with
/// the reason (SPEC U-10).
#[derive(Clone, Debug)]
pub struct Withheld {
    definition: ToolDefinition,
    answer: Value,
}

impl Withheld {
    /// Shown as `definition`, answers each call with `answer`.
    pub fn new(definition: ToolDefinition, answer: Value) -> Self {
        Self { definition, answer }
    }
}

#[async_trait]
impl Tool for Withheld {
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    async fn call(&self, _: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        Ok(ToolOutcome::Done(ToolOutput::new(self.answer.clone())))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::context;

    #[tokio::test]
    async fn it_looks_the_same_and_only_says_why() {
        let real = ToolDefinition::new("post", "Posts.", json!({ "type": "object" }));
        let withheld = Withheld::new(real.clone(), json!({ "content": "Not here.", "isError": true }));
        assert_eq!(withheld.definition(), real);
        let outcome = withheld.call(json!({}), &context("subagent")).await.unwrap();
        assert_eq!(outcome, ToolOutcome::Done(ToolOutput::new(json!({ "content": "Not here.", "isError": true }))));
    }
}
