//! Commands about stored conversations: asked of the process that holds the store, or done in place.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use agent_controller::workspace::{LocalFilesystem, Workspace};
use serde_json::{Value, json};

use crate::{
    app::{self, App, Held},
    args::{Command, Options},
    dispatch,
    exit::{Exit, Failure},
    files::Files,
    interrupt::{Interrupt, Interrupts},
    listing, models,
    paint::Shown,
    project::Project,
    screen::{Kept, Screen},
    sink::Sink,
    socket::Connection,
};

/// How long a process that is just starting or ending is waited for.
const HANDOVER: Duration = Duration::from_secs(2);

/// Who does it.
enum Way {
    Remote(Connection),
    Here(Held),
}

/// Does a command.
///
/// # Errors
/// Why it was not done.
pub(crate) async fn command(project: &Project, command: &Command, options: &Options, interrupts: &mut Interrupts) -> Result<Exit, Failure> {
    let Some((op, args)) = dispatch::request(command, options) else {
        return Err(Failure::usage("this command needs the store for itself"));
    };
    match interrupts.or(way(project)).await? {
        Way::Remote(_) if options.allow_network || !options.writable.is_empty() => Err(Failure::usage(
            "another acode holds the conversations, and how far its commands are held was decided when it began: leave the flags out, or end it",
        )),
        Way::Remote(connection) => remote(project, connection, op, &args, options, interrupts).await,
        Way::Here(held) => {
            let models = interrupts.or(models::choose(options, project, Duration::ZERO)).await?;
            let app = App::new(held, models, options.approve)?;
            app.clear_up().await?;
            let result = here(&app, op, &args, options, interrupts).await;
            app.close().await;
            result
        }
    }
}

async fn way(project: &Project) -> Result<Way, Failure> {
    let until = Instant::now() + HANDOVER;
    loop {
        if let Some(connection) = Connection::open(&project.socket()).await {
            return Ok(Way::Remote(connection));
        }
        match Held::open(project).await {
            Ok(held) => return Ok(Way::Here(held)),
            Err(failure) if app::is_held(&failure) && Instant::now() < until => tokio::time::sleep(Duration::from_millis(40)).await,
            Err(failure) => return Err(failure),
        }
    }
}

async fn here(app: &App, op: &str, args: &Value, options: &Options, interrupts: &mut Interrupts) -> Result<Exit, Failure> {
    let mut screen = Screen::new(options.json, app.files());
    screen.painter().answers(app.model.as_str());
    if dispatch::lists(op) {
        let mut kept = Kept::default();
        let exit = dispatch::dispatch(app, op, args, &mut kept, None).await?;
        return list(op, kept.0, exit, &mut screen).await;
    }
    let mut watching = Watching { screen: &mut screen, run: Arc::default() };
    let run = watching.run();
    let exit = dispatch::dispatch(app, op, args, &mut watching, Some(interrupts)).await?;
    if exit == Exit::Waiting && screen.is_text() {
        let rows: Vec<_> = app.waits(None).await?.iter().map(crate::waits::Wait::row).collect();
        waiting(&rows, seen(&run).as_deref(), &mut screen).await;
    }
    Ok(exit)
}

async fn remote(
    project: &Project,
    connection: Connection,
    op: &str,
    args: &Value,
    options: &Options,
    interrupts: &mut Interrupts,
) -> Result<Exit, Failure> {
    let mut screen = Screen::new(options.json, local_files(project)?);
    let ended =
        |error: io::Error| Failure::failed("socket", format!("the acode that holds the conversations did not answer to the end: {error}"));
    if dispatch::lists(op) {
        let mut kept = Kept::default();
        let exit = interrupts.or(async { connection.ask(op, args, &mut kept).await.map_err(ended) }).await?;
        return list(op, kept.0, exit, &mut screen).await;
    }
    let mut watching = Watching { screen: &mut screen, run: Arc::default() };
    let run = watching.run();
    let exit = {
        let mut asking = std::pin::pin!(connection.ask(op, args, &mut watching));
        loop {
            tokio::select! {
                exit = &mut asking => break exit.map_err(ended)?,
                interrupt = interrupts.next() => match interrupt {
                    // The other process aborts what it moves.
                    Interrupt::Stop => stop(project, seen(&run)).await,
                    Interrupt::Leave => return Ok(Exit::Aborted),
                    Interrupt::End => return Ok(Exit::Waiting),
                },
            }
        }
    };
    if exit == Exit::Waiting && screen.is_text() {
        let mut kept = Kept::default();
        if let Some(connection) = Connection::open(&project.socket()).await {
            connection.ask("pending", &json!({}), &mut kept).await.map_err(ended)?;
        }
        let rows = kept.0.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
        waiting(&rows, seen(&run).as_deref(), &mut screen).await;
    }
    Ok(exit)
}

/// Shows what an op answered with, or why it did not.
async fn list(op: &str, answer: Option<Value>, exit: Exit, screen: &mut Screen) -> Result<Exit, Failure> {
    let Some(answer) = answer else { return Ok(exit) };
    if let Some(failure) = complaint(&answer) {
        return Err(Failure { exit, ..failure });
    }
    let shown = if screen.is_text() { listing::show(op, &answer, screen.painter()).await } else { screen.put(&answer).await };
    Ok(if shown.is_ok() { exit } else { Exit::Failed })
}

/// What waits now, with how to answer it.
async fn waiting(rows: &[Value], run: Option<&str>, screen: &mut Screen) {
    let of_run = |row: &&Value| run.is_none_or(|run| row.get("run").and_then(Value::as_str) == Some(run));
    for row in rows.iter().filter(of_run) {
        // Who went away reads nothing more.
        let _ = screen.painter().waiting(Shown(row)).await;
        let _ = screen.painter().how(Shown(row));
    }
}

/// An error that is no event: it has no number.
fn complaint(value: &Value) -> Option<Failure> {
    if value.get("type").and_then(Value::as_str) != Some("error") || value.get("seq").is_some() {
        return None;
    }
    let text = |name| value.pointer(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    Some(Failure::failed(text("/error/name"), text("/error/message")))
}

/// Shows lines and remembers which run they are about.
struct Watching<'a> {
    screen: &'a mut Screen,
    run: Arc<Mutex<Option<String>>>,
}

impl Watching<'_> {
    fn run(&self) -> Arc<Mutex<Option<String>>> {
        self.run.clone()
    }
}

impl Sink for Watching<'_> {
    async fn put(&mut self, value: &Value) -> io::Result<()> {
        if let Some(failure) = complaint(value) {
            failure.complain();
            return if self.screen.is_text() { Ok(()) } else { self.screen.put(value).await };
        }
        if let Some(run) = value.get("run").and_then(Value::as_str) {
            *self.run.lock().unwrap_or_else(PoisonError::into_inner) = Some(run.to_owned());
        }
        self.screen.put(value).await
    }
}

fn seen(run: &Mutex<Option<String>>) -> Option<String> {
    run.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Asks the other process to abort the run.
async fn stop(project: &Project, run: Option<String>) {
    if let (Some(run), Some(connection)) = (run, Connection::open(&project.socket()).await) {
        // What comes of it is told on the first connection.
        let _ = connection.ask("abort", &json!({ "run": run }), &mut Kept::default()).await;
    }
}

/// The project's files, where another process holds the store.
fn local_files(project: &Project) -> Result<Files, Failure> {
    let files = LocalFilesystem::open(&project.folder).map_err(|error| Failure::failed(error.code(), error.to_string()))?;
    Ok(app::files(Arc::new(Workspace::new(Arc::new(files)))))
}
