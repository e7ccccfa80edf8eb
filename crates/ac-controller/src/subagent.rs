//! Subagents: types of helpers that a model may hand tasks to.

use std::{collections::HashMap, fmt, sync::Arc};

use ac_agent::ChildProfile;
use ac_core::{ModeId, ModelId, Tool, ToolDefinition};
use ac_tools::{DuplicateTool, SubagentKind, SubagentTool, SubmitPlan, ToolSet, Withheld};
use serde_json::{Value, json};

use crate::{ControllerError, ControllerErrorKind, config::PreparedMode};

/// A type of helper that a model may hand tasks to, with the tool `subagent` (SPEC U-1).
///
/// A constrained one, which is the default, begins with nothing but the task: it has its own instructions, its own tools, those tools of
/// the controller that it is allowed, and those of the workspace. A forked one works on a copy of the parent's thread, with the parent's
/// instructions, model and tools, whatever is said here.
///
/// ```
/// use std::sync::Arc;
///
/// use ac_controller::{AgentController, Mode, Subagent};
/// use ac_core::{ModelError, ModelErrorKind, ModelId, ModelProvider};
/// use ac_storage::MemoryStorage;
/// use ac_tools::AskUser;
///
/// # fn connect(_: &ModelId) -> Result<Arc<dyn ModelProvider>, ModelError> { Err(ModelError::new(ModelErrorKind::Auth, "no key")) }
/// let explore = Subagent::new("explore")
///     .name("Explore")
///     .description("Finds things out and changes nothing.")
///     .instructions("Look around and report what you find.")
///     .allowed_controller_tools(["ask_user"])
///     .model("openai/gpt-5-mini")
///     .max_steps(20);
/// let think = Subagent::new("think").description("Thinks a side question through.").forked();
///
/// let controller = AgentController::builder()
///     .storage(Arc::new(MemoryStorage::new()))
///     .models(connect)
///     .mode(Mode::new("build").model("openai/gpt-5"))
///     .tools([Arc::new(AskUser) as Arc<dyn ac_core::Tool>])
///     .subagents([explore, think])
///     .build()?;
/// assert_eq!(controller.subagents().map(Subagent::id).collect::<Vec<_>>(), ["explore", "think"]);
/// # Ok::<(), ac_controller::ControllerError>(())
/// ```
///
/// What it may do is bounded by its parent: denials of the session hold, what asks there asks here, in the parent's session, and a mode
/// that offers only some tools offers no others to its subagents. That a parent does not have a tool itself is no bound: a parent that
/// only hands out work may have subagents that do it.
#[derive(Clone)]
pub struct Subagent {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) instructions: Option<Arc<str>>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) allowed_controller_tools: Vec<Arc<str>>,
    pub(crate) allowed_workspace_tools: Option<Vec<Arc<str>>>,
    pub(crate) model: Option<ModelId>,
    pub(crate) max_steps: u32,
    pub(crate) forked: bool,
}

impl Subagent {
    /// How many model calls a constrained subagent makes at most, unless it says otherwise (SPEC U-6).
    pub const MAX_STEPS: u32 = 50;

    /// A type that models call by this id.
    pub fn new(id: impl Into<String>) -> Self {
        let id = id.into();
        Self {
            name: id.clone(),
            id,
            description: String::new(),
            instructions: None,
            tools: vec![],
            allowed_controller_tools: vec![],
            allowed_workspace_tools: None,
            model: None,
            max_steps: Self::MAX_STEPS,
            forked: false,
        }
    }

    /// What people call it. The id, unless set.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// When a model should use it.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// Its system text, all of it.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<Arc<str>>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Tools of its own.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Tools of the controller, its agent and its modes that it has too, by name. With `subagent` among them it may have subagents of its
    /// own, as deep as [`ControllerBuilder::subagent_depth`](crate::ControllerBuilder::subagent_depth) says.
    #[must_use]
    pub fn allowed_controller_tools<N: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.allowed_controller_tools.extend(names.into_iter().map(Into::into));
        self
    }

    /// The tools of the workspace that it has, by name; all, unless set (SPEC U-7).
    #[must_use]
    pub fn allowed_workspace_tools<N: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.allowed_workspace_tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Its model, unless a person selected another one for the type. The parent's, where nobody says anything.
    #[must_use]
    pub fn model(mut self, model: impl Into<ModelId>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// How many model calls it makes at most; [`Subagent::MAX_STEPS`], unless set.
    #[must_use]
    pub fn max_steps(mut self, steps: u32) -> Self {
        self.max_steps = steps;
        self
    }

    /// It works on a copy of the parent's thread, unless the call says otherwise.
    #[must_use]
    pub fn forked(mut self) -> Self {
        self.forked = true;
        self
    }

    /// What models call it by.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What people call it.
    pub fn display_name(&self) -> &str {
        &self.name
    }

    /// Its own model.
    pub fn default_model(&self) -> Option<&ModelId> {
        self.model.as_ref()
    }

    fn kind(&self) -> SubagentKind {
        SubagentKind { id: self.id.clone(), name: self.name.clone(), description: self.description.clone(), forked: self.forked }
    }
}

