//! What is stored and told about calls.

use ac_core::{FinishReason, PendingId, SuspendKind, ToolCallState, ToolEffect, event::EndReason};
use ac_engine::{Answer, Effect, Gate, Input, Moment, OutboxAction, Outcome, Posture, Refusal, Resolution, RunSnapshot};
use serde_json::json;

use crate::support::*;

/// The moments of some effects, in short.
fn told(effects: &[Effect]) -> Vec<String> {
    moments(effects)
        .into_iter()
        .map(|moment| match moment {
            Moment::Delivered(message) => format!("delivered {}", message.id),
            Moment::MessageChanged { message, parts } => format!("changed {} {parts:?}", message.id),
            Moment::MessageRestarted { id, attempt, of, .. } => format!("restarted {id} {attempt}/{of}"),
            Moment::MessageDone(id) => format!("done {id}"),
            Moment::CallSeen(call) => format!("seen {call}"),
            Moment::ApprovalRequired(pending) => format!("asks {pending}"),
            Moment::Suspended(pending) => format!("suspended {pending}"),
            Moment::Resolved { pending, cancelled: None } => format!("resolved {pending}"),
            Moment::Resolved { pending, cancelled: Some(why) } => format!("closed {pending}: {why}"),
            Moment::CallEnded(call) => format!("ended {call}"),
            Moment::Judged(verdict) => format!("judged {verdict}"),
            Moment::Usage(usage) => format!("usage {}", usage.total),
            Moment::QueueChanged => "queue".into(),
            Moment::SegmentEnd { reason, finish, error } => {
                format!("end {} {finish:?} {:?}", reason.as_str(), error.as_ref().map(|error| error.code.as_str()))
            }
        })
        .collect()
}

#[test]
fn an_answer_is_told_call_by_call_with_refusals_settled_at_once() {
    let mut run = sampling();
    let calls = [
        ask("a"),
        Ask("b", Gate::Deny { reason: "a rule denies it".into() }, ToolEffect::Mutating),
        Ask("c", Gate::Refuse { result: ac_engine::ToolResult { is_error: true, ..result("no such tool") } }, ToolEffect::Mutating),
        run_it("d"),
    ];
    let input = answer_of(&run, "I will", &calls, FinishReason::ToolCalls);
    let effects = ok(&mut run, input);
    assert_eq!(
        told(&effects),
        [
            "usage 15",
            "changed r/0 [0, 1, 2, 3, 4]",
            "seen a",
            "seen b",
            "seen c",
            "seen d",
            "asks r/0/a#1",
            "changed r/0 [2]",
            "ended b",
            "changed r/0 [3]",
            "ended c",
        ]
    );
    assert_eq!(puts(&effects), ["r/0"], "one write per message and commit");
    assert_eq!(stored(&effects, "a"), "call");
    assert_eq!(stored(&effects, "b"), "denied a rule denies it");
    assert_eq!(stored(&effects, "c"), "failed no such tool");
    let first = moments(&effects).into_iter().find_map(|moment| match moment {
        Moment::MessageChanged { message, .. } => Some(message.clone()),
        _ => None,
    });
    assert!(first.unwrap().tool_calls().all(|call| call.state == ToolCallState::Call), "shown as called before shown as refused");
    let message = run.message.as_ref().unwrap();
    assert_eq!((message.meta.run.as_ref(), message.meta.model.as_ref()), (Some(&"r".into()), Some(&"mock/one".into())));
    assert_eq!(message.meta.finish, Some(FinishReason::ToolCalls));
    assert_eq!(run.posture(), Posture::Moving);
    assert_eq!(run.calls, 4);
}

#[test]
fn a_call_with_arguments_that_are_no_json_is_never_run_whatever_was_decided() {
    let mut run = sampling();
    let mut input = answer_of(&run, "", &[run_it("a"), run_it("b")], FinishReason::ToolCalls);
    if let Input::Sampled { parts, .. } = &mut input {
        let ac_core::Part::ToolCall(call) = &mut parts[0] else { panic!() };
        call.raw = Some("{\"cut".into());
    }
    let effects = ok(&mut run, input);
    assert!(stored(&effects, "a").starts_with("failed Not run"));
    assert_eq!(stored(&effects, "b"), "call");
}

