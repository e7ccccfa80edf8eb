//! How a session gets to a thread and leaves it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ac_agent::{ChildProfile, RunErrorKind};
use ac_core::{
    DisplayState, ModelId, RunId, SharedText, ThreadId, Timestamp, ToolCallId, Usage,
    display::{ActiveSubagent, PendingApproval, PendingSuspension, ToolStatus},
    event::{PendingKind, Task, ThreadInfo},
};
use ac_engine::{Input, Phase, Posture};
use ac_storage::{StorageErrorKind, ThreadRecord, domain::ThreadQuery};
use serde_json::{Map, Value};

use super::{
    Pending, Session,
    record::{Change, SessionRecord},
};
use crate::{ControllerError, ControllerErrorKind, SessionRequest};

/// The metadata key that tells the threads of one scope from those of another.
const SCOPE_KEY: &str = "scope";

/// How long an aborted run may take to end: its tools get their grace, and another process its look at the store.
const END_WITHIN: Duration = Duration::from_secs(30);

/// How often a run is looked at that another process ends.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What a thread brings into the view.
#[derive(Default)]
pub(crate) struct Brought {
    usage: Usage,
    approvals: Vec<Arc<PendingApproval>>,
    suspensions: Vec<Arc<PendingSuspension>>,
    subagents: BTreeMap<ToolCallId, Arc<ActiveSubagent>>,
    running: bool,
    tasks: Vec<Task>,
}

impl Brought {
    pub(crate) fn into_view(self, state: &mut DisplayState) {
        state.token_usage = self.usage.into();
        state.pending_approvals = self.approvals.into();
        state.pending_suspensions = Arc::new(self.suspensions.into_iter().map(|open| (open.call.clone(), open)).collect());
        state.active_subagents = self.subagents.into();
        state.is_running = self.running;
        state.tasks = self.tasks.into();
    }
}

impl Session {
    /// Reads the session and sees to it that it is bound to a thread.
    pub(crate) async fn open(&self, request: &SessionRequest) -> Result<(), ControllerError> {
        let _turn = self.turn().await?;
        if self.inner().is_opened() {
            return match &request.thread {
                Some(asked) => match self.find_thread(asked).await? {
                    Some(_) if self.is_at(asked) => Ok(()),
                    Some(info) => self.switch_in_turn(&info).await,
                    None => self.create_in_turn(Some(asked.clone()), String::new()).await.map(drop),
                },
                // Another session of the resource may have deleted the one that it is bound to.
                None if self.thread_id().is_some() => self.bound_thread().await.map(drop),
                None => Ok(()),
            };
        }
        if !request.tags.is_empty() {
            self.inner().change_view(|view| {
                Arc::make_mut(&mut view.state).extend(request.tags.clone());
                view.tags = Arc::new(request.tags.clone());
            });
        }
        let bound = match &self.refresh().await?.thread {
            // Another session of the resource may have deleted it.
            Some(thread) => self.find_thread(thread).await?,
            None => None,
        };
        match &request.thread {
            Some(asked) if bound.as_ref().is_none_or(|info| info.id != *asked) => match self.find_thread(asked).await? {
                Some(info) => self.bind_quietly(&info).await?,
                None => drop(self.create_in_turn(Some(asked.clone()), String::new()).await?),
            },
            _ => match bound {
                Some(info) => self.show_restored(info.id).await?,
                None => match self.pick_thread().await? {
                    Some(info) => self.bind_quietly(&info).await?,
                    None => drop(self.create_in_turn(None, String::new()).await?),
                },
            },
        }
        self.inner().set_opened();
        self.sweep_forks_soon();
        Ok(())
    }

    /// What the thread brings with it comes into view, without an event: the session begins here (SPEC C-29).
    async fn show_restored(&self, thread: ThreadId) -> Result<(), ControllerError> {
        let brought = self.brought(&thread).await?;
        self.feed().show(Some(thread.clone()), |state| brought.into_view(state));
        self.show_queue(&thread, false);
        self.pump_soon(&thread);
        Ok(())
    }

    /// A thread of this session's resource. One of somebody else is refused; `None` where no such thread exists.
    pub(crate) async fn find_thread(&self, thread: &ThreadId) -> Result<Option<ThreadInfo>, ControllerError> {
        match self.shared().storage.threads().get(thread).await? {
            None => Ok(None),
            Some(row) if self.shared().is_for(&row.value, self.resource()) => Ok(Some(row.value.info)),
            Some(_) => Err(ControllerError::thread_not_found(thread)),
        }
    }

