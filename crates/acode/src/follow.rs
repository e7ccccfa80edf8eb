//! Follows a conversation until it is done or only a person can move it.

use std::{io, time::Duration};

use agent_controller::{
    controller::{Answer, ControllerErrorKind, Session, Subscription},
    core::{Event, EventBody, ThreadId, ToolCategory, event::EndReason, event::PendingKind, wire},
    engine::Outcome,
    tools::workspace::WorkspaceTool,
};
use serde_json::{Value, json};

use crate::{
    app::App,
    args::Approve,
    exit::{Exit, Failure},
    interrupt::{Interrupt, Interrupts},
    sink::Sink,
    waits::Wait,
};

/// So long nothing may come before what was told is taken to be all.
const QUIET: Duration = Duration::from_millis(25);
/// How often a run that nobody moves yet is looked at again.
const LOOK: Duration = Duration::from_millis(100);

/// How a conversation came to rest.
#[derive(Debug)]
pub(crate) enum Rest {
    /// Nothing is open.
    Done(Exit),
    /// Only a person can move it.
    Waiting(Vec<Wait>),
    /// The person leaves; whatever is open is continued later.
    Left(Exit),
}

/// A conversation and its events.
pub(crate) struct Follow<'a> {
    app: &'a App,
    session: Session,
    thread: ThreadId,
    events: Subscription,
    approve: Approve,
    views: bool,
    ended: Option<EndReason>,
}

impl<'a> Follow<'a> {
    /// Listens from now on. With `views`, also to the view after each event.
    pub(crate) fn new(app: &'a App, session: Session, thread: ThreadId, approve: Approve, views: bool) -> Self {
        let events = session.subscribe();
        Self { app, session, thread, events, approve, views, ended: None }
    }

    /// The session.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// The next event, told to `sink`; `None` when the session is over.
    ///
    /// # Errors
    /// When nobody reads `sink` any more.
    pub(crate) async fn event(&mut self, sink: &mut impl Sink) -> io::Result<Option<std::sync::Arc<Event>>> {
        let Some(event) = self.events.next_event().await else { return Ok(None) };
        self.tell(&event, sink).await?;
        Ok(Some(event))
    }

    async fn tell(&mut self, event: &Event, sink: &mut impl Sink) -> io::Result<()> {
        if let EventBody::AgentEnd { reason, .. } = &event.body {
            self.ended = Some(*reason);
        }
        if self.views || !matches!(event.body, EventBody::DisplayStateChanged { .. }) {
            sink.put(&wire::event(event)).await?;
        }
        Ok(())
    }

