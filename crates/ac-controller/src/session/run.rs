use ac_agent::{RunErrorKind, RunHandle, RunOrigin, RunStatus};
use ac_core::{ErrorInfo, Message, MessageId, RunId, ThreadId};
use ac_engine::{Input, Outcome, Profile, StartRun};
use ac_storage::StorageErrorKind;
use serde_json::{Map, Value};

use super::{Session, UserMessage};
use crate::{ControllerError, ControllerErrorKind, config::PreparedMode, request_context::Kept};

/// A message that was taken: it is stored, and reaches the model whatever happens to this process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Submitted {
    /// The message.
    pub message: MessageId,
    /// Its thread.
    pub thread: ThreadId,
    /// The run that it started or joined.
    pub run: RunId,
    /// It joined a run that was open.
    pub joined: bool,
    handle: Option<RunHandle>,
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Settled {
    /// The message.
    pub message: MessageId,
    /// Its thread.
    pub thread: ThreadId,
    /// The run that it started or joined.
    pub run: RunId,
    /// How things stand.
    pub settlement: Settlement,
}

/// How things stand with a message.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Settlement {
    /// The run is done.
    Complete,
    /// The run was stopped.
    Aborted,
    /// The run failed, or used up its budget.
    Failed(ErrorInfo),
    /// The run waits for a person; see [`Session::pending`].
    Waiting,
    /// It joined an open run, which delivers it.
    Joined,
    /// Another process moves the run, or this one stopped doing so.
    Elsewhere,
}

impl Submitted {
    /// Waits until the segment of the run ends: until it is done, or waits for an answer. An open approval does not end a segment
    /// (SPEC S-11). Never waits for what another process does.
    pub async fn settled(&self) -> Settlement {
        match &self.handle {
            Some(handle) => settlement(&handle.settled().await),
            None => Settlement::Elsewhere,
        }
    }

    /// The run, where this process moves it.
    pub fn handle(&self) -> Option<&RunHandle> {
        self.handle.as_ref()
    }
}

fn settlement(status: &RunStatus) -> Settlement {
    match &status.outcome {
        Some(Outcome::Complete) => Settlement::Complete,
        Some(Outcome::Aborted) => Settlement::Aborted,
        Some(Outcome::Error { error }) => Settlement::Failed(error.clone()),
        None if status.posture == ac_engine::Posture::Moving => Settlement::Elsewhere,
        None => Settlement::Waiting,
    }
}

/// What a run starts from.
#[derive(Clone)]
pub(crate) struct Start {
    pub(crate) thread: ThreadId,
    pub(crate) message: Message,
    pub(crate) request_context: Map<String, Value>,
    pub(crate) from_queue: bool,
    /// Nobody can be asked.
    pub(crate) unattended: bool,
}

/// A message whose id its thread knows.
const KNOWN: ControllerErrorKind = ControllerErrorKind::Storage(StorageErrorKind::Exists);

/// How often a message tries again when the run that it meets ends at that moment.
pub(crate) const TRIES: usize = 32;

impl Session {
    /// Sends a message and waits (SPEC S-9): one that starts a run until the run's segment ends, one that joins an open run until it is
    /// accepted.
    ///
    /// Approvals that wait on the thread are declined by it, unless it [decides nothing](UserMessage::decides_nothing); questions and plans
    /// stay open (`R7`).
    ///
    /// # Errors
    /// As [`Session::submit`]. What fails after the run began is no error here: it is in the result, and in the events.
    pub async fn send_message(&self, message: impl Into<UserMessage>) -> Result<Settled, ControllerError> {
        let submitted = self.submit(message).await?;
        let settlement = if submitted.joined { Settlement::Joined } else { submitted.settled().await };
        let Submitted { message, thread, run, .. } = submitted;
        Ok(Settled { message, thread, run, settlement })
    }

    /// Sends a message and returns as soon as it is stored.
    ///
    /// # Errors
    /// [`EmptyMessage`](ControllerErrorKind::EmptyMessage), [`TooLarge`](ControllerErrorKind::TooLarge),
    /// [`NoModel`](ControllerErrorKind::NoModel), or when the store does not answer. The message was not taken then.
    pub async fn submit(&self, message: impl Into<UserMessage>) -> Result<Submitted, ControllerError> {
        let turn = self.turn().await?;
        let message = message.into();
        let decline = !message.decides_nothing;
        let (start, _kept) = self.admit(message).await?;
        let submitted = self.deliver_or_start(start, decline).await;
        drop(turn);
        submitted
    }

