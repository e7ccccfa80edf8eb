//! What the chat and `exec` have in common: a project that is opened, a conversation that is found, a model that is chosen.

use std::{
    io::{IsTerminal, Write},
    sync::Arc,
    time::{Duration, Instant},
};

use agent_controller::core::{ThreadId, event::PendingKind};

use crate::{
    app::{self, App, Held},
    args::Options,
    dispatch::Server,
    exit::{Exit, Failure},
    follow::{Follow, Rest},
    interrupt::Interrupts,
    models::{self, Local, Models},
    paint::Shown,
    project::Project,
    screen::Screen,
    socket::{self, Served},
};

/// How long a store that is just being let go of is waited for.
const HANDOVER: Duration = Duration::from_millis(400);
/// The pace of the built-in model at a terminal: words, not a wall of text.
const PACE: Duration = Duration::from_millis(12);

/// An opened project.
pub(crate) struct Opened {
    pub(crate) app: Arc<App>,
    /// The conversation that is gone on with.
    pub(crate) thread: Option<ThreadId>,
    /// Other processes reach this one as long as this lives.
    served: Option<Served>,
}

impl Opened {
    /// Opens a project. Where nobody chose a model, `offer` may.
    ///
    /// # Errors
    /// When another process holds the store; when the conversation or the model does not exist; when the person does not want to wait.
    pub(crate) async fn open(
        project: &Project,
        options: &Options,
        interrupts: &mut Interrupts,
        offer: impl AsyncFnOnce() -> Option<Local>,
    ) -> Result<Self, Failure> {
        interrupts.or(Self::opening(project, options, offer)).await
    }

    async fn opening(project: &Project, options: &Options, offer: impl AsyncFnOnce() -> Option<Local>) -> Result<Self, Failure> {
        let held = hold(project).await?;
        let thread = held.thread(options.resume, options.thread.as_deref()).await?;
        let pace = if std::io::stdout().is_terminal() && options.json.is_none() { PACE } else { Duration::ZERO };
        let mut models = models::choose(options, project, pace).await?;
        // A conversation that is gone on with has its model.
        if models.fallback && thread.is_none() {
            models = match offer().await {
                Some(Local { base_url, model }) => {
                    let options = Options { base_url: Some(base_url), model: Some(model), ..options.clone() };
                    models::choose(&options, project, pace).await?
                }
                None => fallback(models),
            };
        }
        let chosen = !models.fallback;
        let app = App::new(held, models, options.approve)?;
        app.clear_up().await?;
        if let Some(thread) = &thread {
            let session = app.session(thread).await?;
            if chosen {
                app.use_model(&session).await?;
            }
            app.use_rules(&session).await?;
        }
        let served = match Served::open(&project.socket(), Arc::new(Server(app.clone()))) {
            Ok(served) => Some(served),
            Err(error) => {
                complain(&format!("other acode commands cannot reach this one: {}: {error}", project.socket().display()));
                None
            }
        };
        Ok(Self { app, thread, served })
    }

    /// Closes everything, in order. What another process asked for is done first, unless the person does not want to wait for it.
    pub(crate) async fn close(mut self, interrupts: &mut Interrupts) {
        if let Some(served) = self.served.take() {
            tokio::select! {
                () = served.finish() => {}
                _ = interrupts.next() => {}
            }
        }
        self.app.close().await;
    }
}

fn fallback(models: Models) -> Models {
    complain("no model was chosen, so the built-in demo/guide answers; name one with --model PROVIDER/NAME or --base-url URL");
    models
}

/// Opens the store; one that another process is just closing is waited for.
///
/// # Errors
/// As [`Held::open`].
pub(crate) async fn hold(project: &Project) -> Result<Held, Failure> {
    let until = Instant::now() + HANDOVER;
    loop {
        match Held::open(project).await {
            Err(failure) if app::is_held(&failure) && Instant::now() < until => tokio::time::sleep(Duration::from_millis(40)).await,
            other => return other,
        }
    }
}

/// A line on standard error.
pub(crate) fn complain(message: &str) {
    let _ = writeln!(anstream::stderr(), "acode: {}", crate::safe::Line(message, 2000));
}

/// What went wrong, as a line for a script that reads standard output.
pub(crate) fn report(failure: &Failure) {
    // Who went away reads nothing more.
    let line = socket::error(&failure.code, &failure.message).to_string();
    let _ = writeln!(std::io::stdout(), "{}", crate::safe::Json(&line));
}

/// Runs one task, or goes on with what is open, without asking anybody.
///
/// # Errors
/// When it could not begin.
pub(crate) async fn exec(project: &Project, options: &Options, task: Option<&str>, interrupts: &mut Interrupts) -> Result<Exit, Failure> {
    let opened = Opened::open(project, options, interrupts, async || None).await?;
    let result = exec_opened(&opened, options, task, interrupts).await;
    opened.close(interrupts).await;
    result
}

async fn exec_opened(opened: &Opened, options: &Options, task: Option<&str>, interrupts: &mut Interrupts) -> Result<Exit, Failure> {
    let app = &opened.app;
    let session = match (&opened.thread, task) {
        (Some(thread), _) => app.session(thread).await?,
        (None, Some(task)) => app.new_session(&app::title(task)).await?,
        (None, None) => return Err(Failure::usage("say what to do: acode exec 'TASK'")),
    };
    let thread = session.thread_id().ok_or_else(|| Failure::failed("session.unbound", "the session has no conversation"))?;
    let mut screen = Screen::new(options.json, app.files());
    let model = session.model().unwrap_or_else(|| app.model.clone());
    screen.painter().answers(model.as_str());
    let mut follow = Follow::new(app, session, thread, options.approve, screen.views());
    if let Some(task) = task {
        follow.session().submit(task).await?;
    }
    let rest = follow.until_rest(&mut screen, Some(interrupts)).await?;
    Ok(match rest {
        Rest::Done(exit) | Rest::Left(exit) => exit,
        Rest::Waiting(open) => {
            for wait in open.iter().filter(|wait| wait.pending.kind == PendingKind::InDoubt && !screen.is_text()) {
                complain(&format!(
                    "`{}` was running when a process ended, and no flag decides that; acode approve runs it again, acode decline records it as failed",
                    wait.id
                ));
            }
            if let (true, Some(first)) = (screen.is_text(), open.first()) {
                for wait in app.waits(Some(&first.pending.thread)).await? {
                    let row = wait.row();
                    // Who went away reads nothing more.
                    let _ = screen.painter().waiting(Shown(&row)).await;
                    let _ = screen.painter().how(Shown(&row));
                }
            }
            Exit::Waiting
        }
    })
}
