use std::{collections::HashSet, sync::Arc};

use ac_agent::RuntimeSettings;
use ac_core::{
    Clock, ControllerId, Ids, ModeId, ModelId, ModelProvider, PermissionRules, Tool,
    permission::{CallRules, DefaultPolicies},
    tool::Capabilities,
};
use ac_engine::Limits;
use ac_storage::Storage;
use ac_tools::{DuplicateTool, ToolSet};
use serde_json::{Map, Value};

use crate::{
    AgentConfig, AgentController, ControllerError, ControllerErrorKind, EventBus, GoalJudge, Interval, LocalBus, Mode, ModelCatalog,
    ModelRouter, StateSchema, Subagent, SystemClock, TitleGenerator, UuidIds,
    config::{self, CategoryResolver, Config, Lender, NotificationPolicy, PreparedMode},
    subagent::{self, Subagents},
};

/// Makes an [`AgentController`].
///
/// Needed: a store, a way to models, at least one mode.
///
/// ```
/// use std::sync::Arc;
///
/// use ac_controller::{AgentController, ControllerErrorKind, Mode};
/// use ac_storage::MemoryStorage;
///
/// // What is wrong with a configuration is said by `build`, with a kind and a stable code.
/// let incomplete = AgentController::builder().storage(Arc::new(MemoryStorage::new())).mode(Mode::new("chat")).build();
/// assert_eq!(incomplete.err().map(|error| error.kind()), Some(ControllerErrorKind::Incomplete));
///
/// let twice = AgentController::builder().mode(Mode::new("chat")).mode(Mode::new("chat")).build();
/// assert_eq!(twice.err().map(|error| error.kind()), Some(ControllerErrorKind::DuplicateMode));
/// ```
#[must_use]
pub struct ControllerBuilder {
    id: ControllerId,
    storage: Option<Arc<dyn Storage>>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    bus: Arc<dyn EventBus>,
    runtime: RuntimeSettings,
    agent: AgentConfig,
    instructions: Option<Arc<str>>,
    workspace_instructions: Option<Arc<str>>,
    modes: Vec<Mode>,
    default_mode: Option<ModeId>,
    default_model: Option<ModelId>,
    tools: Vec<Arc<dyn Tool>>,
    workspace_tools: Vec<Arc<dyn Tool>>,
    subagents: Vec<Subagent>,
    subagent_depth: u32,
    router: Option<Arc<dyn ModelRouter>>,
    defaults: DefaultPolicies,
    rules: PermissionRules,
    call_rules: Option<Arc<dyn CallRules>>,
    category: Option<Arc<CategoryResolver>>,
    limits: Limits,
    options: Map<String, Value>,
    initial_state: Map<String, Value>,
    state_schema: Option<StateSchema>,
    persist_state: bool,
    ephemeral_permissions: bool,
    lend: Option<Arc<Lender>>,
    transient_keys: HashSet<String>,
    titles: Option<TitleGenerator>,
    catalog: Option<Arc<dyn ModelCatalog>>,
    intervals: Vec<Interval>,
    judge: Option<GoalJudge>,
    notifications: Option<Arc<NotificationPolicy>>,
}

impl Default for ControllerBuilder {
    fn default() -> Self {
        Self {
            id: "controller".into(),
            storage: None,
            clock: Arc::new(SystemClock),
            ids: Arc::new(UuidIds),
            bus: Arc::new(LocalBus::default()),
            runtime: RuntimeSettings::default(),
            agent: AgentConfig::new("agent"),
            instructions: None,
            workspace_instructions: None,
            modes: vec![],
            default_mode: None,
            default_model: None,
            tools: vec![],
            workspace_tools: vec![],
            subagents: vec![],
            subagent_depth: 3,
            router: None,
            defaults: DefaultPolicies::default(),
            rules: PermissionRules::default(),
            call_rules: None,
            category: None,
            limits: Limits::default(),
            options: Map::new(),
            initial_state: Map::new(),
            state_schema: None,
            persist_state: false,
            ephemeral_permissions: false,
            lend: None,
            transient_keys: HashSet::new(),
            titles: None,
            catalog: None,
            intervals: vec![],
            judge: None,
            notifications: None,
        }
    }
}

impl ControllerBuilder {
    /// Names the controller among those that share a store. `controller`, unless set.
    pub fn id(mut self, id: impl Into<ControllerId>) -> Self {
        self.id = id.into();
        self
    }

    /// Where everything is kept.
    pub fn storage(mut self, storage: Arc<dyn Storage>) -> Self {
        self.storage = Some(storage);
        self
    }

