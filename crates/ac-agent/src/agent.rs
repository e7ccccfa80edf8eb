//! The bare agent: a model, instructions and tools, without sessions or modes.

mod chunk;
mod host;
mod stream;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use ac_core::{
    AgentId, Clock, Ids, Message, ModelId, ModelProvider, OwnerId, Part, PendingId, ResourceId, Role, RunId, SessionKey, ThreadId, Tool,
    ToolCallId,
    permission::{CallRules, DefaultPolicies, PermissionRules, Policy},
};
use ac_engine::{Answer, Limits, Profile, StartRun};
use ac_storage::{Storage, StorageErrorKind, ThreadRecord};
use ac_tools::{DuplicateTool, ToolSet};
pub use chunk::{AgentChunk, ChunkBody};
use host::AgentHost;
use serde_json::{Map, Value};
pub use stream::AgentStream;

use crate::{Accepted, RunError, RunErrorKind, RunHandle, RunOrigin, Runtime, RuntimeSettings};

/// A model, instructions and tools.
///
/// What it does for a prompt is a run like any other: stored, and resumable by any process that opens the same store. Cheap to clone.
///
/// ```
/// use std::sync::Arc;
///
/// use ac_agent::{Agent, ChunkBody, StreamOptions};
/// use ac_core::{Clock, Ids, ModelProvider};
/// use ac_storage::MemoryStorage;
/// use futures::StreamExt;
///
/// async fn ask(model: Arc<dyn ModelProvider>, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Result<String, Box<dyn std::error::Error>> {
///     let store = Arc::new(MemoryStorage::new());
///     let agent = Agent::builder("helper", "openai/gpt-5", model, store, clock, ids).instructions("You help.").build()?;
///     let mut stream = agent.stream("Why do lighthouses flash?", StreamOptions::default()).await?;
///     let mut answer = String::new();
///     while let Some(chunk) = stream.next().await {
///         if let ChunkBody::TextDelta { text } = chunk.body {
///             answer.push_str(&text);
///         }
///     }
///     Ok(answer)
/// }
/// ```
#[derive(Clone)]
pub struct Agent {
    inner: Arc<Inner>,
}

struct Inner {
    id: AgentId,
    instructions: Option<Arc<str>>,
    model: ModelId,
    provider: Arc<dyn ModelProvider>,
    tools: Arc<ToolSet>,
    rules: PermissionRules,
    call_rules: Option<Arc<dyn CallRules>>,
    defaults: DefaultPolicies,
    limits: Limits,
    runtime: Runtime,
    /// The hosts of runs that this process drives.
    hosts: Mutex<HashMap<RunId, Arc<AgentHost>>>,
}

/// How to start.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StreamOptions {
    /// The id of the run; a fresh one where there is none.
    pub run_id: Option<RunId>,
    /// The thread to go on with; a thread of its own where there is none.
    pub thread: Option<ThreadId>,
    /// JSON for tools to read; at most 64 KiB.
    pub request_context: Map<String, Value>,
}

/// What an agent needs.
pub struct AgentBuilder {
    id: AgentId,
    instructions: Option<Arc<str>>,
    model: ModelId,
    provider: Arc<dyn ModelProvider>,
    tools: Vec<Arc<dyn Tool>>,
    rules: PermissionRules,
    call_rules: Option<Arc<dyn CallRules>>,
    defaults: DefaultPolicies,
    limits: Limits,
    storage: Arc<dyn Storage>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    settings: RuntimeSettings,
}

/// The policies of a bare agent: nothing asks, unless a tool or a rule says so. A session asks by default.
fn nothing_asks() -> DefaultPolicies {
    ac_core::ToolCategory::ALL.iter().fold(DefaultPolicies::default(), |policies, category| policies.with(*category, Policy::Allow))
}

