use std::{sync::Arc, time::Duration};

use ac_core::{ModelId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a thread works towards, over several answers (WIRE section 7). Its serde form is the one on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Goal {
    /// Its id; another goal for the same thread has another one.
    pub id: String,
    /// What is to be reached, in the person's words.
    pub objective: String,
    /// How it stands.
    pub status: GoalStatus,
    /// How many answers were judged.
    pub runs_used: u32,
    /// For how long runs worked towards it, in milliseconds; waiting for a person is not counted.
    pub active_duration_ms: u64,
    /// When it was set.
    pub started_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// After so many answers it is paused. The controller's own limit, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runs: Option<u32>,
    /// Who judges. The controller's judge, where there is none.
    #[serde(default, rename = "judgeModelId", skip_serializing_if = "Option::is_none")]
    pub judge_model: Option<ModelId>,
    /// Why it is paused, where nobody paused it by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_reason: Option<String>,
}

/// How a goal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalStatus {
    /// Answers are judged.
    Active,
    /// Nothing is judged until it is active again.
    Paused,
    /// Reached.
    Done,
}

impl GoalStatus {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Done => "done",
        }
    }
}

/// A goal to be set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct NewGoal {
    pub(crate) objective: String,
    pub(crate) judge_model: Option<ModelId>,
    pub(crate) max_runs: Option<u32>,
}

impl NewGoal {
    /// What is to be reached.
    pub fn new(objective: impl Into<String>) -> Self {
        Self { objective: objective.into(), ..Self::default() }
    }

    /// Who judges.
    pub fn judge_model(mut self, model: impl Into<ModelId>) -> Self {
        self.judge_model = Some(model.into());
        self
    }

    /// After how many judged answers it is paused; at least 1.
    pub fn max_runs(mut self, runs: u32) -> Self {
        self.max_runs = Some(runs);
        self
    }
}

impl<T: Into<String>> From<T> for NewGoal {
    fn from(objective: T) -> Self {
        Self::new(objective)
    }
}

/// What changes of a goal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct GoalUpdate {
    pub(crate) status: Option<GoalStatus>,
    pub(crate) judge_model: Option<ModelId>,
    pub(crate) max_runs: Option<u32>,
}

impl GoalUpdate {
    /// Nothing changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Pauses it, makes it active again, or calls it done.
    pub fn status(mut self, status: GoalStatus) -> Self {
        self.status = Some(status);
        self
    }

    /// Who judges from now on.
    pub fn judge_model(mut self, model: impl Into<ModelId>) -> Self {
        self.judge_model = Some(model.into());
        self
    }

    /// After how many judged answers it is paused; at least 1.
    pub fn max_runs(mut self, runs: u32) -> Self {
        self.max_runs = Some(runs);
        self
    }
}

/// How a controller judges goals. Without one, goals are kept and nothing is judged.
///
/// After each answer that would end a run, a model is asked whether the goal of the thread is reached: it gets a message that begins with
/// `Goal: ` and holds the objective and the answer, and says `{"decision": "done" | "continue" | "waiting", "reason": "…"}`. On `continue`
/// the same run goes on with another step. A judge that fails, says nothing in time or says something else pauses the goal; it never keeps
/// a run from ending. The tokens of judges are not counted for the thread.
#[derive(Clone, Debug)]
#[must_use]
pub struct GoalJudge {
    pub(crate) model: Option<ModelId>,
    pub(crate) instructions: Arc<str>,
    pub(crate) timeout: Duration,
    pub(crate) max_runs: u32,
}

/// Told to judges.
const INSTRUCTIONS: &str = "You judge whether an assistant has reached the goal that a user set for it. You see the goal and the assistant's \
    latest answer, nothing else; judge by what the answer shows, not by what it promises. Answer with one JSON object and nothing else: \
    {\"decision\": \"done\" | \"continue\" | \"waiting\", \"reason\": \"one or two sentences\"}. Say done when the goal is reached, waiting \
    when the assistant cannot go on before the user answers or does something, and continue otherwise; then let the reason say what is \
    still missing.";

impl Default for GoalJudge {
    /// The model of the run that is judged, 60 seconds, 50 answers.
    fn default() -> Self {
        Self { model: None, instructions: INSTRUCTIONS.into(), timeout: Duration::from_secs(60), max_runs: 50 }
    }
}

impl GoalJudge {
    /// A judge as by default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Who judges goals that do not say it themselves. The model of the run, unless set.
    pub fn model(mut self, model: impl Into<ModelId>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Other instructions. They must ask for the same JSON.
    pub fn instructions(mut self, text: impl Into<Arc<str>>) -> Self {
        self.instructions = text.into();
        self
    }

    /// How long a judge may take, retries included.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// After how many judged answers a goal is paused that has no limit of its own; at least 1.
    pub fn max_runs(mut self, runs: u32) -> Self {
        self.max_runs = runs.max(1);
        self
    }
}

/// What a judge said.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Said {
    pub(crate) decision: GoalDecision,
    #[serde(default)]
    pub(crate) reason: String,
}

/// What a judge decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GoalDecision {
    Done,
    Continue,
    Waiting,
}

