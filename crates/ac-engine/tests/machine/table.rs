//! RUN.md's two tables, cell by cell. Each cell is a state made by inputs, one more input, and what must come of it.

use std::collections::BTreeMap;

use crate::support::*;
use ac_core::{FinishReason, SuspendKind, ToolCallState, ToolEffect};
use ac_engine::{Answer, Effect, Gate, Input, OutboxAction, Refusal, RunSnapshot, transitions::Place};
use serde_json::json;

/// What came of an input: `=` nothing, `!Kind` refused, else the place it led to and what else happened.
fn outcome(before: &RunSnapshot, input: Input, call: Option<&str>) -> String {
    let mut after = before.clone();
    let effects = match step(&mut after, at(7), input) {
        Ok(effects) => effects,
        Err(refusal) => {
            assert_eq!(after, *before, "refused ({refusal:?}) and changed something");
            return format!("!{refusal:?}");
        }
    };
    if after == *before {
        assert!(effects.is_empty(), "nothing changed, yet {effects:?}");
        return "=".into();
    }
    let find = |run: &RunSnapshot| run.slots().iter().find(|slot| Some(slot.call.as_str()) == call).map(Place::of_slot);
    let (was, is) = match call {
        Some(_) => (find(before), find(&after)),
        None => (Some(Place::of_run(before)), Some(Place::of_run(&after))),
    };
    let mut said = match is {
        None => "gone".to_owned(),
        Some(_) if was == is && after.step == before.step => "stays".to_owned(),
        Some(Place::Done) => match after.call_part(&call.unwrap().into()).unwrap().state {
            ToolCallState::Result { is_error: false, .. } => "result".to_owned(),
            ToolCallState::Result { is_error: true, .. } => "failed".to_owned(),
            ToolCallState::OutputDenied { ref reason } if reason.starts_with("Interrupted") => "interrupted".to_owned(),
            ToolCallState::OutputDenied { .. } => "denied".to_owned(),
            _ => "without result".to_owned(),
        },
        Some(place) => place.to_string(),
    };
    if call.is_none() && after.step > before.step {
        said += "+next";
    }
    for effect in &effects {
        let mine = |other: &ac_core::ToolCallId| call.is_none() || call == Some(other.as_str());
        said += match effect {
            Effect::Sample { .. } => "+sample",
            Effect::RunTool { call, .. } if mine(call) => "+run",
            Effect::Judge { .. } => "+judge",
            Effect::StopSample { .. } | Effect::StopJudge => "+stop",
            Effect::StopTool { call } if mine(call) => "+stop",
            _ => "",
        };
    }
    for item in after.outbox.iter().filter(|item| item.n >= before.next_outbox) {
        said += match &item.action {
            OutboxAction::SetMode { .. } => "+SetMode",
            OutboxAction::Grant { .. } => "+Grant",
            OutboxAction::RemoveQueued { .. } => "+RemoveQueued",
            OutboxAction::StartChild { .. } => "+StartChild",
            OutboxAction::AbortChild { .. } => "+AbortChild",
            OutboxAction::InterruptChild { .. } => "+InterruptChild",
        };
    }
    if after.queued.len() > before.queued.len() {
        said += "+queued";
    }
    said
}

