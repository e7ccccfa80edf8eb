//! One project, opened: its store, its files, and the controller of its conversations.

mod leftover;
mod modes;

use std::{fs, path::Path, sync::Arc, time::Duration};

use agent_controller::{
    controller::{AgentConfig, AgentController, Limits, ModelChoice, RuntimeSettings, Session, SessionRequest, UuidIds},
    core::{Ids, ModelId, ThreadId, ToolCategory, event::ThreadInfo, permission::DefaultPolicies, permission::Policy},
    storage::{StorageError, StorageErrorKind, domain::ThreadQuery, sled_kv::SledStorage},
    tools::workspace::WorkspaceRules,
    workspace::Workspace,
};
use serde_json::{Map, Value, json};

use crate::{
    args::Approve,
    exit::{Exit, Failure},
    files::Files,
    models::Models,
    project::Project,
    settings::Settings,
};

/// Whose conversations they are.
pub(crate) const RESOURCE: &str = "local";
/// The most that one message of a person may cost.
const STEPS: u32 = 50;
/// The longest file that is shown.
const LONGEST_FILE: u64 = 1 << 20;

/// The store of a project, held by this process.
pub(crate) struct Held {
    storage: Arc<SledStorage>,
    project: Project,
}

impl Held {
    /// Opens the store.
    ///
    /// # Errors
    /// When another process holds it, with that process's name; when it cannot be read.
    pub(crate) async fn open(project: &Project) -> Result<Self, Failure> {
        let storage = SledStorage::open(project.store()).await.map_err(|error| not_opened(&error, project))?;
        // For the error that a second process gets. Losing it costs a name in a message.
        let _ = fs::write(project.owner(), std::process::id().to_string());
        Ok(Self { storage: Arc::new(storage), project: project.clone() })
    }
}

/// Whether the store is held by another process.
pub(crate) fn is_held(failure: &Failure) -> bool {
    failure.code == "storage.locked"
}

/// Why the store cannot be used, and what to do.
pub(crate) fn not_opened(error: &StorageError, project: &Project) -> Failure {
    let message = match error.kind() {
        StorageErrorKind::Locked => {
            let who = owner(&project.owner()).map_or_else(String::new, |owner| format!(" ({owner})"));
            format!(
                "another acode{who} works on this project and holds {}; use it, end it, or keep separate conversations with --data DIR",
                project.store().display()
            )
        }
        StorageErrorKind::Corrupt => format!(
            "the conversations in {} are damaged; nothing was changed. Put a copy back; or keep a copy and open what is left with `acode store \
             repair --accept-loss`; or move them away with `acode store set-aside` and begin anew",
            project.store().display()
        ),
        _ => error.to_string(),
    };
    let code = if error.kind() == StorageErrorKind::Locked { "storage.locked" } else { error.code() };
    Failure::failed(code, message)
}

/// The process that said it holds the store: its number, and its name where the system tells.
fn owner(file: &Path) -> Option<String> {
    let pid: u32 = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok().map(|name| format!(" {}", name.trim()));
    Some(format!("process {pid}{}", name.unwrap_or_default()))
}

/// A project and its controller.
pub(crate) struct App {
    /// Where.
    pub(crate) project: Project,
    /// Its conversations.
    pub(crate) controller: AgentController,
    /// What new runs use.
    pub(crate) model: ModelId,
    /// What was laid down in files and by flags.
    pub(crate) settings: Settings,
    workspace: Arc<Workspace>,
    storage: Arc<SledStorage>,
}