    /// The time; the machine's, unless set.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Fresh ids; random ones, unless set.
    pub fn ids(mut self, ids: Arc<dyn Ids>) -> Self {
        self.ids = ids;
        self
    }

    /// What carries events; a [`LocalBus`], unless set.
    pub fn event_bus(mut self, bus: Arc<dyn EventBus>) -> Self {
        self.bus = bus;
        self
    }

    /// Leases, grace periods, polling.
    pub fn runtime(mut self, settings: RuntimeSettings) -> Self {
        self.runtime = settings;
        self
    }

    /// Who does the work.
    pub fn agent(mut self, agent: AgentConfig) -> Self {
        self.agent = agent;
        self
    }

    /// The second part of the system text, after the agent's own and before the mode's (SPEC C-19).
    pub fn instructions(mut self, text: impl Into<Arc<str>>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// What a model must know about the workspace: the last part of the system text.
    pub fn workspace_instructions(mut self, text: impl Into<Arc<str>>) -> Self {
        self.workspace_instructions = Some(text.into());
        self
    }

    /// Adds a mode.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.modes.push(mode);
        self
    }

    /// Adds modes.
    pub fn modes(mut self, modes: impl IntoIterator<Item = Mode>) -> Self {
        self.modes.extend(modes);
        self
    }

    /// The mode that sessions begin in, instead of the one that says so itself.
    pub fn default_mode(mut self, mode: impl Into<ModeId>) -> Self {
        self.default_mode = Some(mode.into());
        self
    }

    /// The model of modes that have none of their own.
    pub fn default_model(mut self, model: impl Into<ModelId>) -> Self {
        self.default_model = Some(model.into());
        self
    }