    /// The newest thread of the resource that carries the scope and the tags of this session.
    pub(crate) async fn pick_thread(&self) -> Result<Option<ThreadInfo>, ControllerError> {
        let scope = self.key().scope.clone();
        let mut query =
            ThreadQuery { resource: Some(self.resource().clone()), metadata: self.thread_metadata(), limit: 16, ..ThreadQuery::default() };
        loop {
            let page = self.shared().list_threads(&query).await?;
            // A thread of some scope is nobody else's by accident.
            let fits = |info: &ThreadInfo| scope.is_some() || !info.metadata.contains_key(SCOPE_KEY);
            if let Some(info) = page.items.into_iter().find(fits) {
                return Ok(Some(info));
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(None),
            }
        }
    }

    /// What the threads of this session carry.
    pub(crate) fn thread_metadata(&self) -> Map<String, Value> {
        let mut metadata = self.view().tags.as_ref().clone();
        if let Some(scope) = &self.key().scope {
            metadata.insert(SCOPE_KEY.to_owned(), Value::String(scope.to_string()));
        }
        metadata
    }

    /// Binds a session that begins.
    async fn bind_quietly(&self, info: &ThreadInfo) -> Result<(), ControllerError> {
        self.write_binding(&info.id).await?;
        self.show_restored(info.id.clone()).await
    }

    /// Moves the record to a thread: its own mode comes with it.
    pub(crate) async fn write_binding(&self, thread: &ThreadId) -> Result<(), ControllerError> {
        let default = self.shared().config.default_mode.clone();
        let now = self.shared().clock.now();
        self.write(
            |record| {
                record.rebind(thread, &default, now, |mode| self.shared().config.mode(mode).is_some());
                Ok(Change::Write(()))
            },
            |()| {},
        )
        .await
    }

