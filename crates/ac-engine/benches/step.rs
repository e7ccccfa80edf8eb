//! What one input costs. The machine is asked a handful of times per model call, so microseconds are nothing; what matters is that the
//! cost does not grow with the run.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use ac_core::{
    Decision, FinishReason, Message, Part, PendingId, Timestamp, ToolCallPart, ToolCategory, ToolEffect, ToolOutput,
    model::Finish,
    permission::{Reason, Verdict},
};
use ac_engine::{Answer, CallPlan, Gate, Input, Profile, RunSnapshot, StartRun, ToolResult};
use divan::{Bencher, black_box};
use serde_json::json;

fn main() {
    divan::main();
}

const AT: Timestamp = Timestamp::from_millis(1);

fn started() -> RunSnapshot {
    let mut profile = Profile::new("agent", "build", "mock/one");
    // The same call in each step: neither budget nor loop guard ends the run.
    (profile.limits.steps, profile.limits.repeats) = (u32::MAX, None);
    let messages = vec![Message::user("m0", "go", AT)];
    RunSnapshot::start(StartRun { run: "r".into(), thread: "t".into(), parent: None, profile, messages, from_queue: false }, AT)
}

fn sampled(run: &RunSnapshot, calls: usize, gate: &Gate) -> Input {
    let ids = (0..calls).map(|n| format!("c{n}~{}", run.step));
    let parts = ids.clone().map(|id| Part::ToolCall(ToolCallPart::new(id, "tool", json!({ "path": "src/lib.rs" }))));
    let plans = ids.map(|id| CallPlan {
        call: id.into(),
        gate: gate.clone(),
        decision: Decision { verdict: Verdict::Allow, reason: Reason::Default },
        effect: ToolEffect::Mutating,
        category: ToolCategory::Edit,
        answer_schema: None,
        definition: "d".into(),
    });
    Input::Sampled {
        attempt: run.attempt,
        parts: std::iter::once(Part::text("I will")).chain(parts).collect(),
        calls: plans.collect(),
        finish: Finish::new(FinishReason::ToolCalls),
    }
}

fn approve(run: &RunSnapshot, call: &str) -> Input {
    let pending = PendingId { run: run.run.clone(), step: run.step, call: call.into(), n: 1 };
    Input::Answer { pending, answer: Answer::Approve { grant: None }, plan: None, request_context: None }
}

/// A step with approvals, from the dispatch of the model to the next one.
fn one_step(run: &mut RunSnapshot, calls: usize) {
    run.step(AT, Input::Dispatch).unwrap();
    let input = sampled(run, calls, &Gate::Ask);
    run.step(AT, input).unwrap();
    let asked: Vec<_> = run.slots().iter().map(|slot| slot.call.clone()).collect();
    for call in &asked {
        let input = approve(run, call.as_str());
        run.step(AT, input).unwrap();
    }
    run.step(AT, Input::Dispatch).unwrap();
    for call in asked {
        let result = ToolResult { output: ToolOutput::text("done"), is_error: false };
        run.step(AT, Input::ToolDone { call, attempt: 1, result }).unwrap();
    }
}

/// A run that has done so many steps, with one approval each.
fn after(steps: usize) -> RunSnapshot {
    let mut run = started();
    for _ in 0..steps {
        one_step(&mut run, 1);
    }
    run
}

#[divan::bench(args = [0, 100, 1_000])]
fn dispatch_of_a_model_call_after_steps(bencher: Bencher, steps: usize) {
    let run = after(steps);
    bencher.with_inputs(|| run.clone()).bench_refs(|run| black_box(run.step(AT, Input::Dispatch).unwrap()));
}

#[divan::bench(args = [1, 8])]
fn an_answer_with_calls(bencher: Bencher, calls: usize) {
    let mut run = started();
    run.step(AT, Input::Dispatch).unwrap();
    let input = sampled(&run, calls, &Gate::Ask);
    bencher.with_inputs(|| (run.clone(), input.clone())).bench_refs(|(run, input)| black_box(run.step(AT, input.clone()).unwrap()));
}

#[divan::bench(args = [0, 100, 1_000])]
fn an_approval_after_steps(bencher: Bencher, steps: usize) {
    let mut run = after(steps);
    run.step(AT, Input::Dispatch).unwrap();
    let input = sampled(&run, 1, &Gate::Ask);
    run.step(AT, input).unwrap();
    let call = run.slots().first().unwrap().call.clone();
    let input = approve(&run, call.as_str());
    bencher.with_inputs(|| (run.clone(), input.clone())).bench_refs(|(run, input)| black_box(run.step(AT, input.clone()).unwrap()));
}

#[divan::bench]
fn a_whole_step_with_four_approvals(bencher: Bencher) {
    bencher.with_inputs(started).bench_refs(|run| one_step(run, 4));
}

/// What storing adds: the record is written whole with each commit.
#[divan::bench(args = [0, 100, 1_000])]
fn a_snapshot_as_text_after_steps(bencher: Bencher, steps: usize) {
    let run = after(steps);
    bencher.bench(|| serde_json::to_string(black_box(&run)).unwrap());
}
