//! Chat platforms that can be had on one's own machine: Slack, Telegram and Discord as their documentation describes them.
//!
//! One real HTTP server carries the three APIs, with their limits, their errors, their ways of saying "too fast"; [`sign`] makes the
//! requests that the platforms would send to a webhook, with genuine signatures. What a person would see is in [`Platforms::shown`].

mod discord;
mod files;
pub mod sign;
mod slack;
mod telegram;
mod webhook;

use std::{
    collections::HashMap,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use ac_core::CancelToken;
use serde_json::Value;

use crate::server::connection::{Connection, Incoming};

/// The three platforms. They stop when this is dropped.
#[derive(Debug)]
pub struct Platforms {
    address: SocketAddr,
    shared: Arc<Mutex<State>>,
    stop: CancelToken,
    thread: Option<thread::JoinHandle<()>>,
}

/// A message as people see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// `slack`, `telegram`, `discord` or `webhook`.
    pub platform: &'static str,
    /// The channel.
    pub channel: String,
    /// The thread in it, where there is one.
    pub thread: Option<String>,
    /// The platform's name of the message.
    pub id: String,
    /// What it says now.
    pub text: String,
    /// Label and value of what can be pressed or chosen.
    pub buttons: Vec<(String, String)>,
    /// What it said before, oldest first.
    pub history: Vec<String>,
    /// Name and bytes of the file, where it is one.
    pub file: Option<(String, Vec<u8>)>,
    /// What the sender calls it.
    pub(crate) mark: Option<String>,
}

/// A word to one person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The platform.
    pub platform: &'static str,
    /// Whom: a person where the platform names one, else what the answer belongs to.
    pub to: String,
    /// What.
    pub text: String,
}

/// A request that reached a platform.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    /// The platform.
    pub platform: &'static str,
    /// The method or path.
    pub method: String,
    /// Its body.
    pub body: Value,
    /// The status that it was answered with.
    pub status: u16,
    /// When.
    pub at: Instant,
}

/// How a platform behaves.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Manners {
    /// Every so many-th request that posts or edits is refused as too fast; 0 is never.
    pub too_fast_every: u64,
    /// Edits from this one on (counted from 1) are refused as too fast; 0 is never.
    pub edits_too_fast_from: u64,
    /// The pause that is asked for then.
    pub pause: Duration,
    /// Edits fail because the message is gone.
    pub edits_gone: bool,
    /// Messages with something to be pressed are refused as they are.
    pub no_buttons: bool,
    /// The pause before each answer.
    pub slow: Duration,
    /// What earlier messages there are, for platforms that tell.
    pub earlier: Vec<(String, String)>,
    /// What people said in a thread of Slack's after its beginning: who, what, and the time stamp.
    pub later: Vec<(String, String, String)>,
    /// The answers to requests that post or change something are lost after they were carried out; so many of them.
    pub answers_lost: u64,
    /// The answers to requests that bring a file into a conversation are lost after they were carried out; so many of them.
    pub file_answers_lost: u64,
    /// Requests that post or change something fail before they are carried out; so many of them.
    pub failing: u64,
    /// The credentials are not accepted.
    pub denied: bool,
    /// They are, but not for posting files.
    pub files_denied: bool,
    /// Telegram makes no text into a file.
    pub no_media_edits: bool,
    /// Files that people sent: what each platform calls it, and what is in it.
    pub files: Vec<(String, Vec<u8>)>,
}

#[derive(Debug, Default)]
struct State {
    /// Where all of this is, as clients are told.
    origin: String,
    /// Files on their way: name, length and bytes.
    uploads: HashMap<String, (String, usize, Vec<u8>)>,
    manners: Manners,
    shown: Vec<Shown>,
    notices: Vec<Notice>,
    called: Vec<Called>,
    writes: u64,
    edits: u64,
    next: u64,
    too_fast_until: HashMap<&'static str, Instant>,
}

/// An answer of a platform.
struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Value,
    /// A file, instead of JSON.
    file: Option<Vec<u8>>,
    /// It does not arrive.
    lost: bool,
}

impl Reply {
    fn new(status: u16, body: Value) -> Self {
        Self { status, headers: vec![], body, file: None, lost: false }
    }
}

/// How a platform takes a request that posts or edits.
enum Taken {
    Yes,
    /// It has an accident.
    Fails,
    /// Too fast, with the seconds to wait.
    Pause(f64),
    Gone,
}

impl State {
    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// An id as Discord makes them: they grow with time.
    fn snowflake(&mut self) -> u64 {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let since = u64::try_from(now).unwrap_or(0).saturating_sub(1_420_070_400_000);
        (since << 22) | (self.fresh() & 0x3f_ffff)
    }

    /// Whether a write is taken. Who does not wait as long as asked is told again.
    fn take(&mut self, platform: &'static str, edit: bool) -> Taken {
        self.writes += 1;
        if self.manners.failing > 0 {
            self.manners.failing -= 1;
            return Taken::Fails;
        }
        self.edits += u64::from(edit);
        let left = self.too_fast_until.get(platform).map(|until| until.saturating_duration_since(Instant::now()));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            return Taken::Pause(left.as_secs_f64().max(0.01));
        }
        let manners = &self.manners;
        let every = manners.too_fast_every > 0 && self.writes.is_multiple_of(manners.too_fast_every);
        let from = edit && manners.edits_too_fast_from > 0 && self.edits >= manners.edits_too_fast_from;
        if every || from {
            let pause = manners.pause;
            if every {
                self.too_fast_until.insert(platform, Instant::now() + pause);
            }
            return Taken::Pause(pause.as_secs_f64().max(0.01));
        }
        if edit && self.manners.edits_gone {
            return Taken::Gone;
        }
        Taken::Yes
    }

    fn find(&mut self, platform: &'static str, channel: &str, id: &str) -> Option<&mut Shown> {
        self.shown.iter_mut().find(|shown| shown.platform == platform && shown.channel == channel && shown.id == id)
    }
}

