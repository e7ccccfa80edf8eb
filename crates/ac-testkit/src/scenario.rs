//! Scenarios: a controller, a scripted model and a host that follows a list, recorded as files that can be compared.
//!
//! The form of the files is that of the golden scenarios. Everything is real but the model's words: the controller, its store (sled in a
//! temporary folder), the OpenAI adapter, and HTTP between it and the [`ScriptedServer`](crate::ScriptedServer).

mod act;
pub mod compare;
mod file;
mod finish;
mod log;
mod normal;
mod play;
mod stage;
mod tools;

use std::{io, path::Path};

pub use file::{Act, Action, MemoryOptions, ModeSetup, Scenario, Setup, SubagentSetup, Verb, WaitFor};
pub use play::run;
use serde_json::Value;

/// What was seen of a scenario, ids and times normalised.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Recording {
    /// What it is called.
    pub name: String,
    /// `NAME.events.jsonl`: actions, results and events, in order.
    pub events: Vec<Value>,
    /// `NAME.requests.jsonl`: what reached the model server.
    pub requests: Vec<Value>,
    /// `NAME.final.json`: how the sessions were left.
    pub last: Value,
    /// Requests that were no legal history (`R4`), in words.
    pub violations: Vec<String>,
}

impl Recording {
    /// Writes the three files.
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let lines = |lines: &[Value]| lines.iter().map(|line| log::text(line) + "\n").collect::<String>();
        std::fs::write(folder.join(format!("{}.events.jsonl", self.name)), lines(&self.events))?;
        std::fs::write(folder.join(format!("{}.requests.jsonl", self.name)), lines(&self.requests))?;
        std::fs::write(folder.join(format!("{}.final.json", self.name)), format!("{:#}\n", self.last))
    }

    /// Reads the three files.
    ///
    /// # Errors
    /// [`ScenarioErrorKind::Unreadable`], [`ScenarioErrorKind::Malformed`].
    pub fn read(folder: &Path, name: &str) -> Result<Self, ScenarioError> {
        let text = |end: &str| {
            let path = folder.join(format!("{name}.{end}"));
            std::fs::read_to_string(&path).map_err(|error| {
                ScenarioError::new(ScenarioErrorKind::Unreadable, format!("{} cannot be read", path.display())).with_source(error)
            })
        };
        let json = |text: &str| {
            serde_json::from_str::<Value>(text).map_err(|error| {
                ScenarioError::new(ScenarioErrorKind::Malformed, format!("a recording of {name} is no JSON")).with_source(error)
            })
        };
        let lines = |text: String| text.lines().filter(|line| !line.is_empty()).map(json).collect::<Result<Vec<_>, _>>();
        Ok(Self {
            name: name.to_owned(),
            events: lines(text("events.jsonl")?)?,
            requests: lines(text("requests.jsonl")?)?,
            last: json(&text("final.json")?)?,
            violations: vec![],
        })
    }
}

/// Why a scenario was not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScenarioErrorKind {
    /// A file cannot be read.
    Unreadable,
    /// A file is not in the form of a scenario, or of a recording.
    Malformed,
    /// The scenario asks for something that hosts cannot do here.
    UnknownAction,
    /// The scenario names a tool that does not exist here.
    UnknownTool,
    /// The controller refuses this set-up.
    Setup,
    /// No store, no port, no client.
    Environment,
}

/// A scenario that was not run.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ScenarioError {
    kind: ScenarioErrorKind,
    message: String,
    #[source]
    source: Option<ac_core::error::Source>,
}

impl ScenarioError {
    pub(crate) fn new(kind: ScenarioErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    #[must_use]
    pub(crate) fn with_source(mut self, source: impl Into<ac_core::error::Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Why.
    pub fn kind(&self) -> ScenarioErrorKind {
        self.kind
    }
}
