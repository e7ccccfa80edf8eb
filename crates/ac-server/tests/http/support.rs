//! A server on a loopback port, and a client that sends exactly the bytes it is told.

#[path = "../../examples/fixture/controller.rs"]
pub(crate) mod controller;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use ac_server::{Auth, Limits, Server, TokenFile, new_token};
use ac_storage::{MemoryStorage, Storage};
use ac_testkit::{ScriptedServer, Turn};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A server, the model behind it, and its store.
pub(crate) struct Harness {
    pub(crate) address: SocketAddr,
    pub(crate) model: ScriptedServer,
    pub(crate) storage: Arc<MemoryStorage>,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
    tokens: Option<tempfile::TempDir>,
}

impl Harness {
    pub(crate) async fn start(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self::with(turns, Limits::default(), &[]).await
    }

    /// With tokens: `NAME [RIGHTS]`; the token of a name is [`token`].
    pub(crate) async fn with(turns: impl IntoIterator<Item = Turn>, limits: Limits, people: &[&str]) -> Self {
        Self::on(Arc::new(MemoryStorage::default()), turns, limits, people).await
    }

    pub(crate) async fn on(
        storage: Arc<MemoryStorage>,
        turns: impl IntoIterator<Item = Turn>,
        mut limits: Limits,
        people: &[&str],
    ) -> Self {
        let model = ScriptedServer::start(turns);
        let setup = controller::Setup { base_url: model.base_url(), model: "fake/fake-a".into(), controller: "code".into() };
        let served = setup.served(storage.clone() as Arc<dyn Storage>).unwrap();
        served.controller().init().await.unwrap();
        limits.rate = limits.rate.filter(|rate| *rate < 100);
        // A platform that sends back what it got.
        let mut builder = Server::builder().controller(served).limits(limits).webhooks(|controller, platform, request| async move {
            let (parts, body) = request.into_parts();
            let mut reply = http::Response::new(body);
            reply.headers_mut().insert("x-for", format!("{controller} {platform}").parse().unwrap());
            reply
                .headers_mut()
                .extend(parts.headers.get("x-signature").map(|value| (http::HeaderName::from_static("x-signature"), value.clone())));
            reply
        });
        let mut tokens = None;
        if !people.is_empty() {
            let folder = tempfile::tempdir().unwrap();
            let lines: Vec<_> = people
                .iter()
                .map(|person| {
                    let mut words = person.split(' ');
                    let name = words.next().unwrap();
                    let rights: Vec<_> = words.collect();
                    new_token(name, &rights, &secret(name)).unwrap().1
                })
                .collect();
            std::fs::write(folder.path().join("tokens"), lines.join("\n")).unwrap();
            builder = builder.auth(Auth::Tokens(Arc::new(TokenFile::open(folder.path().join("tokens")).unwrap())));
            tokens = Some(folder);
        }
        let server = builder.build().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(async move {
            server.serve(listener, async { drop(stopped.await) }).await.unwrap();
        });
        Self { address, model, storage, stop: Some(stop), serving: Some(serving), tokens }
    }

    /// Takes all tokens away.
    pub(crate) fn revoke(&self) {
        std::fs::write(self.tokens.as_ref().unwrap().path().join("tokens"), "# nobody\n").unwrap();
    }

    /// Sends one request and reads the whole answer.
    pub(crate) async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut text = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            text += &format!("content-length: {}\r\n", body.len());
        }
        text += "\r\n";
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(body);
        self.raw(&bytes).await
    }

    /// Sends these bytes and reads until the server closes.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> Answer {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        // The server may refuse before it has read everything.
        let _ = socket.write_all(bytes).await;
        let mut all = vec![];
        let _ = tokio::time::timeout(PATIENCE, socket.read_to_end(&mut all)).await;
        Answer::parse(&all)
    }

    /// JSON in, JSON out.
    pub(crate) async fn json(&self, method: &str, path: &str, body: Value) -> Answer {
        let path = format!("/api/agent-controller{path}");
        if body.is_null() {
            self.send(method, &path, &[], b"").await
        } else {
            self.send(method, &path, &[("content-type", "application/json")], body.to_string().as_bytes()).await
        }
    }

    /// As somebody.
    pub(crate) async fn as_person(&self, name: &str, method: &str, path: &str, body: Value) -> Answer {
        let bearer = format!("Bearer {}", token(name));
        let path = format!("/api/agent-controller{path}");
        let mut headers = vec![("authorization", bearer.as_str())];
        if !body.is_null() {
            headers.push(("content-type", "application/json"));
        }
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send(method, &path, &headers, body.as_bytes()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.json("GET", path, Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.json("POST", path, body).await
    }

    /// Makes a session and tells its thread.
    pub(crate) async fn create(&self, resource: &str) -> String {
        let made = self.post("/code/sessions", json!({ "resourceId": resource })).await;
        assert_eq!(made.status, 200, "{made:?}");
        made.json()["threadId"].as_str().unwrap().to_owned()
    }

    /// Opens a stream.
    pub(crate) async fn listen(&self, path: &str, headers: &[(&str, &str)]) -> Events {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        let mut text = format!("GET /api/agent-controller{path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        socket.write_all(format!("{text}\r\n").as_bytes()).await.unwrap();
        let mut events = Events { socket, raw: vec![], text: String::new(), over: false, head: String::new() };
        events.read_head().await;
        events
    }

    /// Stops the server and waits for it.
    pub(crate) async fn stop(&mut self) {
        self.stop.take();
        if let Some(serving) = self.serving.take() {
            serving.await.unwrap();
        }
        self.tokens.take();
    }

    /// Waits until the session of a resource rests.
    pub(crate) async fn rested(&self, resource: &str) {
        for _ in 0..500 {
            let state = self.get(&format!("/code/sessions/{resource}")).await.json();
            let runs = self.get("/code/active-runs").await.json();
            let active = runs["runs"].as_array().unwrap().iter().any(|run| run["resourceId"] == resource);
            if state["running"] == false && !active {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the session does not come to rest");
    }
}

/// The token of a person of a harness.
pub(crate) fn token(name: &str) -> String {
    new_token(name, &[], &secret(name)).unwrap().0
}

fn secret(name: &str) -> Vec<u8> {
    name.bytes().cycle().take(32).collect()
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let body = bytes.get(end + 4..).unwrap_or_default();
        let body = if head.contains("transfer-encoding: chunked") { dechunk(&mut body.to_vec()).0 } else { body.to_vec() };
        Self { status, head, body }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {} {}", self.status, String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")))
    }
}

