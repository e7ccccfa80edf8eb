//! What an answer of the model, or none, does to a run.

use ac_core::{FinishReason, Part};
use ac_engine::{Effect, Input, Moment, Outcome, Phase, Refusal, RunSnapshot, StartRun};

use crate::support::*;

fn code(run: &RunSnapshot) -> &str {
    match run.outcome() {
        Some(Outcome::Error { error }) => &error.code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_start_delivers_its_messages_with_the_first_sample() {
    let mut run = ready();
    assert_eq!((run.epoch, &run.phase, run.queued.len()), (1, &Phase::Ready, 1));
    let effects = ok(&mut run, Input::Dispatch);
    assert_eq!(puts(&effects), ["m0"]);
    assert!(matches!(effects.last(), Some(Effect::Sample { step: 0, attempt: 1 })));
    assert!(!moments(&effects).contains(&&Moment::QueueChanged), "what a run starts with never waited");
}

#[test]
fn a_run_from_the_queue_takes_its_item_away_first() {
    let start = StartRun {
        run: "r".into(),
        thread: "t".into(),
        parent: None,
        profile: profile(),
        messages: vec![user("f1"), user("f2")],
        from_queue: true,
    };
    let mut run = RunSnapshot::start(start, at(0));
    assert_eq!(run.outbox[0].action, ac_engine::OutboxAction::RemoveQueued { id: "f1".into() });
    assert_eq!(ok(&mut run, Input::Dispatch), []);
    ok(&mut run, Input::Applied { upto: 1 });
    assert_eq!(puts(&ok(&mut run, Input::Dispatch)), ["f1", "f2"]);
}

#[test]
fn how_an_answer_ended_decides_what_an_answer_without_calls_means() {
    for (reason, expected) in [
        (FinishReason::Stop, "complete"),
        (FinishReason::ToolCalls, "complete"),
        (FinishReason::Other, "complete"),
        (FinishReason::Pause, "goes on"),
        (FinishReason::Length, "model.length"),
        (FinishReason::ContentFilter, "model.content_filter"),
        (FinishReason::Refusal, "model.refusal"),
        (FinishReason::Error, "model.finish_error"),
    ] {
        let mut run = sampling();
        let input = answer_of(&run, "text", &[], reason);
        let effects = ok(&mut run, input);
        assert_eq!(puts(&effects), ["r/0"], "the text is kept: {reason:?}");
        let got = match run.outcome() {
            None if is_ready(&run, 1) => "goes on",
            Some(Outcome::Complete) => "complete",
            Some(Outcome::Error { error }) => &error.code,
            other => panic!("{other:?}"),
        };
        assert_eq!(got, expected, "{reason:?}");
        let Some(Effect::Put(message)) = effects.iter().find(|effect| matches!(effect, Effect::Put(_))) else { panic!() };
        assert_eq!(message.meta.error.is_some(), expected.contains('.'), "{reason:?}");
        if let Some(Moment::SegmentEnd { finish, error, .. }) = moments(&effects).last() {
            assert_eq!((*finish, error.is_some()), (Some(reason), expected.contains('.')));
        }
    }
}

#[test]
fn a_cut_answer_with_a_call_that_can_run_goes_on() {
    let mut run = sampling();
    let input = answer_of(&run, "text", &[run_it("a")], FinishReason::Length);
    ok(&mut run, input);
    assert_eq!(run.slots().len(), 1);
    let mut run = sampling();
    let refuse = ac_engine::Gate::Refuse { result: result("cut") };
    let input = answer_of(&run, "text", &[Ask("a", refuse, Default::default())], FinishReason::Length);
    let effects = ok(&mut run, input);
    assert_eq!(code(&run), "model.length");
    assert_eq!(stored(&effects, "a"), "result cut", "its call has a result all the same");
}

#[test]
fn the_filters_own_words_explain_it() {
    let mut run = sampling();
    let mut input = answer_of(&run, "", &[], FinishReason::ContentFilter);
    let Input::Sampled { finish, .. } = &mut input else { panic!() };
    finish.explanation = Some("violence".into());
    ok(&mut run, input);
    assert!(matches!(run.outcome(), Some(Outcome::Error { error }) if error.message == "violence"));
}

#[test]
fn an_answer_of_nothing_is_no_message_and_a_pause_of_nothing_no_loop() {
    for reason in [FinishReason::Stop, FinishReason::Pause] {
        let mut run = sampling();
        let input = answer_of(&run, "", &[], reason);
        assert_eq!(puts(&ok(&mut run, input)), Vec::<&str>::new());
        assert_eq!(run.outcome(), Some(&Outcome::Complete));
    }
}

#[test]
fn a_final_answer_with_something_queued_starts_another_step() {
    let mut run = sampling();
    ok(&mut run, inject("n1"));
    let input = answer_of(&run, "text", &[], FinishReason::Stop);
    ok(&mut run, input);
    assert!(is_ready(&run, 1));
    assert_eq!(ac_engine::Refusal::NotPending, refused(&run, Input::Withdraw { message: "n1".into() }), "the step is there because of it");
    assert_eq!(puts(&ok(&mut run, Input::Dispatch)), ["n1"]);
}

#[test]
fn a_message_that_waits_can_be_taken_back() {
    let mut run = sampling();
    ok(&mut run, message("m1"));
    assert_eq!(moments(&ok(&mut run, Input::Withdraw { message: "m1".into() })), [&Moment::QueueChanged]);
    let input = answer_of(&run, "text", &[], FinishReason::Stop);
    ok(&mut run, input);
    assert_eq!(run.outcome(), Some(&Outcome::Complete));
}

#[test]
fn a_failed_call_of_the_model_is_tried_again_in_the_same_step_and_counts_once() {
    let mut run = sampling();
    for attempt in [2, 3] {
        let input = failed(&run, true, "some");
        let effects = ok(&mut run, input);
        assert!(matches!(moments(&effects)[..], [Moment::MessageRestarted { attempt: next, of: 3, .. }] if *next == attempt));
        assert_eq!(puts(&effects), Vec::<&str>::new(), "what was shown is void");
        let effects = ok(&mut run, Input::Dispatch);
        assert_eq!(effects, [Effect::Sample { step: 0, attempt }]);
    }
    let input = failed(&run, true, "some");
    let effects = ok(&mut run, input);
    assert_eq!(code(&run), "model.server");
    let Some(Effect::Put(message)) = effects.first() else { panic!() };
    assert_eq!((message.text().as_str(), message.meta.error.as_ref().unwrap().code.as_str()), ("some", "model.server"));
    assert_eq!(run.budget.steps, 1);
}

#[test]
fn a_cut_answer_never_stores_a_call() {
    let mut run = sampling();
    let mut input = failed(&run, false, "some");
    let Input::SampleFailed { partial, .. } = &mut input else { panic!() };
    partial.push(call_part("a"));
    let effects = ok(&mut run, input);
    let Some(Effect::Put(message)) = effects.first() else { panic!() };
    assert_eq!(message.parts, [Part::text("some")]);
}

#[test]
fn an_abort_keeps_the_text_that_was_shown() {
    let mut run = sampling();
    assert_eq!(ok(&mut run, Input::Abort { go_on: false }), [Effect::StopSample { attempt: 1 }]);
    let input = stopped(&run, "some");
    let effects = ok(&mut run, input);
    assert_eq!(puts(&effects), ["r/0"]);
    assert_eq!(run.outcome(), Some(&Outcome::Aborted));
    let Some(Moment::SegmentEnd { finish: None, error: None, .. }) = moments(&effects).last() else { panic!("{effects:?}") };
}

#[test]
fn calls_that_come_after_an_abort_are_stored_with_a_result_and_not_run() {
    let mut run = sampling();
    ok(&mut run, Input::Abort { go_on: false });
    let input = answer_of(&run, "I will", &[run_it("a"), ask("b")], FinishReason::ToolCalls);
    let effects = ok(&mut run, input);
    assert_eq!(stored(&effects, "a"), "denied Aborted by the user");
    assert_eq!(stored(&effects, "b"), "denied Aborted by the user");
    assert_eq!(run.outcome(), Some(&Outcome::Aborted));
    assert!(run.answers.is_empty(), "nobody was ever asked");
}

// ---- budgets -----------------------------------------------------------------------------------------------------------------------

fn limited(set: impl FnOnce(&mut ac_engine::Limits)) -> RunSnapshot {
    let mut profile = profile();
    set(&mut profile.limits);
    started_with(profile)
}

/// One step with a call that is done at once.
fn one_step(run: &mut RunSnapshot, from: i64, until: i64) {
    run.step(at(from), Input::Dispatch).unwrap();
    let input = answer_of(run, "", &[run_it("a")], FinishReason::ToolCalls);
    run.step(at(from), input).unwrap();
    run.step(at(from), Input::Dispatch).unwrap();
    let input = done(run, "a");
    run.step(at(until), input).unwrap();
}

#[test]
fn steps_are_limited_and_a_person_starts_the_count_anew() {
    let mut run = limited(|limits| limits.steps = 2);
    one_step(&mut run, 0, 0);
    one_step(&mut run, 0, 0);
    let mut more = run.clone();
    ok(&mut run, inject("n1"));
    let effects = ok(&mut run, Input::Dispatch);
    assert_eq!(code(&run), "run.step_limit");
    assert_eq!(puts(&effects), ["n1"], "a note is stored and buys no step");
    ok(&mut more, message("m1"));
    assert!(matches!(ok(&mut more, Input::Dispatch).last(), Some(Effect::Sample { step: 2, .. })));
    assert_eq!(more.budget.steps, 1);
}

#[test]
fn tokens_are_limited_and_those_of_children_count() {
    let mut run = limited(|limits| limits.tokens = Some(20));
    one_step(&mut run, 0, 0);
    assert!(matches!(ok(&mut run.clone(), Input::Dispatch)[..], [Effect::Sample { .. }]), "15 of 20 tokens");
    ok(&mut run, Input::Dispatch);
    let input = answer_of(&run, "", &[run_it("a")], FinishReason::ToolCalls);
    ok(&mut run, input);
    ok(&mut run, Input::Dispatch);
    let input = delegated(&run, "a");
    ok(&mut run, input);
    ok(&mut run, child_finished("a"));
    assert_eq!(run.budget.tokens, 37);
    ok(&mut run, Input::Applied { upto: 1 });
    ok(&mut run, Input::Dispatch);
    assert_eq!(code(&run), "run.token_limit");
}

#[test]
fn only_working_time_is_limited() {
    let mut run = limited(|limits| limits.millis = Some(100));
    one_step(&mut run, 0, 60);
    assert_eq!(run.budget.millis, 60);
    run.step(at(60), Input::Dispatch).unwrap();
    let input = answer_of(&run, "", &[ask("b")], FinishReason::ToolCalls);
    run.step(at(70), input).unwrap();
    assert_eq!((run.budget.millis, run.working_since), (70, None), "a person thinks");
    let input = answer(pending(&run, "b"), approve());
    run.step(at(100_000), input).unwrap();
    run.step(at(100_000), Input::Dispatch).unwrap();
    let input = done(&run, "b");
    run.step(at(100_029), input).unwrap();
    assert_eq!(run.budget.millis, 99);
    let mut late = run.clone();
    assert!(matches!(run.step(at(100_029), Input::Dispatch).unwrap()[..], [Effect::Sample { .. }]));
    late.step(at(100_030), Input::Dispatch).unwrap();
    assert_eq!(code(&late), "run.time_limit");
}

#[test]
fn the_time_in_which_nobody_lived_does_not_count() {
    let mut run = limited(|limits| limits.millis = Some(100));
    run.step(at(0), Input::Dispatch).unwrap();
    let recovery = recover(&run);
    run.step(at(1_000_000), recovery).unwrap();
    assert!(matches!(run.step(at(1_000_000), Input::Dispatch).unwrap()[..], [Effect::Sample { step: 0, attempt: 2 }]));
    assert_eq!((run.budget.steps, run.budget.millis), (1, 0), "the same step, sampled again");
}

/// What was judged stands in the history before the next step, and is told before what follows from it.
#[test]
fn a_verdict_is_stored_and_told_before_what_follows() {
    let mut run = started_with(judged_profile());
    ok(&mut run, Input::Dispatch);
    let input = answer_of(&run, "half", &[], FinishReason::Stop);
    ok(&mut run, input);
    assert_eq!(ok(&mut run, Input::Dispatch), [Effect::Judge { step: 0 }]);
    assert_eq!(run.posture(), ac_engine::Posture::Moving);
    let input = judged(&run, true);
    let effects = ok(&mut run, input);
    let names: Vec<_> = effects
        .iter()
        .map(|effect| match effect {
            Effect::Put(message) => format!("put {}", message.id),
            Effect::Tell(Moment::Delivered(message)) => format!("told {}", message.id),
            Effect::Tell(Moment::Judged(verdict)) => format!("judged {verdict}"),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["put verdict", "told verdict", "judged {\"goOn\":true}"]);
    assert_eq!((run.step, &run.phase), (1, &Phase::Ready));
    // A new owner asks again; the verdict of the old one still counts, once.
    ok(&mut run, Input::Dispatch);
    let input = answer_of(&run, "whole", &[], FinishReason::Stop);
    ok(&mut run, input);
    ok(&mut run, Input::Dispatch);
    let input = recover(&run);
    ok(&mut run, input);
    assert_eq!(ok(&mut run, Input::Dispatch), [Effect::Judge { step: 1 }]);
    let (first, second) = (judged(&run, false), judged(&run, true));
    assert!(matches!(ok(&mut run, first).last(), Some(Effect::Tell(Moment::SegmentEnd { .. }))));
    assert_eq!(run.step(at(1), second), Err(Refusal::Stale));
}

// B-76: a model that asks for the same thing for ever is stopped; one that varies is not, and a person's message starts the count anew.
#[test]
fn the_same_calls_again_and_again_are_a_loop() {
    let step = |run: &mut RunSnapshot, call: &'static str| {
        ok(run, Input::Dispatch);
        let input = answer_of(run, "", &[run_it(call)], FinishReason::ToolCalls);
        ok(run, input);
        ok(run, Input::Dispatch);
        let input = done(run, call);
        ok(run, input);
    };
    let mut run = limited(|limits| limits.repeats = Some(3));
    for call in ["a", "b", "a", "a"] {
        step(&mut run, call);
    }
    let mut other = run.clone();
    step(&mut run, "a");
    let mut more = run.clone();
    ok(&mut run, Input::Dispatch);
    assert_eq!(code(&run), "run.loop");
    ok(&mut more, message("m1"));
    assert!(matches!(ok(&mut more, Input::Dispatch).last(), Some(Effect::Sample { .. })));
    step(&mut other, "b");
    assert!(matches!(ok(&mut other, Input::Dispatch).last(), Some(Effect::Sample { .. })));
}