    /// Follows to the next rest. The first Ctrl-C aborts what is open.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn until_rest(&mut self, sink: &mut impl Sink, mut interrupts: Option<&mut Interrupts>) -> Result<Rest, Failure> {
        loop {
            let mut outcome = None;
            if let Some(handle) = self.session.live_run().await? {
                let resting = handle.resting();
                let mut resting = std::pin::pin!(resting);
                let status = loop {
                    tokio::select! {
                        biased;
                        interrupt = next(&mut interrupts) => match interrupt {
                            Interrupt::Stop => {
                                self.session.abort().await?;
                            }
                            Interrupt::Leave => return Ok(Rest::Left(Exit::Aborted)),
                            Interrupt::End => return Ok(Rest::Left(Exit::Waiting)),
                        },
                        event = self.events.next_event() => match event {
                            Some(event) => if self.tell(&event, sink).await.is_err() {
                                return Ok(Rest::Left(Exit::Failed));
                            },
                            None => return Ok(Rest::Left(Exit::Waiting)),
                        },
                        status = &mut resting => break status,
                    }
                };
                outcome = status.outcome;
            }
            if self.drain(sink).await.is_err() {
                return Ok(Rest::Left(Exit::Failed));
            }
            let waits = self.app.open(Some(&self.thread)).await?;
            if self.answer_for_person(&waits).await? {
                continue;
            }
            if !waits.is_empty() {
                return Ok(Rest::Waiting(waits));
            }
            if self.session.current_run().await?.is_none() {
                return Ok(Rest::Done(self.exit(outcome)));
            }
            // Somebody died while it moved; until its lease is over nobody may take it.
            if self.session.take_over().await?.is_none() {
                tokio::select! {
                    () = tokio::time::sleep(LOOK) => {}
                    interrupt = next(&mut interrupts) => match interrupt {
                        Interrupt::Stop => {
                            self.session.abort().await?;
                        }
                        Interrupt::Leave => return Ok(Rest::Left(Exit::Aborted)),
                        Interrupt::End => return Ok(Rest::Left(Exit::Waiting)),
                    },
                }
            }
        }
    }

    /// What was told before the rest, and is still on its way.
    async fn drain(&mut self, sink: &mut impl Sink) -> io::Result<()> {
        while let Ok(Some(event)) = tokio::time::timeout(QUIET, self.events.next_event()).await {
            self.tell(&event, sink).await?;
        }
        Ok(())
    }

    fn exit(&mut self, outcome: Option<Outcome>) -> Exit {
        match (outcome, self.ended.take()) {
            (Some(Outcome::Complete), _) | (None, Some(EndReason::Complete) | None) => Exit::Complete,
            (Some(Outcome::Aborted), _) | (None, Some(EndReason::Aborted)) => Exit::Aborted,
            (None, Some(EndReason::Suspended)) => Exit::Waiting,
            (Some(Outcome::Error { .. }), _) | (None, Some(EndReason::Error)) => Exit::Failed,
        }
    }

    /// Answers what `--approve` decides; says whether it answered anything. A doubt is never decided this way.
    async fn answer_for_person(&mut self, waits: &[Wait]) -> Result<bool, Failure> {
        let mut answered = false;
        for wait in waits {
            let open = &wait.pending;
            let answer = match (self.approve, open.kind) {
                (Approve::All, PendingKind::Approval) => Answer::Approve { grant: None },
                (Approve::Edits, PendingKind::Approval) if is_edit(&open.tool) => Answer::Approve { grant: None },
                (Approve::None, PendingKind::Approval) => {
                    Answer::Decline { reason: Some("declined: nothing that asks is allowed here".into()) }
                }
                (Approve::All, PendingKind::Plan) => self.app.plan_answer(wait, true, None).await,
                (Approve::None, PendingKind::Plan) => self.app.plan_answer(wait, false, None).await,
                _ => continue,
            };
            match self.session.answer(&open.id, answer).await {
                Ok(_) => {}
                // Somebody was faster: that is their decision.
                Err(error) if matches!(error.kind(), ControllerErrorKind::AlreadyResolved | ControllerErrorKind::NotPending) => {}
                Err(error) => return Err(error.into()),
            }
            answered = true;
        }
        Ok(answered)
    }
}

/// Waits for an interrupt; for ever where there are none.
async fn next(interrupts: &mut Option<&mut Interrupts>) -> Interrupt {
    match interrupts {
        Some(interrupts) => interrupts.next().await,
        None => std::future::pending().await,
    }
}

fn is_edit(tool: &str) -> bool {
    WorkspaceTool::ALL.iter().any(|known| known.default_name() == tool && known.category() == ToolCategory::Edit)
}

impl App {
    /// The decision on a plan, with what the person was shown.
    pub(crate) async fn plan_answer(&self, wait: &Wait, approved: bool, feedback: Option<String>) -> Answer {
        let path = wait.pending.payload.get("path").and_then(Value::as_str).unwrap_or_default();
        let mut value = json!({ "action": if approved { "approved" } else { "rejected" } });
        let mut put = |name: &str, text: Option<String>| {
            if let (Some(fields), Some(text)) = (value.as_object_mut(), text.filter(|text| !text.is_empty())) {
                fields.insert(name.to_owned(), text.into());
            }
        };
        put("feedback", feedback);
        put("path", Some(path.to_owned()));
        if let Ok(plan) = self.files().text(path).await {
            put("title", heading(&plan));
            put("plan", Some(plan));
        }
        Answer::Reply { value }
    }
}

/// The first heading of a plan.
fn heading(plan: &str) -> Option<String> {
    let heading = plan.lines().find_map(|line| line.trim_start().strip_prefix('#'))?;
    let heading = heading.trim_start_matches('#').trim();
    let title = heading.strip_prefix("Plan:").unwrap_or(heading).trim();
    (!title.is_empty()).then(|| title.to_owned())
}
