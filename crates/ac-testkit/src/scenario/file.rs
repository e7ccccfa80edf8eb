//! What a scenario file says.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{ScenarioError, ScenarioErrorKind};
use crate::Turn;

/// A scenario: how the controller is set up, what the model answers, what the host does.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Scenario {
    /// What the files of its recording are called.
    pub name: String,
    /// What it shows.
    pub desc: String,
    /// The controller.
    pub controller: Setup,
    /// The controller after `recreate`; the first one again, unless set.
    pub controller2: Option<Setup>,
    /// What the model answers.
    pub turns: Vec<Turn>,
    /// What the host does, in order.
    #[serde(deserialize_with = "actions")]
    pub actions: Vec<Action>,
    /// Keeps `display_state_changed`.
    pub display: bool,
}

impl Scenario {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ScenarioErrorKind::Unreadable`], [`ScenarioErrorKind::Malformed`], [`ScenarioErrorKind::UnknownAction`].
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            ScenarioError::new(ScenarioErrorKind::Unreadable, format!("{} cannot be read", path.display())).with_source(error)
        })?;
        let mut scenario = Self::parse(&text).map_err(|error| ScenarioError::new(error.kind(), format!("{}: {error}", path.display())))?;
        if scenario.name.is_empty() {
            let file = path.file_name().and_then(|name| name.to_str()).unwrap_or("scenario");
            scenario.name = file.trim_end_matches(".json").trim_end_matches(".scenario").to_owned();
        }
        Ok(scenario)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// As [`Scenario::read`].
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        serde_json::from_str(text).map_err(|error| {
            let message = error.to_string();
            let kind = if message.contains(UNKNOWN_ACTION) { ScenarioErrorKind::UnknownAction } else { ScenarioErrorKind::Malformed };
            ScenarioError::new(kind, message).with_source(error)
        })
    }

    /// Fields of the set-up that this program does not know; they have no effect.
    pub fn unknown_fields(&self) -> impl Iterator<Item = &str> {
        let second = self.controller2.iter().flat_map(|setup| setup.rest.keys());
        self.controller.rest.keys().chain(second).map(String::as_str)
    }
}

/// How a controller is set up.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Setup {
    /// Its id.
    pub id: Option<String>,
    /// Whose sessions `createSession` makes where it names nobody.
    pub resource_id: Option<String>,
    /// Its modes; one, `build`, unless set.
    pub modes: Vec<ModeSetup>,
    /// The mode that sessions begin in.
    pub default_mode_id: Option<String>,
    /// Test tools of the agent.
    pub agent_tools: Vec<String>,
    /// The agent's own instructions.
    pub agent_instructions: Option<String>,
    /// Test tools of the controller.
    pub tools: Vec<String>,
    /// Subagents.
    pub subagents: Vec<SubagentSetup>,
    /// What kind of thing a tool does, by name.
    pub categories: Map<String, Value>,
    /// The state that sessions begin with.
    pub initial_state: Map<String, Value>,
    /// `counter`, or a JSON Schema.
    pub state_schema: Option<Value>,
    /// The controller's instructions.
    pub instructions: Option<String>,
    /// Built-in tools that are left out: names, or all of them.
    pub disable_builtin_tools: Value,
    /// How much of the thread the model is sent.
    pub memory_options: MemoryOptions,
    /// The model is sent no earlier runs.
    pub no_memory: bool,
    /// Nothing survives the controller.
    pub no_storage: bool,
    /// How often a model call is tried again.
    pub agent_max_retries: u32,
    /// Model calls of a run at most.
    pub max_steps: Option<u32>,
    /// What this program does not know.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// How much of a thread a model is sent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemoryOptions {
    /// So many messages before the run; 40 unless set, none with `false`.
    pub last_messages: Value,
    /// What this program does not know.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A mode.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModeSetup {
    /// Its id.
    pub id: String,
    /// What people call it.
    pub name: Option<String>,
    /// Its model.
    pub default_model_id: Option<String>,
    /// Its instructions.
    pub instructions: Option<String>,
    /// Its tools.
    pub tools: Option<Vec<String>>,
    /// Its tools, by the other name.
    pub additional_tools: Option<Vec<String>>,
    /// What may be seen and called.
    pub available_tools: Option<Vec<String>>,
    /// Where its approved plans lead.
    pub transitions_to: Option<String>,
    /// Sessions begin in it.
    pub default: bool,
    /// May hold `default`.
    pub metadata: Map<String, Value>,
}

/// A kind of subagent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubagentSetup {
    /// Its type.
    pub id: String,
    /// What people call it.
    pub name: Option<String>,
    /// What it is for.
    pub description: String,
    /// Its instructions.
    pub instructions: String,
    /// Test tools of its own.
    pub tools: Vec<String>,
    /// Tools of the controller that it may use too.
    pub allowed_controller_tools: Vec<String>,
    /// Its model.
    pub default_model_id: Option<String>,
    /// Its model calls at most.
    pub max_steps: Option<u32>,
    /// Works on a copy of the parent's thread.
    pub forked: bool,
}

/// What the host does next.
#[derive(Clone, Debug)]
pub enum Action {
    /// Something that has a result.
    Do(Act),
    /// Waits for an event.
    WaitFor(WaitFor),
    /// Waits.
    Sleep(u64),
    /// Waits for what runs in the background.
    WaitBackground {
        /// Milliseconds at most.
        timeout: Option<u64>,
    },
}

/// Something that has a result.
#[derive(Clone, Debug)]
pub struct Act {
    /// What.
    pub verb: Verb,
    /// How the file calls it.
    pub name: String,
    /// How.
    pub args: Option<Value>,
    /// In which session.
    pub session: Option<String>,
    /// What a new session is called.
    pub label: Option<String>,
    /// Where the result is kept.
    pub var: Option<String>,
    /// Goes on without waiting for it.
    pub background: bool,
    /// Milliseconds at most.
    pub timeout: Option<u64>,
}

/// An event to wait for.
#[derive(Clone, Debug, Deserialize)]
pub struct WaitFor {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// In which session; any, unless set.
    #[serde(default)]
    pub s: Option<String>,
    /// Fields that it must have.
    #[serde(default, rename = "where")]
    pub fields: Option<Value>,
    /// Which of those that fit, from 1; the next that was not waited for, unless set.
    #[serde(default)]
    pub nth: Option<usize>,
    /// Milliseconds at most.
    #[serde(default)]
    pub timeout: Option<u64>,
}

const UNKNOWN_ACTION: &str = "unknown action";

macro_rules! verbs {
    ($($(#[$doc:meta])* $verb:ident = $($name:literal)|+;)*) => {
        /// What a host can do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Verb {
            $($(#[$doc])* $verb,)*
        }

        impl Verb {
            /// All names, as files write them.
            pub const NAMES: &[&str] = &[$($($name,)+)*];

            fn named(name: &str) -> Option<Self> {
                match name {
                    $($($name)|+ => Some(Self::$verb),)*
                    _ => None,
                }
            }
        }
    };
}

verbs! {
    /// Makes a session, or finds it.
    CreateSession = "createSession";
    /// Ends a session.
    DeleteSession = "deleteSession";
    /// Ends the process and begins a new one on the same store.
    Recreate = "recreate";
    /// Sends a message and waits until it is settled.
    SendMessage = "sendMessage";
    /// Stops what goes on and sends.
    Steer = "steer";
    /// Puts a message before the model at the next step.
    Inject = "inject";
    /// Runs a message after the open run.
    FollowUp = "followUp";
    /// As a follow-up; waits for its run where nothing is open.
    QueueMessage = "queueMessage";
    /// Lists what waits for its turn.
    Queue = "queue";
    /// Takes back what waits.
    RemoveQueued = "queue.remove" | "removeFollowUp";
    /// Puts what waits in order.
    ReorderQueue = "queue.reorder";
    /// Stops the run.
    Abort = "abort";
    /// Decides about a call.
    Approve = "approve";
    /// Answers a question or decides a plan.
    Resume = "resume";
    /// Lists what waits for a person.
    Pending = "pending";
    /// Moves to a mode.
    Mode = "mode";
    /// Chooses a model.
    Model = "model";
    /// Makes a thread.
    ThreadCreate = "thread.create";
    /// Moves to a thread.
    ThreadSwitch = "thread.switch";
    /// Copies a thread.
    ThreadClone = "thread.clone";
    /// Lists threads.
    ThreadList = "thread.list";
    /// Deletes a thread.
    ThreadDelete = "thread.delete";
    /// Gives the bound thread a title.
    ThreadRename = "thread.rename";
    /// The messages of the bound thread.
    ThreadMessages = "thread.messages";
    /// The messages of a thread.
    ThreadMessagesOf = "thread.messagesOf";
    /// The bound thread.
    ThreadId = "thread.id";
    /// Keeps something with the bound thread.
    SetSetting = "setSetting";
    /// Reads what is kept with the bound thread.
    GetSetting = "getSetting";
    /// Sets keys of the state.
    StateSet = "state.set";
    /// Reads the state.
    StateGet = "state.get";
    /// Allows a tool for the session.
    GrantTool = "grantTool";
    /// Allows a category for the session.
    GrantCategory = "grantCategory";
    /// Lists grants.
    GetGrants = "getGrants";
    /// Lays down a rule for a tool.
    SetForTool = "setForTool";
    /// Lays down a rule for a category.
    SetForCategory = "setForCategory";
    /// Lists rules.
    GetRules = "getRules";
    /// What would happen to a call of a tool.
    ResolveToolApproval = "resolveToolApproval";
    /// Tokens.
    Usage = "usage";
    /// Whether something runs and what waits.
    RunState = "runState";
    /// The view.
    Display = "display";
    /// Threads of the store.
    QueryThreads = "queryThreads";
    /// Open runs of the controller.
    ActiveRuns = "activeRuns";
    /// Chooses a model for subagents, or tells the one that is chosen.
    SubagentModel = "subagentModel";
}

fn actions<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Action>, D::Error> {
    Vec::<RawAction>::deserialize(from)?.into_iter().enumerate().map(|(at, raw)| raw.read(at + 1)).collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawAction {
    #[serde(rename = "do")]
    verb: Option<String>,
    args: Option<Value>,
    s: Option<String>,
    #[serde(rename = "as")]
    label: Option<String>,
    var: Option<String>,
    #[serde(default)]
    bg: bool,
    timeout: Option<u64>,
    wait_for: Option<WaitFor>,
    sleep: Option<u64>,
    wait_bg: Option<bool>,
}

impl RawAction {
    fn read<E: serde::de::Error>(self, at: usize) -> Result<Action, E> {
        if let Some(name) = self.verb {
            let Some(verb) = Verb::named(&name) else {
                return Err(E::custom(format!("{UNKNOWN_ACTION} `{name}` at place {at}; known: {}", Verb::NAMES.join(", "))));
            };
            let Self { args, s: session, label, var, bg: background, timeout, .. } = self;
            return Ok(Action::Do(Act { verb, name, args, session, label, var, background, timeout }));
        }
        match (self.wait_for, self.sleep, self.wait_bg) {
            (Some(mut wait), None, None) => {
                wait.s = wait.s.or(self.s);
                wait.timeout = wait.timeout.or(self.timeout);
                Ok(Action::WaitFor(wait))
            }
            (None, Some(millis), None) => Ok(Action::Sleep(millis)),
            (None, None, Some(true)) => Ok(Action::WaitBackground { timeout: self.timeout }),
            _ => Err(E::custom(format!("{UNKNOWN_ACTION} at place {at}: it has none of `do`, `waitFor`, `sleep`, `waitBg`"))),
        }
    }
}
