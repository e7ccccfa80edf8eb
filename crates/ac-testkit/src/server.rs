//! A model server that follows a script: real HTTP on a loopback port, OpenAI's Chat Completions.
//!
//! It runs on a thread of its own, so a test may block, pause its clock or be a plain function.

pub(crate) mod connection;
mod framing;
mod reply;
pub mod turn;

use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use ac_core::CancelToken;
use serde_json::{Value, json};
use tokio::sync::watch;

use self::{
    connection::{Connection, Incoming},
    reply::{Ending, Frame},
};
pub use self::{framing::Framing, turn::Turn};
use crate::pairing;

/// How long a test waits for what should have happened long ago.
const PATIENCE: Duration = Duration::from_secs(10);

/// A scripted model server. Stops when it is dropped, and then panics if a request broke a rule and the test did not take the
/// [`violations`](Self::violations).
///
/// ```no_run
/// use ac_testkit::{ScriptedServer, Turn};
/// use serde_json::json;
///
/// let server = ScriptedServer::start([
///     Turn::tool("c1", "view", json!({ "path": "README.md" })),
///     Turn::chunks(["It is ", "a runtime."]),
/// ]);
/// let base_url = server.base_url(); // …/v1: hand it to the model under test
/// # drop(base_url);
/// ```
#[derive(Debug)]
pub struct ScriptedServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: CancelToken,
    thread: Option<thread::JoinHandle<()>>,
}

/// How a [`ScriptedServer`] is set up.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Setup {
    /// The script.
    pub turns: Vec<Turn>,
    /// What `GET /v1/models` lists.
    pub models: Vec<String>,
    /// Where bodies are cut into chunks.
    pub framing: Framing,
}

/// A request that reached the server, in order of arrival.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Exchange {
    /// The path, for example `/v1/chat/completions`.
    pub path: String,
    /// Its headers, names in small letters.
    pub headers: Vec<(String, String)>,
    /// Its body; null when it was no JSON.
    pub body: Value,
    /// Which turn answers it, from 0; `None` when none did.
    pub turn: Option<usize>,
    /// How far the answer is.
    pub delivery: Delivery,
}

impl Exchange {
    /// A header, by its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// How far an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It is being sent.
    Open,
    /// Sent to its end.
    Complete,
    /// Cut or reset, as the script says.
    Broken,
    /// The client left before its end: a cancelled call.
    Left,
}

/// A rule that a request broke.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A call without exactly one result right after it (`R4`).
    Pairing {
        /// The request, from 0.
        request: usize,
        /// What is wrong with it.
        detail: String,
    },
    /// No turn of the script fits.
    Unscripted {
        /// The request, from 0.
        request: usize,
    },
    /// Not a request that such a server knows.
    Malformed {
        /// What came.
        detail: String,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pairing { request, detail } => write!(f, "request {request} is no legal history: {detail}"),
            Self::Unscripted { request } => write!(f, "no turn of the script fits request {request}"),
            Self::Malformed { detail } => write!(f, "not understood: {detail}"),
        }
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// The number of requests so far, and a nudge whenever a delivery changes.
    changed: watch::Sender<usize>,
    models: Vec<String>,
    framing: Framing,
}

#[derive(Debug, Default)]
struct State {
    script: Vec<Scripted>,
    exchanges: Vec<Exchange>,
    violations: Vec<Violation>,
}

/// A turn and how often it may still answer.
#[derive(Debug)]
struct Scripted {
    turn: Turn,
    left: u32,
    used: bool,
}

