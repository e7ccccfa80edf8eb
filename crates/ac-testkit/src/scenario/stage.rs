//! Where a scenario is played: a store, a model server, a controller.

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use ac_controller::{AgentConfig, AgentController, Limits, Mode, RuntimeSettings, Session, StateSchema, Subagent};
use ac_core::{
    CancelToken, Ids, ModelError, ModelId, ModelProvider, ModelRequest, ModelStream, Tool, ToolCategory, permission::DefaultPolicies,
};
use ac_llm::{OpenAiCompatible, ReqwestTransport};
use ac_storage::{MemoryStorage, SledOptions, SledStorage, Storage};
use ac_tools::{AskUser, SubmitPlan, task_tools};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{
    Scenario, ScenarioError, ScenarioErrorKind, Setup,
    file::{ModeSetup, SubagentSetup},
    normal::MarkedIds,
    tools::{self, StateDesk},
};
use crate::{ScriptedServer, server};

/// What outlives a controller.
pub(super) struct Stage {
    pub(super) server: ScriptedServer,
    model: Arc<dyn ModelProvider>,
    ids: Arc<dyn Ids>,
    folder: TempDir,
    store: Option<Arc<SledStorage>>,
    memory: Option<Arc<MemoryStorage>>,
}

/// How many messages before the run a model is sent, unless the scenario says otherwise.
const HISTORY: usize = 40;
/// The wait before a model is asked again: scenarios count attempts, they do not measure patience.
const RETRY: Duration = Duration::from_millis(20);

impl Stage {
    pub(super) async fn open(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let missing = |what: &str| {
            let message = format!("{what} cannot be had");
            move |error: Box<dyn std::error::Error + Send + Sync>| {
                ScenarioError::new(ScenarioErrorKind::Environment, message).with_source(error)
            }
        };
        let turns = scenario.turns.iter().cloned().map(|mut turn| {
            // What the reference's server says where the script says nothing.
            if let Some(error) = &mut turn.error
                && let (Some(status), None) = (error.status, &error.body)
            {
                error.body = Some(json!({ "error": { "message": format!("scripted {status}") } }));
            }
            turn
        });
        let server = server::Setup::new(turns).start().map_err(|error| missing("a loopback port")(error.into()))?;
        let transport = ReqwestTransport::new().map_err(|error| missing("an HTTP client")(error.into()))?;
        let model = OpenAiCompatible::new(server.base_url(), Arc::new(transport));
        let folder = tempfile::tempdir().map_err(|error| missing("a temporary folder")(error.into()))?;
        let no_storage = scenario.controller.no_storage;
        let mut stage = Self {
            server,
            model: Arc::new(LastSegment(Arc::new(model))),
            ids: Arc::new(MarkedIds::default()),
            folder,
            store: None,
            memory: no_storage.then(Arc::default),
        };
        stage.reopen().await?;
        Ok(stage)
    }

    /// Closes the store and opens it again, as a new process would. Without a store nothing is left.
    pub(super) async fn reopen(&mut self) -> Result<(), ScenarioError> {
        if self.memory.is_some() {
            self.memory = Some(Arc::default());
            return Ok(());
        }
        let failed = |error| ScenarioError::new(ScenarioErrorKind::Environment, "the store cannot be opened").with_source(error);
        if let Some(store) = self.store.take() {
            store.close().await.map_err(failed)?;
        }
        let options = SledOptions::new(self.folder.path().join("store")).cache_bytes(1 << 20);
        self.store = Some(Arc::new(options.open().await.map_err(failed)?));
        Ok(())
    }

    fn storage(&self) -> Arc<dyn Storage> {
        match (&self.memory, &self.store) {
            (Some(memory), _) => Arc::clone(memory) as _,
            (None, Some(store)) => Arc::clone(store) as _,
            (None, None) => Arc::new(MemoryStorage::default()),
        }
    }

    pub(super) async fn close(&mut self) {
        if let Some(store) = self.store.take() {
            // The folder is deleted next.
            let _ = store.close().await;
        }
    }

