//! One of the two processes: does what the referee says, and tells what it sees.

use std::{
    io::{BufRead, Write},
    sync::Arc,
    time::Duration,
};

use ac_controller::{Answer, Session};
use ac_core::{
    EventBody, OwnerId, PendingId, RunId, ThreadId, Timestamp, Tool, ToolContext, ToolDefinition, ToolError, ToolOutcome,
    event::{EndReason, PendingKind},
    tool::ToolResume,
};
use ac_storage::{
    Commit, CommitOutcome, KvStorage, Lease, MessageStore, Page, RunHeader, RunRecord, RunStore, SessionStore, StateStore, Storage,
    StorageError, Stored, ThreadHead, ThreadStore, domain::OpenRuns,
};
use ac_testkit::store::FileKv;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{JOB, judge::Noted};
use crate::{
    Failure, Rival,
    desk::{self, Folder},
    tools,
};

/// Long enough that nobody loses its run on a busy machine, short enough that a hand-over does not take for ever.
const LEASE: Duration = Duration::from_millis(300);

/// What the referee says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub(crate) enum Order {
    Say {
        text: String,
    },
    Look,
    Answer {
        id: PendingId,
        answer: Answer,
    },
    /// Take the run over, if nobody moves it.
    Take,
    End,
}

/// What is answered and told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub(crate) enum Reply {
    Ready,
    Taken {
        message: String,
    },
    /// What waits, which run is open, and whether this process moves it.
    Seen {
        waits: Vec<Wait>,
        run: Option<String>,
        moves: bool,
    },
    Answered {
        repeated: Option<bool>,
        code: Option<String>,
    },
    Took {
        took: bool,
    },
    Over,
    /// A tool begins to work.
    Began {
        tool: String,
    },
    /// The end of a run was told to whoever listens.
    Ended {
        run: String,
    },
    /// Something that a person would have to see to.
    Trouble {
        text: String,
    },
}

/// What waits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Wait {
    pub(crate) id: PendingId,
    pub(crate) kind: PendingKind,
    pub(crate) tool: String,
}

fn tell(reply: &Reply) {
    let Ok(mut text) = serde_json::to_string(reply) else { return };
    text.push('\n');
    let mut out = std::io::stdout().lock();
    // The referee is gone: so is the need to say anything.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn rival(rival: &Rival) -> Result<bool, Failure> {
    let folder = Folder::new(&rival.dir);
    let file = KvStorage::connect(FileKv(folder.shared()), "the shared file").await?;
    let storage = Arc::new(Watched { inner: file, name: rival.name.clone(), folder: folder.clone(), blind: rival.blind });
    let tools = tools::all(folder.deeds(), false).into_iter().map(|tool| Arc::new(Loud(tool)) as Arc<dyn Tool>).collect();
    let controller = desk::controller(storage, tools, &rival.url, LEASE)?;
    controller.init().await?;
    let session = controller.create_session(JOB).await?;
    let mut events = session.subscribe();
    let told = tokio::spawn(async move {
        while let Some(event) = events.next_event().await {
            match &event.body {
                EventBody::AgentEnd { reason, .. } if *reason != EndReason::Suspended => {
                    tell(&Reply::Ended { run: event.run.as_ref().map(ToString::to_string).unwrap_or_default() });
                }
                EventBody::Error { error, retry: None } => tell(&Reply::Trouble { text: format!("told of {}", error.code) }),
                _ => {}
            }
        }
    });
    tell(&Reply::Ready);
    let (send, mut orders) = mpsc::channel(16);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(order) = serde_json::from_str::<Order>(&line) else { break };
            if send.blocking_send(order).is_err() {
                return;
            }
        }
        // Nobody gives orders any more.
        std::process::exit(3);
    });
    while let Some(order) = orders.recv().await {
        if matches!(order, Order::End) {
            break;
        }
        match obey(&session, order).await {
            Ok(reply) => tell(&reply),
            Err(error) => tell(&Reply::Answered { repeated: None, code: Some(error.code().to_owned()) }),
        }
    }
    controller.shutdown().await;
    // The streams ended with the controller, so that all was told.
    told.await?;
    tell(&Reply::Over);
    Ok(true)
}