/// `R4` holds even against a driver that breaks its contract.
#[test]
fn calls_without_a_decision_or_with_a_used_id_get_a_result_and_do_not_run() {
    let mut run = sampling();
    let mut input = answer_of(&run, "", &[run_it("a"), run_it("a"), run_it("b"), run_it("c")], FinishReason::ToolCalls);
    if let Input::Sampled { calls, .. } = &mut input {
        calls.remove(2);
    }
    ok(&mut run, input);
    let states: Vec<_> = run.message.as_ref().unwrap().tool_calls().map(|call| call.state.is_settled()).collect();
    assert_eq!(states, [false, true, true, false]);
    let started = ok(&mut run, Input::Dispatch);
    assert_eq!(started.len(), 2, "{started:?}");
}

/// B-03: each wait is answered on its own, in any order, and runs what was shown.
#[test]
fn two_approvals_of_one_step_are_answered_in_any_order() {
    let mut run = tools(&[ask("a"), ask("b")]);
    assert_eq!(run.posture(), Posture::Approval);
    assert_eq!(run.waits().iter().map(|wait| wait.id.to_string()).collect::<Vec<_>>(), ["r/0/a#1", "r/0/b#1"]);
    let input = answer(pending(&run, "b"), approve());
    let effects = ok(&mut run, input);
    assert_eq!(told(&effects), ["resolved r/0/b#1"]);
    assert!(run.call_part(&"b".into()).unwrap().approved);
    assert!(!run.call_part(&"a".into()).unwrap().approved);
    assert_eq!(puts(&effects), ["r/0"]);
    assert_eq!(ok(&mut run, Input::Dispatch), [Effect::RunTool { call: "b".into(), attempt: 1 }]);
    let input = done(&run, "b");
    ok(&mut run, input);
    assert_eq!(run.waits().len(), 1);
    let input = answer(pending(&run, "a"), decline());
    let effects = ok(&mut run, input);
    assert_eq!(told(&effects), ["resolved r/0/a#1", "changed r/0 [1]", "ended a", "done r/0"]);
    assert_eq!(stored(&effects, "a"), "denied Tool call was not approved by the user");
    assert_eq!(stored(&effects, "b"), "result ok");
    assert!(is_ready(&run, 1));
}

#[test]
fn a_reason_given_with_a_no_is_what_the_model_reads() {
    let mut run = tools(&[ask("a")]);
    let input = answer(pending(&run, "a"), Answer::Decline { reason: Some("wrong file".into()) });
    assert_eq!(stored(&ok(&mut run, input), "a"), "denied wrong file");
}

/// B-04, B-06, B-07: each wait has its own name, and an answered one never comes back.
#[test]
fn several_questions_wait_side_by_side_and_one_after_another() {
    let mut run = tools(&[run_it("a"), run_it("b")]);
    ok(&mut run, Input::Dispatch);
    let input = suspended(&run, "a", SuspendKind::Question);
    assert_eq!(told(&ok(&mut run, input)), ["suspended r/0/a#1"]);
    assert_eq!(run.posture(), Posture::Moving, "a sibling still runs");
    let input = suspended(&run, "b", SuspendKind::Question);
    ok(&mut run, input);
    assert_eq!(run.posture(), Posture::Parked);
    let input = answer(pending(&run, "b"), reply(json!("first")));
    ok(&mut run, input);
    assert_eq!(ok(&mut run, Input::Dispatch), [Effect::RunTool { call: "b".into(), attempt: 2 }]);
    let input = suspended(&run, "b", SuspendKind::Question);
    assert_eq!(told(&ok(&mut run, input)), ["suspended r/0/b#2"]);
    let ids: Vec<_> = run.waits().iter().map(|wait| wait.id.to_string()).collect();
    assert_eq!(ids, ["r/0/a#1", "r/0/b#2"]);
}

