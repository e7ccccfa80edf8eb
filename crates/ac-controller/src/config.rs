use std::sync::Arc;

use ac_agent::{ChildProfile, RunRef};
use ac_core::{
    AgentId, ControllerId, ModeId, ModelError, ModelId, ModelProvider, PermissionRules, Tool, ToolCategory,
    permission::{CallRules, DefaultPolicies},
    tool::Capabilities,
};
use ac_engine::{Limits, Profile};
use ac_tools::ToolSet;
use serde_json::{Map, Value};

use crate::{
    ControllerError, ControllerErrorKind, GoalJudge, Mode, ModelCatalog, Notification, NotificationRoute, TitleGenerator,
    state_schema::CheckedState, subagent::Subagents,
};

/// The way from the name of a model to somebody who answers for it.
///
/// Any `Fn(&ModelId) -> Result<Arc<dyn ModelProvider>, ModelError>` is one.
pub trait ModelRouter: Send + Sync + 'static {
    /// The provider of a model.
    ///
    /// # Errors
    /// When there is none, or no key for it.
    fn provider(&self, model: &ModelId) -> Result<Arc<dyn ModelProvider>, ModelError>;
}

impl<F> ModelRouter for F
where
    F: Fn(&ModelId) -> Result<Arc<dyn ModelProvider>, ModelError> + Send + Sync + 'static,
{
    fn provider(&self, model: &ModelId) -> Result<Arc<dyn ModelProvider>, ModelError> {
        self(model)
    }
}

/// Who does the work of a controller: instructions and tools that every mode shares.
///
/// ```
/// use std::sync::Arc;
///
/// use ac_controller::AgentConfig;
/// use ac_core::Tool;
/// use ac_tools::{AskUser, SubmitPlan};
///
/// let agent = AgentConfig::new("coder")
///     .instructions("You are a careful programmer.")
///     .tools([Arc::new(AskUser) as Arc<dyn Tool>, Arc::new(SubmitPlan)]);
/// # drop(agent);
/// ```
#[derive(Clone)]
pub struct AgentConfig {
    pub(crate) id: AgentId,
    pub(crate) instructions: Option<Arc<str>>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
}

impl AgentConfig {
    /// An agent that knows nothing.
    pub fn new(id: impl Into<AgentId>) -> Self {
        Self { id: id.into(), instructions: None, tools: vec![] }
    }

    /// Its instructions: the first lines of the system text.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<Arc<str>>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Its tools.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }
}

impl std::fmt::Debug for AgentConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentConfig").field("id", &self.id).field("tools", &self.tools.len()).finish_non_exhaustive()
    }
}

/// Says what kind of thing a tool does, where the host knows better than the tool.
pub type CategoryResolver = dyn Fn(&str) -> Option<ToolCategory> + Send + Sync;

/// Decides what is done with a notification; the flag says whether a run is open on the thread.
pub type NotificationPolicy = dyn Fn(&Notification, bool) -> NotificationRoute + Send + Sync;

/// What the tools of a run may use.
pub type Lender = dyn Fn(&RunRef, Capabilities) -> Capabilities + Send + Sync;

/// A built controller's configuration: checked, and prepared for runs.
pub(crate) struct Config {
    pub(crate) id: ControllerId,
    pub(crate) agent: AgentId,
    pub(crate) modes: Vec<PreparedMode>,
    pub(crate) default_mode: ModeId,
    pub(crate) default_model: Option<ModelId>,
    pub(crate) router: Arc<dyn ModelRouter>,
    pub(crate) defaults: DefaultPolicies,
    pub(crate) rules: PermissionRules,
    pub(crate) call_rules: Option<Arc<dyn CallRules>>,
    pub(crate) category: Option<Arc<CategoryResolver>>,
    pub(crate) limits: Limits,
    pub(crate) options: Map<String, Value>,
    pub(crate) initial_state: Arc<Map<String, Value>>,
    pub(crate) state_schema: Option<CheckedState>,
    pub(crate) persist_state: bool,
    pub(crate) ephemeral_permissions: bool,
    pub(crate) lend: Option<Arc<Lender>>,
    pub(crate) transient_keys: std::collections::HashSet<String>,
    pub(crate) titles: Option<TitleGenerator>,
    pub(crate) catalog: Option<Arc<dyn ModelCatalog>>,
    pub(crate) judge: Option<GoalJudge>,
    pub(crate) notifications: Option<Arc<NotificationPolicy>>,
    pub(crate) common_tools: Arc<ToolSet>,
    pub(crate) subagents: Subagents,
}

/// A mode with everything that a run of it starts with.
pub(crate) struct PreparedMode {
    pub(crate) mode: Mode,
    pub(crate) tools: Arc<ToolSet>,
    pub(crate) instructions: Option<Arc<str>>,
}

/// Whether a rule for single calls means something here. One that nobody can read would protect nothing.
pub(crate) fn check_pattern(by: Option<&dyn CallRules>, pattern: &str) -> Result<(), ControllerError> {
    let checked = match by {
        Some(by) => by.check(pattern),
        None => Err(format!("`{pattern}` is a rule for single calls, and the controller was built without `call_rules`")),
    };
    checked.map_err(|why| ControllerError::new(ControllerErrorKind::InvalidRule, why))
}

impl Config {
    pub(crate) fn mode(&self, id: &ModeId) -> Option<&PreparedMode> {
        self.modes.iter().find(|prepared| prepared.mode.id == *id)
    }

    /// The tools of a run in this mode. A mode that is no longer configured leaves what all modes share.
    pub(crate) fn tools(&self, mode: &ModeId) -> &Arc<ToolSet> {
        self.mode(mode).map_or(&self.common_tools, |prepared| &prepared.tools)
    }

    /// The tools of a run that serves another one.
    pub(crate) fn child_tools(&self, profile: &Profile, child: &ChildProfile) -> Arc<ToolSet> {
        let mode = self.mode(&profile.mode).map(|prepared| &prepared.mode.id);
        self.subagents.tools(child, mode).unwrap_or_else(|| self.tools(&profile.mode)).clone()
    }

    pub(crate) fn category(&self, definition: &ac_core::ToolDefinition) -> ToolCategory {
        self.category.as_ref().and_then(|resolve| resolve(&definition.name)).unwrap_or(definition.category)
    }

    /// Where an approved plan of a mode leads (SPEC B-15): its own target, else the default mode.
    pub(crate) fn plan_target(&self, mode: &ModeId) -> ModeId {
        self.mode(mode).and_then(|prepared| prepared.mode.transitions_to.clone()).unwrap_or_else(|| self.default_mode.clone())
    }
}
