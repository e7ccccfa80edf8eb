//! What a person waits for: `cargo bench -p tests --bench durable`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{
    path::Path,
    sync::{Arc, LazyLock},
};

use ac_controller::{AgentConfig, AgentController, Limits, Mode, SystemClock};
use ac_core::{
    Decision, Message, Part, PendingId, SessionKey, Timestamp, Tool, ToolCallPart, ToolCategory, ToolContext, ToolDefinition, ToolEffect,
    ToolError, ToolOutcome, ToolOutput,
    model::Finish,
    permission::{Reason, Verdict},
};
use ac_engine::{Answer, CallPlan, Gate, Input, Profile, RunSnapshot, StartRun};
use ac_llm::{OpenAiCompatible, ReqwestTransport};
use ac_storage::{
    Commit, CommitMark, Durability, RunHeader, RunPosture, RunRecord, RunStage, SledOptions, SledStorage, Storage, ThreadRecord,
};
use ac_testkit::{ScriptedServer, Turn};
use async_trait::async_trait;
use divan::Bencher;
use serde_json::{Value, json, value::to_raw_value};
use tokio::{
    runtime::{Builder, Runtime},
    sync::Notify,
};

fn main() {
    divan::main();
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Says when it is called.
struct Bell(Arc<Notify>);

#[async_trait]
impl Tool for Bell {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new("write", "Writes.", json!({ "type": "object" })).category(ToolCategory::Edit).effect(ToolEffect::Mutating)
    }

    async fn call(&self, _: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        self.0.notify_one();
        Ok(ToolOutcome::Done(ToolOutput::text("done")))
    }
}

fn controller(store: Arc<SledStorage>, url: &str, bell: Arc<Notify>) -> AgentController {
    let mut limits = Limits::default();
    // The same call is made in each sample, and the step budget must hold them all.
    (limits.repeats, limits.steps) = (None, 10_000);
    AgentController::builder()
        .id("bench")
        .limits(limits)
        .storage(store)
        .clock(Arc::new(SystemClock))
        .provider(OpenAiCompatible::new(url, Arc::new(ReqwestTransport::new().unwrap())))
        .agent(AgentConfig::new("agent").instructions("Work.").tools([Arc::new(Bell(bell)) as Arc<dyn Tool>]))
        .mode(Mode::new("build").model("scripted/builder"))
        .default_mode("build")
        .build()
        .unwrap()
}

/// From `session.answer` of an approval to the first line of the tool: one commit on sled with `Durability::Power`, and what is around it.
#[divan::bench(sample_count = 200, sample_size = 1)]
fn answer_to_tool_start(bencher: Bencher) {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let server = ScriptedServer::start([Turn::tool("c", "write", json!({})).forever()]);
    let bell = Arc::new(Notify::new());
    let (controller, session) = runtime.block_on(async {
        let store = Arc::new(SledStorage::open(folder.path().join("store")).await.unwrap());
        let controller = controller(store, &server.base_url(), bell.clone());
        let session = controller.create_session("ann").await.unwrap();
        session.submit("go").await.unwrap();
        (controller, session)
    });
    bencher
        .with_inputs(|| {
            runtime.block_on(async {
                loop {
                    if let Some(wait) = session.pending().await.unwrap().pop() {
                        return wait.id;
                    }
                    tokio::task::yield_now().await;
                }
            })
        })
        .bench_local_values(|wait: PendingId| {
            runtime.block_on(async {
                let (answered, ()) = tokio::join!(session.answer(&wait, Answer::Approve { grant: None }), bell.notified());
                answered.unwrap();
            });
        });
    runtime.block_on(controller.shutdown());
    drop(server.violations());
}

const PARKED: usize = 10_000;

