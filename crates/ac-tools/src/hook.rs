//! Hooks: what a host does before and after each call of a tool.

use std::sync::Arc;

use ac_core::{Tool, ToolContext, ToolDefinition, ToolError, ToolOutcome, ToolOutput, ToolResume};
use async_trait::async_trait;
use serde_json::Value;

/// Looks at calls of tools before they happen and at what came of them (SPEC W-7).
///
/// A hook runs inside of the call: the call's cancellation ends it, and its time counts as the call's.
#[async_trait]
pub trait ToolHook: Send + Sync + 'static {
    /// Before a call. An answer takes the place of the call, which then does not happen.
    ///
    /// # Errors
    /// An error is the result of the call, which then does not happen.
    async fn before(&self, tool: &ToolDefinition, args: &Value, cx: &ToolContext) -> Result<Option<ToolOutput>, ToolError> {
        let _ = (tool, args, cx);
        Ok(None)
    }

    /// After a call that happened, with what came of it.
    async fn after(&self, tool: &ToolDefinition, args: &Value, result: &Result<ToolOutcome, ToolError>, cx: &ToolContext) {
        let _ = (tool, args, result, cx);
    }
}

/// A tool with hooks. The first one that answers decides; those after it see nothing of the call.
struct Hooked {
    tool: Arc<dyn Tool>,
    definition: ToolDefinition,
    hooks: Vec<Arc<dyn ToolHook>>,
}

/// Puts hooks before and after each call of a tool.
pub fn hooked(tool: Arc<dyn Tool>, hooks: Vec<Arc<dyn ToolHook>>) -> Arc<dyn Tool> {
    if hooks.is_empty() {
        return tool;
    }
    let definition = tool.definition();
    Arc::new(Hooked { tool, definition, hooks })
}

#[async_trait]
impl Tool for Hooked {
    fn definition(&self) -> ToolDefinition {
        self.tool.definition()
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        for hook in &self.hooks {
            if let Some(output) = hook.before(&self.definition, &args, cx).await? {
                return Ok(ToolOutcome::Done(output));
            }
        }
        let result = self.tool.call(args.clone(), cx).await;
        for hook in self.hooks.iter().rev() {
            hook.after(&self.definition, &args, &result, cx).await;
        }
        result
    }

    async fn resume(&self, with: ToolResume, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        // The call was looked at before it waited; its end is looked at here.
        let args = with.args.clone();
        let result = self.tool.resume(with, cx).await;
        for hook in self.hooks.iter().rev() {
            hook.after(&self.definition, &args, &result, cx).await;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use ac_core::ToolErrorKind;
    use serde_json::json;

    use super::*;
    use crate::{AskUser, testing::context};

    struct Echo;

    #[async_trait]
    impl Tool for Echo {
        fn definition(&self) -> ToolDefinition {
            ToolDefinition::new("echo", "Says it again.", json!({"type": "object"}))
        }

        async fn call(&self, args: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
            Ok(ToolOutcome::Done(ToolOutput::new(args)))
        }
    }

    #[derive(Default)]
    struct Watch(Mutex<Vec<String>>, Option<&'static str>);

    #[async_trait]
    impl ToolHook for Watch {
        async fn before(&self, tool: &ToolDefinition, args: &Value, _: &ToolContext) -> Result<Option<ToolOutput>, ToolError> {
            self.0.lock().unwrap().push(format!("before {} {args}", tool.name));
            match self.1 {
                Some("veto") => Err(ToolError::new(ToolErrorKind::Denied, "not today")),
                Some(text) => Ok(Some(ToolOutput::text(text))),
                None => Ok(None),
            }
        }

        async fn after(&self, tool: &ToolDefinition, _: &Value, result: &Result<ToolOutcome, ToolError>, _: &ToolContext) {
            self.0.lock().unwrap().push(format!("after {} {}", tool.name, result.is_ok()));
        }
    }

    #[tokio::test]
    async fn hooks_see_the_call_and_its_result() {
        let watch = Arc::new(Watch::default());
        let tool = hooked(Arc::new(Echo), vec![watch.clone()]);
        assert_eq!(tool.call(json!({"a": 1}), &context("echo")).await.unwrap(), ToolOutcome::Done(ToolOutput::new(json!({"a": 1}))));
        assert_eq!(*watch.0.lock().unwrap(), ["before echo {\"a\":1}", "after echo true"]);
    }

    #[tokio::test]
    async fn a_hook_answers_or_refuses_in_place_of_the_tool() {
        let (first, second) = (Arc::new(Watch(Mutex::default(), Some("instead"))), Arc::new(Watch::default()));
        let tool = hooked(Arc::new(Echo), vec![first, second.clone()]);
        assert_eq!(tool.call(json!({}), &context("echo")).await.unwrap(), ToolOutcome::Done(ToolOutput::text("instead")));
        assert!(second.0.lock().unwrap().is_empty());
        let tool = hooked(Arc::new(Echo), vec![Arc::new(Watch(Mutex::default(), Some("veto")))]);
        assert_eq!(tool.call(json!({}), &context("echo")).await.unwrap_err().kind(), ToolErrorKind::Denied);
    }

    #[tokio::test]
    async fn the_end_of_a_resumed_call_is_seen_too() {
        let watch = Arc::new(Watch::default());
        let tool = hooked(Arc::new(AskUser), vec![watch.clone()]);
        let with = ToolResume { args: json!({}), state: Value::Null, payload: Value::Null, answer: json!("x") };
        tool.resume(with, &context("ask_user")).await.unwrap();
        assert_eq!(*watch.0.lock().unwrap(), ["after ask_user true"]);
    }
}