    /// Tools of all modes, besides the agent's.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Tools of the workspace: of all modes, and of all constrained subagents that do not
    /// [say which of them](Subagent::allowed_workspace_tools) they have.
    pub fn workspace_tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.workspace_tools.extend(tools);
        self
    }

    /// Adds a type of subagent. With the first one there is the tool `subagent`, in every mode that offers it.
    pub fn subagent(mut self, subagent: Subagent) -> Self {
        self.subagents.push(subagent);
        self
    }

    /// Adds types of subagents.
    pub fn subagents(mut self, subagents: impl IntoIterator<Item = Subagent>) -> Self {
        self.subagents.extend(subagents);
        self
    }

    /// How deep subagents may be nested; 3, unless set. One that may have subagents says so itself
    /// ([`Subagent::allowed_controller_tools`]). How many work side by side is said by [`RuntimeSettings::children`].
    pub fn subagent_depth(mut self, depth: u32) -> Self {
        self.subagent_depth = depth;
        self
    }

    /// The way to models: a [`ModelRouter`], which any closure from a model id to a provider is.
    pub fn models(mut self, router: impl ModelRouter) -> Self {
        self.router = Some(Arc::new(router));
        self
    }

    /// The one provider of all models, whatever they are called. For several there is [`ControllerBuilder::models`].
    pub fn provider(self, provider: impl ModelProvider) -> Self {
        let provider: Arc<dyn ModelProvider> = Arc::new(provider);
        self.models(move |_: &ModelId| Ok(provider.clone()))
    }

    /// What happens to tools that no rule and no grant names.
    pub fn default_policies(mut self, defaults: DefaultPolicies) -> Self {
        self.defaults = defaults;
        self
    }

    /// Rules of the host, for all sessions. They hold together with those of each session, and where both speak of the same thing the
    /// stricter word counts.
    pub fn rules(mut self, rules: PermissionRules) -> Self {
        self.rules = rules;
        self
    }

    /// Who reads rules for single calls ([`PermissionRules::calls`]): `ac_tools::workspace::WorkspaceRules` for commands and paths.
    pub fn call_rules(mut self, rules: impl CallRules) -> Self {
        self.call_rules = Some(Arc::new(rules));
        self
    }

    /// Says what kind of thing a tool does, where the host knows better than the tool.
    pub fn tool_category(mut self, resolve: impl Fn(&str) -> Option<ac_core::ToolCategory> + Send + Sync + 'static) -> Self {
        self.category = Some(Arc::new(resolve));
        self
    }

    /// How much a run may use.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Options of every model request, by provider name.
    pub fn model_options(mut self, options: Map<String, Value>) -> Self {
        self.options = options;
        self
    }

    /// The state that sessions begin with. `yolo: true` runs everything that is not denied without asking; `currentModelId` is the model
    /// of modes that have none.
    pub fn initial_state(mut self, state: Map<String, Value>) -> Self {
        self.initial_state = state;
        self
    }

    /// What the state of sessions must look like. The initial state has to fit; so does each change.
    pub fn state_schema(mut self, schema: StateSchema) -> Self {
        self.state_schema = Some(schema);
        self
    }

    /// The state of sessions survives the process; all of it but `yolo`, which never does.
    pub fn persist_state(mut self, persist: bool) -> Self {
        self.persist_state = persist;
        self
    }

    /// Rules and grants end with the process, as the reference's do.
    pub fn ephemeral_permissions(mut self, ephemeral: bool) -> Self {
        self.ephemeral_permissions = ephemeral;
        self
    }

    /// Lends tools what they may use; gets what the controller lends itself.
    pub fn capabilities(mut self, lend: impl Fn(&ac_agent::RunRef, Capabilities) -> Capabilities + Send + Sync + 'static) -> Self {
        self.lend = Some(Arc::new(lend));
        self
    }

    /// Keys of request contexts that are never stored, such as tokens of callers. Tools of this process read them; after a restart, and in
    /// another process, they are gone until somebody answers or sends with them again.
    pub fn transient_context_keys<K: Into<String>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.transient_keys.extend(keys.into_iter().map(Into::into));
        self
    }

    /// Names threads that nobody named, after the first answer on them.
    pub fn titles(mut self, titles: TitleGenerator) -> Self {
        self.titles = Some(titles);
        self
    }

    /// Says which models there are; a `Vec<CatalogModel>` is a catalogue. Without one, those that the controller and its modes name.
    pub fn model_catalog(mut self, catalog: impl ModelCatalog) -> Self {
        self.catalog = Some(Arc::new(catalog));
        self
    }

    /// Adds something that is done again and again, from [`AgentController::init`] on; the last of an id counts.
    pub fn interval(mut self, interval: Interval) -> Self {
        self.intervals.push(interval);
        self
    }

    /// The store, where none is set.
    pub(crate) fn storage_unless_set(mut self, storage: &Arc<dyn Storage>) -> Self {
        self.storage.get_or_insert_with(|| storage.clone());
        self
    }

    /// Judges the goals of threads after each answer; without a judge they are kept and nothing is judged.
    pub fn goal_judge(mut self, judge: GoalJudge) -> Self {
        self.judge = Some(judge);
        self
    }

    /// Decides what is done with notifications, in place of [`NotificationRoute::by_priority`](crate::NotificationRoute::by_priority). The
    /// flag says whether a run is open on the thread.
    pub fn notification_policy(
        mut self,
        decide: impl Fn(&crate::Notification, bool) -> crate::NotificationRoute + Send + Sync + 'static,
    ) -> Self {
        self.notifications = Some(Arc::new(decide));
        self
    }

    /// Checks everything and makes the controller. Nothing is read or written yet.
    ///
    /// # Errors
    /// [`Incomplete`](ControllerErrorKind::Incomplete), [`NoModes`](ControllerErrorKind::NoModes),
    /// [`DuplicateMode`](ControllerErrorKind::DuplicateMode), [`ConflictingTools`](ControllerErrorKind::ConflictingTools),
    /// [`SelfTransition`](ControllerErrorKind::SelfTransition), [`UnknownTransition`](ControllerErrorKind::UnknownTransition),
    /// [`UnknownDefaultMode`](ControllerErrorKind::UnknownDefaultMode), [`DuplicateTool`](ControllerErrorKind::DuplicateTool),
    /// [`InvalidSchema`](ControllerErrorKind::InvalidSchema), [`InvalidState`](ControllerErrorKind::InvalidState),
    /// [`DuplicateSubagent`](ControllerErrorKind::DuplicateSubagent), [`UnknownTool`](ControllerErrorKind::UnknownTool),
    /// [`InvalidRule`](ControllerErrorKind::InvalidRule).
    pub fn build(self) -> Result<AgentController, ControllerError> {
        self.check_modes()?;
        let default_mode = self.resolve_default_mode()?;
        let incomplete = |what: &str| ControllerError::new(ControllerErrorKind::Incomplete, format!("the controller has no {what}"));
        for pattern in self.rules.calls.keys() {
            config::check_pattern(self.call_rules.as_deref(), pattern)?;
        }
        let storage = self.storage.clone().ok_or_else(|| incomplete("store; give it one with `storage`"))?;
        let router = self.router.clone().ok_or_else(|| incomplete("way to a model; give it one with `models`"))?;
        let common_tools = Arc::new(self.common_tools().map_err(duplicate_tool)?);
        let modes = self.modes.iter().map(|mode| self.prepare(mode)).collect::<Result<Vec<_>, _>>()?;
        let workspace: Vec<String> = self.workspace_tools.iter().map(|tool| tool.definition().name).collect();
        let subagents = Subagents::prepare(self.subagents, self.subagent_depth, &modes, &common_tools, &workspace)?;
        let seed = self.initial_state.get("currentModelId").and_then(Value::as_str).map(ModelId::from);
        let state_schema = self.state_schema.map(StateSchema::compile).transpose()?;
        let initial_state = match &state_schema {
            Some(schema) => schema.initial(self.initial_state)?,
            None => self.initial_state,
        };
        let config = Config {
            id: self.id,
            agent: self.agent.id,
            modes,
            default_mode,
            default_model: seed.or(self.default_model),
            router,
            defaults: self.defaults,
            rules: self.rules,
            call_rules: self.call_rules,
            category: self.category,
            limits: self.limits,
            options: self.options,
            initial_state: Arc::new(initial_state),
            state_schema,
            persist_state: self.persist_state,
            ephemeral_permissions: self.ephemeral_permissions,
            lend: self.lend,
            transient_keys: self.transient_keys,
            titles: self.titles,
            catalog: self.catalog,
            judge: self.judge,
            notifications: self.notifications,
            common_tools,
            subagents,
        };
        let controller = AgentController::new(config, storage, self.clock, self.ids, self.bus, self.runtime);
        for interval in self.intervals {
            controller.shared().put_interval(interval);
        }
        Ok(controller)
    }

    /// SPEC C-8: first duplicates and conflicting tools, in order; then transitions.
    fn check_modes(&self) -> Result<(), ControllerError> {
        use ControllerErrorKind as K;
        let mut seen = HashSet::new();
        for mode in &self.modes {
            if !seen.insert(&mode.id) {
                return Err(ControllerError::new(K::DuplicateMode, format!("two modes are called `{}`", mode.id)));
            }
            if mode.tools.is_some() && mode.additional_tools.is_some() {
                let message = format!("mode `{}` has `tools` and `additional_tools`, which mean the same; use one", mode.id);
                return Err(ControllerError::new(K::ConflictingTools, message));
            }
        }
        for mode in &self.modes {
            let Some(target) = &mode.transitions_to else { continue };
            if *target == mode.id {
                return Err(ControllerError::new(K::SelfTransition, format!("plans of mode `{}` lead to itself", mode.id)));
            }
            if !seen.contains(target) {
                let message = format!("plans of mode `{}` lead to `{target}`, which does not exist", mode.id);
                return Err(ControllerError::new(K::UnknownTransition, message));
            }
        }
        Ok(())
    }

    /// SPEC C-9.
    fn resolve_default_mode(&self) -> Result<ModeId, ControllerError> {
        let Some(first) = self.modes.first() else {
            return Err(ControllerError::new(ControllerErrorKind::NoModes, "a controller needs at least one mode"));
        };
        match &self.default_mode {
            Some(id) if self.modes.iter().any(|mode| mode.id == *id) => Ok(id.clone()),
            Some(id) => Err(ControllerError::new(ControllerErrorKind::UnknownDefaultMode, format!("Default mode not found: {id}"))),
            None => Ok(self.modes.iter().find(|mode| mode.default).unwrap_or(first).id.clone()),
        }
    }

    fn common_tools(&self) -> Result<ToolSet, DuplicateTool> {
        let mut tools = ToolSet::new();
        let subagent = subagent::tool(&self.subagents);
        tools.extend(self.agent.tools.iter().chain(&subagent).chain(&self.tools).chain(&self.workspace_tools).cloned())?;
        Ok(tools)
    }

    fn prepare(&self, mode: &Mode) -> Result<PreparedMode, ControllerError> {
        let mut tools = self.common_tools().map_err(duplicate_tool)?;
        tools.extend(mode.own_tools().cloned()).map_err(duplicate_tool)?;
        let texts = [&self.agent.instructions, &self.instructions, &mode.instructions, &self.workspace_instructions];
        let text = texts.into_iter().flatten().map(AsRef::as_ref).filter(|text: &&str| !text.is_empty()).collect::<Vec<_>>().join("\n");
        let instructions = (!text.is_empty()).then(|| text.into());
        Ok(PreparedMode { mode: mode.clone(), tools: Arc::new(tools), instructions })
    }
}

fn duplicate_tool(error: DuplicateTool) -> ControllerError {
    ControllerError::new(ControllerErrorKind::DuplicateTool, error.to_string()).with_source(error)
}

impl std::fmt::Debug for ControllerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControllerBuilder").field("id", &self.id).field("modes", &self.modes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
