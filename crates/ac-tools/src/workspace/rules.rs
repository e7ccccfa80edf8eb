//! Rules for single calls of workspace tools, as a session's permissions use them.

use std::{collections::BTreeMap, sync::Arc};

use ac_core::{
    Policy,
    permission::{CallRules, CallVerdict},
    tool::Capabilities,
};
use ac_workspace::{
    Workspace,
    rules::{ToolPattern, ToolRules},
};
use async_trait::async_trait;
use serde_json::Value;

/// Judges calls by patterns of commands and paths: `execute_command(git status*)`, `write_file(src/**)`. Paths are judged as what they lead
/// to in the workspace that the call will use.
#[derive(Clone, Debug)]
pub struct WorkspaceRules(Arc<Workspace>);

impl WorkspaceRules {
    /// Rules for the tools of this workspace, or of the one that the host lends a call.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self(workspace)
    }
}

#[async_trait]
impl CallRules for WorkspaceRules {
    fn check(&self, pattern: &str) -> Result<(), String> {
        pattern.parse::<ToolPattern>().map(drop).map_err(|error| error.to_string())
    }

    async fn judge(
        &self,
        patterns: &BTreeMap<String, Policy>,
        tool: &str,
        args: &Value,
        capabilities: &Capabilities,
    ) -> Option<CallVerdict> {
        let mut rules = ToolRules::new();
        for (pattern, policy) in patterns.iter().filter(|(pattern, _)| pattern.trim_start().starts_with(tool)) {
            match pattern.parse::<ToolPattern>() {
                Ok(pattern) => rules.add(pattern, *policy),
                // Stored by another version that can read it. Whatever it holds back is asked about.
                Err(_) if *policy != Policy::Allow => return Some(CallVerdict::Unclear),
                Err(_) => {}
            }
        }
        let workspace = capabilities.get::<Workspace>().unwrap_or_else(|| Arc::clone(&self.0));
        rules.verdict_in(workspace.filesystem().as_ref(), tool, args).await
    }
}
