//! What the model and the tools do, and what happens to them.

use ac_core::{
    Decision, ErrorInfo, FinishReason, Part, RunId, Suspend, SuspendKind, ToolCallPart, ToolCategory, ToolEffect, ToolOutput, Usage,
    model::Finish,
    permission::{GrantTarget, Reason, Verdict},
    tool::ChildRun,
};
use ac_engine::{CallPlan, Gate, Input, ResumeData, Slot, SlotStatus, ToolResult};
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Fails,
    AsksOnce,
    AsksTwice,
    Plan,
    Sub,
    AsksThenPlans,
    AsksThenDelegates,
}

impl Kind {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Plain, "plain"),
        (Self::Fails, "fails"),
        (Self::AsksOnce, "asks_once"),
        (Self::AsksTwice, "asks_twice"),
        (Self::Plan, "plan"),
        (Self::Sub, "sub"),
        (Self::AsksThenPlans, "asks_then_plans"),
        (Self::AsksThenDelegates, "asks_then_delegates"),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).unwrap().1
    }

    fn of(slot: &Slot) -> Self {
        Self::ALL.iter().find(|(_, name)| *name == slot.tool).unwrap().0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    Allow,
    Ask,
    Deny,
    Refuse,
}

#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) kind: Kind,
    pub(crate) effect: ToolEffect,
    pub(crate) permit: Permit,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) calls: Vec<Asked>,
    /// 0 never, 1 the driver would try again, 2 for good.
    pub(crate) fails: u8,
    pub(crate) shows: bool,
    pub(crate) finish: FinishReason,
}

/// How often a tool call was answered so far: a tool does one thing per stage.
pub(crate) fn stage(slot: &Slot) -> usize {
    answers(slot).len()
}

/// The answers that a tool was given so far, as it keeps them in its own memory.
pub(crate) fn answers(slot: &Slot) -> Vec<Value> {
    let of = |resume: &ResumeData| {
        let mut all = resume.state.as_array().cloned().unwrap_or_default();
        all.push(resume.answer.clone());
        all
    };
    match &slot.status {
        SlotStatus::Resuming { resume, .. } | SlotStatus::InDoubt { resume: Some(resume), .. } => of(resume),
        SlotStatus::Suspended { suspend, .. } => suspend.state.as_array().cloned().unwrap_or_default(),
        _ => vec![],
    }
}

/// What a tool reports that was started.
pub(crate) fn tool_report(slot: &Slot, stopped: bool) -> Input {
    let (call, attempt) = (slot.call.clone(), slot.attempt);
    if stopped && attempt % 2 == 1 {
        return Input::ToolInterrupted { call, attempt };
    }
    let given = answers(slot);
    let suspend = |kind| Suspend { kind, payload: json!("?"), state: json!(given), answer_schema: None };
    match (Kind::of(slot), given.len()) {
        (Kind::AsksOnce | Kind::AsksThenPlans | Kind::AsksThenDelegates, 0) | (Kind::AsksTwice, 0 | 1) => {
            Input::ToolSuspended { call, attempt, suspend: suspend(SuspendKind::Question) }
        }
        (Kind::Plan | Kind::AsksThenPlans, _) => Input::ToolSuspended { call, attempt, suspend: suspend(SuspendKind::Plan) },
        (Kind::Sub | Kind::AsksThenDelegates, _) => {
            let child = ChildRun { task: "do".into(), agent: "worker".into(), options: Value::Null };
            Input::ToolDelegated { call, attempt, child }
        }
        (Kind::Fails, _) => Input::ToolDone { call, attempt, result: ToolResult { output: ToolOutput::text("error"), is_error: true } },
        _ => {
            let output = ToolOutput::new(json!({ "ok": given }));
            Input::ToolDone { call, attempt, result: ToolResult { output, is_error: false } }
        }
    }
}

pub(crate) const STEP_TOKENS: u64 = 15;

/// What the model reports that was asked.
pub(crate) fn model_report(script: &Step, run: &RunId, step: u32, attempt: u32, life: u64, granted: impl Fn(&str) -> bool) -> Input {
    let partial = if script.shows { vec![Part::text("cut")] } else { vec![] };
    if script.fails > 0 && attempt % 2 == 1 {
        return Input::SampleFailed { attempt, error: ErrorInfo::new("model.server", "broken"), retry: script.fails == 1, partial };
    }
    let depth = run.as_str().matches('~').count();
    let mut parts = vec![Part::text(format!("m{step}.{attempt}.{life}"))];
    let mut calls = vec![];
    let mut plans = 0;
    for (n, asked) in script.calls.iter().enumerate() {
        let id = format!("c{n}~{step}");
        // Children are offered no plans, and there is an end to depth.
        let kind = match asked.kind {
            Kind::Plan | Kind::AsksThenPlans if depth > 0 => Kind::Plain,
            Kind::Sub | Kind::AsksThenDelegates if depth > 1 => Kind::Plain,
            kind => kind,
        };
        let plan = matches!(kind, Kind::Plan | Kind::AsksThenPlans);
        plans += u32::from(plan);
        let refusal = || ToolResult { output: ToolOutput::text("refused"), is_error: true };
        let gate = match asked.permit {
            _ if plan && plans > 1 => Gate::Refuse { result: refusal() },
            Permit::Ask if granted(&GrantTarget::Tool(kind.name().to_owned()).to_string()) => Gate::Run,
            Permit::Allow => Gate::Run,
            Permit::Ask => Gate::Ask,
            Permit::Deny => Gate::Deny { reason: "policy".into() },
            Permit::Refuse => Gate::Refuse { result: refusal() },
        };
        parts.push(Part::ToolCall(ToolCallPart::new(id.as_str(), kind.name(), json!({}))));
        calls.push(CallPlan {
            call: id.as_str().into(),
            gate,
            decision: Decision { verdict: Verdict::Ask, reason: Reason::Default },
            effect: if plan { ToolEffect::ReadOnly } else { asked.effect },
            category: ToolCategory::Other,
            answer_schema: None,
            definition: String::new(),
        });
    }
    let mut finish = Finish::new(script.finish);
    finish.usage = Some(Usage::new(10, STEP_TOKENS - 10));
    Input::Sampled { attempt, parts, calls, finish }
}

