//! The main job through the facade: a person gives a task, the agent looks, asks, plans, is approved, builds, asks before it writes and
//! runs, and finishes. Real store, real files, real commands; ids and clock are given, so the transcript is the same every time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::{path::Path, sync::Arc, time::Duration};

use ac_testkit::{ManualClock, SequentialIds, Transcript};
use agent_controller::{
    llm::demo::Guide,
    prelude::*,
    storage::SledStorage,
    tools::workspace::{WorkspaceToolOptions, tools},
    workspace::{Isolation, LocalFilesystemOptions, LocalSandboxOptions, Workspace},
};
use serde_json::json;

/// A folder to work in and a store beside it; processes come and go.
struct Project {
    root: tempfile::TempDir,
    clock: ManualClock,
    ids: Arc<SequentialIds>,
}

impl Project {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("work")).unwrap();
        std::fs::write(root.path().join("work/notes.txt"), "Lighthouses guide ships.\n").unwrap();
        Self { root, clock: ManualClock::new(), ids: Arc::new(SequentialIds::new()) }
    }

    fn work(&self) -> std::path::PathBuf {
        self.root.path().join("work")
    }

    /// A process: opens the store, and goes on with what another one left behind.
    async fn open(&self) -> AgentController {
        // How far commands can be held differs between machines, and the model is told.
        let mut commands = LocalSandboxOptions::default();
        commands.isolation = Isolation::Off;
        let files = Arc::new(Workspace::local_with(self.work(), LocalFilesystemOptions::default(), commands).unwrap());
        let agent = AgentConfig::new("coder")
            .instructions("You are careful.")
            .tools(tools(files, WorkspaceToolOptions::default()))
            .tools([Arc::new(AskUser) as Arc<dyn Tool>, Arc::new(SubmitPlan)]);
        let controller = AgentController::builder()
            .storage(Arc::new(SledStorage::open(self.root.path().join("store")).await.unwrap()))
            .clock(Arc::new(self.clock.clone()))
            .ids(self.ids.clone())
            .provider(Guide::new())
            .agent(agent)
            .mode(
                Mode::new("plan")
                    .instructions("Plan.")
                    .model("demo/guide")
                    .available_tools(["view", "find_files", "write_file", "ask_user", "submit_plan"])
                    .transitions_to("build"),
            )
            .mode(Mode::new("build").instructions("Build.").model("demo/guide").available_tools([
                "view",
                "find_files",
                "write_file",
                "execute_command",
                "ask_user",
            ]))
            .build()
            .unwrap();
        controller.init().await.unwrap();
        controller
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.work().join(path)).ok()
    }
}

/// What a person says to each wait of the job.
fn answer(open: &Pending) -> Answer {
    match open.kind {
        PendingKind::Question => Answer::Reply { value: json!("A note") },
        PendingKind::Plan => Answer::Reply { value: json!({"action": "approved", "path": open.payload["path"]}) },
        PendingKind::Approval => Answer::Approve { grant: None },
        PendingKind::InDoubt => panic!("nothing may be in doubt here: {open:?}"),
    }
}

/// The one thing that waits, or `None` once the run is over.
async fn next_wait(session: &Session) -> Option<Pending> {
    for _ in 0..2000 {
        let mut open = session.pending().await.unwrap();
        if !open.is_empty() {
            assert_eq!(open.len(), 1, "{open:?}");
            return open.pop();
        }
        session.current_run().await.unwrap()?;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the run neither waits nor ends");
}

/// Takes events into the story until one fits, so that what a person says stands after what moved them to say it.
async fn hear(story: &mut Transcript, events: &mut Subscription, fits: impl Fn(&EventBody) -> bool) {
    let heard = async {
        while let Some(event) = events.next_event().await {
            story.event(&event);
            if fits(&event.body) {
                return;
            }
        }
        panic!("the stream ended");
    };
    tokio::time::timeout(Duration::from_secs(10), heard).await.unwrap();
}

fn note(open: &Pending) -> String {
    format!("{} {} waits: {}", open.kind.as_str(), open.tool, serde_json::to_string(&answer(open)).unwrap())
}

fn built(work: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(work).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn the_job_reads_like_a_story() {
    let project = Project::new();
    let controller = project.open().await;
    let session = controller.create_session("user").await.unwrap();
    let mut events = session.subscribe();
    let mut story = Transcript::new();
    story.note("Add a page about lighthouses");
    session.submit("Add a page about lighthouses").await.unwrap();
    while let Some(open) = next_wait(&session).await {
        match open.kind {
            PendingKind::Approval => hear(&mut story, &mut events, |body| matches!(body, EventBody::ToolApprovalRequired { .. })).await,
            _ => hear(&mut story, &mut events, |body| matches!(body, EventBody::AgentEnd { .. })).await,
        }
        story.note(&note(&open));
        session.answer(&open.id, answer(&open)).await.unwrap();
    }
    hear(&mut story, &mut events, |body| matches!(body, EventBody::AgentEnd { .. })).await;
    controller.shutdown().await;
    story.heading("the view");
    story.display(&session.display_state());
    insta::assert_snapshot!(story.to_string());
    insta::assert_snapshot!(project.read("add-a-page-about-lighthouses.md").unwrap(), @r"
    # Add a page about lighthouses

    - The folder holds 1 file (1 txt), among them `notes.txt`.
    - `notes.txt` begins: Lighthouses guide ships.
    - You chose: A note
    ");
    assert_eq!(built(&project.work()), [".acode", "add-a-page-about-lighthouses.md", "notes.txt"]);
}

/// At each wait the process ends and another one opens the store: it shows the same wait, and in the end the same is built, once.
#[tokio::test]
async fn the_job_done_piecewise_by_one_process_after_another_builds_the_same() {
    let whole = Project::new();
    let controller = whole.open().await;
    let session = controller.create_session("user").await.unwrap();
    session.submit("Add a page about lighthouses").await.unwrap();
    while let Some(open) = next_wait(&session).await {
        session.answer(&open.id, answer(&open)).await.unwrap();
    }
    let messages = session.messages(None, Default::default()).await.unwrap().items.len();
    controller.shutdown().await;

    let project = Project::new();
    let controller = project.open().await;
    let session = controller.create_session("user").await.unwrap();
    session.submit("Add a page about lighthouses").await.unwrap();
    let mut shown = next_wait(&session).await;
    controller.shutdown().await;
    drop((session, controller));
    let mut lives = 1;
    while let Some(before) = shown {
        let controller = project.open().await;
        let session = controller.create_session("user").await.unwrap();
        assert_eq!(session.pending().await.unwrap(), std::slice::from_ref(&before), "another process shows something else");
        session.answer(&before.id, answer(&before)).await.unwrap();
        shown = next_wait(&session).await;
        if shown.is_none() {
            assert_eq!(session.messages(None, Default::default()).await.unwrap().items.len(), messages, "a message was lost or doubled");
        }
        controller.shutdown().await;
        lives += 1;
    }
    assert_eq!(lives, 6);
    assert_eq!(project.read("add-a-page-about-lighthouses.md"), whole.read("add-a-page-about-lighthouses.md"));
    assert_eq!(built(&project.work()), built(&whole.work()));
}