/// A run that waits for an approval.
fn parked(n: usize) -> RunRecord {
    let (run, at) = (format!("run-{n}"), Timestamp::from_millis(1));
    let start = StartRun {
        run: run.as_str().into(),
        thread: format!("thread-{n}").into(),
        parent: None,
        profile: Profile::new("agent", "build", "scripted/builder"),
        messages: vec![Message::user(format!("m-{n}"), "Write the file, please.", at)],
        from_queue: false,
    };
    let mut snapshot = RunSnapshot::start(start, at);
    snapshot.step(at, Input::Dispatch).unwrap();
    let plan = CallPlan {
        call: "c".into(),
        gate: Gate::Ask,
        decision: Decision { verdict: Verdict::Ask, reason: Reason::Default },
        effect: ToolEffect::Mutating,
        category: ToolCategory::Edit,
        answer_schema: None,
        definition: "0123456789abcdef".to_owned(),
    };
    let parts = vec![Part::text("I write it."), Part::ToolCall(ToolCallPart::new("c", "write", json!({ "path": "a.txt" })))];
    let finish = Finish::new(ac_core::FinishReason::ToolCalls);
    snapshot.step(at, Input::Sampled { attempt: snapshot.attempt, parts, calls: vec![plan], finish }).unwrap();
    let header = RunHeader {
        run: snapshot.run.clone(),
        controller: "bench".into(),
        session: SessionKey::new(format!("person-{n}").as_str()),
        thread: snapshot.thread.clone(),
        parent: None,
        stage: RunStage::Open,
        posture: RunPosture::Approval,
        pending: snapshot.waits().into_iter().map(|wait| wait.id).collect(),
        epoch: snapshot.epoch,
        mark: CommitMark { by: "dead".into(), epoch: 1, n: 1 },
        at,
    };
    RunRecord { header, body: to_raw_value(&snapshot).unwrap() }
}

/// A store with 10,000 of them, each of another person.
static STORE: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), runtime());
    runtime.block_on(async {
        let store = Arc::new(SledOptions::new(folder.path().join("store")).durability(Durability::Process).open().await.unwrap());
        let starts: Vec<_> = (0..PARKED)
            .map(|n| {
                let store = Arc::clone(&store);
                tokio::spawn(async move {
                    let record = parked(n);
                    let thread = ThreadRecord::new(record.header.thread.clone(), record.header.session.resource.clone(), record.header.at);
                    store.threads().create(&thread).await.unwrap();
                    store.runs().commit(Commit { expect: None, record: &record, put: &[], usage: None }).await.unwrap();
                })
            })
            .collect();
        for start in starts {
            start.await.unwrap();
        }
        store.close().await.unwrap();
    });
    folder
});

async fn open(folder: &Path) -> AgentController {
    let store = Arc::new(SledStorage::open(folder.join("store")).await.unwrap());
    controller(store, "http://127.0.0.1:9/v1", Arc::default())
}

/// A new process: the store is opened, and `init` looks at every run.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn open_and_init_with_10_000_parked_runs(bencher: Bencher) {
    let (folder, runtime) = (STORE.path(), runtime());
    bencher.bench_local(|| {
        runtime.block_on(async {
            let controller = open(folder).await;
            controller.init().await.unwrap();
            controller.shutdown().await;
        });
    });
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn pending_of_all_10_000_parked_runs(bencher: Bencher) {
    let runtime = runtime();
    let controller = runtime.block_on(open(STORE.path()));
    bencher.bench_local(|| assert_eq!(runtime.block_on(controller.pending()).unwrap().len(), PARKED));
    runtime.block_on(controller.shutdown());
}

#[divan::bench(sample_count = 100)]
fn pending_of_one_session_among_10_000_parked_runs(bencher: Bencher) {
    let runtime = runtime();
    let controller = runtime.block_on(open(STORE.path()));
    let session = runtime.block_on(controller.create_session("person-5000")).unwrap();
    bencher.bench_local(|| assert_eq!(runtime.block_on(session.pending()).unwrap().len(), 1));
    runtime.block_on(controller.shutdown());
}
