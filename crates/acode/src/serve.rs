//! `acode serve`: the project over HTTP; and the tokens that let somebody in.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use agent_controller::server::{Auth, Limits, ModelEntry, Served, Server, TokenFile, new_token};

use tracing_subscriber::{EnvFilter, fmt::format::FmtSpan};

use crate::{
    args::Options,
    exit::{Exit, Failure},
    interrupt::{Interrupt, Interrupts},
    project::Project,
    talk::Opened,
};

/// The name under which the project is served.
const NAME: &str = "acode";
/// How long what is going on gets to be parked; less than the process gets to end.
const DRAIN: Duration = Duration::from_millis(2500);

/// Serves a project until it is told to end.
///
/// # Errors
/// When nobody would have to say who they are on an address that others reach; when the store, the tokens or the address cannot be had.
pub(crate) async fn serve(
    project: &Project,
    options: &Options,
    listen: SocketAddr,
    auth: Option<&Path>,
    interrupts: &mut Interrupts,
) -> Result<Exit, Failure> {
    if auth.is_none() && !listen.ip().is_loopback() {
        return Err(Failure::usage(format!(
            "{listen} can be reached from other machines, and without --auth FILE anybody could run commands here; add tokens with acode token add NAME"
        )));
    }
    let tokens = match auth {
        Some(path) => Some(TokenFile::open(project.folder.join(path)).map_err(|error| unreadable(path, &error))?),
        None => None,
    };
    log(options.json.is_some())?;
    let opened = Opened::open(project, options, interrupts, async || None).await?;
    let served = serve_opened(&opened, listen, tokens, interrupts).await;
    opened.close(interrupts).await;
    served
}

/// Says on standard error what goes wrong, or what `AC_LOG` asks for (`info`, `ac_agent=debug`); as JSON lines where those are wanted.
fn log(json: bool) -> Result<(), Failure> {
    let filter = std::env::var("AC_LOG").unwrap_or_else(|_| "warn".to_owned());
    let filter = EnvFilter::try_new(&filter).map_err(|error| {
        Failure::usage(format!("AC_LOG says {filter}, which is no filter ({error}); write warn, info, or ac_agent=debug"))
    })?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(false).with_span_events(FmtSpan::CLOSE);
    let begun = if json { lines.json().try_init() } else { lines.try_init() };
    begun.map_err(|error| Failure::failed("serve.log", error.to_string()))
}

async fn serve_opened(
    opened: &Opened,
    listen: SocketAddr,
    tokens: Option<TokenFile>,
    interrupts: &mut Interrupts,
) -> Result<Exit, Failure> {
    let app = &opened.app;
    app.controller.init().await?;
    let served = Served::new(NAME, app.controller.clone()).models([ModelEntry::new(app.model.clone())]).workspace(true);
    let mut limits = Limits::default();
    limits.drain = DRAIN;
    let builder = Server::builder().controller(served).limits(limits);
    let server = match tokens {
        Some(tokens) => builder.auth(Auth::Tokens(Arc::new(tokens))),
        None => builder.loopback_hosts(),
    };
    let server = server.build().map_err(|error| Failure::failed("serve", error.to_string()))?;
    let unbound =
        |error: io::Error| Failure::failed("serve.listen", format!("cannot listen on {listen}: {error}; choose another with --listen"));
    let listener = tokio::net::TcpListener::bind(listen).await.map_err(unbound)?;
    let address = listener.local_addr().map_err(unbound)?;
    let said = writeln!(io::stdout(), "listening on http://{address}/api").and_then(|()| io::stdout().flush());
    said.map_err(|error| Failure::failed("output", error.to_string()))?;
    let mut exit = Exit::Complete;
    let stop = async {
        if interrupts.next().await != Interrupt::End {
            exit = Exit::Aborted;
        }
    };
    server.serve(listener, stop).await.map_err(unbound)?;
    Ok(exit)
}

/// Makes a token, writes its digest down and prints the token.
///
/// # Errors
/// When the name or a right cannot stand in such a file, or the file cannot be written.
pub(crate) fn add_token(project: &Project, name: &str, auth: Option<&Path>, rights: &[String]) -> Result<Exit, Failure> {
    let path = auth.map_or_else(|| project.data.join("tokens"), |path| project.folder.join(path));
    let rights: Vec<&str> = rights.iter().map(String::as_str).collect();
    let random = random().map_err(|error| Failure::failed("token.random", format!("this system gives no random bytes: {error}")))?;
    let (token, line) = new_token(name, &rights, &random).map_err(|error| Failure::usage(error.to_string()))?;
    // A file that is only half understood lets nobody in: nothing is added to one.
    match TokenFile::open(&path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(unreadable(&path, &error)),
    }
    append(&path, &line).map_err(|error| Failure::failed("token.write", format!("cannot write {}: {error}", path.display())))?;
    crate::talk::complain(&format!("kept in {}; serve with acode serve --auth FILE. The token is shown only now:", path.display()));
    writeln!(io::stdout(), "{token}").map_err(|error| Failure::failed("output", error.to_string()))?;
    Ok(Exit::Complete)
}

fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A new line at the end, also of a file whose last line has no end.
fn append(path: &Path, line: &str) -> io::Result<()> {
    let before = std::fs::read(path).unwrap_or_default();
    let separator = if before.is_empty() || before.ends_with(b"\n") { "" } else { "\n" };
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    file.write_all(format!("{separator}{line}\n").as_bytes())?;
    file.sync_all()
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let path: PathBuf = path.into();
    Failure::failed("auth.file", format!("cannot use the token file {}: {error}", path.display()))
}