    /// A controller of this set-up.
    pub(super) fn controller(&self, setup: &Setup) -> Result<Cast, ScenarioError> {
        let refused = |error| ScenarioError::new(ScenarioErrorKind::Setup, "the controller refuses this set-up").with_source(error);
        let model = Arc::clone(&self.model);
        let people = Arc::new(People::default());
        let lent = Arc::downgrade(&people);
        let agent_tools = tools::named(&setup.agent_tools)?;
        let mut all = built_in(setup);
        all.extend(tools::named(&setup.tools)?);
        let categories = categories(&setup.categories)?;
        let storage = self.storage();
        let mut builder = AgentController::builder()
            .id(setup.id.clone().unwrap_or_else(|| "controller".to_owned()))
            .storage(Arc::clone(&storage))
            .ids(Arc::clone(&self.ids))
            .models(move |_: &ModelId| Ok(Arc::clone(&model)))
            .runtime(settings(setup))
            .agent(
                AgentConfig::new("agent")
                    .instructions(setup.agent_instructions.clone().unwrap_or_else(|| "AGENT-INSTR".to_owned()))
                    .tools(agent_tools),
            )
            .tools(all)
            .subagents(setup.subagents.iter().map(subagent).collect::<Result<Vec<_>, _>>()?)
            .modes(modes(setup)?)
            .default_model("prov/a")
            .default_policies(DefaultPolicies::ask())
            .tool_category(move |tool| categories.iter().find(|(name, _)| name == tool).map(|(_, category)| *category))
            .limits(limits(setup))
            .initial_state(setup.initial_state.clone())
            .capabilities(move |run, lend| lend.with::<dyn StateDesk>(Arc::new(Desk { people: lent.clone(), thread: run.thread.clone() })));
        if let Some(schema) = &setup.state_schema {
            builder = builder.state_schema(state_schema(schema));
        }
        if let Some(text) = &setup.instructions {
            builder = builder.instructions(text.as_str());
        }
        if let Some(mode) = &setup.default_mode_id {
            builder = builder.default_mode(mode.as_str());
        }
        let controller = builder.build().map_err(refused)?;
        Ok(Cast { controller, storage, people, resource: setup.resource_id.clone().unwrap_or_else(|| "r1".to_owned()) })
    }
}

/// A controller and who works with it.
pub(super) struct Cast {
    pub(super) controller: AgentController,
    pub(super) storage: Arc<dyn Storage>,
    pub(super) people: Arc<People>,
    /// Whose sessions are made where nobody is named.
    pub(super) resource: String,
}

/// The sessions of a controller.
#[derive(Default)]
pub(super) struct People(Mutex<Vec<Session>>);

impl People {
    pub(super) fn join(&self, session: &Session) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(session.clone());
    }

    fn on(&self, thread: &ac_core::ThreadId) -> Option<Session> {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.iter().find(|session| session.thread_id().as_ref() == Some(thread)).cloned()
    }
}

struct Desk {
    people: Weak<People>,
    thread: ac_core::ThreadId,
}

/// What only a person may say.
const PROTECTED: [&str; 2] = ["yolo", "permissionRules"];

#[async_trait]
impl StateDesk for Desk {
    async fn patch(&self, patch: Map<String, Value>) -> Result<Map<String, Value>, String> {
        if let Some(key) = PROTECTED.iter().find(|key| patch.contains_key(**key)) {
            return Err(format!("a tool may not set `{key}`"));
        }
        let session = self.people.upgrade().and_then(|people| people.on(&self.thread)).ok_or("no session is on this thread")?;
        session.set_state(patch).await.map_err(|error| error.to_string())?;
        Ok(session.state().as_ref().clone())
    }
}

/// What follows the last `/` of a model's id is its name on the wire.
struct LastSegment(Arc<OpenAiCompatible>);

#[async_trait]
impl ModelProvider for LastSegment {
    async fn stream(&self, mut request: ModelRequest, cancel: CancelToken) -> Result<ModelStream, ModelError> {
        let name = request.model.as_str().rsplit('/').next().unwrap_or_default().to_owned();
        request.model = ModelId::from(name);
        self.0.stream(request, cancel).await
    }
}

