//! What a run tells, segment by segment: transcripts of the driver with a host that writes everything down.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ac_agent::{RunError, RunHandle, RunHost, RunOrigin, RunRef, Runtime, RuntimeSettings};
use ac_core::{
    Clock, Decision, Event, EventBody, Ids, Message, ModelError, ModelId, ModelProvider, PendingId, RunId, SessionKey, Tool, ToolCategory,
    ToolContext, ToolDefinition, ToolEffect, ToolError, ToolOutcome, ToolOutput,
    permission::{Circumstances, DefaultPolicies, PermissionRules, Subject, decide},
    tool::{Capabilities, ToolProgress},
};
use ac_engine::{Answer, Input, Outbox, Profile, RunSnapshot, StartRun};
use ac_storage::{MemoryStorage, Storage, ThreadRecord};
use ac_testkit::{ManualClock, ScriptedModel, SequentialIds, Transcript, Turn};
use ac_tools::{AskUser, SubmitPlan, ToolSet};
use async_trait::async_trait;
use serde_json::{Value, json};

struct Echo;

#[async_trait]
impl Tool for Echo {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new("echo", "Says it again.", json!({"type": "object"})).category(ToolCategory::Read).effect(ToolEffect::ReadOnly)
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        cx.report(ToolProgress::Shell { text: "working\n".into(), stderr: false });
        cx.report(ToolProgress::Exit { code: 0 });
        Ok(ToolOutcome::Done(ToolOutput::new(args)))
    }
}

/// Changes something, and takes until it is stopped.
struct Slow;

#[async_trait]
impl Tool for Slow {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new("slow", "Takes its time.", json!({"type": "object"})).category(ToolCategory::Read)
    }

    async fn call(&self, _: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        cx.cancel.cancelled().await;
        Err(ToolError::failed("stopped"))
    }
}

struct Risky;

#[async_trait]
impl Tool for Risky {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new("risky", "Asks first.", json!({"type": "object"})).category(ToolCategory::Execute)
    }

    async fn call(&self, args: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        Ok(ToolOutcome::Done(ToolOutput::new(json!({"ran": args}))))
    }
}

struct Desk {
    model: Arc<ScriptedModel>,
    told: Mutex<Vec<Event>>,
    applied: Mutex<Vec<String>>,
    tools: Arc<ToolSet>,
    clock: Arc<ManualClock>,
}

#[async_trait]
impl RunHost for Desk {
    fn provider(&self, _: &ModelId) -> Result<Arc<dyn ModelProvider>, ModelError> {
        Ok(self.model.clone())
    }

    fn tools(&self, _: &Profile) -> Arc<ToolSet> {
        self.tools.clone()
    }

    async fn decide(&self, _: &RunRef, _: &Profile, definition: &ToolDefinition, _: &Value) -> Decision {
        let subject = Subject { tool: &definition.name, category: definition.category, requires_approval: false, call: None };
        let (rules, defaults) = (PermissionRules::default(), DefaultPolicies::default());
        decide(subject, &Circumstances { rules: &rules, grants: &[], defaults: &defaults, yolo: false, visible: None })
    }

    fn capabilities(&self, _: &RunRef) -> Capabilities {
        Capabilities::new()
    }

    async fn plan_target(&self, profile: &Profile) -> Result<Profile, RunError> {
        let mut target = profile.clone();
        target.mode = "build".into();
        target.instructions = Some("Build.".into());
        Ok(target)
    }

    async fn apply(&self, snapshot: &RunSnapshot, item: &Outbox) -> Result<(), RunError> {
        self.applied.lock().unwrap().push(format!("{} {}", snapshot.run, serde_json::to_string(&item.action).unwrap()));
        Ok(())
    }

    fn tell(&self, run: &RunRef, body: EventBody) {
        let mut told = self.told.lock().unwrap();
        let seq = told.len() as u64 + 1;
        let session = SessionKey::new("r");
        let (run, thread) = (Some(run.run.clone()), Some(run.thread.clone()));
        told.push(Event { epoch: "e".into(), seq, at: self.clock.now(), session, run, thread, body });
    }
}

struct World {
    desk: Arc<Desk>,
    runtime: Runtime,
    storage: Arc<dyn Storage>,
    ids: Arc<SequentialIds>,
    clock: Arc<ManualClock>,
    story: Transcript,
}