/// Takes whole chunks off the front. The second says whether the last chunk was among them: the body is over then, though the connection
/// may stay open.
fn dechunk(raw: &mut Vec<u8>) -> (Vec<u8>, bool) {
    let mut out = vec![];
    loop {
        let Some(line) = raw.windows(2).position(|window| window == b"\r\n") else { return (out, false) };
        let size = usize::from_str_radix(std::str::from_utf8(&raw[..line]).unwrap().trim(), 16).unwrap();
        if raw.len() < line + 2 + size + 2 {
            return (out, false);
        }
        out.extend_from_slice(&raw[line + 2..line + 2 + size]);
        raw.drain(..line + 2 + size + 2);
        if size == 0 {
            return (out, true);
        }
    }
}

/// An open stream.
pub(crate) struct Events {
    socket: TcpStream,
    raw: Vec<u8>,
    text: String,
    /// The body came to its end.
    over: bool,
    pub(crate) head: String,
}

impl Events {
    async fn more(&mut self) -> bool {
        let mut piece = [0; 8192];
        let read = tokio::time::timeout(PATIENCE, self.socket.read(&mut piece)).await.expect("something on the stream");
        let read = read.unwrap_or(0);
        self.raw.extend_from_slice(&piece[..read]);
        read > 0
    }

    async fn read_head(&mut self) {
        while !self.raw.windows(4).any(|window| window == b"\r\n\r\n") {
            assert!(self.more().await, "the stream was closed before its head");
        }
        let end = self.raw.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        self.head = String::from_utf8_lossy(&self.raw[..end]).to_ascii_lowercase();
        self.raw.drain(..end + 4);
    }

    /// The next frame, as it is; `None` at the end.
    pub(crate) async fn frame(&mut self) -> Option<String> {
        loop {
            let (piece, over) = dechunk(&mut self.raw);
            self.text += std::str::from_utf8(&piece).unwrap();
            self.over |= over;
            if let Some(end) = self.text.find("\n\n") {
                let frame = self.text[..end].to_owned();
                self.text.drain(..end + 2);
                return Some(frame);
            }
            if self.over || !self.more().await {
                return None;
            }
        }
    }

    /// The next event with its id; comments are left out.
    pub(crate) async fn event(&mut self) -> Option<(String, Value)> {
        loop {
            let frame = self.frame().await?;
            let mut lines = frame.lines();
            let first = lines.next().unwrap_or_default();
            let Some(id) = first.strip_prefix("id: ") else {
                assert!(first.starts_with(':'), "{frame}");
                continue;
            };
            let data = lines.next().and_then(|line| line.strip_prefix("data: ")).unwrap();
            assert_eq!(lines.next(), None, "{frame}");
            return Some((id.to_owned(), serde_json::from_str(data).unwrap()));
        }
    }

    /// Events up to and with the first of a type, views left out.
    pub(crate) async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut out = vec![];
        while let Some((_, event)) = self.event().await {
            let done = event["type"] == kind;
            if done || event["type"] != "display_state_changed" {
                out.push(event);
            }
            if done {
                return out;
            }
        }
        panic!("the stream ended before {kind}: {out:?}");
    }

    /// The names of events up to and with the first of a type, views left out.
    pub(crate) async fn names_until(&mut self, kind: &str) -> Vec<String> {
        self.until(kind).await.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }
}
