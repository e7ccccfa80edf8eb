//! Runs in every state, made by inputs alone.

use std::{cell::RefCell, collections::BTreeSet};

use ac_core::{
    Decision, ErrorInfo, FinishReason, Message, Part, PendingId, Suspend, SuspendKind, Timestamp, ToolCallId, ToolCallPart, ToolCategory,
    ToolEffect, ToolOutput, Usage,
    model::Finish,
    permission::{GrantTarget, Reason, Verdict},
    tool::ChildRun,
};
use ac_engine::{
    Answer, CallPlan, Effect, Gate, Input, Moment, Phase, PlanReply, Profile, Refusal, RunSnapshot, Slot, StartRun, ToolResult,
    transitions::{Place, moves, trigger},
};
use serde_json::{Value, json};

pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(crate) fn user(id: &str) -> Message {
    Message::user(id, format!("text of {id}"), at(0))
}

pub(crate) fn note(id: &str) -> Message {
    Message::new(id, ac_core::Role::Signal, vec![Part::text("note")], at(0))
}

pub(crate) fn profile() -> Profile {
    Profile::new("agent", "build", "mock/one")
}

/// A profile whose host judges the last word.
pub(crate) fn judged_profile() -> Profile {
    let mut profile = profile();
    profile.judged = true;
    profile
}

pub(crate) fn judged(run: &RunSnapshot, go_on: bool) -> Input {
    Input::Judged { step: run.step, go_on, message: Some(Box::new(note("verdict"))), verdict: Some(json!({ "goOn": go_on })), usage: None }
}

/// A run that was started and has not sampled.
pub(crate) fn ready() -> RunSnapshot {
    started_with(profile())
}

pub(crate) fn started_with(profile: Profile) -> RunSnapshot {
    RunSnapshot::start(
        StartRun { run: "r".into(), thread: "t".into(), parent: None, profile, messages: vec![user("m0")], from_queue: false },
        at(0),
    )
}

pub(crate) fn sampling() -> RunSnapshot {
    let mut run = ready();
    ok(&mut run, Input::Dispatch);
    run
}

thread_local! {
    /// Every move that this thread made.
    pub(crate) static MOVES: RefCell<BTreeSet<(Place, &'static str, Place)>> = const { RefCell::new(BTreeSet::new()) };
}

/// The machine's step, with its moves noted.
pub(crate) fn step(run: &mut RunSnapshot, at: Timestamp, input: Input) -> Result<Vec<Effect>, Refusal> {
    let before = run.clone();
    let on = trigger(&input);
    let effects = run.step(at, input)?;
    MOVES.with_borrow_mut(|all| all.extend(moves(&before, on, run)));
    Ok(effects)
}

/// Takes an input that must be accepted.
pub(crate) fn ok(run: &mut RunSnapshot, input: Input) -> Vec<Effect> {
    let shown = format!("{input:?}");
    step(run, at(1), input).unwrap_or_else(|refusal| panic!("{shown} refused: {refusal:?}"))
}

/// A call and what is decided about it.
#[derive(Clone, Debug)]
pub(crate) struct Ask(pub(crate) &'static str, pub(crate) Gate, pub(crate) ToolEffect);

pub(crate) fn run_it(id: &'static str) -> Ask {
    Ask(id, Gate::Run, ToolEffect::Mutating)
}

pub(crate) fn ask(id: &'static str) -> Ask {
    Ask(id, Gate::Ask, ToolEffect::Mutating)
}

pub(crate) fn deny(id: &'static str) -> Ask {
    Ask(id, Gate::Deny { reason: "a rule denies it".into() }, ToolEffect::Mutating)
}

pub(crate) fn call_part(id: &str) -> Part {
    Part::ToolCall(ToolCallPart::new(id, "tool", json!({ "of": id })))
}

pub(crate) fn call_plan(ask: &Ask) -> CallPlan {
    CallPlan {
        call: ask.0.into(),
        gate: ask.1.clone(),
        decision: Decision { verdict: Verdict::Allow, reason: Reason::Default },
        effect: ask.2,
        category: ToolCategory::Other,
        answer_schema: None,
        definition: "d1".into(),
    }
}

pub(crate) fn answer_of(run: &RunSnapshot, text: &str, calls: &[Ask], reason: FinishReason) -> Input {
    let mut parts = vec![];
    if !text.is_empty() {
        parts.push(Part::text(text));
    }
    parts.extend(calls.iter().map(|ask| call_part(ask.0)));
    let mut finish = Finish::new(reason);
    finish.usage = Some(Usage::new(10, 5));
    Input::Sampled { attempt: run.attempt, parts, calls: calls.iter().map(call_plan).collect(), finish }
}

/// A run whose model asked for these calls; nothing is dispatched.
pub(crate) fn tools(calls: &[Ask]) -> RunSnapshot {
    let mut run = sampling();
    let input = answer_of(&run, "I will", calls, FinishReason::ToolCalls);
    ok(&mut run, input);
    run
}

pub(crate) fn slot<'a>(run: &'a RunSnapshot, call: &str) -> &'a Slot {
    run.slots().iter().find(|slot| slot.call.as_str() == call).expect("the step is open")
}

pub(crate) fn pending(run: &RunSnapshot, call: &str) -> PendingId {
    run.pending_id(slot(run, call))
}

pub(crate) fn wait_n(call: &str, n: u32) -> PendingId {
    PendingId { run: "r".into(), step: 0, call: call.into(), n }
}