/// Reads a table: the first line names the columns, each other line a row.
fn check(table: &str, call: Option<&str>, state: impl Fn(&str) -> RunSnapshot, input: impl Fn(&str, &RunSnapshot) -> Input) {
    let mut lines = table.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| line.split('|').map(str::trim));
    let columns: Vec<&str> = lines.next().unwrap().skip(1).collect();
    let mut wrong = vec![];
    let mut cells = 0;
    for mut line in lines {
        let row = line.next().unwrap();
        let before = state(row);
        let expected: Vec<&str> = line.collect();
        assert_eq!(expected.len(), columns.len(), "row {row}");
        for (column, expected) in columns.iter().zip(expected) {
            cells += 1;
            let got = outcome(&before, input(column, &before), call);
            if got != expected {
                wrong.push(format!("{row} × {column}: {got}, expected {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {cells} cells are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

// ---- the run -----------------------------------------------------------------------------------------------------------------------

fn run_in(state: &str) -> RunSnapshot {
    match state {
        "ready" => {
            let mut run = tools(&[run_it("c")]);
            ok(&mut run, Input::Dispatch);
            let input = done(&run, "c");
            ok(&mut run, input);
            run
        }
        "ready, queued" => {
            let mut run = run_in("ready");
            ok(&mut run, message("m1"));
            run
        }
        "ready, spent" => {
            let mut profile = profile();
            profile.limits.steps = 1;
            let mut run = started_with(profile);
            ok(&mut run, Input::Dispatch);
            let input = answer_of(&run, "", &[deny("c")], FinishReason::ToolCalls);
            ok(&mut run, input);
            run
        }
        "ready, outbox" => {
            let mut run = run_in("tools, outbox");
            let input = done(&run, "c");
            ok(&mut run, input);
            run
        }
        "retrying" => {
            let mut run = sampling();
            let input = failed(&run, true, "some");
            ok(&mut run, input);
            run
        }
        "sampling" => sampling(),
        "sampling, queued" => {
            let mut run = sampling();
            ok(&mut run, message("m1"));
            run
        }
        "sampling, cancel" => {
            let mut run = sampling();
            ok(&mut run, Input::Abort { go_on: false });
            run
        }
        "sampling, steer" => {
            let mut run = run_in("sampling, queued");
            ok(&mut run, Input::Abort { go_on: true });
            run
        }
        "tools" => {
            let mut run = tools(&[run_it("c")]);
            ok(&mut run, Input::Dispatch);
            run
        }
        "tools, queued" => {
            let mut run = run_in("tools");
            ok(&mut run, message("m1"));
            run
        }
        "tools, asking" => tools(&[ask("c")]),
        "tools, cancel" => {
            let mut run = run_in("tools");
            ok(&mut run, Input::Abort { go_on: false });
            run
        }
        "tools, steer" => {
            let mut run = run_in("tools, queued");
            ok(&mut run, Input::Abort { go_on: true });
            run
        }
        "tools, outbox" => {
            let mut run = tools(&[ask("c")]);
            let input = answer(pending(&run, "c"), grant());
            ok(&mut run, input);
            ok(&mut run, Input::Dispatch);
            run
        }
        "tools, outbox, cancel" => {
            let mut run = run_in("tools, outbox");
            ok(&mut run, Input::Abort { go_on: false });
            run
        }
        "finished" => {
            let mut run = run_in("tools, outbox, cancel");
            let input = done(&run, "c");
            ok(&mut run, input);
            run
        }
        "judging" => {
            let mut run = started_with(judged_profile());
            ok(&mut run, Input::Dispatch);
            let input = answer_of(&run, "done", &[], FinishReason::Stop);
            ok(&mut run, input);
            run
        }
        "judging, asked" => {
            let mut run = run_in("judging");
            ok(&mut run, Input::Dispatch);
            run
        }
        "closed" => {
            let mut run = sampling();
            let input = answer_of(&run, "done", &[], FinishReason::Stop);
            ok(&mut run, input);
            run
        }
        other => panic!("no state {other}"),
    }
}

fn run_input(name: &str, run: &RunSnapshot) -> Input {
    match name {
        "dispatch" => Input::Dispatch,
        "message" => message("m2"),
        "inject" => inject("n1"),
        "abort" => Input::Abort { go_on: false },
        "steer" => Input::Abort { go_on: true },
        "recover" => recover(run),
        "recover old" => Input::Recover { epoch: run.epoch },
        "answer" => answer_of(run, "hello", &[], FinishReason::Stop),
        "calls" => answer_of(run, "hello", &[run_it("d")], FinishReason::ToolCalls),
        "cut" => answer_of(run, "hello", &[], FinishReason::Length),
        "asks" => answer_of(run, "hello", &[ask("d"), run_it("e")], FinishReason::ToolCalls),
        "denied" => answer_of(run, "hello", &[deny("d")], FinishReason::ToolCalls),
        "mixed" => answer_of(run, "hello", &[deny("d"), run_it("e")], FinishReason::Length),
        "denied, cut" => answer_of(run, "hello", &[deny("d")], FinishReason::Length),
        "paused" => answer_of(run, "hello", &[], FinishReason::Pause),
        "nothing" => answer_of(run, "", &[], FinishReason::Pause),
        "fail" => failed(run, false, "some"),
        "retry" => failed(run, true, "some"),
        "stopped" => stopped(run, "some"),
        "late" => Input::Sampled {
            attempt: run.attempt.wrapping_sub(1),
            parts: vec![],
            calls: vec![],
            finish: ac_core::model::Finish::new(FinishReason::Stop),
        },
        "enough" => judged(run, false),
        "go on" => judged(run, true),
        "judged late" => Input::Judged { step: run.step + 1, go_on: true, message: None, verdict: None, usage: None },
        "done c" => done(run, "c"),
        "child c" => child_finished("c"),
        "approve c" => answer(wait_n("c", 1), approve()),
        "approve x" => answer(wait_n("x", 1), approve()),
        "withdraw" => Input::Withdraw { message: "m1".into() },
        "cancel c" => cancel("c"),
        "applied" => Input::Applied { upto: run.next_outbox - 1 },
        "applied more" => Input::Applied { upto: run.next_outbox },
        other => panic!("no input {other}"),
    }
}

const RUNS_MOVED: &str = "
    state                 | dispatch        | message       | inject       | abort         | steer         | recover       | recover old | applied | applied more
    ready                 | Sampling+sample | stays+queued  | stays+queued | Closed        | Closed        | stays         | !Stale      | =       | !Stale
    ready, queued         | Sampling+sample | stays+queued  | stays+queued | Closed        | Ready+next    | stays         | !Stale      | =       | !Stale
    ready, spent          | Closed          | stays+queued  | stays+queued | Closed        | Closed        | stays         | !Stale      | =       | !Stale
    ready, outbox         | =               | stays+queued  | stays+queued | Finished      | Finished      | stays         | !Stale      | stays   | !Stale
    retrying              | Sampling+sample | stays+queued  | stays+queued | Closed        | Closed        | stays         | !Stale      | =       | !Stale
    sampling              | =               | stays+queued  | stays+queued | stays+stop    | stays+stop    | Ready         | !Stale      | =       | !Stale
    sampling, queued      | =               | stays+queued  | stays+queued | stays+stop    | stays+stop    | Ready         | !Stale      | =       | !Stale
    sampling, cancel      | =               | stays+queued  | stays+queued | =             | =             | Closed        | !Stale      | =       | !Stale
    sampling, steer       | =               | stays+queued  | stays+queued | stays         | =             | Ready+next    | !Stale      | =       | !Stale
    tools                 | =               | stays+queued  | stays+queued | stays+stop    | stays+stop    | stays         | !Stale      | =       | !Stale
    tools, queued         | =               | stays+queued  | stays+queued | stays+stop    | stays+stop    | stays         | !Stale      | =       | !Stale
    tools, asking         | =               | Ready+next+queued | stays+queued | Closed    | Closed        | stays         | !Stale      | =       | !Stale
    tools, cancel         | =               | stays+queued  | stays+queued | =             | =             | Closed        | !Stale      | =       | !Stale
    tools, steer          | =               | stays+queued  | stays+queued | stays         | =             | Ready+next    | !Stale      | =       | !Stale
    tools, outbox         | =               | stays+queued  | stays+queued | stays+stop    | stays+stop    | stays         | !Stale      | stays   | !Stale
    tools, outbox, cancel | =               | stays+queued  | stays+queued | =             | =             | Finished      | !Stale      | stays   | !Stale
    judging               | stays+judge     | Ready+next+queued | Ready+next+queued | Closed | Closed      | stays         | !Stale      | =       | !Stale
    judging, asked        | =               | Ready+next+stop+queued | Ready+next+stop+queued | Closed+stop | Closed+stop | stays | !Stale | = | !Stale
    finished              | =               | !Finished     | !Finished    | =             | =             | stays         | !Stale      | Closed  | !Stale
    closed                | =               | !Finished     | !Finished    | =             | =             | stays         | !Stale      | =       | !Stale
";

#[test]
pub(crate) fn every_cell_of_the_run_for_inputs_that_anybody_may_commit() {
    check(RUNS_MOVED, None, run_in, run_input);
}

const RUNS_REPORTED: &str = "
    state                 | answer     | calls      | cut        | fail       | retry      | stopped    | late   | done c     | child c | approve c        | approve x   | withdraw    | cancel c
    ready                 | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale | !Stale     | !Stale  | !NotPending      | !NotPending | !NotPending | !NotPending
    ready, queued         | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale | !Stale     | !Stale  | !NotPending      | !NotPending | !NotPending | !NotPending
    retrying              | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale | !Stale     | !Stale  | !NotPending      | !NotPending | !NotPending | !NotPending
    sampling              | Closed     | Tools      | Closed     | Closed     | Ready      | !Stale     | !Stale | !Stale     | !Stale  | !NotPending      | !NotPending | !NotPending | !NotPending
    sampling, queued      | Ready+next | Tools      | Closed     | Closed     | Ready      | !Stale     | !Stale | !Stale     | !Stale  | !NotPending      | !NotPending | stays       | !NotPending
    sampling, cancel      | Closed     | Closed     | Closed     | Closed     | Closed     | Closed     | !Stale | !Stale     | !Stale  | !NotPending      | !NotPending | !NotPending | !NotPending
    sampling, steer       | Ready+next | Ready+next | Ready+next | Ready+next | Ready+next | Ready+next | !Stale | !Stale     | !Stale  | !NotPending      | !NotPending | stays       | !NotPending
    tools                 | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale | Ready+next | !Stale  | !NotPending      | !NotPending | !NotPending | stays+stop
    tools, queued         | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale | Ready+next | !Stale  | !NotPending      | !NotPending | stays       | stays+stop
    tools, asking         | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale | !Stale     | !Stale  | stays            | !NotPending | !NotPending | Ready+next
    tools, cancel         | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale | Closed     | !Stale  | !NotPending      | !NotPending | !NotPending | =
    tools, steer          | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale | Ready+next | !Stale  | !NotPending      | !NotPending | stays       | =
    tools, outbox         | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale | Ready+next | !Stale  | !AlreadyResolved | !NotPending | !NotPending | stays+stop
    tools, outbox, cancel | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale | Finished   | !Stale  | !AlreadyResolved | !NotPending | !NotPending | =
    judging               | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale | !Stale     | !Stale  | !NotPending      | !NotPending | !NotPending | !NotPending
    judging, asked        | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale | !Stale     | !Stale  | !NotPending      | !NotPending | !NotPending | !NotPending
    finished              | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale | !Stale     | !Stale  | !AlreadyResolved | !NotPending | !NotPending | !Finished
    closed                | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale     | !Stale | !Stale     | !Stale  | !NotPending      | !NotPending | !NotPending | !Finished
";

#[test]
pub(crate) fn every_cell_of_the_run_for_reports_and_answers() {
    check(RUNS_REPORTED, None, run_in, run_input);
}

const ANSWERS_TAKEN: &str = "
    state            | asks       | denied     | mixed      | denied, cut | paused     | nothing
    sampling         | Tools      | Ready+next | Tools      | Closed      | Ready+next | Closed
    sampling, queued | Tools      | Ready+next | Tools      | Closed      | Ready+next | Ready+next
    sampling, cancel | Closed     | Closed     | Closed     | Closed      | Closed     | Closed
    sampling, steer  | Ready+next | Ready+next | Ready+next | Ready+next  | Ready+next | Ready+next
    tools            | !Stale     | !Stale     | !Stale     | !Stale      | !Stale     | !Stale
    closed           | !Stale     | !Stale     | !Stale     | !Stale      | !Stale     | !Stale
";

#[test]
pub(crate) fn every_kind_of_answer_of_the_model() {
    check(ANSWERS_TAKEN, None, run_in, run_input);
}

const JUDGED: &str = "
    state            | enough | go on      | judged late
    judging          | Closed | Ready+next | !Stale
    judging, asked   | Closed | Ready+next | !Stale
    sampling         | !Stale | !Stale     | !Stale
    tools            | !Stale | !Stale     | !Stale
    closed           | !Stale | !Stale     | !Stale
";

#[test]
pub(crate) fn every_verdict_on_the_last_word() {
    check(JUDGED, None, run_in, run_input);
}

#[test]
pub(crate) fn a_last_word_is_judged() {
    let mut run = started_with(judged_profile());
    ok(&mut run, Input::Dispatch);
    let input = answer_of(&run, "done", &[], FinishReason::Stop);
    ok(&mut run, input);
    assert_eq!(Place::of_run(&run), Place::Judging);
    // A step with calls, an error and the last word of a child are not.
    for (profile, parent) in [(judged_profile(), Some(("p".into(), "c".into()))), (profile(), None)] {
        let mut run = started_with(profile);
        run.parent = parent;
        ok(&mut run, Input::Dispatch);
        let input = answer_of(&run, "done", &[], FinishReason::Stop);
        ok(&mut run, input);
        assert_eq!(Place::of_run(&run), Place::Closed);
    }
    let mut run = started_with(judged_profile());
    ok(&mut run, Input::Dispatch);
    let input = answer_of(&run, "do", &[], FinishReason::Length);
    ok(&mut run, input);
    assert_eq!(Place::of_run(&run), Place::Closed);
}

// ---- a call ------------------------------------------------------------------------------------------------------------------------

/// The call `c` in a state, beside a call that keeps the step open.
fn call_in(state: &str, effect: ToolEffect) -> RunSnapshot {
    let next = |from: &str, input: &dyn Fn(&RunSnapshot) -> Input| {
        let mut run = call_in(from, effect);
        let input = input(&run);
        ok(&mut run, input);
        run
    };
    let dispatched = |mut run: RunSnapshot| {
        ok(&mut run, Input::Dispatch);
        run
    };
    match state {
        "awaiting" => dispatched(tools(&[Ask("c", Gate::Ask, effect), Ask("other", Gate::Run, ToolEffect::ReadOnly)])),
        "queued" => next("awaiting", &|run| answer(pending(run, "c"), approve())),
        "running" => dispatched(call_in("queued", effect)),
        "question" => next("running", &|run| suspended(run, "c", SuspendKind::Question)),
        "plan" => next("running", &|run| suspended(run, "c", SuspendKind::Plan)),
        "answered" => next("question", &|run| answer(pending(run, "c"), reply(json!("yes")))),
        "resuming" => dispatched(call_in("answered", effect)),
        "child" => next("running", &|run| delegated(run, "c")),
        "in doubt" => dispatched(next("running", &recover)),
        "in doubt, resumed" => dispatched(next("resuming", &recover)),
        "again" => next("in doubt", &|run| answer(pending(run, "c"), Answer::RunAgain)),
        "done" => next("running", &|run| done(run, "c")),
        "running, cancel" => next("running", &|_| Input::Abort { go_on: false }),
        "resuming, cancel" => next("resuming", &|_| Input::Abort { go_on: false }),
        "child, cancel" => next("child", &|_| Input::Abort { go_on: false }),
        "running, cancelled" => next("running", &|_| cancel("c")),
        "resuming, cancelled" => next("resuming", &|_| cancel("c")),
        "child, cancelled" => next("child", &|_| cancel("c")),
        other => panic!("no state {other}"),
    }
}

fn call_input(name: &str, run: &RunSnapshot) -> Input {
    let open = pending(run, "c");
    let next = ac_core::PendingId { n: open.n + 1, ..open.clone() };
    match name {
        "approve" => answer(open, approve()),
        "grant" => answer(open, grant()),
        "decline" => answer(open, decline()),
        "reply" => answer(open, reply(json!("yes"))),
        "plan, no" => plan_answer(open, None),
        "plan, go" => plan_answer(open, Some(profile())),
        "run again" => answer(open, Answer::RunAgain),
        "record" => answer(open, Answer::RecordFailed),
        "approve next" => answer(next, approve()),
        "reply next" => answer(next, reply(json!("yes"))),
        "approve first" => answer(wait_n("c", 1), approve()),
        "decline first" => answer(wait_n("c", 1), decline()),
        "done" => done(run, "c"),
        "suspend" => suspended(run, "c", SuspendKind::Question),
        "plan" => suspended(run, "c", SuspendKind::Plan),
        "delegate" => delegated(run, "c"),
        "interrupted" => interrupted(run, "c"),
        "late" => Input::ToolDone { call: "c".into(), attempt: slot(run, "c").attempt + 1, result: result("late") },
        "child" => child_finished("c"),
        "dispatch" => Input::Dispatch,
        "message" => message("m1"),
        "interrupt" => Input::Interrupt { at: at(7) },
        "inject" => inject("n1"),
        "abort" => Input::Abort { go_on: true },
        "cancel" => cancel("c"),
        "recover" => recover(run),
        other => panic!("no input {other}"),
    }
}

const CALLS_ANSWERED: &str = "
    state             | approve          | grant            | decline          | reply            | plan, no       | plan, go       | run again        | record           | approve next | reply next  | approve first  | decline first
    awaiting          | Queued           | Queued+Grant     | denied           | !InvalidAnswer   | !InvalidAnswer | !InvalidAnswer | !InvalidAnswer   | !InvalidAnswer   | !NotPending  | !NotPending | Queued         | denied
    queued            | =                | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !NotPending  | !NotPending | =              | !AlreadyResolved
    running           | =                | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !NotPending  | !NotPending | =              | !AlreadyResolved
    question          | !InvalidAnswer   | !InvalidAnswer   | denied           | Answered         | !InvalidAnswer | !InvalidAnswer | !InvalidAnswer   | !InvalidAnswer   | !NotPending  | !NotPending | =              | !AlreadyResolved
    plan              | !InvalidAnswer   | !InvalidAnswer   | denied           | !InvalidAnswer   | result         | result+SetMode | !InvalidAnswer   | !InvalidAnswer   | !NotPending  | !NotPending | =              | !AlreadyResolved
    answered          | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | =                | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !NotPending  | !NotPending | =              | !AlreadyResolved
    resuming          | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | =                | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !NotPending  | !NotPending | =              | !AlreadyResolved
    child             | =                | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !NotPending  | !NotPending | =              | !AlreadyResolved
    in doubt          | !InvalidAnswer   | !InvalidAnswer   | !InvalidAnswer   | !InvalidAnswer   | !InvalidAnswer | !InvalidAnswer | Queued           | failed           | !NotPending  | !NotPending | =              | !AlreadyResolved
    in doubt, resumed | !InvalidAnswer   | !InvalidAnswer   | !InvalidAnswer   | !InvalidAnswer   | !InvalidAnswer | !InvalidAnswer | Answered         | failed           | !NotPending  | !NotPending | =              | !AlreadyResolved
    again             | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | =                | !AlreadyResolved | !NotPending  | !NotPending | =              | !AlreadyResolved
    done              | =                | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !NotPending  | !NotPending | =              | !AlreadyResolved
    running, cancel   | =                | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved | !NotPending  | !NotPending | =              | !AlreadyResolved
";

#[test]
pub(crate) fn every_cell_of_a_call_for_answers() {
    check(CALLS_ANSWERED, Some("c"), |state| call_in(state, ToolEffect::Mutating), call_input);
}

const CALLS_REPORTED: &str = "
    state               | done   | suspend        | plan   | delegate         | interrupted | late   | child
    awaiting            | !Stale | !Stale         | !Stale | !Stale           | !Stale      | !Stale | !Stale
    queued              | !Stale | !Stale         | !Stale | !Stale           | !Stale      | !Stale | !Stale
    running             | result | Question       | Plan   | Child+StartChild | interrupted | !Stale | !Stale
    question            | !Stale | !Stale         | !Stale | !Stale           | !Stale      | !Stale | !Stale
    plan                | !Stale | !Stale         | !Stale | !Stale           | !Stale      | !Stale | !Stale
    answered            | !Stale | !Stale         | !Stale | !Stale           | !Stale      | !Stale | !Stale
    resuming            | result | Question       | Plan   | Child+StartChild | interrupted | !Stale | !Stale
    child               | !Stale | !Stale         | !Stale | !Stale           | !Stale      | !Stale | result
    in doubt            | !Stale | !Stale         | !Stale | !Stale           | !Stale      | !Stale | !Stale
    in doubt, resumed   | !Stale | !Stale         | !Stale | !Stale           | !Stale      | !Stale | !Stale
    again               | !Stale | !Stale         | !Stale | !Stale           | !Stale      | !Stale | !Stale
    done                | !Stale | !Stale         | !Stale | !Stale           | !Stale      | !Stale | !Stale
    running, cancel     | result | denied         | denied | denied           | interrupted | !Stale | !Stale
    resuming, cancel    | result | denied         | denied | denied           | interrupted | !Stale | !Stale
    child, cancel       | !Stale | !Stale         | !Stale | !Stale           | !Stale      | !Stale | result
    running, cancelled  | result | denied         | denied | denied           | interrupted | !Stale | !Stale
    resuming, cancelled | result | denied         | denied | denied           | interrupted | !Stale | !Stale
    child, cancelled    | !Stale | !Stale         | !Stale | !Stale           | !Stale      | !Stale | result
";

#[test]
pub(crate) fn every_cell_of_a_call_for_reports() {
    check(CALLS_REPORTED, Some("c"), |state| call_in(state, ToolEffect::Mutating), call_input);
}

const CALLS_MOVED: &str = "
    state               | dispatch     | message       | inject       | abort            | cancel           | recover | interrupt
    awaiting            | =            | denied+queued | stays+queued | denied           | denied           | stays | denied
    queued              | Running+run  | stays+queued  | stays+queued | denied           | denied           | stays | =
    running             | =            | stays+queued  | stays+queued | stays+stop       | stays+stop       | InDoubt | =
    question            | =            | stays+queued  | stays+queued | denied           | denied           | stays | =
    plan                | =            | stays+queued  | stays+queued | denied           | denied           | stays | =
    answered            | Resuming+run | stays+queued  | stays+queued | denied           | denied           | stays | =
    resuming            | =            | stays+queued  | stays+queued | stays+stop       | stays+stop       | InDoubt | =
    child               | =            | stays+InterruptChild+queued | stays+queued | stays+AbortChild | stays+AbortChild | stays | stays+InterruptChild
    in doubt            | =            | stays+queued  | stays+queued | interrupted      | interrupted      | stays | =
    in doubt, resumed   | =            | stays+queued  | stays+queued | interrupted      | interrupted      | stays | =
    again               | Running+run  | stays+queued  | stays+queued | interrupted      | interrupted      | stays | =
    done                | =            | stays+queued  | stays+queued | stays            | !NotPending      | stays | =
    running, cancel     | =            | stays+queued  | stays+queued | =                | =                | gone | =
    resuming, cancel    | =            | stays+queued  | stays+queued | =                | =                | gone | =
    child, cancel       | =            | stays+queued  | stays+queued | =                | =                | stays | =
    running, cancelled  | =            | stays+queued  | stays+queued | stays+stop       | =                | interrupted | =
    resuming, cancelled | =            | stays+queued  | stays+queued | stays+stop       | =                | interrupted | =
    child, cancelled    | =            | stays+queued  | stays+queued | stays            | =                | stays | =
";

#[test]
pub(crate) fn every_cell_of_a_call_for_everything_else() {
    check(CALLS_MOVED, Some("c"), |state| call_in(state, ToolEffect::Mutating), call_input);
}

// ---- the last call of a step -------------------------------------------------------------------------------------------------------

/// A run with one call, and what else was done to it, word by word.
fn last_in(state: &str) -> RunSnapshot {
    let mut words = state.split(", ");
    let base = words.next().unwrap();
    let words: Vec<&str> = words.collect();
    let mut run = tools(&[ask("c")]);
    let apply = |run: &mut RunSnapshot, input: &dyn Fn(&RunSnapshot) -> Input| {
        let input = input(run);
        ok(run, input);
    };
    let mut path: Vec<&dyn Fn(&RunSnapshot) -> Input> = vec![];
    let approval = if words.contains(&"granted") { grant() } else { approve() };
    let approved = move |run: &RunSnapshot| answer(pending(run, "c"), approval.clone());
    let dispatched = |_: &RunSnapshot| Input::Dispatch;
    let asked = |run: &RunSnapshot| suspended(run, "c", SuspendKind::Question);
    let planned = |run: &RunSnapshot| suspended(run, "c", SuspendKind::Plan);
    let child = |run: &RunSnapshot| delegated(run, "c");
    match base {
        "awaiting" => {}
        "running" => path.extend([&approved as &dyn Fn(&RunSnapshot) -> Input, &dispatched]),
        "question" => path.extend([&approved as &dyn Fn(&RunSnapshot) -> Input, &dispatched, &asked]),
        "plan" => path.extend([&approved as &dyn Fn(&RunSnapshot) -> Input, &dispatched, &planned]),
        "child" => path.extend([&approved as &dyn Fn(&RunSnapshot) -> Input, &dispatched, &child]),
        "in doubt" => path.extend([&approved as &dyn Fn(&RunSnapshot) -> Input, &dispatched, &recover]),
        other => panic!("no state {other}"),
    }
    for input in path {
        apply(&mut run, input);
    }
    for word in words {
        apply(&mut run, &|run| match word {
            "granted" => Input::Applied { upto: 0 },
            "queued" => Input::Message { message: user("m9"), decline: false },
            "applied" => Input::Applied { upto: run.next_outbox - 1 },
            "cancelled" => cancel("c"),
            "cancel" => Input::Abort { go_on: false },
            "steer" => Input::Abort { go_on: true },
            other => panic!("no word {other}"),
        });
    }
    run
}

const LAST_REPORTED: &str = "
    state                             | done       | interrupted | suspend    | delegate         | child      | recover
    running                           | Ready+next | Ready+next  | stays      | stays+StartChild | !Stale     | stays
    running, granted                  | Ready+next | Ready+next  | stays      | stays+StartChild | !Stale     | stays
    running, cancelled                | Ready+next | Ready+next  | Ready+next | Ready+next       | !Stale     | Ready+next
    running, cancel                   | Closed     | Closed      | Closed     | Closed           | !Stale     | Closed
    running, granted, cancel          | Finished   | Finished    | Finished   | Finished         | !Stale     | Finished
    running, queued, steer            | Ready+next | Ready+next  | Ready+next | Ready+next       | !Stale     | Ready+next
    running, queued, cancel           | Closed     | Closed      | Closed     | Closed           | !Stale     | Closed
    child                             | !Stale     | !Stale      | !Stale     | !Stale           | Ready+next | stays
    child, applied, cancel            | !Stale     | !Stale      | !Stale     | !Stale           | Finished   | stays
    child, applied, cancel, applied   | !Stale     | !Stale      | !Stale     | !Stale           | Closed     | stays
    child, cancelled, applied         | !Stale     | !Stale      | !Stale     | !Stale           | Ready+next | stays
    child, queued, steer, applied     | !Stale     | !Stale      | !Stale     | !Stale           | Ready+next | stays
";

#[test]
pub(crate) fn every_cell_of_the_last_call_for_reports() {
    check(LAST_REPORTED, None, last_in, call_input);
}

const LAST_ANSWERED: &str = "
    state              | decline          | plan, no       | plan, go            | record         | message           | cancel           | abort | interrupt
    awaiting           | Ready+next       | !InvalidAnswer | !InvalidAnswer      | !InvalidAnswer | Ready+next+queued | Ready+next       | Closed | Ready+next
    awaiting, queued   | Ready+next       | !InvalidAnswer | !InvalidAnswer      | !InvalidAnswer | Ready+next+queued | Ready+next       | Ready+next | Ready+next
    question           | Ready+next       | !InvalidAnswer | !InvalidAnswer      | !InvalidAnswer | stays+queued      | Ready+next       | Closed | =
    question, granted  | Ready+next       | !InvalidAnswer | !InvalidAnswer      | !InvalidAnswer | stays+queued      | Ready+next       | Finished | =
    question, queued   | Ready+next       | !InvalidAnswer | !InvalidAnswer      | !InvalidAnswer | stays+queued      | Ready+next       | Ready+next | =
    plan               | Ready+next       | Ready+next     | Ready+next+SetMode  | !InvalidAnswer | stays+queued      | Ready+next       | Closed | =
    in doubt           | !InvalidAnswer   | !InvalidAnswer | !InvalidAnswer      | Ready+next     | stays+queued      | Ready+next       | Closed | =
    child              | !AlreadyResolved | !AlreadyResolved | !AlreadyResolved  | !AlreadyResolved | stays+InterruptChild+queued | stays+AbortChild | stays+AbortChild | stays+InterruptChild
";

#[test]
pub(crate) fn every_cell_of_the_last_call_for_answers() {
    check(LAST_ANSWERED, None, last_in, call_input);
}

/// `R5`: what a crash does to a call that was going on, by what the call does to the world.
#[test]
pub(crate) fn recovery_runs_again_what_may_run_again_and_asks_about_the_rest() {
    let expected = BTreeMap::from([
        (("running", "ReadOnly"), "Queued"),
        (("running", "Idempotent"), "Queued"),
        (("running", "Mutating"), "InDoubt"),
        (("resuming", "ReadOnly"), "Answered"),
        (("resuming", "Idempotent"), "Answered"),
        (("resuming", "Mutating"), "InDoubt"),
        (("queued", "Mutating"), "stays"),
        (("answered", "Mutating"), "stays"),
        (("question", "Mutating"), "stays"),
    ]);
    for ((state, effect), expected) in expected {
        let effect = match effect {
            "ReadOnly" => ToolEffect::ReadOnly,
            "Idempotent" => ToolEffect::Idempotent,
            _ => ToolEffect::Mutating,
        };
        let run = call_in(state, effect);
        assert_eq!(outcome(&run, recover(&run), Some("c")), expected, "{state} × {effect:?}");
    }
}

/// With an abort on its way an answer is told so, not that somebody else was first.
#[test]
fn an_answer_to_a_wait_that_an_abort_closed_is_refused_as_aborting_and_later_as_resolved() {
    let mut run = call_in("awaiting", ToolEffect::Mutating);
    ok(&mut run, Input::Abort { go_on: false });
    assert_eq!(refused(&run, answer(wait_n("c", 1), approve())), Refusal::Aborting);
    let input = done(&run, "other");
    ok(&mut run, input);
    assert!(run.is_closed());
    assert_eq!(refused(&run, answer(wait_n("c", 1), approve())), Refusal::AlreadyResolved);
}