impl Platforms {
    /// Starts the three, on a loopback port.
    ///
    /// # Errors
    /// When no port can be had.
    pub fn start() -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let state = State { origin: format!("http://{address}"), ..State::default() };
        let (shared, stop) = (Arc::new(Mutex::new(state)), CancelToken::new());
        let (state, token) = (shared.clone(), stop.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new().name("platforms".into()).spawn(move || {
            runtime.block_on(async move {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                loop {
                    let stream = tokio::select! {
                        () = token.cancelled() => return,
                        accepted = listener.accept() => match accepted {
                            Ok((stream, _)) => stream,
                            Err(_) => continue,
                        },
                    };
                    let state = state.clone();
                    tokio::spawn(async move {
                        // A client that goes away is no failure.
                        let _ = serve(Connection::new(stream), &state).await;
                    });
                }
            });
        })?;
        Ok(Self { address, shared, stop, thread: Some(thread) })
    }

    /// Where a file that a person sent is, for platforms that name an address.
    pub fn file_url(&self, platform: &str, file: &str) -> String {
        format!("http://{}/{platform}-files/{file}", self.address)
    }

    /// Where an adapter of this platform finds its API.
    pub fn base_url(&self, platform: &str) -> String {
        match platform {
            "slack" => format!("http://{}/slack/api", self.address),
            other => format!("http://{}/{other}", self.address),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes how the platforms behave.
    pub fn behave(&self, change: impl FnOnce(&mut Manners)) {
        let mut state = self.state();
        state.too_fast_until.clear();
        change(&mut state.manners);
    }

    /// What people see, oldest first.
    pub fn shown(&self) -> Vec<Shown> {
        self.state().shown.clone()
    }

    /// What people see in one channel, oldest first.
    pub fn shown_in(&self, channel: &str) -> Vec<Shown> {
        self.state().shown.iter().filter(|shown| shown.channel == channel).cloned().collect()
    }

    /// Words to single persons.
    pub fn notices(&self) -> Vec<Notice> {
        self.state().notices.clone()
    }

    /// All requests.
    pub fn called(&self) -> Vec<Called> {
        self.state().called.clone()
    }

    /// When the last request came.
    pub fn last_called(&self) -> Option<Instant> {
        self.state().called.last().map(|called| called.at)
    }

    /// Waits until something is to be seen; answers what `find` found.
    pub async fn until<T>(&self, within: Duration, find: impl Fn(&[Shown]) -> Option<T>) -> Option<T> {
        let begun = tokio::time::Instant::now();
        loop {
            if let Some(found) = find(&self.state().shown) {
                return Some(found);
            }
            if begun.elapsed() > within {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Platforms {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(mut connection: Connection, state: &Mutex<State>) -> io::Result<()> {
    while let Some(request) = connection.request().await? {
        let slow = state.lock().unwrap_or_else(PoisonError::into_inner).manners.slow;
        if !slow.is_zero() {
            tokio::time::sleep(slow).await;
        }
        let reply = answer(&request, &mut state.lock().unwrap_or_else(PoisonError::into_inner));
        if reply.lost {
            // It was done, and nobody hears of it.
            return Ok(());
        }
        let headers: Vec<(&str, &str)> = reply.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        match &reply.file {
            Some(bytes) => connection.bytes(reply.status, &headers, bytes).await?,
            None => connection.json(reply.status, &headers, &reply.body).await?,
        }
    }
    Ok(())
}

fn answer(request: &Incoming, state: &mut State) -> Reply {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let auth = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("authorization")).map_or("", |(_, value)| value.as_str());
    let files_of = |state: &State| state.shown.iter().filter(|shown| shown.file.is_some()).count();
    let (shown, files, edits) = (state.shown.len(), files_of(state), state.edits);
    let (platform, method, mut reply) = if let Some(found) = files::answer(request, path, auth, state) {
        found
    } else if let Some(method) = path.strip_prefix("/slack/api/") {
        ("slack", method.to_owned(), slack::answer(method, query, auth, &body, state))
    } else if let Some(rest) = path.strip_prefix("/telegram/") {
        let (bot, method) = rest.split_once('/').unwrap_or((rest, ""));
        ("telegram", method.to_owned(), telegram::answer(bot, method, &body, state))
    } else if let Some(rest) = path.strip_prefix("/discord") {
        ("discord", format!("{} {rest}", request.method), discord::answer(&request.method, rest, query, auth, &body, state))
    } else if path == "/webhook" {
        let id = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("webhook-id")).map_or("", |(_, value)| value.as_str());
        ("webhook", text(&body, "type"), webhook::answer(id, &body, state))
    } else {
        ("", path.to_owned(), Reply::new(404, Value::Null))
    };
    let wrote = state.shown.len() != shown || state.edits != edits;
    if state.manners.answers_lost > 0 && wrote {
        state.manners.answers_lost -= 1;
        reply.lost = true;
    }
    if state.manners.file_answers_lost > 0 && files_of(state) != files {
        state.manners.file_answers_lost -= 1;
        reply.lost = true;
    }
    state.called.push(Called { platform, method, body, status: reply.status, at: Instant::now() });
    reply
}

fn text(body: &Value, name: &str) -> String {
    match body.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn utf16(text: &str) -> usize {
    text.encode_utf16().count()
}