impl Agent {
    /// An agent that works with `model` of `provider` on `storage`.
    pub fn builder(
        id: impl Into<AgentId>,
        model: impl Into<ModelId>,
        provider: Arc<dyn ModelProvider>,
        storage: Arc<dyn Storage>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> AgentBuilder {
        AgentBuilder {
            id: id.into(),
            instructions: None,
            model: model.into(),
            provider,
            tools: vec![],
            rules: PermissionRules::default(),
            call_rules: None,
            defaults: nothing_asks(),
            limits: Limits::default(),
            storage,
            clock,
            ids,
            settings: RuntimeSettings::default(),
        }
    }

    /// Works on `prompt`. The stream ends when the run is over or waits for a person.
    ///
    /// # Errors
    /// [`RunErrorKind::Busy`] when a run holds the thread, and what the store says.
    pub async fn stream(&self, prompt: impl Into<String>, options: StreamOptions) -> Result<AgentStream, RunError> {
        let inner = &self.inner;
        let (clock, ids) = (inner.runtime.clock(), inner.runtime.ids());
        let run = options.run_id.unwrap_or_else(|| ids.fresh("run").into());
        let thread = options.thread.unwrap_or_else(|| ids.fresh("thread").into());
        let origin = self.origin();
        match inner.runtime.storage().threads().create(&ThreadRecord::new(thread.clone(), origin.resource.clone(), clock.now())).await {
            Err(error) if error.kind() != StorageErrorKind::Exists => return Err(error.into()),
            _ => {}
        }
        let mut profile = Profile::new(inner.id.clone(), "agent", inner.model.clone());
        profile.instructions.clone_from(&inner.instructions);
        profile.tools = inner.tools.definitions().map(|definition| definition.name.as_str().into()).collect();
        profile.limits = inner.limits;
        profile.request_context = options.request_context;
        let message = Message::new(ids.fresh("message"), Role::User, vec![Part::text(prompt)], clock.now());
        let start = StartRun { run: run.clone(), thread, parent: None, profile, messages: vec![message], from_queue: false };
        let host = self.host(&run);
        let stream = host.attach();
        let handle = inner.runtime.start(host.clone(), origin, start).await?;
        self.watch(host, handle);
        Ok(stream)
    }

    /// Answers a call of a run that waits, and goes on with it. Without a call id the run must have exactly one open wait.
    ///
    /// # Errors
    /// [`RunErrorKind::NotFound`], [`RunErrorKind::InvalidAnswer`], [`RunErrorKind::Refused`] and what the store says.
    pub async fn resume_stream(&self, run: &RunId, call: Option<&ToolCallId>, answer: Answer) -> Result<AgentStream, RunError> {
        let pending = self.pending(run, call).await?;
        let host = self.host(run);
        let stream = host.attach();
        self.inner.runtime.answer(host.clone(), &pending, answer, None).await?;
        match self.inner.runtime.live(run) {
            Some(handle) => self.watch(host, handle),
            None => host.close(),
        }
        Ok(stream)
    }

    fn host(&self, run: &RunId) -> Arc<AgentHost> {
        let mut hosts = self.inner.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.entry(run.clone()).or_insert_with(|| Arc::new(AgentHost::new(self.clone(), run.clone()))).clone()
    }

    /// Ends the stream when nothing moves the run but a person, and forgets the host when the driver is gone.
    fn watch(&self, host: Arc<AgentHost>, handle: RunHandle) {
        let agent = self.clone();
        self.inner.runtime.spawn(async move {
            let status = handle.resting().await;
            host.close();
            if status.ended || !status.segment_open {
                agent.inner.hosts.lock().unwrap_or_else(PoisonError::into_inner).remove(handle.run());
            }
        });
    }

    /// Answers a wait by its name, without following what comes of it.
    ///
    /// # Errors
    /// As [`Agent::resume_stream`].
    pub async fn answer(&self, pending: &PendingId, answer: Answer) -> Result<Accepted, RunError> {
        let host = self.host(&pending.run);
        let accepted = self.inner.runtime.answer(host.clone(), pending, answer, None).await?;
        if let Some(handle) = self.inner.runtime.live(&pending.run) {
            self.watch(host, handle);
        }
        Ok(accepted)
    }

    /// Takes over a run whose process died and goes on with it (`R5`).
    ///
    /// # Errors
    /// [`RunErrorKind::Owned`] while another process moves it or its lease has not run out, [`RunErrorKind::NotFound`],
    /// [`RunErrorKind::Refused`] when it is over.
    pub async fn recover_stream(&self, run: &RunId) -> Result<AgentStream, RunError> {
        let host = self.host(run);
        let stream = host.attach();
        let handle = self.inner.runtime.take_over(host.clone(), run).await?;
        self.watch(host, handle);
        Ok(stream)
    }

    async fn pending(&self, run: &RunId, call: Option<&ToolCallId>) -> Result<PendingId, RunError> {
        let found = self.inner.runtime.load(run).await?;
        let (_, snapshot) = found.ok_or_else(|| RunError::new(RunErrorKind::NotFound, "there is no such run"))?;
        if let Some(call) = call {
            return snapshot.alias(call).ok_or_else(|| ac_engine::Refusal::NotPending.into());
        }
        let mut waits = snapshot.waits().into_iter().map(|wait| wait.id);
        match (waits.next(), waits.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(ac_engine::Refusal::NotPending.into()),
            (Some(_), Some(_)) => Err(RunError::new(RunErrorKind::InvalidAnswer, "several calls wait; name the call that is answered")),
        }
    }

    /// The runtime that moves this agent's runs.
    pub fn runtime(&self) -> &Runtime {
        &self.inner.runtime
    }

    fn origin(&self) -> RunOrigin {
        let resource = ResourceId::from(self.inner.id.as_str());
        RunOrigin { controller: self.inner.id.as_str().into(), session: SessionKey::new(resource.clone()), resource }
    }
}

impl AgentBuilder {
    /// Sets the system text.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<Arc<str>>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds tools.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Sets rules.
    #[must_use]
    pub fn rules(mut self, rules: PermissionRules) -> Self {
        self.rules = rules;
        self
    }

    /// Sets who reads the rules for single calls ([`PermissionRules::calls`]).
    #[must_use]
    pub fn call_rules(mut self, rules: impl CallRules) -> Self {
        self.call_rules = Some(Arc::new(rules));
        self
    }

    /// Sets what happens to tools that no rule names; by default they run.
    #[must_use]
    pub fn default_policies(mut self, defaults: DefaultPolicies) -> Self {
        self.defaults = defaults;
        self
    }

    /// Sets how much a run may use.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how the runtime behaves in time.
    #[must_use]
    pub fn settings(mut self, settings: RuntimeSettings) -> Self {
        self.settings = settings;
        self
    }

    /// The agent.
    ///
    /// # Errors
    /// When two tools have one name.
    pub fn build(self) -> Result<Agent, DuplicateTool> {
        let mut tools = ToolSet::new();
        tools.extend(self.tools)?;
        let owner = OwnerId::from(self.ids.fresh("owner"));
        let inner = Inner {
            id: self.id,
            instructions: self.instructions,
            model: self.model,
            provider: self.provider,
            tools: Arc::new(tools),
            rules: self.rules,
            call_rules: self.call_rules,
            defaults: self.defaults,
            limits: self.limits,
            runtime: Runtime::new(self.storage, self.clock, self.ids, owner, self.settings),
            hosts: Mutex::default(),
        };
        Ok(Agent { inner: Arc::new(inner) })
    }
}