/// What a state must look like. The reference drops keys that its schemas do not name.
fn state_schema(schema: &Value) -> StateSchema {
    let counter = json!({
        "type": "object",
        "properties": { "count": { "type": "number", "default": 0 }, "name": { "type": "string" }, "yolo": { "type": "boolean" } }
    });
    let schema = if schema == "counter" { counter } else { schema.clone() };
    StateSchema::new(schema).strip_unknown()
}

fn built_in(setup: &Setup) -> Vec<Arc<dyn Tool>> {
    let mut all: Vec<Arc<dyn Tool>> = vec![Arc::new(AskUser), Arc::new(SubmitPlan)];
    all.extend(task_tools());
    let off = |name: &str| match &setup.disable_builtin_tools {
        Value::Bool(all) => *all,
        Value::Array(names) => names.iter().any(|off| off == name),
        _ => false,
    };
    all.into_iter().filter(|tool| !off(&tool.definition().name)).collect()
}

fn settings(setup: &Setup) -> RuntimeSettings {
    let mut settings = RuntimeSettings::default();
    settings.retry.first = RETRY;
    settings.history = match (&setup.memory_options.last_messages, setup.no_memory) {
        (_, true) | (Value::Bool(false), _) => Some(0),
        (Value::Number(n), _) => n.as_u64().and_then(|n| usize::try_from(n).ok()),
        _ => Some(HISTORY),
    };
    settings
}

fn limits(setup: &Setup) -> Limits {
    let mut limits = Limits::default();
    limits.attempts = setup.agent_max_retries.saturating_add(1);
    if let Some(steps) = setup.max_steps {
        limits.steps = steps;
    }
    limits
}

fn modes(setup: &Setup) -> Result<Vec<Mode>, ScenarioError> {
    if setup.modes.is_empty() {
        return Ok(vec![Mode::new("build").model("prov/a")]);
    }
    setup.modes.iter().map(mode).collect()
}

fn mode(spec: &ModeSetup) -> Result<Mode, ScenarioError> {
    let mut mode = Mode::new(spec.id.as_str());
    if let Some(name) = &spec.name {
        mode = mode.name(name);
    }
    if let Some(text) = &spec.instructions {
        mode = mode.instructions(text.as_str());
    }
    if let Some(model) = &spec.default_model_id {
        mode = mode.model(model.as_str());
    }
    if let Some(names) = &spec.tools {
        mode = mode.tools(tools::named(names)?);
    }
    if let Some(names) = &spec.additional_tools {
        mode = mode.additional_tools(tools::named(names)?);
    }
    if let Some(names) = &spec.available_tools {
        mode = mode.available_tools(names.iter().map(String::as_str));
    }
    if let Some(target) = &spec.transitions_to {
        mode = mode.transitions_to(target.as_str());
    }
    let default = spec.default || spec.metadata.get("default") == Some(&Value::Bool(true));
    Ok(if default { mode.default() } else { mode })
}

fn subagent(spec: &SubagentSetup) -> Result<Subagent, ScenarioError> {
    let mut kind = Subagent::new(spec.id.as_str())
        .description(spec.description.as_str())
        .instructions(spec.instructions.as_str())
        .tools(tools::named(&spec.tools)?)
        .allowed_controller_tools(spec.allowed_controller_tools.iter().map(String::as_str));
    if let Some(name) = &spec.name {
        kind = kind.name(name);
    }
    if let Some(model) = &spec.default_model_id {
        kind = kind.model(model.as_str());
    }
    if let Some(steps) = spec.max_steps {
        kind = kind.max_steps(steps);
    }
    Ok(if spec.forked { kind.forked() } else { kind })
}

fn categories(names: &Map<String, Value>) -> Result<Vec<(String, ToolCategory)>, ScenarioError> {
    names.iter().map(|(tool, name)| Ok((tool.clone(), category(name)?))).collect()
}

/// A category by its name.
pub(super) fn category(name: &Value) -> Result<ToolCategory, ScenarioError> {
    serde_json::from_value(name.clone())
        .map_err(|error| ScenarioError::new(ScenarioErrorKind::Malformed, format!("{name} is no category of tools")).with_source(error))
}