    /// As [`Session::submit`], for a message with [an id of its own](UserMessage::id) that may have been taken before, by this process or
    /// by one that died: `None` when the thread or its open run has it already. Two processes must not come with the same message at the
    /// same moment.
    ///
    /// # Errors
    /// As [`Session::submit`].
    pub async fn submit_once(&self, message: impl Into<UserMessage>) -> Result<Option<Submitted>, ControllerError> {
        let turn = self.turn().await?;
        let message = message.into();
        let decline = !message.decides_nothing;
        let (start, _kept) = match self.admit(message).await {
            Err(error) if error.kind() == KNOWN => return Ok(None),
            other => other?,
        };
        let submitted = self.deliver_or_start(start, decline).await;
        drop(turn);
        submitted.map(Some)
    }

    /// A message that can be taken, for the bound thread: it says something, and its id is new there. A message is put into a thread once:
    /// a run that were given one twice could never commit again. What it brings that is not stored is forgotten with the guard.
    pub(crate) async fn admit(&self, message: UserMessage) -> Result<(Start, Kept<'_>), ControllerError> {
        let (unattended, named) = (message.unattended, message.is_named());
        let (message, context) = message.into_message(self.shared())?;
        let thread = self.bound_thread().await?;
        if named && self.has_message(&thread, &message.id).await? {
            let message = format!("the thread has a message `{}` already; choose another id, or say it with `submit_once`", message.id);
            return Err(ControllerError::new(KNOWN, message));
        }
        let transient = &self.shared().transient;
        let (request_context, apart) = transient.part(context);
        let kept = transient.keep(&thread, &message.id, apart);
        Ok((Start { thread, message, request_context, from_queue: false, unattended }, kept))
    }

    /// Whether a message is stored on a thread, or waits for its open run or behind it.
    async fn has_message(&self, thread: &ThreadId, id: &MessageId) -> Result<bool, ControllerError> {
        // The queues first: a message moves from there to the thread, never back.
        if self.refresh().await?.queue.iter().any(|item| item.is(thread, id)) {
            return Ok(true);
        }
        if let Some(run) = self.active_run(thread).await?
            && let Some((_, snapshot)) = self.shared().runtime.load(&run).await?
            && snapshot.queued.iter().any(|message| message.id == *id)
        {
            return Ok(true);
        }
        Ok(self.shared().storage.messages().get(thread, id).await?.is_some())
    }

    /// Puts a message before the model at the next step, and declines nothing. Without an open run it is stored, for the next one.
    ///
    /// # Errors
    /// As [`Session::submit`].
    pub async fn inject(&self, message: impl Into<UserMessage>) -> Result<MessageId, ControllerError> {
        let _turn = self.turn().await?;
        let (Start { thread, message, .. }, _kept) = self.admit(message.into()).await?;
        let id = message.id.clone();
        for _ in 0..TRIES {
            if let Some(run) = self.close_finished(&thread).await? {
                if self.join(&run, &message, false).await? {
                    return Ok(id);
                }
                continue;
            }
            if self.put(&thread, &message).await? {
                return Ok(id);
            }
        }
        Err(contended())
    }

    /// Stops what the session does and goes on with this message (SPEC S-35).
    ///
    /// # Errors
    /// As [`Session::submit`].
    pub async fn steer(&self, message: impl Into<UserMessage>) -> Result<Submitted, ControllerError> {
        let _turn = self.turn().await?;
        // Judged first: a message that is refused stops nothing.
        let message = message.into();
        let decline = !message.decides_nothing;
        let (mut start, _kept) = self.admit(message).await?;
        if let Some(run) = self.active_run(&start.thread).await? {
            if self.is_at_work(&run).await? {
                while_active(&mut start.message);
            }
            self.end_run(&start.thread, &run).await?;
        }
        self.deliver_or_start(start, decline).await
    }