impl World {
    fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        let clock = Arc::new(ManualClock::new());
        let ids = Arc::new(SequentialIds::new());
        let mut tools = ToolSet::new();
        let all: [Arc<dyn Tool>; 5] = [Arc::new(Echo), Arc::new(Slow), Arc::new(Risky), Arc::new(AskUser), Arc::new(SubmitPlan)];
        tools.extend(all).unwrap();
        let desk = Arc::new(Desk {
            model: Arc::new(ScriptedModel::new(turns)),
            told: Mutex::default(),
            applied: Mutex::default(),
            tools: Arc::new(tools),
            clock: clock.clone(),
        });
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let runtime = Self::runtime(&storage, &clock, &ids);
        Self { desk, runtime, storage, ids, clock, story: Transcript::new() }
    }

    fn runtime(storage: &Arc<dyn Storage>, clock: &Arc<ManualClock>, ids: &Arc<SequentialIds>) -> Runtime {
        let mut settings = RuntimeSettings::default();
        settings.grace = Duration::from_millis(100);
        Runtime::new(storage.clone(), clock.clone(), ids.clone(), ids.fresh("owner").into(), settings)
    }

    async fn start(&mut self, text: &str) -> RunHandle {
        self.story.note(text);
        let thread = ac_core::ThreadId::from("t");
        let record = ThreadRecord::new(thread.clone(), "r".into(), self.clock.now());
        let _ = self.storage.threads().create(&record).await;
        let mut profile = Profile::new("agent", "plan", "scripted/model");
        profile.tools = self.desk.tools.definitions().map(|tool| tool.name.as_str().into()).collect();
        let messages = vec![self.message(text)];
        let run = self.ids.fresh("run").into();
        let start = StartRun { run, thread, parent: None, profile, messages, from_queue: false };
        let origin = RunOrigin { controller: "c".into(), session: SessionKey::new("r"), resource: "r".into() };
        self.runtime.start(self.desk.clone(), origin, start).await.unwrap()
    }

    fn message(&self, text: &str) -> Message {
        Message::user(self.ids.fresh("message"), text, self.clock.now())
    }

    async fn answer(&mut self, pending: &str, answer: Answer) {
        self.rest();
        self.story.note(&format!("{pending} {}", serde_json::to_string(&answer).unwrap()));
        let pending: PendingId = pending.parse().unwrap();
        self.runtime.answer(self.desk.clone(), &pending, answer, None).await.unwrap();
    }

    async fn deliver(&mut self, note: &str, input: Input) {
        self.rest();
        self.story.note(note);
        self.runtime.deliver(self.desk.clone(), &RunId::from("run-1"), input).await.unwrap();
    }

    /// Takes what was told so far into the story.
    fn rest(&mut self) {
        let told = std::mem::take(&mut *self.desk.told.lock().unwrap());
        self.story.events(&told);
    }

    /// Waits until this many events of a kind were told.
    async fn until(&mut self, name: &str) {
        for _ in 0..2000 {
            if self.desk.told.lock().unwrap().iter().any(|event| event.body.name() == name) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("no {name} was told");
    }

    fn tell(&mut self) -> String {
        self.rest();
        for applied in self.desk.applied.lock().unwrap().iter() {
            self.story.note(&format!("applied {applied}"));
        }
        assert_eq!(self.desk.model.violations(), Vec::<String>::new());
        self.story.to_string()
    }
}

fn reply(value: Value) -> Answer {
    Answer::Reply { value }
}

#[tokio::test]
async fn a_tool_that_may_run() {
    let mut world = World::new([Turn::text("I look. ").then_tool("c1", "echo", json!({"a": 1})), Turn::text("done")]);
    let run = world.start("look").await;
    run.settled().await;
    insta::assert_snapshot!(world.tell());
}

#[tokio::test]
async fn an_approval_is_one_segment() {
    let mut world = World::new([Turn::tool("c1", "risky", json!({"a": 1})), Turn::text("done")]);
    let run = world.start("go").await;
    world.until("tool_approval_required").await;
    world.answer("run-1/0/c1#1", Answer::Approve { grant: None }).await;
    run.settled().await;
    insta::assert_snapshot!(world.tell());
}

#[tokio::test]
async fn a_declined_call_is_told_to_the_model() {
    let mut world = World::new([Turn::tool("c1", "risky", json!({})), Turn::text("pity")]);
    let run = world.start("go").await;
    world.until("tool_approval_required").await;
    world.answer("run-1/0/c1#1", Answer::Decline { reason: Some("too risky".into()) }).await;
    run.settled().await;
    insta::assert_snapshot!(world.tell());
}

#[tokio::test]
async fn a_question_ends_a_segment_and_its_answer_opens_another() {
    let mut world = World::new([Turn::tool("q", "ask_user", json!({"question": "Which?"})), Turn::text("that one")]);
    let run = world.start("go").await;
    run.settled().await;
    world.answer("run-1/0/q#1", reply(json!("this"))).await;
    world.until("agent_end").await;
    insta::assert_snapshot!(world.tell());
}

#[tokio::test]
async fn an_approved_plan_moves_the_run_to_another_mode() {
    let mut world = World::new([Turn::tool("p", "submit_plan", json!({"path": "plan.md"})), Turn::text("building")]);
    let run = world.start("plan it").await;
    run.settled().await;
    world.answer("run-1/0/p#1", reply(json!({"action": "approved"}))).await;
    world.until("agent_end").await;
    insta::assert_snapshot!(world.tell());
    let request = &world.desk.model.requests()[1];
    assert_eq!(request.instructions.as_deref(), Some("Build."));
}

