//! The bare agent: streams, answers, restarts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use ac_agent::{Agent, AgentChunk, ChunkBody, RunErrorKind, RuntimeSettings, StreamOptions};
use ac_core::{
    Tool, ToolCategory, ToolContext, ToolDefinition, ToolEffect, ToolError, ToolOutcome, ToolOutput, permission::DefaultPolicies,
};
use ac_engine::{Answer, Refusal};
use ac_storage::{MemoryStorage, Storage, StorageErrorKind};
use ac_testkit::{
    ManualClock, ScriptedModel, SequentialIds, Turn,
    store::{Fault, Faults, HookedStorage, Op},
};
use ac_tools::{AskUser, SubmitPlan};
use async_trait::async_trait;
use futures::StreamExt;
use serde_json::{Value, json};

/// Counts its runs.
struct Work {
    name: &'static str,
    effect: ToolEffect,
    done: Arc<AtomicUsize>,
    slow: bool,
}

#[async_trait]
impl Tool for Work {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new(self.name, "Works.", json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}))
            .category(ToolCategory::Execute)
            .effect(self.effect)
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        self.done.fetch_add(1, Ordering::SeqCst);
        if self.slow {
            cx.cancel.cancelled().await;
            return Err(ToolError::failed("stopped"));
        }
        Ok(ToolOutcome::Done(ToolOutput::new(json!({"did": args["n"]}))))
    }
}

struct World {
    storage: Arc<dyn Storage>,
    model: Arc<ScriptedModel>,
    done: Arc<AtomicUsize>,
    clock: Arc<ManualClock>,
    ids: Arc<SequentialIds>,
    slow: bool,
}

impl World {
    fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self {
            storage: Arc::new(MemoryStorage::new()),
            model: Arc::new(ScriptedModel::new(turns)),
            done: Arc::default(),
            clock: Arc::new(ManualClock::new()),
            ids: Arc::new(SequentialIds::new()),
            slow: false,
        }
    }

    /// One process: an agent with its own owner id on the shared store.
    fn agent(&self) -> Agent {
        let (model, storage, clock, ids) = (self.model.clone(), self.storage.clone(), self.clock.clone(), self.ids.clone());
        let mut settings = RuntimeSettings::default();
        settings.grace = std::time::Duration::from_millis(50);
        Agent::builder("agent", "scripted/model", model, storage, clock, ids)
            .instructions("Be brief.")
            .tool(Arc::new(AskUser))
            .tool(Arc::new(SubmitPlan))
            .tool(Arc::new(Work { name: "work", effect: ToolEffect::Mutating, done: self.done.clone(), slow: self.slow }))
            .settings(settings)
            .build()
            .unwrap()
    }

    fn asking(&self) -> Agent {
        let (model, storage, clock, ids) = (self.model.clone(), self.storage.clone(), self.clock.clone(), self.ids.clone());
        Agent::builder("agent", "scripted/model", model, storage, clock, ids)
            .tool(Arc::new(Work { name: "work", effect: ToolEffect::Mutating, done: self.done.clone(), slow: false }))
            .default_policies(DefaultPolicies::default())
            .build()
            .unwrap()
    }

    fn done(&self) -> usize {
        self.done.load(Ordering::SeqCst)
    }

    fn check(&self) {
        assert_eq!(self.model.violations(), Vec::<String>::new());
    }
}

async fn chunks(stream: impl futures::Stream<Item = AgentChunk>) -> Vec<String> {
    let all: Vec<_> = stream.collect().await;
    all.iter().map(|chunk| serde_json::to_string(chunk).unwrap()).collect()
}