impl App {
    /// Makes the controller.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    pub(crate) fn new(held: Held, models: Models, approve: Approve) -> Result<Arc<Self>, Failure> {
        let Held { storage, project } = held;
        let Models { model, router, settings, .. } = models;
        let (files, commands) = settings.limits();
        let workspace =
            Workspace::local_with(&project.folder, files, commands).map_err(|error| Failure::failed(error.code(), error.to_string()))?;
        let workspace = Arc::new(workspace);
        let asks = matches!(approve, Approve::Ask | Approve::Edits);
        let mut defaults = DefaultPolicies::default();
        if approve == Approve::Edits {
            defaults = defaults.with(ToolCategory::Edit, Policy::Allow);
        }
        let mut limits = Limits::default();
        limits.steps = STEPS;
        // The step budget is the narrower one, and the one that people are told about.
        limits.repeats = None;
        // The store has one opener, so whoever held a lease before is gone for good.
        let mut runtime = RuntimeSettings::default();
        (runtime.lease, runtime.grace, runtime.poll) = (Duration::from_secs(4), Duration::from_secs(1), Duration::from_millis(500));
        let state = if approve == Approve::All { Map::from_iter([("yolo".to_owned(), json!(true))]) } else { Map::new() };
        let controller = AgentController::builder()
            .id("acode")
            .storage(storage.clone())
            .agent(AgentConfig::new("acode"))
            .modes(modes::modes(&workspace, asks))
            .subagent(modes::explore())
            .default_model(model.clone())
            .models(move |model: &ModelId| router.resolve(model))
            .default_policies(defaults)
            .rules(settings.rules.clone())
            .call_rules(WorkspaceRules::new(workspace.clone()))
            .initial_state(state)
            .limits(limits)
            .runtime(runtime)
            .build()?;
        Ok(Arc::new(Self { project, controller, model, settings, workspace, storage }))
    }

    /// The project's files, for showing.
    pub(crate) fn files(&self) -> Files {
        files(self.workspace.clone())
    }

    /// The store.
    pub(crate) fn storage(&self) -> &dyn agent_controller::storage::Storage {
        self.storage.as_ref()
    }

    /// A session of its own for each conversation.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn session(&self, thread: &ThreadId) -> Result<Session, Failure> {
        let request = SessionRequest::new(agent_controller::core::SessionKey::new(RESOURCE)).scope(thread.as_str()).thread(thread.clone());
        Ok(self.controller.create_session(request).await?)
    }

    /// A conversation that nobody began yet.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn new_session(&self, title: &str) -> Result<Session, Failure> {
        let session = self.session(&ThreadId::from(UuidIds.fresh("thread"))).await?;
        session.rename_thread(None, title).await?;
        self.use_model(&session).await?;
        self.use_rules(&session).await?;
        Ok(session)
    }

    /// Keeps the rules of the flags with the conversation.
    ///
    /// # Errors
    /// When the store does not answer, or a pattern cannot be read.
    pub(crate) async fn use_rules(&self, session: &Session) -> Result<(), Failure> {
        for (pattern, policy) in &self.settings.given {
            session.set_call_policy(pattern.as_str(), Some(*policy)).await?;
        }
        Ok(())
    }

    /// Keeps the model with the conversation, for all modes: a plan that is approved by a later process is built by the same one.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn use_model(&self, session: &Session) -> Result<(), Failure> {
        for mode in self.controller.modes() {
            session.switch_model(ModelChoice::new(self.model.clone()).mode(mode.id().clone())).await?;
        }
        Ok(())
    }

    /// Ends everything that this process does, in order; what waits, and what moves, is continued later.
    pub(crate) async fn close(&self) {
        self.controller.shutdown().await;
        self.workspace.shutdown().await;
        if let Err(error) = self.storage.close().await {
            eprintln!("acode: {error}");
        }
    }
}

/// Reads files below the folder.
pub(crate) fn files(workspace: Arc<Workspace>) -> Files {
    Files::new(move |path| {
        let files = workspace.filesystem().clone();
        async move {
            let content = files.read(Path::new(&path), LONGEST_FILE).await.map_err(|error| error.to_string())?;
            String::from_utf8(content.bytes).map_err(|_| "it is no text".to_owned())
        }
    })
}

/// Stored conversations, newest first.
///
/// # Errors
/// When the store does not answer.
pub(crate) async fn threads(storage: &dyn agent_controller::storage::Storage) -> Result<Vec<ThreadInfo>, Failure> {
    let mut query = ThreadQuery { resource: Some(RESOURCE.into()), limit: 200, ..ThreadQuery::default() };
    let mut all = vec![];
    loop {
        let page = storage.threads().list(&query).await.map_err(|error| Failure::failed(error.code(), error.to_string()))?;
        all.extend(page.items.into_iter().map(|row| row.info));
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(all),
        }
    }
}

impl Held {
    /// The conversation that is gone on with.
    ///
    /// # Errors
    /// When there is none, or not this one.
    pub(crate) async fn thread(&self, resume: bool, id: Option<&str>) -> Result<Option<ThreadId>, Failure> {
        if let Some(id) = id {
            let all = threads(self.storage.as_ref()).await?;
            let found = all.into_iter().map(|info| info.id).find(|known| known.as_str() == id);
            return found.map(Some).ok_or_else(|| Failure::usage(format!("there is no conversation `{id}`; list them with acode threads")));
        }
        if !resume {
            return Ok(None);
        }
        let newest = threads(self.storage.as_ref()).await?.into_iter().next();
        newest
            .map(|info| Some(info.id))
            .ok_or_else(|| Failure::usage("there is no conversation to go on with; begin one without --continue"))
    }
}

impl From<agent_controller::controller::ControllerError> for Failure {
    fn from(error: agent_controller::controller::ControllerError) -> Self {
        use agent_controller::controller::ControllerErrorKind as Kind;
        let exit = match error.kind() {
            // What was typed is right, it only comes too late: that is no wrong usage.
            Kind::AlreadyResolved => Exit::Failed,
            Kind::NotPending | Kind::Ambiguous | Kind::InvalidAnswer | Kind::GrantNotFound | Kind::InvalidRule => Exit::Usage,
            _ => Exit::Failed,
        };
        Self { exit, code: error.code().into(), message: error.to_string() }
    }
}

/// The first line of a text, for a title.
pub(crate) fn title(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if line.chars().count() <= 60 { line.to_owned() } else { format!("{}…", line.chars().take(60).collect::<String>().trim_end()) }
}

/// A conversation, as it is listed.
pub(crate) fn thread_row(info: &ThreadInfo, pending: usize) -> Value {
    let mut row = agent_controller::core::wire::thread(info);
    if let Value::Object(fields) = &mut row {
        fields.insert("pending".into(), json!(pending));
    }
    row
}