async fn obey(session: &Session, order: Order) -> Result<Reply, ac_controller::ControllerError> {
    Ok(match order {
        Order::Say { text } => Reply::Taken { message: session.submit(text).await?.message.to_string() },
        Order::Look => {
            let waits = session.pending().await?;
            let waits = waits.into_iter().map(|wait| Wait { id: wait.id, kind: wait.kind, tool: wait.tool }).collect();
            let moves = session.live_run().await?.is_some();
            Reply::Seen { waits, run: session.current_run().await?.map(|run| run.to_string()), moves }
        }
        Order::Answer { id, answer } => Reply::Answered { repeated: Some(session.answer(&id, answer).await?.repeated), code: None },
        Order::Take => Reply::Took { took: session.take_over().await?.is_some() },
        Order::End => Reply::Over,
    })
}

/// Tells when it begins.
struct Loud(Arc<dyn Tool>);

#[async_trait]
impl Tool for Loud {
    fn definition(&self) -> ToolDefinition {
        self.0.definition()
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        tell(&Reply::Began { tool: cx.tool.clone() });
        self.0.call(args, cx).await
    }

    async fn resume(&self, with: ToolResume, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        self.0.resume(with, cx).await
    }
}

/// A store that writes down which commits were made, and by whom.
struct Watched<S> {
    inner: S,
    name: String,
    folder: Folder,
    /// The planted fault: a conflict is no reason not to write.
    blind: bool,
}

impl<S: Storage> Storage for Watched<S> {
    fn threads(&self) -> &dyn ThreadStore {
        self.inner.threads()
    }

    fn messages(&self) -> &dyn MessageStore {
        self.inner.messages()
    }

    fn runs(&self) -> &dyn RunStore {
        self
    }

    fn sessions(&self) -> &dyn SessionStore {
        self.inner.sessions()
    }

    fn state(&self) -> &dyn StateStore {
        self.inner.state()
    }
}

#[async_trait]
impl<S: Storage> RunStore for Watched<S> {
    async fn load(&self, run: &RunId) -> Result<Option<Stored<RunRecord>>, StorageError> {
        self.inner.runs().load(run).await
    }

    async fn commit(&self, commit: Commit<'_>) -> Result<CommitOutcome, StorageError> {
        let header = &commit.record.header;
        let mut outcome = self.inner.runs().commit(commit.clone()).await?;
        if self.blind && outcome == CommitOutcome::Conflict {
            let now = self.inner.runs().load(&header.run).await?.map(|stored| stored.version);
            outcome = self.inner.runs().commit(Commit { expect: now, ..commit.clone() }).await?;
        }
        if let CommitOutcome::Committed { version } = outcome {
            let (run, owner) = (header.run.to_string(), header.mark.by.to_string());
            let noted = Noted { by: self.name.clone(), run, version, epoch: header.epoch, owner };
            if let Err(error) = super::note(&self.folder, &noted) {
                tell(&Reply::Trouble { text: format!("the log of commits took nothing: {error}") });
            }
        }
        Ok(outcome)
    }

    async fn head(&self, thread: &ThreadId) -> Result<Option<Stored<ThreadHead>>, StorageError> {
        self.inner.runs().head(thread).await
    }

    async fn open(&self, query: &OpenRuns) -> Result<Page<RunHeader>, StorageError> {
        self.inner.runs().open(query).await
    }

    async fn prune(&self, before: Timestamp) -> Result<u64, StorageError> {
        self.inner.runs().prune(before).await
    }

    async fn lease(&self, run: &RunId) -> Result<Option<Lease>, StorageError> {
        self.inner.runs().lease(run).await
    }

    async fn take_lease(&self, run: &RunId, lease: &Lease, now: Timestamp) -> Result<bool, StorageError> {
        self.inner.runs().take_lease(run, lease, now).await
    }

    async fn release_lease(&self, run: &RunId, owner: &OwnerId, epoch: u64) -> Result<(), StorageError> {
        self.inner.runs().release_lease(run, owner, epoch).await
    }
}
