//! The chat: one line at a time, at a terminal and in a pipe.

mod ask;

use std::{
    io::{self, IsTerminal},
    sync::Arc,
};

use agent_controller::{
    controller::{Answer, ControllerErrorKind, Session},
    core::{Role, ThreadId, event::PendingKind, permission::GrantTarget},
    storage::domain::MessageQuery,
};

use self::ask::Asked;
use crate::{
    app::{self, App},
    args::Options,
    exit::{Exit, Failure},
    follow::{Follow, Rest},
    input::{Line, Lines},
    interrupt::{Interrupt, Interrupts},
    models,
    paint::{DIM, RED, Shown, YELLOW},
    project::Project,
    reply::{self, ApprovalAnswer, PlanAnswer, Question},
    safe,
    screen::Screen,
    talk::Opened,
    waits::Wait,
};

const HELP: &str =
    "Type what should be done. /mode plan or /mode build switches the mode, /quit leaves (so does Ctrl-D), Ctrl-C stops a run.";

/// A chat.
struct Chat<'a> {
    app: Arc<App>,
    options: &'a Options,
    screen: Screen,
    lines: Lines,
    interrupts: &'a mut Interrupts,
    session: Option<Session>,
    /// What is typed is seen.
    echoed: bool,
}

/// What comes after a step of the chat.
enum Next {
    Go,
    Leave(Exit),
}

/// Chats about a project until the person leaves.
///
/// # Errors
/// When it could not begin, or the store does not answer.
pub(crate) async fn chat(project: &Project, options: &Options, interrupts: &mut Interrupts) -> Result<Exit, Failure> {
    let mut lines = Lines::new(io::BufReader::new(io::stdin()));
    let terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let opened = Opened::open(project, options, interrupts, async || {
        let skipped = std::env::var_os("AC_NO_PROBE").is_some_and(|value| !value.is_empty() && value != "0");
        if !terminal || skipped { None } else { offer(&mut lines).await }
    })
    .await?;
    let app = opened.app.clone();
    let screen = Screen::new(options.json, app.files());
    let echoed = io::stdin().is_terminal();
    let mut chat = Chat { app, options, screen, lines, interrupts, session: None, echoed };
    let result = chat.run(opened.thread.as_ref()).await;
    opened.close(chat.interrupts).await;
    result
}

/// Offers a server of this machine.
async fn offer(lines: &mut Lines) -> Option<models::Local> {
    let local = models::probe().await?;
    let (model, base_url) = (safe::Line(&local.model, 80).to_string(), &local.base_url);
    eprint!("Found a model server at {base_url} with {model}. Use it? [y/n] ");
    match lines.next().await {
        Line::Text(line) if matches!(line.trim().to_lowercase().as_str(), "y" | "yes") => Some(local),
        _ => None,
    }
}

