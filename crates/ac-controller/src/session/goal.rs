//! Goals: see [`GoalJudge`](crate::GoalJudge).

use ac_agent::{JudgeContext, Judgement, RunRef};
use ac_core::{EventBody, Message, ModelErrorKind, Part, Role, RunId, ThreadId, Timestamp, Usage, message::SignalInfo};
use ac_engine::RunSnapshot;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Session, kept::Kept};
use crate::{
    AgentController, ControllerError, ControllerErrorKind, Goal, GoalJudge, GoalStatus, GoalUpdate, NewGoal,
    ask::Answered,
    controller::Shared,
    goal::{Asked, Said, Verdict},
};

/// The name under which a goal is kept with its thread.
pub(crate) const STATE: &str = "goal";

/// The longest objective, in bytes.
const LONGEST: usize = 16 * 1024;

/// A goal as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    goal: Goal,
    /// The answer that was judged last, so that one that is judged again after a crash counts once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    judged: Option<Judged>,
    /// What the model was last told of the goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Judged {
    run: RunId,
    step: u32,
    /// How long the run had worked by then, in milliseconds.
    worked: u64,
    at: Timestamp,
    go_on: bool,
    text: String,
    payload: Value,
    /// What the judge used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
}

impl Record {
    fn new(goal: Goal) -> Self {
        Self { goal, judged: None, told: None }
    }

    /// What the model should know of the goal: another text means that it has to be told again.
    fn key(&self) -> String {
        let Goal { id, status, .. } = &self.goal;
        format!("{id}:{}", status.as_str())
    }
}

impl AgentController {
    /// The goal of a thread, without making a session.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn goal(&self, thread: &ThreadId) -> Result<Option<Goal>, ControllerError> {
        self.shared().goal(thread).await
    }
}

impl Shared {
    pub(crate) async fn goal(&self, thread: &ThreadId) -> Result<Option<Goal>, ControllerError> {
        Ok(self.kept::<Record>(thread, STATE).await?.map(|record| record.goal))
    }
}