/// B-10: these are answers.
#[test]
fn false_zero_and_the_empty_text_reach_the_tool() {
    for value in [json!(false), json!(0), json!(""), json!(null)] {
        let mut run = tools(&[run_it("a")]);
        ok(&mut run, Input::Dispatch);
        let input = suspended(&run, "a", SuspendKind::Question);
        ok(&mut run, input);
        let input = answer(pending(&run, "a"), reply(value.clone()));
        ok(&mut run, input);
        let ac_engine::SlotStatus::Resuming { resume, started: false } = &slot(&run, "a").status else { panic!() };
        assert_eq!((&resume.answer, &resume.state, &resume.payload), (&value, &json!({ "s": 1 }), &json!({ "q": 1 })));
    }
}

/// One step after another, each with `each` calls that a person declines.
fn many_steps(steps: u32, each: usize) -> RunSnapshot {
    const CALLS: [&str; 3] = ["a", "b", "c"];
    let mut profile = profile();
    // The same calls again and again are what is wanted here.
    profile.limits.repeats = None;
    let mut run = started_with(profile);
    for _ in 0..steps {
        ok(&mut run, Input::Dispatch);
        let calls: Vec<_> = CALLS[..each].iter().map(|id| ask(id)).collect();
        let input = answer_of(&run, "", &calls, FinishReason::ToolCalls);
        ok(&mut run, input);
        for call in &CALLS[..each] {
            let input = answer(pending(&run, call), decline());
            ok(&mut run, input);
        }
    }
    run
}

#[test]
fn the_memory_of_answers_is_bounded_and_what_was_forgotten_is_not_taken_again() {
    let kept = u32::try_from(RunSnapshot::REMEMBERED).unwrap();
    let size = |run: &RunSnapshot| serde_json::to_string(run).unwrap().len();
    let (some, many) = (many_steps(kept, 1), many_steps(3 * kept, 1));
    assert_eq!((some.answers.len(), some.answers_from), (RunSnapshot::REMEMBERED, 0));
    assert_eq!((many.answers.len(), many.answers_from), (RunSnapshot::REMEMBERED, 2 * kept));
    assert!(size(&many) < size(&some) + 500, "{} after {}", size(&many), size(&some));
    let wait = |step: u32| PendingId { step, ..wait_n("a", 1) };
    // What is known is repeated; what was forgotten came too late, whatever it is; what never was is not pending.
    let mut after = many.clone();
    assert_eq!(ok(&mut after, answer(wait(2 * kept), decline())), []);
    assert_eq!(refused(&many, answer(wait(2 * kept), approve())), Refusal::AlreadyResolved);
    for said in [decline(), approve(), reply(json!(1)), Answer::RunAgain] {
        assert_eq!(refused(&many, answer(wait(2 * kept - 1), said)), Refusal::AlreadyResolved);
    }
    assert_eq!(refused(&many, answer(wait(3 * kept), approve())), Refusal::NotPending);
    assert_eq!(refused(&many, answer(PendingId { run: "other".into(), ..wait(0) }, approve())), Refusal::NotPending);
    assert_eq!(serde_json::from_str::<RunSnapshot>(&serde_json::to_string(&many).unwrap()).unwrap(), many);
}

#[test]
fn answers_are_forgotten_by_whole_steps() {
    let run = many_steps(60, 3);
    assert_eq!((run.answers.len(), run.answers_from), (126, 18));
    assert!(run.answers.keys().all(|id| id.step >= 18));
}