    /// Stops the run of the bound thread: what moves, and what waits. If a person's messages wait for it, it goes on with them. Returns as
    /// soon as that is stored; says whether there was a run to stop.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn abort(&self) -> Result<bool, ControllerError> {
        self.check_alive()?;
        let Some(thread) = self.thread_id() else { return Ok(false) };
        let Some(run) = self.active_run(&thread).await? else { return Ok(false) };
        self.abort_run(&run, true).await
    }

    /// Stops one call and lets the rest go on.
    ///
    /// # Errors
    /// [`NotPending`](ControllerErrorKind::NotPending) when no such call is at work.
    pub async fn cancel_call(&self, call: &ac_core::ToolCallId) -> Result<(), ControllerError> {
        self.check_alive()?;
        let run = match self.thread_id() {
            Some(thread) => self.active_run(&thread).await?,
            None => None,
        };
        let run = run.ok_or_else(|| ControllerError::not_pending(call))?;
        self.shared().runtime.deliver(self.host_of(&run).await?, &run, Input::CancelCall { call: call.clone() }).await?;
        Ok(())
    }

    /// The run that holds the bound thread, moving or waiting.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn current_run(&self) -> Result<Option<RunId>, ControllerError> {
        match self.thread_id() {
            Some(thread) => self.active_run(&thread).await,
            None => Ok(None),
        }
    }

    /// The tokens that the bound thread used.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn token_usage(&self) -> Result<ac_core::Usage, ControllerError> {
        let Some(thread) = self.thread_id() else { return Ok(ac_core::Usage::default()) };
        Ok(self.shared().storage.runs().head(&thread).await?.map(|head| head.value.usage).unwrap_or_default())
    }

    /// The bound thread; a new one where there is none, or where another session deleted it.
    pub(crate) async fn bound_thread(&self) -> Result<ThreadId, ControllerError> {
        match self.thread_id() {
            Some(thread) if !self.is_deleted(&thread).await? => Ok(thread),
            _ => Ok(self.create_in_turn(None, String::new()).await?.id),
        }
    }

    pub(crate) async fn is_deleted(&self, thread: &ThreadId) -> Result<bool, ControllerError> {
        Ok(self.shared().storage.runs().head(thread).await?.is_none_or(|head| head.value.deleted))
    }

    /// `decline` is whether an open run's approvals are declined by it.
    async fn deliver_or_start(&self, start: Start, decline: bool) -> Result<Submitted, ControllerError> {
        let (thread, message) = (start.thread.clone(), start.message.clone());
        for _ in 0..TRIES {
            if let Some(run) = self.close_finished(&thread).await? {
                if !self.join(&run, &message, decline).await? {
                    continue;
                }
                let handle = self.shared().runtime.live(&run);
                return Ok(Submitted { message: message.id, thread, run, joined: true, handle });
            }
            match self.start_run(start.clone()).await {
                Err(error) if error.kind() == ControllerErrorKind::Run(RunErrorKind::Busy) => {}
                other => return other,
            }
        }
        Err(contended())
    }

    /// Hands a message to an open run. Says whether the run took it; one that ended meanwhile did not.
    pub(crate) async fn join(&self, run: &RunId, message: &Message, decline: bool) -> Result<bool, ControllerError> {
        let mut message = message.clone();
        if self.is_at_work(run).await? {
            while_active(&mut message);
        }
        match self.shared().runtime.deliver(self.host_of(run).await?, run, Input::Message { message, decline }).await {
            Ok(_) => Ok(true),
            Err(error) => match error.kind() {
                RunErrorKind::NotFound | RunErrorKind::Refused(ac_engine::Refusal::Finished) => Ok(false),
                _ => Err(error.into()),
            },
        }
    }

    /// Whether a segment of the run is open, here or in another process. One that waits for answers alone is at rest.
    pub(crate) async fn is_at_work(&self, run: &RunId) -> Result<bool, ControllerError> {
        if let Some(handle) = self.shared().runtime.live(run) {
            let status = handle.status();
            // One that was started a moment ago has yet to open its first segment.
            return Ok(status.segment_open || status.posture == ac_engine::Posture::Moving);
        }
        let stored = self.shared().runtime.load(run).await?;
        Ok(stored.is_some_and(|(_, snapshot)| snapshot.posture() == ac_engine::Posture::Moving))
    }

    /// The open run of a thread. One whose end is decided, and that its owner left behind, is closed first (`R1`).
    pub(crate) async fn close_finished(&self, thread: &ThreadId) -> Result<Option<RunId>, ControllerError> {
        for _ in 0..TRIES {
            let Some(run) = self.active_run(thread).await? else { return Ok(None) };
            let finished = self.shared().runtime.load(&run).await?.is_some_and(|(_, snapshot)| snapshot.is_finished());
            if !finished {
                return Ok(Some(run));
            }
            match self.shared().runtime.take_over(self.host_of(&run).await?, &run).await {
                Ok(handle) => {
                    handle.ended().await;
                }
                // Its owner is about to.
                Err(error) if matches!(error.kind(), RunErrorKind::Owned | RunErrorKind::NotFound | RunErrorKind::Refused(_)) => {
                    match self.shared().runtime.live(&run) {
                        Some(handle) => {
                            handle.ended().await;
                        }
                        None => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(contended())
    }

    /// Starts a run in the mode and with the model of this moment.
    pub(crate) async fn start_run(&self, start: Start) -> Result<Submitted, ControllerError> {
        let Start { thread, message, request_context, from_queue, unattended } = start;
        // Nothing is open on the thread. Something may be on the one that the session is bound to.
        if self.thread_id().as_ref() != Some(&thread) {
            self.settle_outbox().await?;
        }
        // Mode, model and rules as they are now, whichever process changed them.
        self.refresh().await?;
        let prepared = self.shared().mode(&self.mode())?;
        let notes = self.notes(&thread, &message.id).await;
        let mut profile = self.profile(prepared, &thread, request_context)?;
        if unattended {
            profile.host.insert(UNATTENDED_KEY.into(), true.into());
        }
        let run = RunId::from(self.shared().ids.fresh("run"));
        let origin =
            RunOrigin { controller: self.shared().config.id.clone(), session: self.key().clone(), resource: self.resource().clone() };
        self.shared().models.count(&profile.model);
        let id = message.id.clone();
        self.shared().transient.begin(&thread, &id, &run);
        let messages = std::iter::once(message).chain(notes.messages()).collect();
        let begin = StartRun { run: run.clone(), thread: thread.clone(), parent: None, profile, messages, from_queue };
        let handle = match self.shared().runtime.start(self.host(), origin, begin).await {
            Ok(handle) => Some(handle),
            // It is stored, and another process was faster to move it.
            Err(error) if error.kind() == RunErrorKind::Owned => None,
            Err(error) => {
                self.shared().transient.give_back(&thread, &id, &run);
                return Err(error.into());
            }
        };
        self.noted(&thread, notes).await;
        Ok(Submitted { message: id, thread, run, joined: false, handle })
    }

    /// What a run of a mode starts with.
    fn profile(&self, prepared: &PreparedMode, thread: &ThreadId, context: Map<String, Value>) -> Result<Profile, ControllerError> {
        let mode = &prepared.mode.id;
        let model = self.model_on(&self.view(), Some(thread), mode).ok_or_else(|| {
            let message = format!("no model is selected for mode `{mode}`; select one with `switch_model`, or give the mode one");
            ControllerError::new(ControllerErrorKind::NoModel, message)
        })?;
        let config = &self.shared().config;
        let mut profile = Profile::new(config.agent.clone(), mode.clone(), model);
        profile.instructions = prepared.instructions.clone();
        profile.tools = self.visible_tools(prepared);
        profile.limits = config.limits;
        profile.request_context = context;
        profile.options = config.options.clone();
        profile.judged = config.judge.is_some();
        profile.host.insert(THREAD_KEY.into(), thread.as_str().into());
        Ok(profile)
    }

    /// Goes on with the queue after a run of this process ended.
    pub(crate) fn watch_end(&self, run: &RunId, thread: &ThreadId) {
        let Some(handle) = self.shared().runtime.live(run) else {
            self.pump_soon(thread);
            self.sweep_forks_soon();
            return;
        };
        let (session, thread) = (self.clone(), thread.clone());
        self.spawn(async move {
            tokio::select! {
                () = handle.ended() => {
                    if handle.status().outcome.is_some() {
                        session.shared().transient.forget(handle.run());
                    }
                    session.pump_soon(&thread);
                    session.sweep_forks_soon();
                }
                () = session.shared().stop.cancelled() => {}
            }
        });
    }

    /// A task that the controller waits for when it stops.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if !self.shared().is_closed()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            self.shared().tasks.spawn_on(task, &runtime);
        }
    }
}

/// The model reads that the person wrote while it worked (SPEC S-16).
fn while_active(message: &mut Message) {
    message.meta.attributes.insert("delivery".into(), "while-active".into());
}

/// Where a run's profile says that nobody can be asked.
pub(crate) const UNATTENDED_KEY: &str = "unattended";

/// Where a run's profile keeps its thread, for the model that its plan leads to.
pub(crate) const THREAD_KEY: &str = "thread";

pub(crate) fn contended() -> ControllerError {
    ControllerError::new(ControllerErrorKind::Contended, "the runs of this thread keep changing; try again")
}
