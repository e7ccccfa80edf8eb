//! Contexts for the tests of this crate.

use std::sync::Arc;

use ac_core::{
    CancelToken, ToolContext,
    tool::{Capabilities, NoProgress, ToolContextParts},
};

pub(crate) fn context(tool: &str) -> ToolContext {
    context_with(tool, Capabilities::new())
}

pub(crate) fn context_with(tool: &str, capabilities: Capabilities) -> ToolContext {
    ToolContext::new(ToolContextParts {
        run: "run-1".into(),
        thread: "thread-1".into(),
        resource: "resource-1".into(),
        call: "call-1".into(),
        tool: tool.into(),
        attempt: 1,
        cancel: CancelToken::new(),
        progress: Arc::new(NoProgress),
        capabilities,
        request_context: Arc::default(),
    })
}