impl Session {
    /// The goal of the bound thread.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn goal(&self) -> Result<Option<Goal>, ControllerError> {
        match self.thread_id() {
            Some(thread) => self.shared().goal(&thread).await,
            None => Ok(None),
        }
    }

    /// Sets the goal of the bound thread, in place of the one it had. Starts no run: the next answer is judged, also the one of a run that
    /// is under way.
    ///
    /// # Errors
    /// [`NoThread`](ControllerErrorKind::NoThread), [`InvalidGoal`](ControllerErrorKind::InvalidGoal) for an objective without words and
    /// for a limit of 0.
    pub async fn set_goal(&self, goal: impl Into<NewGoal>) -> Result<Goal, ControllerError> {
        let NewGoal { objective, judge_model, max_runs } = goal.into();
        if objective.trim().is_empty() {
            return Err(invalid("a goal needs an objective"));
        }
        if objective.len() > LONGEST {
            return Err(invalid("an objective may be at most 16 KiB; keep details in a file and name it"));
        }
        check_limit(max_runs)?;
        let (thread, _turn) = self.with_thread().await?;
        let now = self.shared().clock.now();
        let goal = Goal {
            id: self.shared().ids.fresh("goal"),
            objective,
            status: GoalStatus::Active,
            runs_used: 0,
            active_duration_ms: 0,
            started_at: now,
            updated_at: now,
            max_runs,
            judge_model,
            paused_reason: None,
        };
        self.shared().change_kept(&thread, STATE, |_: Option<Record>| Ok(Kept::Put(Record::new(goal.clone()), goal.clone()))).await
    }

    /// Changes the goal of the bound thread; `None` where it has none. Active again after a pause, it goes on with the count it had.
    ///
    /// # Errors
    /// As [`Session::set_goal`].
    pub async fn update_goal(&self, update: GoalUpdate) -> Result<Option<Goal>, ControllerError> {
        check_limit(update.max_runs)?;
        let (thread, _turn) = self.with_thread().await?;
        let now = self.shared().clock.now();
        self.shared()
            .change_kept(&thread, STATE, |record: Option<Record>| {
                let Some(mut record) = record else { return Ok(Kept::Same(None)) };
                let goal = &mut record.goal;
                if let Some(status) = update.status {
                    goal.status = status;
                    goal.paused_reason = None;
                }
                goal.max_runs = update.max_runs.or(goal.max_runs);
                if let Some(model) = &update.judge_model {
                    goal.judge_model = Some(model.clone());
                }
                goal.updated_at = now;
                let changed = goal.clone();
                Ok(Kept::Put(record, Some(changed)))
            })
            .await
    }

    /// Takes the goal of the bound thread away; says whether there was one. A verdict that is on its way does not count any more.
    ///
    /// # Errors
    /// [`NoThread`](ControllerErrorKind::NoThread).
    pub async fn clear_goal(&self) -> Result<bool, ControllerError> {
        let (thread, _turn) = self.with_thread().await?;
        self.shared()
            .change_kept(&thread, STATE, |record: Option<Record>| Ok(if record.is_some() { Kept::Gone(true) } else { Kept::Same(false) }))
            .await
    }

    async fn with_thread(&self) -> Result<(ThreadId, tokio::sync::MutexGuard<'_, ()>), ControllerError> {
        let turn = self.turn().await?;
        match self.thread_id() {
            // Another session may have deleted it.
            Some(thread) if !self.is_deleted(&thread).await? => Ok((thread, turn)),
            _ => Err(ControllerError::new(ControllerErrorKind::NoThread, "session has no active thread")),
        }
    }

    /// What a run that starts has to be told of the goal, if it was not told yet.
    pub(crate) async fn goal_to_tell(&self, thread: &ThreadId) -> Result<Option<(Message, String)>, ControllerError> {
        if self.shared().config.judge.is_none() {
            return Ok(None);
        }
        let Some(record) = self.shared().kept::<Record>(thread, STATE).await? else { return Ok(None) };
        let key = record.key();
        if record.goal.status != GoalStatus::Active || record.told.as_ref() == Some(&key) {
            return Ok(None);
        }
        let Record { goal, .. } = record;
        let id = self.shared().ids.fresh("message");
        let mut message = Message::new(id, Role::Signal, vec![Part::text(goal.objective.clone())], self.shared().clock.now());
        message.meta.attributes.insert("status".into(), goal.status.as_str().into());
        let metadata = Map::from_iter([("value".to_owned(), json!({ "objective": goal }))]);
        message.meta.signal = Some(Box::new(SignalInfo { kind: "state".into(), tag: "current-objective".into(), metadata, quiet: false }));
        Ok(Some((message, key)))
    }

    /// Remembers that a run was told.
    pub(crate) async fn goal_told(&self, thread: &ThreadId, key: &str) -> Result<(), ControllerError> {
        self.shared()
            .change_kept(thread, STATE, |record: Option<Record>| match record {
                Some(mut record) if record.key() == key => {
                    record.told = Some(key.to_owned());
                    Ok(Kept::Put(record, ()))
                }
                _ => Ok(Kept::Same(())),
            })
            .await
    }

    /// Whether the thread of a run has a goal that its answers are judged by.
    pub(crate) async fn has_active_goal(&self, run: &RunRef) -> Result<bool, ControllerError> {
        if self.shared().config.judge.is_none() {
            return Ok(false);
        }
        Ok(self.shared().goal(&run.thread).await?.is_some_and(|goal| goal.status == GoalStatus::Active))
    }

    /// Judges the last word of a run. Whatever fails, the run ends: only a verdict that was stored makes it go on.
    pub(crate) async fn judge_goal(&self, snapshot: &RunSnapshot, cx: &JudgeContext) -> Judgement {
        match self.judged(snapshot, cx).await {
            Ok(judgement) => judgement,
            Err(error) => {
                tracing::warn!(run = %snapshot.run, code = error.code(), "the goal could not be judged: {error}");
                Judgement::default()
            }
        }
    }

    async fn judged(&self, snapshot: &RunSnapshot, cx: &JudgeContext) -> Result<Judgement, ControllerError> {
        let Some(judge) = &self.shared().config.judge else { return Ok(Judgement::default()) };
        let thread = &snapshot.thread;
        let Some(record) = self.shared().kept::<Record>(thread, STATE).await? else { return Ok(Judgement::default()) };
        // Judged before a crash that came before the run was told.
        if let Some(judged) = record.judged.as_ref().filter(|judged| judged.run == snapshot.run && judged.step == snapshot.step) {
            return Ok(judged.judgement());
        }
        let goal = record.goal;
        if goal.status != GoalStatus::Active {
            return Ok(Judgement::default());
        }
        let pending = |reason: Option<&str>| EventBody::GoalEvaluation { payload: Verdict::pending(&goal, judge.max_runs, reason) };
        cx.tell(pending(None));
        let began = self.shared().clock.now();
        let (asked, usage) = self.ask_judge(judge, &goal, snapshot, cx).await;
        if let Asked::Said(said) = &asked {
            cx.tell(pending(Some(&said.reason)));
        }
        let now = self.shared().clock.now();
        let took = u64::try_from(now.millis_since(began)).unwrap_or(0);
        let worked = snapshot.working_since.map_or(0, |since| u64::try_from(now.millis_since(since)).unwrap_or(0));
        let worked = snapshot.budget.millis.saturating_add(worked);
        let judged = |known: &Goal| {
            let verdict = Verdict::of(known, judge.max_runs, asked.clone(), took);
            let judged = Judged {
                run: snapshot.run.clone(),
                step: snapshot.step,
                worked,
                at: now,
                go_on: verdict.goes_on(),
                text: verdict.text(&known.objective),
                payload: verdict.payload(&known.objective),
                usage: usage.clone(),
            };
            (verdict, judged)
        };
        let stored = self
            .shared()
            .change_kept(thread, STATE, |record: Option<Record>| {
                // Changed or taken away while the judge thought: that is the person's last word.
                let Some(mut record) = record.filter(|record| record.goal.id == goal.id && record.goal.status == GoalStatus::Active) else {
                    return Ok(Kept::Same(None));
                };
                let (verdict, judged) = judged(&record.goal);
                let before = record.judged.as_ref().filter(|before| before.run == judged.run && before.worked <= judged.worked);
                let more = worked - before.map_or(0, |before| before.worked);
                record.goal.active_duration_ms = record.goal.active_duration_ms.saturating_add(more);
                record.goal.runs_used = verdict.iteration;
                record.goal.status = verdict.status;
                record.goal.paused_reason = verdict.paused_reason;
                record.goal.updated_at = now;
                record.judged = Some(judged.clone());
                Ok(Kept::Put(record, Some(judged)))
            })
            .await;
        match stored {
            Ok(Some(judged)) => Ok(judged.judgement()),
            // Who was shown that it is judged is shown that it is over.
            other => {
                let (_, judged) = judged(&goal);
                let mut verdict = judged.payload;
                if let Some(fields) = verdict.as_object_mut() {
                    fields.insert("shouldContinue".into(), false.into());
                    fields.insert("suppressFeedback".into(), true.into());
                }
                if let Err(error) = other {
                    tracing::warn!(run = %snapshot.run, code = error.code(), "a verdict was not stored and does not count: {error}");
                }
                Ok(Judgement { go_on: false, message: None, verdict: Some(verdict), usage: judged.usage })
            }
        }
    }

    async fn ask_judge(&self, judge: &GoalJudge, goal: &Goal, snapshot: &RunSnapshot, cx: &JudgeContext) -> (Asked, Option<Usage>) {
        let model = goal.judge_model.as_ref().or(judge.model.as_ref()).unwrap_or(&snapshot.profile.model);
        let answer = snapshot.message.as_ref().map(|message| message.text()).unwrap_or_default();
        let text = format!("Goal: {}\n\nThe assistant's latest answer:\n{answer}", goal.objective);
        match self.shared().ask_model(model, &judge.instructions, text, judge.timeout, &cx.cancel).await {
            Ok(Answered { text, usage }) => {
                let asked = match Said::read(&text) {
                    Some(said) => Asked::Said(said),
                    None => Asked::Failed { reason: format!("the judge {model} gave no decision"), timed_out: false },
                };
                (asked, usage)
            }
            Err(error) => {
                let timed_out = error.kind == ModelErrorKind::Timeout;
                (Asked::Failed { reason: format!("the judge {model} failed: {}", error.kind.code()), timed_out }, None)
            }
        }
    }
}

impl Judged {
    /// The same each time: the message's id follows from the step.
    fn judgement(&self) -> Judgement {
        let id = format!("{}/goal/{}", self.run, self.step);
        let mut message = Message::new(id, Role::Signal, vec![Part::text(self.text.clone())], self.at);
        message.meta.attributes.insert("type".into(), "goal-judge".into());
        let metadata = Map::from_iter([("goalEvaluation".to_owned(), self.payload.clone())]);
        message.meta.signal = Some(Box::new(SignalInfo { kind: "reactive".into(), tag: "system-reminder".into(), metadata, quiet: false }));
        Judgement { go_on: self.go_on, message: Some(message), verdict: Some(self.payload.clone()), usage: self.usage.clone() }
    }
}

fn invalid(message: &str) -> ControllerError {
    ControllerError::new(ControllerErrorKind::InvalidGoal, message)
}

fn check_limit(runs: Option<u32>) -> Result<(), ControllerError> {
    match runs {
        Some(0) => Err(invalid("a goal needs at least one run; `maxRuns` is 1 or more")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
