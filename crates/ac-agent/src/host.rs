use std::sync::Arc;

use ac_core::{Decision, EventBody, ModelError, ModelId, ModelProvider, ResourceId, RunId, ThreadId, ToolDefinition, tool::Capabilities};
use ac_engine::{Outbox, Profile, RunSnapshot};
use ac_tools::ToolSet;
use async_trait::async_trait;

use crate::RunError;

/// Which run something is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRef {
    /// The run.
    pub run: RunId,
    /// The thread it works on.
    pub thread: ThreadId,
    /// Whose thread that is.
    pub resource: ResourceId,
}

/// What a run needs from whoever it works for.
///
/// The driver asks for live things only (tools, providers, rules); what a run was started with is in its [`Profile`].
#[async_trait]
pub trait RunHost: Send + Sync + 'static {
    /// The provider of a model.
    ///
    /// # Errors
    /// When there is none, or no key for it.
    fn provider(&self, model: &ModelId) -> Result<Arc<dyn ModelProvider>, ModelError>;

    /// All tools that exist for a run with this profile, visible or not.
    fn tools(&self, profile: &Profile) -> Arc<ToolSet>;

    /// Decides about a call of a tool, by the rules and grants of this moment.
    async fn decide(&self, run: &RunRef, profile: &Profile, definition: &ToolDefinition, args: &serde_json::Value) -> Decision;

    /// What tools of this run may use.
    fn capabilities(&self, run: &RunRef) -> Capabilities;

    /// The profile in which a run goes on after its plan was approved: the target mode, with its instructions, tools and model.
    ///
    /// # Errors
    /// When the target cannot be found out; the decision is then not taken.
    async fn plan_target(&self, profile: &Profile) -> Result<Profile, RunError>;

    /// Does what an outbox item says, once: an item whose number was applied for this run before is skipped (`R1b`).
    ///
    /// # Errors
    /// When it could not be done; it is tried again.
    async fn apply(&self, snapshot: &RunSnapshot, item: &Outbox) -> Result<(), RunError>;

    /// Tells whoever listens. Never waits.
    fn tell(&self, run: &RunRef, body: EventBody);
}