impl From<Turn> for Scripted {
    fn from(turn: Turn) -> Self {
        Self { left: turn.budget(), turn, used: false }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Setup {
    /// A script, no models, one chunk per event.
    pub fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self { turns: turns.into_iter().collect(), ..Self::default() }
    }

    /// What `GET /v1/models` lists.
    #[must_use]
    pub fn models<S: Into<String>>(mut self, models: impl IntoIterator<Item = S>) -> Self {
        self.models = models.into_iter().map(Into::into).collect();
        self
    }

    /// Where bodies are cut into chunks.
    #[must_use]
    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Starts the server.
    ///
    /// # Errors
    /// When no loopback port or no thread can be had.
    pub fn start(self) -> io::Result<ScriptedServer> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let state = Mutex::new(State { script: self.turns.into_iter().map(Scripted::from).collect(), ..State::default() });
        let shared = Arc::new(Shared { state, changed: watch::Sender::new(0), models: self.models, framing: self.framing });
        let stop = CancelToken::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let thread = thread::Builder::new().name("scripted-server".to_owned()).spawn({
            let (shared, stop) = (Arc::clone(&shared), stop.clone());
            // Dropping the runtime at the end drops every connection.
            move || {
                runtime.block_on(async {
                    tokio::select! { () = serve(listener, shared) => {}, () = stop.cancelled() => {} }
                })
            }
        })?;
        Ok(ScriptedServer { address, shared, stop, thread: Some(thread) })
    }
}

impl ScriptedServer {
    /// Starts a server with this script.
    ///
    /// # Panics
    /// When no loopback port or no thread can be had: a test without its model cannot go on.
    #[expect(clippy::expect_used, reason = "a test without its model cannot go on")]
    pub fn start(turns: impl IntoIterator<Item = Turn>) -> Self {
        Setup::new(turns).start().expect("a loopback port for the scripted server")
    }

    /// `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds a turn to the end of the script.
    pub fn push(&self, turn: Turn) {
        self.shared.state().script.push(turn.into());
    }

    /// The completion requests so far.
    pub fn requests(&self) -> Vec<Exchange> {
        self.shared.state().exchanges.clone()
    }

    /// Waits until `n` completion requests have arrived, at most 10 s; then what there is.
    pub async fn wait_for_requests(&self, n: usize) -> Vec<Exchange> {
        self.wait_until(|exchanges| exchanges.len() >= n).await
    }

    /// Waits until no answer is open any more, at most 10 s; then what there is.
    pub async fn settled(&self) -> Vec<Exchange> {
        self.wait_until(|exchanges| exchanges.iter().all(|exchange| exchange.delivery != Delivery::Open)).await
    }

    /// Waits for a state of the exchanges, at most 10 s; then what there is.
    pub async fn wait_until(&self, holds: impl Fn(&[Exchange]) -> bool) -> Vec<Exchange> {
        let mut changed = self.shared.changed.subscribe();
        // Real time, on the server's own clock: the test's may be paused.
        let begun = Instant::now();
        while !holds(&self.shared.state().exchanges) && begun.elapsed() < PATIENCE && changed.changed().await.is_ok() {}
        self.requests()
    }

    /// The turns that answered nothing, from 0.
    pub fn unused_turns(&self) -> Vec<usize> {
        let state = self.shared.state();
        state.script.iter().enumerate().filter(|(_, scripted)| !scripted.used).map(|(at, _)| at).collect()
    }

    /// What went wrong so far. Who takes it has seen it: the server does not panic about it.
    pub fn violations(&self) -> Vec<Violation> {
        std::mem::take(&mut self.shared.state().violations)
    }
}

impl Drop for ScriptedServer {
    #[expect(clippy::panic, reason = "a request that breaks a rule must fail the test that made it")]
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
        let violations = self.violations();
        if !violations.is_empty() && !thread::panicking() {
            let all: Vec<_> = violations.iter().map(ToString::to_string).collect();
            panic!("the scripted model server saw:\n  {}", all.join("\n  "));
        }
    }
}

async fn serve(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    // Whoever waits for something looks at its watch now and then.
    let mut nudge = tokio::time::interval(PATIENCE / 40);
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                stream.set_nodelay(true).ok();
                tokio::spawn(converse(Connection::new(stream), Arc::clone(&shared)));
            } else {
                // Out of descriptors: try again when some are free.
                tokio::time::sleep(Duration::from_millis(10)).await;
            },
            _ = nudge.tick() => shared.changed.send_modify(|_| {}),
        }
    }
}