/// Something that happens in the world. Numbers choose among what there is, modulo its count.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// One operation of one task of a driver.
    Tick(usize, usize, usize),
    /// Some of each.
    Drive(usize),
    Poll(usize, usize),
    Steal(usize, usize),
    Crash(usize),
    Message(usize, u8),
    Note(usize, u8),
    FollowUp(u8),
    Answer(usize, usize, u8),
    /// The answer is committed and the process dies before it can say so.
    AnswerLost(usize, usize, u8),
    Stale(usize, usize, bool),
    Withdraw(usize, usize),
    Cancel(usize, usize),
    Abort(usize, bool),
    Mode(u8),
    /// The outcome of the next commit gets lost: it was written or not, and somebody may write before it is read back.
    Unknown(u8),
}

pub(crate) fn actions() -> impl Strategy<Value = Vec<Action>> {
    let driver = 0..2usize;
    let which = 0..4usize;
    let action = prop_oneof![
        12 => (driver.clone(), which.clone(), which.clone()).prop_map(|(d, i, k)| Action::Tick(d, i, k)),
        12 => driver.clone().prop_map(Action::Drive),
        4 => (driver.clone(), which.clone()).prop_map(|(d, i)| Action::Poll(d, i)),
        2 => (driver.clone(), which.clone()).prop_map(|(d, i)| Action::Steal(d, i)),
        2 => driver.clone().prop_map(Action::Crash),
        3 => (driver.clone(), 0..12u8).prop_map(|(d, n)| Action::Message(d, n)),
        1 => (driver.clone(), 12..16u8).prop_map(|(d, n)| Action::Note(d, n)),
        2 => (0..4u8).prop_map(Action::FollowUp),
        7 => (driver.clone(), which.clone(), 0..40u8).prop_map(|(d, i, v)| Action::Answer(d, i, v)),
        1 => (driver.clone(), which.clone(), 1..40u8).prop_map(|(d, i, v)| Action::AnswerLost(d, i, v)),
        2 => (driver.clone(), 0..9usize, any::<bool>()).prop_map(|(d, i, other)| Action::Stale(d, i, other)),
        1 => (driver.clone(), which.clone()).prop_map(|(d, i)| Action::Withdraw(d, i)),
        1 => (driver.clone(), which).prop_map(|(d, i)| Action::Cancel(d, i)),
        1 => (driver, any::<bool>()).prop_map(|(d, go_on)| Action::Abort(d, go_on)),
        1 => (20..30u8).prop_map(Action::Mode),
        2 => (0..3u8).prop_map(Action::Unknown),
    ];
    vec(action, 0..90)
}

pub(crate) fn scripts() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![
        4 => Just(Kind::Plain),
        1 => Just(Kind::Fails),
        2 => Just(Kind::AsksOnce),
        2 => Just(Kind::AsksTwice),
        1 => Just(Kind::Plan),
        2 => Just(Kind::Sub),
        1 => Just(Kind::AsksThenPlans),
        1 => Just(Kind::AsksThenDelegates)
    ];
    let effect = prop_oneof![1 => Just(ToolEffect::ReadOnly), 1 => Just(ToolEffect::Idempotent), 3 => Just(ToolEffect::Mutating)];
    let permit = prop_oneof![6 => Just(Permit::Allow), 6 => Just(Permit::Ask), 1 => Just(Permit::Deny), 1 => Just(Permit::Refuse)];
    let asked = (kind, effect, permit).prop_map(|(kind, effect, permit)| Asked { kind, effect, permit });
    let finish = prop_oneof![12 => Just(FinishReason::Stop), 1 => Just(FinishReason::Length), 1 => Just(FinishReason::Pause)];
    let fails = prop_oneof![8 => Just(0u8), 1 => Just(1), 1 => Just(2)];
    let step =
        (vec(asked, 0..4), fails, any::<bool>(), finish).prop_map(|(calls, fails, shows, finish)| Step { calls, fails, shows, finish });
    vec(step, 1..5)
}