impl fmt::Debug for Subagent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subagent")
            .field("id", &self.id)
            .field("model", &self.model)
            .field("forked", &self.forked)
            .field("allowed_controller_tools", &self.allowed_controller_tools)
            .field("allowed_workspace_tools", &self.allowed_workspace_tools)
            .finish_non_exhaustive()
    }
}

/// The types of a controller, checked, with the tools of each in each mode.
#[derive(Default)]
pub(crate) struct Subagents {
    kinds: Vec<Subagent>,
    /// How many runs may be below one another.
    pub(crate) depth: u32,
    /// What constrained ones have, by type and mode; a mode that is no longer configured is none.
    constrained: HashMap<(String, Option<ModeId>), Arc<ToolSet>>,
    /// What forks of runs with these tools have.
    forked: HashMap<(Option<String>, Option<ModeId>), Arc<ToolSet>>,
}

/// The tool that all types are offered by; none without types.
pub(crate) fn tool(kinds: &[Subagent]) -> Option<Arc<dyn Tool>> {
    let kinds: Vec<SubagentKind> = kinds.iter().map(Subagent::kind).collect();
    SubagentTool::new(&kinds).map(|tool| Arc::new(tool) as Arc<dyn Tool>)
}

impl Subagents {
    pub(crate) fn prepare(
        kinds: Vec<Subagent>,
        depth: u32,
        modes: &[PreparedMode],
        common: &Arc<ToolSet>,
        workspace: &[String],
    ) -> Result<Self, ControllerError> {
        let mut all = Self { depth, ..Self::default() };
        if kinds.is_empty() {
            return Ok(all);
        }
        check(&kinds, modes, common, workspace)?;
        let places = modes.iter().map(|mode| (Some(mode.mode.id.clone()), &mode.tools)).chain([(None, common)]);
        for (mode, tools) in places {
            all.forked.insert((None, mode.clone()), Arc::new(withheld(tools)?));
            for kind in &kinds {
                let own = Arc::new(kind.tools_in(tools, workspace)?);
                all.forked.insert((Some(kind.id.clone()), mode.clone()), Arc::new(withheld(&own)?));
                all.constrained.insert((kind.id.clone(), mode.clone()), own);
            }
        }
        all.kinds = kinds;
        Ok(all)
    }

