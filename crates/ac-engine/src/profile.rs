use std::sync::Arc;

use ac_core::{AgentId, ModeId, ModelId, ToolCallPart};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a run was started with. It rules every segment of the run, after any approval, answer or restart; only an approved plan changes
/// it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Profile {
    /// Who works.
    pub agent: AgentId,
    /// In which mode.
    pub mode: ModeId,
    /// With which model.
    pub model: ModelId,
    /// The system text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Arc<str>>,
    /// The exposed names of the tools that the model sees, in order. A call of any other tool is answered as unknown.
    #[serde(default)]
    pub tools: Vec<Arc<str>>,
    /// How much it may use.
    #[serde(default)]
    pub limits: Limits,
    /// JSON that came with the request, for tools to read; at most 64 KiB.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub request_context: Map<String, Value>,
    /// Options of the model request, by provider.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
    /// The host's own, kept with the run.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub host: Map<String, Value>,
    /// Before the run ends with an answer, the host judges whether it goes on ([`Input::Judged`](crate::Input::Judged)).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judged: bool,
}

impl Profile {
    /// A profile with no instructions, no tools and the default limits.
    pub fn new(agent: impl Into<AgentId>, mode: impl Into<ModeId>, model: impl Into<ModelId>) -> Self {
        Self {
            agent: agent.into(),
            mode: mode.into(),
            model: model.into(),
            instructions: None,
            tools: vec![],
            limits: Limits::default(),
            request_context: Map::new(),
            options: Map::new(),
            host: Map::new(),
            judged: false,
        }
    }
}

/// How much a run may use, counted from the last message of a person (`R8`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Limits {
    /// Model calls, retries not counted.
    pub steps: u32,
    /// Tokens, input and output.
    pub tokens: Option<u64>,
    /// Milliseconds of work; time spent waiting for a person is not counted.
    pub millis: Option<u64>,
    /// Tries of one model call before its error ends the run.
    pub attempts: u32,
    /// Steps in a row in which the model asks for exactly the same calls; then the run ends with `run.loop`. `None`: as many as it likes.
    #[serde(skip_serializing_if = "is_usual")]
    pub repeats: Option<u32>,
}

/// What is stored only says where it differs.
const REPEATS: Option<u32> = Some(25);

// Serde gives a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_usual(repeats: &Option<u32>) -> bool {
    *repeats == REPEATS
}

impl Default for Limits {
    /// 1000 steps (SPEC T-1), three tries, 25 times the same, nothing else.
    fn default() -> Self {
        Self { steps: 1000, tokens: None, millis: None, attempts: 3, repeats: REPEATS }
    }
}

/// What is used up since the last message of a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Budget {
    /// Steps.
    pub steps: u32,
    /// Tokens.
    pub tokens: u64,
    /// Milliseconds of work.
    pub millis: u64,
    /// Steps in a row that asked for the same calls as the one before.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeats: u32,
    /// What the last step that is over asked for, as a hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
}

// Serde gives a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Budget {
    /// Counts a step that asked for these calls; none is the end of every repetition.
    pub(crate) fn ask<'a>(&mut self, calls: impl Iterator<Item = &'a ToolCallPart>) {
        let hash = hash_of(calls);
        self.repeats = if hash.is_some() && hash == self.asked { self.repeats.saturating_add(1) } else { 0 };
        // While the step is open its message says it.
        self.asked = None;
    }

    /// Remembers what the step that is over asked for.
    pub(crate) fn asked_for<'a>(&mut self, calls: impl Iterator<Item = &'a ToolCallPart>) {
        self.asked = hash_of(calls);
    }
}

/// The same in every process and version, because it is stored.
fn hash_of<'a>(calls: impl Iterator<Item = &'a ToolCallPart>) -> Option<u64> {
    calls.fold(None, |hash, call| {
        let text = format!("{}\u{0}{}\u{0}", call.name, call.args);
        let start = hash.unwrap_or(0xcbf2_9ce4_8422_2325_u64);
        Some(text.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)))
    })
}