pub(crate) fn answer(pending: PendingId, answer: Answer) -> Input {
    Input::Answer { pending, answer, plan: None, request_context: None }
}

pub(crate) fn plan_answer(pending: PendingId, profile: Option<Profile>) -> Input {
    let plan = PlanReply { output: ToolOutput::text("Plan decided"), is_error: false, profile: profile.map(Box::new) };
    Input::Answer { pending, answer: reply(json!({ "action": "approved" })), plan: Some(plan), request_context: None }
}

pub(crate) fn reply(value: Value) -> Answer {
    Answer::Reply { value }
}

pub(crate) fn approve() -> Answer {
    Answer::Approve { grant: None }
}

pub(crate) fn grant() -> Answer {
    Answer::Approve { grant: Some(GrantTarget::Tool("tool".into())) }
}

pub(crate) fn decline() -> Answer {
    Answer::Decline { reason: None }
}

pub(crate) fn result(text: &str) -> ToolResult {
    ToolResult { output: ToolOutput::text(text), is_error: false }
}

pub(crate) fn done(run: &RunSnapshot, call: &str) -> Input {
    Input::ToolDone { call: call.into(), attempt: slot_attempt(run, call), result: result("ok") }
}

pub(crate) fn suspended(run: &RunSnapshot, call: &str, kind: SuspendKind) -> Input {
    let suspend = Suspend { kind, payload: json!({ "q": 1 }), state: json!({ "s": 1 }), answer_schema: None };
    Input::ToolSuspended { call: call.into(), attempt: slot_attempt(run, call), suspend }
}

pub(crate) fn delegated(run: &RunSnapshot, call: &str) -> Input {
    let child = ChildRun { task: "do".into(), agent: "worker".into(), options: Value::Null };
    Input::ToolDelegated { call: call.into(), attempt: slot_attempt(run, call), child }
}

pub(crate) fn interrupted(run: &RunSnapshot, call: &str) -> Input {
    Input::ToolInterrupted { call: call.into(), attempt: slot_attempt(run, call) }
}

pub(crate) fn child_finished(call: &str) -> Input {
    Input::ChildFinished { call: call.into(), result: result("child"), usage: Some(Usage::new(3, 4)) }
}

fn slot_attempt(run: &RunSnapshot, call: &str) -> u32 {
    run.slots().iter().find(|slot| slot.call.as_str() == call).map_or(1, |slot| slot.attempt)
}

pub(crate) fn message(id: &str) -> Input {
    Input::Message { message: user(id), decline: true }
}

pub(crate) fn inject(id: &str) -> Input {
    Input::Message { message: note(id), decline: false }
}

pub(crate) fn failed(run: &RunSnapshot, retry: bool, partial: &str) -> Input {
    let partial = if partial.is_empty() { vec![] } else { vec![Part::text(partial)] };
    Input::SampleFailed { attempt: run.attempt, error: ErrorInfo::new("model.server", "it broke"), retry, partial }
}

pub(crate) fn stopped(run: &RunSnapshot, partial: &str) -> Input {
    let partial = if partial.is_empty() { vec![] } else { vec![Part::text(partial)] };
    Input::SampleStopped { attempt: run.attempt, partial }
}

pub(crate) fn recover(run: &RunSnapshot) -> Input {
    Input::Recover { epoch: run.epoch + 1 }
}

pub(crate) fn cancel(call: &str) -> Input {
    Input::CancelCall { call: ToolCallId::from(call) }
}

/// The state of a call as its stored message has it: `call`, `result …`, `failed …`, `denied …`.
pub(crate) fn stored(effects: &[Effect], call: &str) -> String {
    let message = effects.iter().rev().find_map(|effect| match effect {
        Effect::Put(message) if message.tool_calls().any(|part| part.id.as_str() == call) => Some(message),
        _ => None,
    });
    match message.and_then(|message| message.tool_calls().find(|part| part.id.as_str() == call).map(|part| part.state.clone())) {
        None => "not stored".into(),
        Some(ac_core::ToolCallState::Call) => "call".into(),
        Some(ac_core::ToolCallState::Result { output, is_error: false }) => format!("result {}", output.model_text()),
        Some(ac_core::ToolCallState::Result { output, is_error: true }) => format!("failed {}", output.model_text()),
        Some(ac_core::ToolCallState::OutputDenied { reason }) => format!("denied {reason}"),
        Some(_) => "unknown".into(),
    }
}

pub(crate) fn moments(effects: &[Effect]) -> Vec<&Moment> {
    effects.iter().filter_map(|effect| if let Effect::Tell(moment) = effect { Some(moment) } else { None }).collect()
}

pub(crate) fn puts(effects: &[Effect]) -> Vec<&str> {
    effects.iter().filter_map(|effect| if let Effect::Put(message) = effect { Some(message.id.as_str()) } else { None }).collect()
}

/// Refused, with nothing changed.
pub(crate) fn refused(run: &RunSnapshot, input: Input) -> Refusal {
    let mut after = run.clone();
    let shown = format!("{input:?}");
    let refusal = after.step(at(5), input).expect_err(&shown);
    assert_eq!(after, *run, "{shown} was refused and changed something");
    refusal
}

pub(crate) fn is_ready(run: &RunSnapshot, step: u32) -> bool {
    run.phase == Phase::Ready && run.step == step
}