impl Said {
    /// The first JSON object of a text that is a decision. Models put fences and words around what they were asked for.
    pub(crate) fn read(text: &str) -> Option<Self> {
        text.match_indices('{').find_map(|(at, _)| {
            let rest = text.get(at..)?;
            serde_json::Deserializer::from_str(rest).into_iter::<Self>().next()?.ok()
        })
    }
}

/// What came of asking a judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Said(Said),
    /// Why there is no verdict.
    Failed {
        reason: String,
        timed_out: bool,
    },
}

/// A verdict and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) iteration: u32,
    pub(crate) max_runs: u32,
    pub(crate) status: GoalStatus,
    pub(crate) reason: String,
    pub(crate) paused_reason: Option<String>,
    pub(crate) decision: Option<GoalDecision>,
    pub(crate) timed_out: bool,
    pub(crate) max_runs_reached: bool,
    pub(crate) duration_ms: u64,
}

impl Verdict {
    /// What follows for a goal that is active. Only a clear `continue` below the limit goes on.
    pub(crate) fn of(goal: &Goal, limit: u32, asked: Asked, duration_ms: u64) -> Self {
        let iteration = goal.runs_used.saturating_add(1);
        let max_runs = goal.max_runs.unwrap_or(limit);
        let mut verdict = Self {
            iteration,
            max_runs,
            status: GoalStatus::Active,
            reason: String::new(),
            paused_reason: None,
            decision: None,
            timed_out: false,
            max_runs_reached: false,
            duration_ms,
        };
        match asked {
            Asked::Failed { reason, timed_out } => {
                verdict.status = GoalStatus::Paused;
                verdict.paused_reason = Some(reason.clone());
                verdict.reason = reason;
                verdict.timed_out = timed_out;
            }
            Asked::Said(Said { decision, reason }) => {
                verdict.decision = Some(decision);
                verdict.reason = reason;
                match decision {
                    GoalDecision::Done => verdict.status = GoalStatus::Done,
                    GoalDecision::Continue if iteration >= max_runs => {
                        verdict.status = GoalStatus::Paused;
                        verdict.max_runs_reached = true;
                        verdict.paused_reason = Some(format!("after {iteration} of {max_runs} answers the goal is not reached"));
                    }
                    GoalDecision::Continue | GoalDecision::Waiting => {}
                }
            }
        }
        verdict
    }

    pub(crate) fn goes_on(&self) -> bool {
        self.decision == Some(GoalDecision::Continue) && self.status == GoalStatus::Active
    }

    /// The payload of `goal_evaluation` (WIRE section 7).
    pub(crate) fn payload(&self, objective: &str) -> Value {
        let passed = self.decision == Some(GoalDecision::Done);
        let score = match self.decision {
            Some(GoalDecision::Done) => 1.0,
            Some(GoalDecision::Waiting) => 0.5,
            Some(GoalDecision::Continue) | None => 0.0,
        };
        let mut payload = json!({
            "objective": objective,
            "iteration": self.iteration,
            "maxRuns": self.max_runs,
            "passed": passed,
            "status": self.status.as_str(),
            "judgeFailed": self.decision.is_none(),
            "waitingForUser": self.decision == Some(GoalDecision::Waiting),
            "results": [{
                "score": score,
                "passed": passed,
                "reason": self.reason,
                "scorerId": "goal-scorer",
                "scorerName": "Goal (LLM)",
                "duration": self.duration_ms,
            }],
            "reason": self.reason,
            "duration": self.duration_ms,
            "timedOut": self.timed_out,
            "maxRunsReached": self.max_runs_reached,
            "suppressFeedback": false,
            "shouldContinue": self.goes_on(),
        });
        if let (Some(reason), Some(fields)) = (&self.paused_reason, payload.as_object_mut()) {
            fields.insert("pausedReason".into(), json!(reason));
        }
        payload
    }

    /// The payload while the judge is at work; with what it said, once it has.
    pub(crate) fn pending(goal: &Goal, limit: u32, reason: Option<&str>) -> Value {
        let mut payload = json!({
            "objective": goal.objective,
            "iteration": goal.runs_used.saturating_add(1),
            "maxRuns": goal.max_runs.unwrap_or(limit),
            "passed": false,
            "status": GoalStatus::Active.as_str(),
            "results": [],
            "duration": 0,
            "timedOut": false,
            "maxRunsReached": false,
            "suppressFeedback": true,
            "pending": true,
        });
        if let (Some(reason), Some(fields)) = (reason, payload.as_object_mut()) {
            fields.insert("activity".into(), json!([{ "type": "reason", "message": reason }]));
        }
        payload
    }

    /// What the model reads of it.
    pub(crate) fn text(&self, objective: &str) -> String {
        let Self { iteration, max_runs, reason, .. } = self;
        let mut text = format!("{} ({iteration}/{max_runs})", self.status.as_str());
        if !reason.is_empty() {
            text.push('\n');
            text.push_str(reason);
        }
        if self.goes_on() {
            text.push_str(&format!("\nThe goal is not reached yet, go on with it: {objective}"));
        }
        text
    }
}

#[cfg(test)]
mod tests;