#[tokio::test]
async fn a_plain_answer_streams_and_finishes() {
    let world = World::new([Turn::chunks(["Hel", "lo"])]);
    let stream = world.agent().stream("hi", StreamOptions::default()).await.unwrap();
    insta::assert_snapshot!(chunks(stream).await.join("\n"), @r#"
    {"runId":"run-1","type":"text-delta","payload":{"text":"Hello"}}
    {"runId":"run-1","type":"finish","payload":{"finishReason":"stop","usage":{"input":10,"output":5,"total":15}}}
    "#);
    world.check();
}

#[tokio::test]
async fn a_text_stream_is_the_text_alone() {
    let world = World::new([Turn::text("one "), Turn::text("two")]);
    let stream = world.agent().stream("hi", StreamOptions::default()).await.unwrap();
    assert_eq!(stream.text_stream().collect::<String>().await, "one ");
}

#[tokio::test]
async fn a_plan_suspends_with_its_path_and_an_approval_is_told_to_the_model() {
    let world = World::new([Turn::tool("p1", "submit_plan", json!({"path": "plan.md"})), Turn::text("building")]);
    let agent = world.agent();
    let stream = agent.stream("plan it", StreamOptions::default()).await.unwrap();
    let run = stream.run_id().clone();
    let told = chunks(stream).await;
    assert!(told.last().unwrap().contains(r#""suspendPayload":{"path":"plan.md","toolId":"submit_plan"}"#), "{told:?}");

    let answer = Answer::Reply { value: json!({"action": "approved", "path": "plan.md", "title": "T", "plan": "P"}) };
    // Another process answers: the first one is gone.
    agent.runtime().shutdown().await;
    let stream = world.agent().resume_stream(&run, None, answer).await.unwrap();
    let told = chunks(stream).await;
    insta::assert_snapshot!(told.join("\n"), @r#"
    {"runId":"run-1","type":"tool-result","payload":{"toolCallId":"p1","result":{"content":"Plan approved. Proceed with implementation following the approved plan.","isError":false,"submittedPlan":{"path":"plan.md","plan":"P","title":"T"},"toolId":"submit_plan"},"isError":false,"denied":false}}
    {"runId":"run-1","type":"text-delta","payload":{"text":"building"}}
    {"runId":"run-1","type":"finish","payload":{"finishReason":"stop","usage":{"input":20,"output":10,"total":30}}}
    "#);
    let history = world.model.requests()[1].messages.clone();
    let result = history.last().unwrap().tool_calls().next().unwrap().state.clone();
    insta::assert_json_snapshot!(result, @r#"
    {
      "state": "result",
      "output": {
        "value": {
          "content": "Plan approved. Proceed with implementation following the approved plan.",
          "isError": false,
          "submittedPlan": {
            "path": "plan.md",
            "plan": "P",
            "title": "T"
          },
          "toolId": "submit_plan"
        }
      }
    }
    "#);
    world.check();
}

#[tokio::test]
async fn a_rejected_plan_carries_the_feedback() {
    for feedback in [Some("smaller"), None] {
        let world = World::new([Turn::tool("p1", "submit_plan", json!({"path": "plan.md"})), Turn::text("ok")]);
        let agent = world.agent();
        let stream = agent.stream("plan it", StreamOptions::default()).await.unwrap();
        let run = stream.run_id().clone();
        chunks(stream).await;
        let mut value = json!({"action": "rejected"});
        if let Some(feedback) = feedback {
            value["feedback"] = json!(feedback);
        }
        let stream = agent.resume_stream(&run, Some(&"p1".into()), Answer::Reply { value }).await.unwrap();
        chunks(stream).await;
        let text = format!("{:?}", world.model.requests()[1].messages);
        assert!(text.contains("Plan was not approved."), "{text}");
        assert_eq!(text.contains("smaller"), feedback.is_some());
        world.check();
    }
}

#[tokio::test]
async fn an_action_that_is_neither_is_refused_and_the_plan_stays_open() {
    let world = World::new([Turn::tool("p1", "submit_plan", json!({"path": "plan.md"})), Turn::text("ok")]);
    let agent = world.agent();
    let stream = agent.stream("plan it", StreamOptions::default()).await.unwrap();
    let run = stream.run_id().clone();
    chunks(stream).await;
    let wrong = agent.resume_stream(&run, None, Answer::Reply { value: json!({"action": "sure"}) }).await.err().unwrap();
    assert_eq!(wrong.kind(), RunErrorKind::InvalidAnswer);
    assert!(agent.resume_stream(&run, None, Answer::Reply { value: json!({"action": "approved"}) }).await.is_ok());
}

/// B-03: two approvals of one step are both listed and answered in any order, each with its own arguments.
#[tokio::test]
async fn two_approvals_of_one_step_are_answered_in_any_order() {
    let turn = Turn::tool("a", "work", json!({"n": 1})).then_tool("b", "work", json!({"n": 2}));
    let world = World::new([turn, Turn::text("done")]);
    let agent = world.asking();
    let stream = agent.stream("go", StreamOptions::default()).await.unwrap();
    let run = stream.run_id().clone();
    let asked = chunks(stream).await;
    assert_eq!(asked.iter().filter(|chunk| chunk.contains("tool-call-approval")).count(), 2, "{asked:?}");
    assert_eq!(world.done(), 0);
    chunks(agent.resume_stream(&run, Some(&"b".into()), Answer::Approve { grant: None }).await.unwrap()).await;
    assert_eq!(world.done(), 1);
    let told = chunks(agent.resume_stream(&run, Some(&"a".into()), Answer::Approve { grant: None }).await.unwrap()).await;
    assert_eq!(world.done(), 2);
    assert!(told.last().unwrap().contains("finish"), "{told:?}");
    let history = world.model.requests()[1].messages.clone();
    let results: Vec<_> = history.last().unwrap().tool_calls().map(|call| (call.id.to_string(), format!("{:?}", call.state))).collect();
    assert!(results[0].1.contains("Number(1)") && results[1].1.contains("Number(2)"), "{results:?}");
    world.check();
}

#[tokio::test]
async fn the_same_answer_again_is_fine_and_another_is_refused() {
    let world = World::new([Turn::tool("q", "ask_user", json!({"question": "?"})), Turn::tool("q2", "ask_user", json!({"question": "!"}))]);
    let agent = world.agent();
    let stream = agent.stream("go", StreamOptions::default()).await.unwrap();
    let run = stream.run_id().clone();
    chunks(stream).await;
    let yes = Answer::Reply { value: json!("yes") };
    chunks(agent.resume_stream(&run, Some(&"q".into()), yes.clone()).await.unwrap()).await;
    let (pending, host_less) = ("run-1/0/q#1".parse().unwrap(), agent.runtime().load(&run).await.unwrap().unwrap().1);
    assert!(host_less.answers.contains_key(&pending));
    // The first question belongs to a step that is over; its answer is remembered all the same.
    let again = agent.answer(&pending, yes).await.unwrap();
    assert!(again.repeated);
    let other = agent.answer(&pending, Answer::Reply { value: json!("no") }).await.unwrap_err();
    assert_eq!(other.kind(), RunErrorKind::Refused(Refusal::AlreadyResolved));
}

#[tokio::test]
async fn a_tool_that_ran_when_its_process_died_is_in_doubt_and_never_runs_twice_by_itself() {
    let mut world = World::new([Turn::tool("w", "work", json!({"n": 1})), Turn::text("done")]);
    world.slow = true;
    let first = world.agent();
    // A process of its own, as far as tasks go: when its executor is dropped, everything in it stops where it is.
    let process = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let stream = process.spawn(async move { first.stream("go", StreamOptions::default()).await.unwrap() }).await.unwrap();
    let run = stream.run_id().clone();
    while world.done() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    process.shutdown_background();
    assert_eq!(world.agent().recover_stream(&run).await.err().unwrap().kind(), RunErrorKind::Owned);
    // The lease of the dead process runs out.
    world.clock.advance(60_000);
    world.slow = false;
    let second = world.agent();
    let told = chunks(second.recover_stream(&run).await.unwrap()).await;
    assert!(told.last().unwrap().contains("tool-call-suspended"), "{told:?}");
    assert_eq!(world.done(), 1);
    let told = chunks(second.resume_stream(&run, None, Answer::RunAgain).await.unwrap()).await;
    assert!(told.last().unwrap().contains("finish"), "{told:?}");
    assert_eq!(world.done(), 2);
    world.check();
}

#[tokio::test]
async fn arguments_that_do_not_fit_never_reach_the_tool() {
    let turn = Turn::tool("a", "work", json!({"n": "x"})).then_raw_tool("b", "work", "{\"n\":").then_tool("c", "nope", json!({}));
    let world = World::new([turn, Turn::text("sorry")]);
    let told = chunks(world.agent().stream("go", StreamOptions::default()).await.unwrap()).await;
    assert_eq!(world.done(), 0);
    assert_eq!(told.iter().filter(|chunk| chunk.contains(r#""isError":true"#)).count(), 3, "{told:?}");
    world.check();
}

#[tokio::test]
async fn an_error_before_the_answer_ends_the_run_and_says_why() {
    let world = World::new([Turn::error(401, "no")]);
    let told = chunks(world.agent().stream("go", StreamOptions::default()).await.unwrap()).await;
    insta::assert_snapshot!(told.join("\n"), @r#"{"runId":"run-1","type":"error","payload":{"error":{"code":"model.auth","message":"the script says 401"}}}"#);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_overloaded_is_asked_again() {
    let world = World::new([Turn::error(503, "busy"), Turn::text("half").then_cut(), Turn::text("whole")]);
    let stream = world.agent().stream("go", StreamOptions::default()).await.unwrap();
    let all: Vec<_> = stream.collect().await;
    assert!(matches!(all.last().unwrap().body, ChunkBody::Finish { .. }), "{all:?}");
    assert_eq!(world.model.requests().len(), 3);
    let thread = ac_core::ThreadId::from("thread-1");
    let stored = world.storage.messages().page(&thread, &Default::default()).await.unwrap().items;
    assert_eq!(stored.iter().map(|message| message.message.text()).collect::<Vec<_>>(), ["go", "whole"]);
    world.check();
}

/// Once the first step is stored nothing may report that it was not: whoever tried again would say it twice.
#[tokio::test(start_paused = true)]
async fn a_start_that_is_stored_is_reported_as_stored_whatever_fails_after_it() {
    for op in [Op::ReadHead, Op::TakeLease] {
        let faults = Faults::new();
        let mut world = World::new([Turn::text("hello")]);
        world.storage = Arc::new(HookedStorage::new(MemoryStorage::new(), faults.clone()));
        faults.next(op, Fault::Fail(StorageErrorKind::Unavailable));
        let told = chunks(world.agent().stream("hi", StreamOptions::default()).await.unwrap()).await;
        assert!(told.last().unwrap().contains("finish"), "{op:?}: {told:?}");
        assert_eq!(faults.hits(), 1, "{op:?}");
        world.check();
    }
}

/// A commit whose reply is lost is recognised as one's own (`R1`): nothing is doubled, nothing runs twice.
#[tokio::test(start_paused = true)]
async fn a_lost_reply_of_the_store_loses_and_doubles_nothing() {
    let mut hits = 0;
    for seed in 0..40 {
        let faults = Faults::new();
        let turn = Turn::tool("a", "work", json!({"n": 1})).then_tool("b", "work", json!({"n": 2}));
        let mut world = World::new([turn, Turn::text("done")]);
        world.storage = Arc::new(HookedStorage::new(MemoryStorage::new(), faults.clone()));
        let agent = world.agent();
        let thread = ac_core::ThreadId::from("t");
        let record = ac_storage::ThreadRecord::new(thread.clone(), "agent".into(), ac_core::Timestamp::default());
        world.storage.threads().create(&record).await.unwrap();
        faults.seeded(seed, 300, &[Fault::DoneThenUnknown, Fault::NotDoneThenUnknown]);
        let mut options = StreamOptions::default();
        options.thread = Some(thread.clone());
        let started = agent.stream("go", options).await;
        let Ok(stream) = started else {
            // The thread could not be made sure of, so the message was not taken.
            assert!(world.storage.messages().page(&thread, &Default::default()).await.unwrap().items.is_empty(), "seed {seed}");
            continue;
        };
        let told = chunks(stream).await;
        hits += faults.hits();
        faults.clear();
        assert!(told.last().unwrap().contains("finish"), "seed {seed}: {told:?}");
        assert_eq!(world.done(), 2, "seed {seed}");
        let stored = world.storage.messages().page(&thread, &Default::default()).await.unwrap().items;
        assert_eq!(stored.iter().map(|message| message.message.text()).collect::<Vec<_>>(), ["go", "", "done"], "seed {seed}");
        world.check();
    }
    assert!(hits > 40, "the store hardly failed: {hits}");
}

/// B-75: a connection that is lost while the model thinks costs that step alone; what ran before runs once, and the end is told.
#[tokio::test(start_paused = true)]
async fn a_step_that_fails_is_tried_again_alone_and_not_for_ever() {
    let lost = || Turn::reasoning("hm").then_cut();
    let world = World::new([Turn::tool("c", "work", json!({"n": 1})), lost(), lost(), lost(), lost()]);
    let began = tokio::time::Instant::now();
    let told = chunks(world.agent().stream("go", StreamOptions::default()).await.unwrap()).await;
    assert_eq!((world.done(), world.model.requests().len()), (1, 4), "one step, and three tries of the next");
    assert!(told.last().unwrap().contains("model.truncated"), "{told:?}");
    assert!(began.elapsed() >= std::time::Duration::from_millis(250 + 500), "each wait is longer: {:?}", began.elapsed());
    world.check();
}

/// B-61: calls of an answer that did not end by itself are not run; each has a result that says why, and the run says it too.
#[tokio::test]
async fn calls_of_an_answer_that_was_cut_or_stopped_are_not_run() {
    for (reason, code) in [("length", "model.length"), ("content_filter", "model.content_filter"), ("refusal", "model.refusal")] {
        let world = World::new([Turn::tool("c", "work", json!({"n": 1})).finish(reason), Turn::text("done")]);
        let told = chunks(world.agent().stream("go", StreamOptions::default()).await.unwrap()).await;
        assert_eq!((world.done(), world.model.requests().len()), (0, 1), "{reason}: {told:?}");
        assert!(told.last().unwrap().contains(code), "{reason}: {told:?}");
        let thread = ac_core::ThreadId::from("thread-1");
        let stored = world.storage.messages().page(&thread, &Default::default()).await.unwrap().items;
        let calls: Vec<_> = stored.iter().flat_map(|message| message.message.tool_calls()).collect();
        let [call] = calls.as_slice() else { panic!("{reason}: {stored:?}") };
        let ac_core::ToolCallState::Result { output, is_error: true } = &call.state else { panic!("{reason}: {call:?}") };
        assert!(output.model_text().contains("work was not run"), "{reason}: {}", output.model_text());
        world.check();
    }
}

/// B-76: after a rate limit the answer is there once; a model that asks for the same for ever ends the run with an error.
#[tokio::test(start_paused = true)]
async fn one_answer_after_a_rate_limit_and_no_loop_for_ever() {
    let world = World::new([Turn::tool("c", "work", json!({"n": 1})), Turn::error(429, "slow down"), Turn::text("done")]);
    chunks(world.agent().stream("go", StreamOptions::default()).await.unwrap()).await;
    let thread = ac_core::ThreadId::from("thread-1");
    let stored = world.storage.messages().page(&thread, &Default::default()).await.unwrap().items;
    let texts: Vec<_> = stored.iter().map(|message| message.message.text()).filter(|text| !text.is_empty()).collect();
    assert_eq!((texts, world.done()), (vec!["go".to_owned(), "done".to_owned()], 1));

    let world = World::new((0..50).map(|_| Turn::tool("c", "work", json!({"n": 1}))));
    let told = chunks(world.agent().stream("go", StreamOptions::default()).await.unwrap()).await;
    assert!(told.last().unwrap().contains("run.loop"), "{told:?}");
    assert_eq!(world.done(), 25);
    world.check();
}

/// B-82: a tool that somebody else wrote returns five million bytes.
#[tokio::test]
async fn a_huge_result_of_any_tool_is_cut_before_the_model_reads_it() {
    struct Flood;
    #[async_trait]
    impl Tool for Flood {
        fn definition(&self) -> ToolDefinition {
            ToolDefinition::new("flood", "Says much.", json!({"type": "object"})).category(ToolCategory::Read)
        }

        async fn call(&self, _: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
            Ok(ToolOutcome::Done(ToolOutput::new(json!({"rows": vec!["0123456789"; 400_000]}))))
        }
    }
    let world = World::new([Turn::tool("c", "flood", json!({})), Turn::text("done")]);
    let (model, storage, clock, ids) = (world.model.clone(), world.storage.clone(), world.clock.clone(), world.ids.clone());
    let agent = Agent::builder("agent", "scripted/model", model, storage, clock, ids).tool(Arc::new(Flood)).build().unwrap();
    chunks(agent.stream("go", StreamOptions::default()).await.unwrap()).await;
    let request = world.model.requests().pop().unwrap();
    let ac_core::ToolCallState::Result { output, .. } = &request.messages[1].tool_calls().next().unwrap().state else { panic!() };
    let text = output.model_text();
    assert!(text.len() < 140_000 && text.contains("5200010 bytes"), "{} {}", text.len(), text.get(87_000..87_600).unwrap_or_default());
}