#[test]
fn an_approved_plan_settles_call_profile_and_mode_in_one_step() {
    let mut run = tools(&[run_it("p"), run_it("q")]);
    ok(&mut run, Input::Dispatch);
    let input = suspended(&run, "p", SuspendKind::Plan);
    ok(&mut run, input);
    let input = done(&run, "q");
    ok(&mut run, input);
    let mut target = profile();
    target.mode = "work".into();
    target.instructions = Some("work now".into());
    let mut input = plan_answer(pending(&run, "p"), Some(target));
    let Input::Answer { request_context, .. } = &mut input else { panic!() };
    *request_context = Some(serde_json::Map::from_iter([("k".to_owned(), json!(1))]));
    let effects = ok(&mut run, input.clone());
    assert_eq!(told(&effects), ["resolved r/0/p#1", "changed r/0 [1]", "ended p", "done r/0"]);
    assert_eq!(stored(&effects, "p"), "result Plan decided");
    assert_eq!((run.profile.mode.as_str(), run.profile.instructions.as_deref()), ("work", Some("work now")));
    assert_eq!(run.profile.request_context["k"], 1);
    let [item] = run.outbox.as_slice() else { panic!("{:?}", run.outbox) };
    assert_eq!(item.action, OutboxAction::SetMode { mode: "work".into(), from: "build".into(), at: at(1) });
    assert_eq!(ok(&mut run, Input::Dispatch), [], "the outbox comes before the next sample");
    ok(&mut run, Input::Applied { upto: 1 });
    assert!(matches!(ok(&mut run, Input::Dispatch)[..], [Effect::Sample { step: 1, attempt: 2 }]));
    let before = run.clone();
    assert_eq!(ok(&mut run, input), [], "the same decision again");
    assert_eq!(run, before);
}