    /// Stores a new thread.
    pub(crate) async fn store_thread(&self, id: Option<ThreadId>, title: String) -> Result<ThreadInfo, ControllerError> {
        let row = self.new_thread(id, title).await?;
        match self.shared().storage.threads().create(&row).await {
            Ok(()) => Ok(row.info),
            Err(error) if matches!(error.kind(), StorageErrorKind::Exists | StorageErrorKind::Deleted) => {
                let message = format!("a thread `{}` exists already, or existed; choose another id", row.info.id);
                Err(ControllerError::new(ControllerErrorKind::ThreadExists, message).with_source(error))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What a new thread of this session is.
    pub(crate) async fn new_thread(&self, id: Option<ThreadId>, title: String) -> Result<ThreadRecord, ControllerError> {
        let id = id.unwrap_or_else(|| self.shared().ids.fresh("thread").into());
        let mut row = ThreadRecord::new(id, self.resource().clone(), self.shared().clock.now());
        row.info.title = title;
        row.info.metadata = self.thread_metadata();
        row.controller = Some(self.shared().config.id.clone());
        row.info.metadata.extend(self.subagent_selection().await?);
        Ok(row)
    }

    /// What a thread brings into the view: tokens, and what waits on it.
    pub(crate) async fn brought(&self, thread: &ThreadId) -> Result<Brought, ControllerError> {
        let runs = self.shared().storage.runs();
        let Some(head) = runs.head(thread).await? else { return Ok(Brought::default()) };
        let tasks = self.shared().tasks(thread).await?;
        let mut brought = Brought { usage: head.value.usage, tasks, ..Brought::default() };
        let Some(run) = head.value.active_run else { return Ok(brought) };
        let Some((header, snapshot)) = self.shared().runtime.load(&run).await? else { return Ok(brought) };
        // What another session does on the thread is told there, and answered there.
        if header.session != *self.key() || header.controller != self.shared().config.id {
            return Ok(brought);
        }
        brought.running = self.shared().runtime.live(&run).is_some_and(|handle| handle.status().segment_open);
        let mut waits = vec![];
        for (header, snapshot) in self.family(header, snapshot).await? {
            waits.extend(Pending::of_run(&header, &snapshot));
            if let (Some((_, call)), Some(child)) = (&snapshot.parent, ChildProfile::of(&snapshot.profile)) {
                brought.subagents.insert(call.clone(), Arc::new(at_work(child, snapshot.profile.model.clone())));
            }
        }
        waits.sort_by(|a, b| (a.since, &a.id).cmp(&(b.since, &b.id)));
        for open in waits {
            if open.kind == PendingKind::Approval {
                brought.approvals.push(Arc::new(open.into_approval()));
            } else {
                brought.suspensions.push(Arc::new(open.into_suspension()));
            }
        }
        Ok(brought)
    }

    /// Leaves a thread: what this process moves on it is aborted and has ended when this returns; what waits for a person goes on waiting.
    pub(crate) async fn leave(&self, thread: &ThreadId) -> Result<(), ControllerError> {
        let Some(run) = self.active_run(thread).await? else { return Ok(()) };
        let Some((header, snapshot)) = self.shared().runtime.load(&run).await? else { return Ok(()) };
        // The run of another session on the same thread is not this one's to end (B-120).
        if header.session != *self.key() || header.controller != self.shared().config.id {
            return Ok(());
        }
        let moving = match self.shared().runtime.posture(&snapshot).await? {
            Posture::Moving => !matches!(snapshot.phase, Phase::Finished { .. }),
            // An approval that was asked for in this life keeps its segment open, but nothing moves.
            _ => false,
        };
        // Nor is one that another process moves: who looks on there must not end it by going away (B-120). An abort does.
        if !moving || self.shared().runtime.is_led_elsewhere(&header).await? {
            return Ok(());
        }
        self.end_run(thread, &run).await
    }

    /// Aborts a run for good, queued messages or not, and waits until it has ended, whoever moves it.
    ///
    /// # Errors
    /// [`Contended`](ControllerErrorKind::Contended) when it does not end in time.
    pub(crate) async fn end_run(&self, thread: &ThreadId, run: &RunId) -> Result<(), ControllerError> {
        let ending = async {
            self.abort_run(run, false).await?;
            while self.active_run(thread).await?.as_ref() == Some(run) {
                match self.shared().runtime.live(run) {
                    Some(handle) => {
                        let mut status = handle.watch();
                        // The driver is gone when the channel is: that is an end too.
                        let _ = status.wait_for(|status| status.ended || status.outcome.is_some()).await;
                        if handle.status().outcome.is_some() {
                            return Ok(());
                        }
                    }
                    None => tokio::time::sleep(LOOK_AGAIN).await,
                }
            }
            Ok(())
        };
        match tokio::time::timeout(END_WITHIN, ending).await {
            Ok(ended) => ended,
            Err(_) => Err(ControllerError::new(ControllerErrorKind::Contended, "the run does not end; try again")),
        }
    }

    /// Aborts a run, whoever moves it. Says whether there was something to abort.
    pub(crate) async fn abort_run(&self, run: &RunId, go_on: bool) -> Result<bool, ControllerError> {
        match self.shared().runtime.deliver(self.host_of(run).await?, run, Input::Abort { go_on }).await {
            Ok(_) => Ok(true),
            Err(error) => match error.kind() {
                RunErrorKind::NotFound | RunErrorKind::Refused(_) => Ok(false),
                _ => Err(error.into()),
            },
        }
    }

    /// The run that holds a thread.
    pub(crate) async fn active_run(&self, thread: &ThreadId) -> Result<Option<RunId>, ControllerError> {
        Ok(self.shared().storage.runs().head(thread).await?.and_then(|head| head.value.active_run))
    }
}

impl SessionRecord {
    /// Leaves one thread and takes up another: the mode of the first is remembered, the mode of the second comes back (B-121).
    pub(crate) fn rebind(&mut self, to: &ThreadId, default: &ac_core::ModeId, now: Timestamp, exists: impl Fn(&ac_core::ModeId) -> bool) {
        self.remember_mode(default);
        let mode = self.choice(to).and_then(|choice| choice.mode.clone()).filter(|mode| exists(mode)).unwrap_or_else(|| default.clone());
        self.thread = Some(to.clone());
        if mode != self.mode {
            self.mode = mode;
            self.mode_at = now;
        }
    }

    /// Keeps the mode with the bound thread, where it is not the default.
    pub(crate) fn remember_mode(&mut self, default: &ac_core::ModeId) {
        let Some(thread) = self.thread.clone() else { return };
        let mode = Some(self.mode.clone()).filter(|mode| mode != default);
        self.choose(&thread, |choice| choice.mode = mode);
    }
}

/// A subagent whose earlier words nobody of this life has heard.
fn at_work(child: ChildProfile, model: ModelId) -> ActiveSubagent {
    ActiveSubagent {
        agent_type: child.agent_type,
        name: Some(child.name),
        task: child.task.into(),
        model,
        forked: child.forked,
        tool_calls: Arc::default(),
        text: SharedText::new(),
        status: ToolStatus::Running,
        duration_ms: None,
        result: None,
    }
}

impl Pending {
    fn into_approval(self) -> PendingApproval {
        PendingApproval { pending: self.id, call: self.call, tool: self.tool, args: self.args, parent_call: self.parent_call }
    }

    fn into_suspension(self) -> PendingSuspension {
        PendingSuspension {
            pending: self.id,
            kind: self.kind,
            call: self.call,
            tool: self.tool,
            args: self.args,
            payload: self.payload,
            answer_schema: self.answer_schema,
            run: self.run,
            parent_call: self.parent_call,
        }
    }
}