impl Chat<'_> {
    async fn run(&mut self, thread: Option<&ThreadId>) -> Result<Exit, Failure> {
        let session = match thread {
            Some(thread) => Some(self.app.session(thread).await?),
            None => None,
        };
        self.greet(session.as_ref());
        if let Some(session) = session {
            self.recall(&session).await?;
            self.session = Some(session.clone());
            if let Next::Leave(exit) = self.follow(session, None).await? {
                return Ok(exit);
            }
        }
        loop {
            let mode = self.session.as_ref().map_or_else(|| self.app.controller.default_mode().clone(), Session::mode);
            let asked = self.read(&format!("{}>", safe::Line(mode.as_str(), 20))).await;
            let line = match asked {
                Asked::Line(line) => line,
                Asked::End => return Ok(Exit::Complete),
                Asked::Gone => return Ok(Exit::Failed),
                Asked::Interrupted(Interrupt::Stop) => {
                    self.note("Ctrl-C again leaves.");
                    continue;
                }
                Asked::Interrupted(Interrupt::Leave) => return Ok(Exit::Aborted),
                Asked::Interrupted(Interrupt::End) => return Ok(Exit::Complete),
            };
            let next = match self.command(line.trim()).await? {
                Some(next) => next,
                None => self.send(&line).await?,
            };
            if let Next::Leave(exit) = next {
                return Ok(exit);
            }
        }
    }

    fn greet(&mut self, session: Option<&Session>) {
        let folder = self.app.project.folder.display().to_string();
        let model = session.and_then(Session::model).unwrap_or_else(|| self.app.model.clone());
        self.screen.painter().answers(model.as_str());
        self.note(&format!("acode in {}, model {}. /help says more.", safe::Line(&folder, 120), safe::Line(model.as_str(), 80)));
    }

    /// The end of a conversation that is gone on with.
    async fn recall(&mut self, session: &Session) -> Result<(), Failure> {
        let query = MessageQuery { newest_first: true, limit: 20, ..MessageQuery::default() };
        let page = session.messages(None, query).await?;
        let last = |role| {
            page.items.iter().map(|stored| &stored.message).find(|message| message.role == role && !message.text().trim().is_empty())
        };
        let said: Vec<_> = [(Role::User, "you"), (Role::Assistant, "acode")]
            .into_iter()
            .filter_map(|(role, name)| last(role).map(|message| (message.at, format!("{name}: {}", safe::Line(&message.text(), 200)))))
            .collect();
        for (_, line) in said {
            self.note(&line);
        }
        Ok(())
    }

    /// `/…`; `None` for a task.
    async fn command(&mut self, line: &str) -> Result<Option<Next>, Failure> {
        let mut words = line.split_whitespace();
        match words.next() {
            None => {}
            Some("/help") => self.note(HELP),
            Some("/quit" | "/exit") => return Ok(Some(Next::Leave(Exit::Complete))),
            Some("/mode") => {
                let mode = words.next().unwrap_or_default();
                let session = match &self.session {
                    Some(session) => session.clone(),
                    None => self.app.new_session("").await?,
                };
                match session.switch_mode(mode).await {
                    Ok(()) => self.session = Some(session),
                    Err(error) if error.kind() == ControllerErrorKind::ModeNotFound => {
                        self.note("The modes are plan and build: /mode plan, /mode build.");
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            Some(_) => return Ok(None),
        }
        Ok(Some(Next::Go))
    }

    async fn send(&mut self, text: &str) -> Result<Next, Failure> {
        let session = match &self.session {
            Some(session) => session.clone(),
            None => self.app.new_session(&app::title(text)).await?,
        };
        // A conversation that began with a command has no title yet.
        if let Some(thread) = session.thread_id()
            && session.thread(&thread).await?.title.is_empty()
        {
            session.rename_thread(None, app::title(text)).await?;
        }
        self.session = Some(session.clone());
        self.follow(session, Some(text)).await
    }

    /// Sends a message, if there is one, and follows what comes of it, with all its questions.
    async fn follow(&mut self, session: Session, text: Option<&str>) -> Result<Next, Failure> {
        let app = self.app.clone();
        let thread = session.thread_id().ok_or_else(|| Failure::failed("session.unbound", "the session has no conversation"))?;
        let mut follow = Follow::new(&app, session, thread, self.options.approve, self.screen.views());
        if let Some(text) = text {
            follow.session().submit(text).await?;
        }
        loop {
            match follow.until_rest(&mut self.screen, Some(&mut *self.interrupts)).await? {
                Rest::Done(_) => return Ok(Next::Go),
                Rest::Left(exit) => return Ok(Next::Leave(exit)),
                Rest::Waiting(waits) => {
                    let Some(wait) = waits.first() else { continue };
                    if let Next::Leave(exit) = self.decide(&mut follow, wait).await? {
                        if exit == Exit::Waiting {
                            self.note("It goes on waiting: acode --continue asks again.");
                        }
                        return Ok(Next::Leave(exit));
                    }
                }
            }
        }
    }

    /// Asks the person until there is an answer, or it is no longer needed.
    async fn decide(&mut self, follow: &mut Follow<'_>, wait: &Wait) -> Result<Next, Failure> {
        let row = wait.row();
        if self.screen.painter().waiting(Shown(&row)).await.is_err() {
            return Ok(Next::Leave(Exit::Failed));
        }
        loop {
            let prompt = match wait.pending.kind {
                PendingKind::Question => "Your answer:",
                PendingKind::Plan => "Approve this plan? [approve / reject / or say what should change]",
                PendingKind::InDoubt => "Run it again, or record it as failed? [again/failed]",
                _ => "Allow this? [y/n/always]",
            };
            let line = match self.ask(follow, wait, prompt).await? {
                Ok(line) => line,
                Err(next) => return Ok(next),
            };
            let Some(answer) = (match self.answer(follow, wait, &line).await? {
                Ok(answer) => answer,
                Err(next) => return Ok(next),
            }) else {
                continue;
            };
            match follow.session().answer(&wait.pending.id, answer).await {
                Ok(_) => return Ok(Next::Go),
                Err(error) => match error.kind() {
                    ControllerErrorKind::InvalidAnswer => self.warn(&error.to_string()),
                    ControllerErrorKind::AlreadyResolved | ControllerErrorKind::NotPending => {
                        self.warn(&error.to_string());
                        return Ok(Next::Go);
                    }
                    _ => return Err(error.into()),
                },
            }
        }
    }

    /// What a line says to a wait; `None` when it says nothing clear and the person was told so.
    async fn answer(&mut self, follow: &mut Follow<'_>, wait: &Wait, line: &str) -> Result<Result<Option<Answer>, Next>, Failure> {
        let open = &wait.pending;
        Ok(Ok(match open.kind {
            PendingKind::Question => {
                let value = match Question::read(&open.tool, &open.payload) {
                    Some(question) => question.answer_line(line),
                    None => Ok(reply::json_or_text(line.trim())),
                };
                match value {
                    Ok(value) => Some(Answer::Reply { value }),
                    Err(why) => {
                        self.warn(&why);
                        None
                    }
                }
            }
            PendingKind::Plan => match reply::plan(line) {
                PlanAnswer::Approve => Some(self.app.plan_answer(wait, true, None).await),
                PlanAnswer::Reject(feedback) => Some(self.app.plan_answer(wait, false, feedback).await),
                PlanAnswer::AskWhy => match self.ask_more(follow, wait, "What should change? (Enter: nothing, stop here)").await? {
                    Ok(why) => {
                        let feedback = Some(why.trim().to_owned()).filter(|why| !why.is_empty());
                        Some(self.app.plan_answer(wait, false, feedback).await)
                    }
                    Err(next) => return Ok(Err(next)),
                },
                PlanAnswer::Unclear => None,
            },
            PendingKind::InDoubt => match reply::in_doubt(line) {
                Some(true) => Some(Answer::RunAgain),
                Some(false) => Some(Answer::RecordFailed),
                None => None,
            },
            _ => match reply::approval(line) {
                Some(ApprovalAnswer::Yes) => Some(Answer::Approve { grant: None }),
                Some(ApprovalAnswer::Always) => Some(Answer::Approve { grant: Some(GrantTarget::Tool(open.tool.clone())) }),
                Some(ApprovalAnswer::No) => match self.ask_more(follow, wait, "Why not? (Enter: no reason)").await? {
                    Ok(why) => {
                        let reason = Some(why.trim().to_owned()).filter(|why| !why.is_empty());
                        Some(Answer::Decline { reason })
                    }
                    Err(next) => return Ok(Err(next)),
                },
                None => None,
            },
        }))
    }

    fn note(&mut self, text: &str) {
        // A reader that went away is noticed at the next event.
        let _ = self.screen.painter().note(DIM, text);
    }

    fn warn(&mut self, text: &str) {
        let style = if text.is_empty() { RED } else { YELLOW };
        let _ = self.screen.painter().note(style, &safe::Line(text, 500).to_string());
    }
}