/// One plan per step is the driver's rule; with two the machine stays sound.
#[test]
fn two_plans_of_one_step_move_the_run_in_the_order_of_their_decisions() {
    let mut run = tools(&[run_it("p"), run_it("q")]);
    ok(&mut run, Input::Dispatch);
    for call in ["p", "q"] {
        let input = suspended(&run, call, SuspendKind::Plan);
        ok(&mut run, input);
    }
    for (call, mode) in [("q", "one"), ("p", "two")] {
        let mut target = profile();
        target.mode = mode.into();
        let input = plan_answer(pending(&run, call), Some(target));
        ok(&mut run, input);
    }
    let moves: Vec<_> = run
        .outbox
        .iter()
        .map(|item| match &item.action {
            OutboxAction::SetMode { mode, from, .. } => format!("{}: {from} to {mode}", item.n),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(moves, ["1: build to one", "2: one to two"]);
    assert_eq!(run.profile.mode.as_str(), "two");
}

#[test]
fn a_grant_leaves_through_the_outbox_and_the_others_stay_open() {
    let mut run = tools(&[ask("a"), ask("b")]);
    let input = answer(pending(&run, "a"), grant());
    ok(&mut run, input);
    assert!(matches!(&run.outbox[0].action, OutboxAction::Grant { call, .. } if call.as_str() == "a"));
    assert_eq!(run.waits().len(), 1);
}

/// B-12, B-13: whatever waits, an abort leaves no call without a result.
#[test]
fn abort_of_a_parked_run_settles_every_call_and_says_so() {
    let mut run = tools(&[ask("a"), run_it("b"), run_it("c")]);
    ok(&mut run, Input::Dispatch);
    let input = suspended(&run, "b", SuspendKind::Question);
    ok(&mut run, input);
    let input = suspended(&run, "c", SuspendKind::Plan);
    ok(&mut run, input);
    let effects = ok(&mut run, Input::Abort { go_on: true });
    assert_eq!(
        told(&effects),
        [
            "closed r/0/a#1: Aborted by the user",
            "changed r/0 [1]",
            "ended a",
            "closed r/0/b#1: Aborted by the user",
            "changed r/0 [2]",
            "ended b",
            "closed r/0/c#1: Aborted by the user",
            "changed r/0 [3]",
            "ended c",
            "done r/0",
            "end aborted Some(ToolCalls) None",
        ]
    );
    assert_eq!(puts(&effects), ["r/0"]);
    for call in ["a", "b", "c"] {
        assert_eq!(stored(&effects, call), "denied Aborted by the user");
    }
    assert_eq!(run.outcome(), Some(&Outcome::Aborted));
    assert!(run.answers.values().all(|resolution| *resolution == Resolution::Closed));
}

#[test]
fn an_abort_waits_for_what_is_going_on() {
    let mut run = tools(&[run_it("a"), run_it("b"), ask("c")]);
    ok(&mut run, Input::Dispatch);
    let input = delegated(&run, "b");
    ok(&mut run, input);
    let effects = ok(&mut run, Input::Abort { go_on: false });
    assert!(effects.contains(&Effect::StopTool { call: "a".into() }));
    assert_eq!(stored(&effects, "c"), "denied Aborted by the user");
    assert_eq!(run.outbox.len(), 2, "start and abort of the child, in order");
    let input = interrupted(&run, "a");
    assert!(stored(&ok(&mut run, input), "a").contains("may still be running"));
    assert!(!run.is_finished(), "a parent ends after its children");
    let effects = ok(&mut run, child_finished("b"));
    assert!(effects.contains(&Effect::AddUsage(ac_core::Usage::new(3, 4))));
    assert!(run.is_finished() && !run.is_closed());
    assert_eq!(run.posture(), Posture::Finished);
    ok(&mut run, Input::Applied { upto: 2 });
    assert!(run.is_closed());
}

#[test]
fn a_cancelled_call_is_settled_and_the_run_goes_on() {
    let mut run = tools(&[ask("a"), run_it("b"), run_it("c")]);
    let effects = ok(&mut run, cancel("a"));
    assert_eq!(told(&effects), ["closed r/0/a#1: Cancelled by the user", "changed r/0 [1]", "ended a"]);
    assert_eq!(stored(&effects, "a"), "denied Cancelled by the user");
    assert_eq!(stored(&ok(&mut run, cancel("b")), "b"), "denied Cancelled by the user");
    ok(&mut run, Input::Dispatch);
    assert_eq!(ok(&mut run, cancel("c")), [Effect::StopTool { call: "c".into() }]);
    assert_eq!(ok(&mut run, cancel("c")), []);
    assert_eq!(refused(&run, cancel("x")), ac_engine::Refusal::NotPending);
    let input = done(&run, "c");
    let effects = ok(&mut run, input);
    assert_eq!(stored(&effects, "c"), "result ok", "it was done before it could stop");
    assert!(is_ready(&run, 1));
    assert!(!moments(&effects).iter().any(|moment| matches!(moment, Moment::SegmentEnd { .. })));
}

/// B-16 against `R7`: the message declines what asks, and reaches the model in the next step.
#[test]
fn a_message_declines_the_open_approvals_and_leaves_questions_open() {
    let mut run = tools(&[ask("a"), run_it("b"), ask("c")]);
    ok(&mut run, Input::Dispatch);
    let input = suspended(&run, "b", SuspendKind::Question);
    ok(&mut run, input);
    let effects = ok(&mut run, message("m1"));
    assert_eq!(
        told(&effects),
        [
            "queue",
            "closed r/0/a#1: interrupted_by_user_message",
            "changed r/0 [1]",
            "ended a",
            "closed r/0/c#1: interrupted_by_user_message",
            "changed r/0 [3]",
            "ended c",
        ]
    );
    assert_eq!(run.waits().len(), 1);
    assert_eq!(ok(&mut run, message("m1")), [], "the same message again");
    let input = answer(pending(&run, "b"), decline());
    ok(&mut run, input);
    let effects = ok(&mut run, Input::Dispatch);
    assert_eq!(puts(&effects), ["m1"]);
    assert_eq!(told(&effects), ["delivered m1", "queue"]);
    assert!(matches!(effects.last(), Some(Effect::Sample { step: 1, .. })));
}

#[test]
fn abort_with_a_message_of_a_person_goes_on_with_it() {
    let mut run = tools(&[run_it("a")]);
    ok(&mut run, Input::Dispatch);
    ok(&mut run, inject("n1"));
    ok(&mut run, message("m1"));
    ok(&mut run, Input::Abort { go_on: true });
    let input = interrupted(&run, "a");
    let effects = ok(&mut run, input);
    assert!(matches!(moments(&effects).last(), Some(Moment::SegmentEnd { reason: EndReason::Aborted, .. })));
    assert!(is_ready(&run, 1) && run.cancel.is_none());
    assert_eq!(puts(&ok(&mut run, Input::Dispatch)), ["n1", "m1"]);
}

#[test]
fn abort_with_nothing_but_a_note_queued_ends_and_stores_the_note() {
    let mut run = tools(&[ask("a")]);
    ok(&mut run, inject("n1"));
    let effects = ok(&mut run, Input::Abort { go_on: true });
    assert!(run.is_closed());
    assert_eq!(puts(&effects), ["r/0", "n1"]);
}

/// The prompt that a run was started with is no reason to go on after an abort.
#[test]
fn abort_before_the_first_sample_ends_the_run_and_keeps_its_prompt() {
    let mut run = ready();
    let effects = ok(&mut run, Input::Abort { go_on: true });
    assert_eq!(run.outcome(), Some(&Outcome::Aborted));
    assert_eq!(puts(&effects), ["m0"]);
    assert_eq!(told(&effects), ["delivered m0", "end aborted None None"]);
    let mut run = ready();
    ok(&mut run, message("m1"));
    ok(&mut run, Input::Abort { go_on: true });
    assert!(is_ready(&run, 1), "what was written since then is one");
}

#[test]
fn a_hard_abort_overrules_a_steer_that_is_not_through() {
    let mut run = tools(&[run_it("a")]);
    ok(&mut run, Input::Dispatch);
    ok(&mut run, message("m1"));
    ok(&mut run, Input::Abort { go_on: true });
    ok(&mut run, Input::Abort { go_on: false });
    ok(&mut run, Input::Abort { go_on: true });
    let input = interrupted(&run, "a");
    let effects = ok(&mut run, input);
    assert_eq!(run.outcome(), Some(&Outcome::Aborted));
    assert_eq!(puts(&effects), ["r/0", "m1"], "the message is stored for the next run");
}

#[test]
fn a_call_in_doubt_keeps_its_answer_and_is_named_by_a_wait_of_its_own() {
    let mut run = tools(&[ask("a")]);
    let input = answer(pending(&run, "a"), approve());
    ok(&mut run, input.clone());
    ok(&mut run, Input::Dispatch);
    let question = suspended(&run, "a", SuspendKind::Question);
    ok(&mut run, question);
    let said = answer(pending(&run, "a"), reply(json!("yes")));
    ok(&mut run, said);
    ok(&mut run, Input::Dispatch);
    let recovery = recover(&run);
    assert_eq!(told(&ok(&mut run, recovery)), ["suspended r/0/a#3"]);
    // A button made for the approval says nothing about the doubt.
    assert_eq!(run.alias(&"a".into()), Some(wait_n("a", 1)));
    assert_eq!(run.alias_approval(&"a".into()), Some(wait_n("a", 1)));
    assert_eq!(run.alias_suspension(&"a".into()), Some(wait_n("a", 2)));
    assert_eq!(ok(&mut run, input), []);
    let again = answer(pending(&run, "a"), Answer::RunAgain);
    ok(&mut run, again);
    assert_eq!(ok(&mut run, Input::Dispatch), [Effect::RunTool { call: "a".into(), attempt: 3 }]);
    let ac_engine::SlotStatus::Resuming { resume, started: true } = &slot(&run, "a").status else { panic!() };
    assert_eq!(resume.answer, json!("yes"));
}

#[test]
fn an_alias_never_means_a_doubt() {
    let mut run = tools(&[run_it("a"), ask("b")]);
    assert_eq!(run.alias(&"a".into()), None, "nothing was ever issued");
    ok(&mut run, Input::Dispatch);
    let recovery = recover(&run);
    ok(&mut run, recovery);
    assert_eq!(run.waits().len(), 2);
    assert_eq!(run.alias(&"a".into()), None);
    assert_eq!(run.alias(&"b".into()), Some(wait_n("b", 1)));
    ok(&mut run, Input::Abort { go_on: false });
    assert_eq!(run.alias(&"a".into()), None, "not when it is over either");
    assert_eq!(run.alias(&"b".into()), Some(wait_n("b", 1)));
}
