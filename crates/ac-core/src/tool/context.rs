use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    sync::Arc,
};

use serde_json::{Map, Value};

use super::{ToolError, ToolErrorKind};
use crate::{CancelToken, EventBody, ResourceId, RunId, ThreadId, ToolCallId};

/// What a tool may know about the call it serves. There is no session handle in it: a tool acts on its arguments and on the capabilities
/// that the host lends it.
#[derive(Clone, Debug)]
pub struct ToolContext(Arc<ToolContextParts>);

/// The content of a [`ToolContext`], for drivers and tests that make one.
#[derive(Clone, Debug)]
pub struct ToolContextParts {
    /// The run.
    pub run: RunId,
    /// The thread it works on.
    pub thread: ThreadId,
    /// Whose thread that is.
    pub resource: ResourceId,
    /// This call.
    pub call: ToolCallId,
    /// The exposed name that was called.
    pub tool: String,
    /// How often this call was started, from 1.
    pub attempt: u32,
    /// Fires when the call should end.
    pub cancel: CancelToken,
    /// Where progress goes.
    pub progress: Arc<dyn ProgressSink>,
    /// What the host lends.
    pub capabilities: Capabilities,
    /// JSON that came with the request (SPEC C-48): a tenant, a locale.
    pub request_context: Arc<Map<String, Value>>,
}

impl ToolContext {
    /// A context with this content.
    pub fn new(parts: ToolContextParts) -> Self {
        Self(Arc::new(parts))
    }

    /// Lends one of the host's capabilities (`dyn ThreadState`, …).
    ///
    /// # Errors
    /// [`ToolErrorKind::Failed`] where the host lends no such thing.
    pub fn capability<T: ?Sized + Send + Sync + 'static>(&self) -> Result<Arc<T>, ToolError> {
        self.capabilities.get::<T>().ok_or_else(|| {
            ToolError::new(ToolErrorKind::Failed, format!("this tool needs {}, which the host does not provide here", type_name::<T>()))
        })
    }

    /// Whether a call may suspend here. Where nobody keeps the wait (a tool called outside of a run) the host lends [`NoSuspension`] and a
    /// person-facing tool answers with readable text instead (SPEC B-5, B-13).
    pub fn can_suspend(&self) -> bool {
        self.capabilities.get::<NoSuspension>().is_none()
    }

    /// Reports progress. Never waits.
    pub fn report(&self, progress: ToolProgress) {
        self.progress.report(&self.call, progress);
    }
}

impl std::ops::Deref for ToolContext {
    type Target = ToolContextParts;

    fn deref(&self) -> &ToolContextParts {
        &self.0
    }
}

/// What a call says while it works. Shown, never stored.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ToolProgress {
    /// A partial result.
    Update(Value),
    /// Output of a command.
    Shell {
        /// The text, as decoded.
        text: String,
        /// From standard error.
        stderr: bool,
    },
    /// A command ended.
    Exit {
        /// Its exit code; -1 where there is none.
        code: i32,
    },
    /// An event of its own (`task_updated`, `subagent_*`).
    Event(Box<EventBody>),
}

/// Where progress goes.
pub trait ProgressSink: Send + Sync + 'static {
    /// Takes it and returns at once.
    fn report(&self, call: &ToolCallId, progress: ToolProgress);
}

/// Drops all progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl ProgressSink for NoProgress {
    fn report(&self, _: &ToolCallId, _: ToolProgress) {}
}

impl fmt::Debug for dyn ProgressSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressSink")
    }
}

/// Lent by a host that calls a tool outside of a run, where no suspension can be stored or answered.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSuspension;

/// What a host lends its tools, by type. A lent thing may be a trait object.
#[derive(Clone, Default)]
pub struct Capabilities(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Capabilities {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lends `thing` under its type; replaces what was lent under it before.
    #[must_use]
    pub fn with<T: ?Sized + Send + Sync + 'static>(mut self, thing: Arc<T>) -> Self {
        self.0.insert(TypeId::of::<T>(), Arc::new(thing));
        self
    }

    /// What is lent under this type.
    pub fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref::<Arc<T>>().cloned()
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Capabilities({})", self.0.len())
    }
}
