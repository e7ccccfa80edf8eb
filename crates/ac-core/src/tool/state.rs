use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::ToolError;

/// What tools keep with the thread they work on: values by name, stored with the thread and deleted with it.
///
/// A capability that a host lends ([`ToolContext::capability`](super::ToolContext::capability) of `dyn ThreadState`). Values change by
/// compare-and-set, so that two calls, or two processes, never overwrite one another's work:
///
/// ```
/// # use ac_core::{ToolError, tool::ThreadState};
/// async fn count(state: &dyn ThreadState) -> Result<u64, ToolError> {
///     loop {
///         let known = state.get("count").await?;
///         let next = known.as_ref().and_then(|known| known.value.as_u64()).unwrap_or(0) + 1;
///         if state.put("count", known.map(|known| known.version), &next.into()).await? {
///             return Ok(next);
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait ThreadState: Send + Sync + 'static {
    /// A value and its version.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn get(&self, name: &str) -> Result<Option<ThreadValue>, ToolError>;

    /// Writes a value, if it still has version `expect` (`None`: it does not exist). Says whether it did; `false` means that somebody else
    /// was faster.
    ///
    /// # Errors
    /// When the store does not answer, when the thread is gone, and for names that belong to the host.
    async fn put(&self, name: &str, expect: Option<u64>, value: &Value) -> Result<bool, ToolError>;
}

/// A value that is kept with a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadValue {
    /// For a later compare-and-set.
    pub version: u64,
    /// The value.
    pub value: Value,
}

/// The host's state of the session that a call is made in (SPEC A-8).
///
/// A capability, as [`ThreadState`] is. Keys that decide what a session may do (`yolo`, `permissionRules`) can be read and never set.
#[async_trait]
pub trait SessionState: Send + Sync + 'static {
    /// All of it, as it stands. A shared snapshot.
    fn get(&self) -> Arc<Map<String, Value>>;

    /// Sets keys: all of them, or none. The state after that.
    ///
    /// # Errors
    /// When the state would not fit its schema, and for keys that no tool may set.
    async fn set(&self, set: Map<String, Value>) -> Result<Arc<Map<String, Value>>, ToolError>;
}