#[tokio::test]
async fn a_plan_survives_the_process_that_showed_it() {
    let mut world = World::new([Turn::tool("p", "submit_plan", json!({"path": "plan.md"})), Turn::text("building")]);
    world.start("plan it").await.settled().await;
    world.runtime.shutdown().await;
    world.rest();
    world.story.heading("another process");
    world.runtime = World::runtime(&world.storage, &world.clock, &world.ids);
    world.answer("run-1/0/p#1", reply(json!({"action": "rejected", "feedback": "smaller"}))).await;
    world.until("agent_end").await;
    insta::assert_snapshot!(world.tell());
}

#[tokio::test]
async fn an_abort_at_an_approval_denies_the_call() {
    let mut world = World::new([Turn::tool("c1", "risky", json!({})), Turn::text("never")]);
    let run = world.start("go").await;
    world.until("tool_approval_required").await;
    world.deliver("abort", Input::Abort { go_on: false }).await;
    run.settled().await;
    insta::assert_snapshot!(world.tell());
}

#[tokio::test]
async fn an_abort_of_a_parked_run_is_a_segment_of_its_own() {
    let mut world = World::new([Turn::tool("q", "ask_user", json!({"question": "Which?"})), Turn::text("never")]);
    world.start("go").await.settled().await;
    world.deliver("abort", Input::Abort { go_on: false }).await;
    world.until("agent_end").await;
    insta::assert_snapshot!(world.tell());
}

#[tokio::test]
async fn an_abort_while_the_model_speaks_keeps_what_was_shown() {
    let mut world = World::new([Turn::text("half a sent").then_hang()]);
    let run = world.start("go").await;
    world.until("message_update").await;
    world.deliver("abort", Input::Abort { go_on: false }).await;
    run.settled().await;
    let stored = world.storage.messages().page(&"t".into(), &Default::default()).await.unwrap().items;
    assert_eq!(stored.last().unwrap().message.text(), "half a sent");
    insta::assert_snapshot!(world.tell());
}

#[tokio::test]
async fn an_abort_while_a_tool_works_stops_it() {
    let mut world = World::new([Turn::tool("s", "slow", json!({})), Turn::text("never")]);
    let run = world.start("go").await;
    world.until("tool_start").await;
    world.deliver("abort", Input::Abort { go_on: false }).await;
    run.settled().await;
    insta::assert_snapshot!(world.tell());
}

#[tokio::test]
async fn a_message_during_an_approval_declines_it_and_reaches_the_model() {
    let mut world = World::new([Turn::tool("c1", "risky", json!({})), Turn::text("as you like")]);
    let run = world.start("go").await;
    world.until("tool_approval_required").await;
    let message = world.message("do something else");
    world.deliver("do something else", Input::Message { message, decline: true }).await;
    run.settled().await;
    insta::assert_snapshot!(world.tell());
}

#[tokio::test]
async fn a_step_budget_that_is_used_up_is_an_error() {
    let mut world = World::new((0..5).map(|n| Turn::tool(format!("c{n}"), "echo", json!({}))));
    world.story.note("two steps at most");
    let thread = ac_core::ThreadId::from("t");
    world.storage.threads().create(&ThreadRecord::new(thread.clone(), "r".into(), world.clock.now())).await.unwrap();
    let mut profile = Profile::new("agent", "plan", "scripted/model");
    profile.tools = vec!["echo".into()];
    profile.limits.steps = 2;
    let messages = vec![world.message("go")];
    let start = StartRun { run: "run-1".into(), thread, parent: None, profile, messages, from_queue: false };
    let origin = RunOrigin { controller: "c".into(), session: SessionKey::new("r"), resource: "r".into() };
    let run = world.runtime.start(world.desk.clone(), origin, start).await.unwrap();
    run.settled().await;
    insta::assert_snapshot!(world.tell());
}

#[tokio::test]
async fn two_runs_never_share_a_thread() {
    let mut world = World::new([Turn::tool("q", "ask_user", json!({"question": "Which?"}))]);
    world.start("go").await.settled().await;
    let messages = vec![world.message("again")];
    let profile = Profile::new("agent", "plan", "scripted/model");
    let start = StartRun { run: "other".into(), thread: "t".into(), parent: None, profile, messages, from_queue: false };
    let origin = RunOrigin { controller: "c".into(), session: SessionKey::new("r"), resource: "r".into() };
    let refused = world.runtime.start(world.desk.clone(), origin, start).await.unwrap_err();
    assert_eq!(refused.code(), "run.busy");
    assert!(world.runtime.load(&"other".into()).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_retry_takes_back_what_was_shown() {
    let mut world = World::new([Turn::text("half").then_cut(), Turn::text("whole")]);
    let run = world.start("go").await;
    run.settled().await;
    insta::assert_snapshot!(world.tell());
}