    pub(crate) fn all(&self) -> &[Subagent] {
        &self.kinds
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Subagent> {
        self.kinds.iter().find(|kind| kind.id == id)
    }

    /// The tools of a child run; `None` where it has those of its mode.
    pub(crate) fn tools(&self, child: &ChildProfile, mode: Option<&ModeId>) -> Option<&Arc<ToolSet>> {
        match (&child.tools_of, child.forked) {
            (of, true) => self.forked.get(&(of.clone(), mode.cloned())),
            (Some(of), false) => self.constrained.get(&(of.clone(), mode.cloned())),
            (None, false) => None,
        }
    }
}

fn check(kinds: &[Subagent], modes: &[PreparedMode], common: &ToolSet, workspace: &[String]) -> Result<(), ControllerError> {
    use ControllerErrorKind as K;
    let unknown = |kind: &Subagent, name: &str, what: &str| {
        let message = format!("subagent `{}` is allowed `{name}`, which is no tool of {what}; check the name", kind.id);
        Err(ControllerError::new(K::UnknownTool, message))
    };
    for (at, kind) in kinds.iter().enumerate() {
        if kind.id.is_empty() {
            return Err(ControllerError::new(K::DuplicateSubagent, "a subagent needs an id that is not empty"));
        }
        if kinds.iter().take(at).any(|other| other.id == kind.id) {
            return Err(ControllerError::new(K::DuplicateSubagent, format!("two subagents are called `{}`", kind.id)));
        }
        for name in &kind.allowed_controller_tools {
            if name.as_ref() == SubmitPlan::NAME {
                let message = format!("subagent `{}` is allowed `{name}`: a plan is for the person who talks to the parent", kind.id);
                return Err(ControllerError::new(K::UnknownTool, message));
            }
            if common.get(name).is_none() && modes.iter().all(|mode| mode.tools.get(name).is_none()) {
                return unknown(kind, name, "the controller");
            }
        }
        for name in kind.allowed_workspace_tools.iter().flatten() {
            if !workspace.iter().any(|known| known == name.as_ref()) {
                return unknown(kind, name, "the workspace");
            }
        }
    }
    Ok(())
}

impl Subagent {
    /// Its own tools, then what it is allowed of the controller's (SPEC U-4), then the workspace's.
    fn tools_in(&self, controller: &ToolSet, workspace: &[String]) -> Result<ToolSet, ControllerError> {
        let mut tools = ToolSet::new();
        tools.extend(self.tools.iter().cloned()).map_err(duplicate)?;
        let of_workspace = workspace.iter().map(String::as_str).filter(|name| match &self.allowed_workspace_tools {
            None => true,
            Some(allowed) => allowed.iter().any(|known| known.as_ref() == *name),
        });
        for name in self.allowed_controller_tools.iter().map(AsRef::as_ref).chain(of_workspace) {
            match controller.get(name) {
                Some((_, tool)) if tools.get(name).is_none() => tools.add(tool.clone()).map_err(duplicate)?,
                _ => {}
            }
        }
        Ok(tools)
    }
}

fn duplicate(error: DuplicateTool) -> ControllerError {
    ControllerError::new(ControllerErrorKind::DuplicateTool, error.to_string()).with_source(error)
}

/// The same tools to look at, so that a fork's requests begin like its parent's; what belongs to the parent does not act (SPEC U-10).
fn withheld(tools: &ToolSet) -> Result<ToolSet, ControllerError> {
    let mut same = ToolSet::new();
    for (definition, tool) in tools.iter() {
        let tool = match notice(&definition.name) {
            Some(_) => Arc::new(Withheld::new(definition.clone(), answer(definition))) as Arc<dyn Tool>,
            None => tool.clone(),
        };
        same.add(tool).map_err(duplicate)?;
    }
    Ok(same)
}

const NO_SUBAGENTS: &str =
    "Use no subagents: you are one, working on a copy of the conversation. Do the task yourself, with what you know and the other tools.";
const NO_TASKS: &str =
    "Leave the task list alone: it belongs to the conversation that this one is a copy of. Say in your answer what you did.";
const NO_PLANS: &str = "Submit no plan: it would be for the person who talks to the agent that you work for. Put it into your answer.";

/// Why a fork does not have a tool; `None` for those it has.
pub(crate) fn notice(tool: &str) -> Option<&'static str> {
    match tool {
        SubagentTool::NAME => Some(NO_SUBAGENTS),
        SubmitPlan::NAME => Some(NO_PLANS),
        "task_write" | "task_update" | "task_complete" | "task_check" => Some(NO_TASKS),
        _ => None,
    }
}

fn answer(definition: &ToolDefinition) -> Value {
    let content = notice(&definition.name).unwrap_or_default();
    let mut answer = json!({ "content": content, "isError": true });
    if let (true, Some(fields)) = (content == NO_TASKS, answer.as_object_mut()) {
        fields.insert("tasks".into(), json!([]));
        if definition.name == "task_check" {
            let counts = json!({
                "total": 0, "completed": 0, "inProgress": 0, "pending": 0, "incomplete": 0, "hasTasks": false, "allCompleted": false
            });
            fields.insert("summary".into(), counts);
            fields.insert("incompleteTasks".into(), json!([]));
        }
    }
    answer
}

/// What a fork is told: the task, and once for each kind of tool that it must leave alone, why.
pub(crate) fn fork_task<'a>(task: &str, tools: impl Iterator<Item = &'a str>) -> String {
    let mut text = task.to_owned();
    let mut said = vec![];
    for notice in tools.filter_map(notice) {
        if !said.contains(&notice) {
            said.push(notice);
            text.push_str("\n\n");
            text.push_str(notice);
        }
    }
    text
}

#[cfg(test)]
mod tests;