async fn converse(mut connection: Connection, shared: Arc<Shared>) {
    loop {
        let incoming = match connection.request().await {
            Ok(Some(incoming)) => incoming,
            Ok(None) => return,
            Err(error) => {
                // A client that is killed in the middle of a request is no violation; nonsense is.
                if error.kind() == io::ErrorKind::InvalidData {
                    shared.state().violations.push(Violation::Malformed { detail: error.to_string() });
                }
                return;
            }
        };
        let last =
            incoming.headers.iter().any(|(name, value)| name.eq_ignore_ascii_case("connection") && value.eq_ignore_ascii_case("close"));
        let path = incoming.path.split('?').next().unwrap_or_default();
        let kept = match (incoming.method.as_str(), path) {
            ("POST", path) if path.ends_with("/chat/completions") => complete(connection, incoming, &shared).await,
            ("GET", path) if path.ends_with("/models") => {
                let data: Vec<_> = shared.models.iter().map(|id| json!({ "id": id, "object": "model", "owned_by": "scripted" })).collect();
                let sent = connection.json(200, &[], &json!({ "object": "list", "data": data })).await;
                sent.is_ok().then_some(connection)
            }
            (method, path) => {
                shared.state().violations.push(Violation::Malformed { detail: format!("{method} {path}") });
                let sent = connection.json(404, &[], &json!({ "error": { "message": format!("no such path: {path}") } })).await;
                sent.is_ok().then_some(connection)
            }
        };
        match kept {
            Some(same) if !last => connection = same,
            _ => return,
        }
    }
}

async fn complete(mut connection: Connection, incoming: Incoming, shared: &Shared) -> Option<Connection> {
    let body: Value = serde_json::from_slice(&incoming.body).unwrap_or_default();
    let text = String::from_utf8_lossy(&incoming.body);
    let (number, turn) = accept(&incoming, &body, &text, shared);
    shared.changed.send_modify(|count| *count += 1);
    let (kept, ending) = match turn {
        None => {
            let sent = connection.json(500, &[], &json!({ "error": { "message": "no turn of the script fits this request" } })).await;
            (sent.is_ok().then_some(connection), Ending::Complete)
        }
        Some(turn) => {
            let frame = Frame { id: format!("chatcmpl-{number}"), model: body.get("model").cloned().unwrap_or_default() };
            let stream = body.get("stream").and_then(Value::as_bool).unwrap_or(false);
            reply::send(connection, &turn, &frame, stream, shared.framing).await
        }
    };
    if let Some(exchange) = shared.state().exchanges.get_mut(number) {
        exchange.delivery = match ending {
            Ending::Complete => Delivery::Complete,
            Ending::Broken => Delivery::Broken,
            Ending::Left => Delivery::Left,
        };
    }
    shared.changed.send_modify(|_| {});
    kept
}

/// Notes a request, judges it, and uses up the turn that answers it.
fn accept(incoming: &Incoming, body: &Value, text: &str, shared: &Shared) -> (usize, Option<Turn>) {
    let mut state = shared.state();
    let number = state.exchanges.len();
    let turn = state.script.iter().position(|scripted| scripted.left > 0 && scripted.turn.when.fits(body, text));
    let headers = incoming.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
    state.exchanges.push(Exchange { path: incoming.path.clone(), headers, body: body.clone(), turn, delivery: Delivery::Open });
    state.violations.extend(pairing::chat(body).into_iter().map(|detail| Violation::Pairing { request: number, detail }));
    let Some(scripted) = turn.and_then(|at| state.script.get_mut(at)) else {
        state.violations.push(Violation::Unscripted { request: number });
        return (number, None);
    };
    scripted.used = true;
    if scripted.left != u32::MAX {
        scripted.left -= 1;
    }
    (number, Some(scripted.turn.clone()))
}

#[cfg(test)]
mod tests;
