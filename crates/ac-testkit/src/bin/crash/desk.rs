//! Where the child and the checker work: a store in a folder, and a controller on it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ac_controller::{AgentConfig, AgentController, Mode, RuntimeSettings, Subagent};
use ac_core::Tool;
use ac_llm::{OpenAiCompatible, ReqwestTransport};
use ac_storage::{Durability, SledOptions, SledStorage, Storage};

use crate::{Failure, jobs};

/// The files of a run.
#[derive(Clone, Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.0.join("store")
    }

    /// What came over the pipe.
    pub(crate) fn acknowledged(&self) -> PathBuf {
        self.0.join("acknowledged.jsonl")
    }

    /// What the tools did.
    pub(crate) fn deeds(&self) -> PathBuf {
        self.0.join("deeds.jsonl")
    }

    /// What the model server was asked.
    pub(crate) fn requests(&self) -> PathBuf {
        self.0.join("requests.jsonl")
    }

    /// The store of several processes.
    pub(crate) fn shared(&self) -> PathBuf {
        self.0.join("store.json")
    }

    /// Which commits were made on it.
    pub(crate) fn commits(&self) -> PathBuf {
        self.0.join("commits.jsonl")
    }

    /// What children say on their standard error.
    pub(crate) fn errors(&self) -> PathBuf {
        self.0.join("errors.txt")
    }
}

pub(crate) async fn open(folder: &Folder, power: bool) -> Result<SledStorage, Failure> {
    let durability = if power { Durability::Power } else { Durability::Process };
    Ok(SledOptions::new(folder.store()).durability(durability).cache_bytes(8 << 20).open().await?)
}

/// How long a dead process keeps its runs, for the next one. Far below what an application wants, so that recovery comes soon.
pub(crate) const LEASE: Duration = Duration::from_millis(120);

pub(crate) fn controller(
    storage: Arc<dyn Storage>,
    tools: Vec<Arc<dyn Tool>>,
    url: &str,
    lease: Duration,
) -> Result<AgentController, Failure> {
    let mut settings = RuntimeSettings::default();
    settings.lease = lease;
    settings.grace = lease / 6;
    settings.poll = lease / 4;
    let controller = AgentController::builder()
        .id("crash")
        .storage(storage)
        .provider(OpenAiCompatible::new(url, Arc::new(ReqwestTransport::new()?)))
        .runtime(settings)
        .agent(AgentConfig::new("agent").instructions("Work.").tools(tools))
        .mode(Mode::new("build").model("scripted/builder"))
        .mode(Mode::new("plan").model("scripted/planner").available_tools(["ask_user", "submit_plan", "look"]).transitions_to("build"))
        .subagent(Subagent::new("helper").instructions(jobs::HELPS).allowed_controller_tools(["post", "write"]))
        .subagent(Subagent::new("fork").forked())
        .default_mode("build")
        .build()?;
    Ok(controller)
}
