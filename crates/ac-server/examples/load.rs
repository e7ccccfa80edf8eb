//! Measures the server under load: many streams on many sessions, some of which never read.
//!
//! `load [CLIENTS] [SESSIONS] [ASLEEP] [DELTAS_PER_SECOND] [REPLIES]`, by default 1000 200 50 10 3. The server runs in a process of its own,
//! started by this one, with a model inside it that says 100 pieces a reply at that rate, each with the time at which it was said. The
//! clients are raw sockets in this process. Reports what was lost, how long a piece took from the model to a client, and what the server
//! used. Linux only: it reads `/proc`.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use ac_controller::{AgentController, LocalBus, Mode};
use ac_core::{CancelToken, FinishReason, ModelError, ModelEvent, ModelId, ModelProvider, ModelRequest, ModelStream, model::Finish};
use ac_server::{Limits, Served, Server};
use ac_storage::sled_kv::SledStorage;
use async_trait::async_trait;
use futures::StreamExt as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Barrier,
};

/// Pieces of a reply.
const PIECES: u64 = 100;

fn micros() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()).unwrap()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|word| word == "serve") {
        let rate = args[1].parse().unwrap();
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(serve(rate));
        return;
    }
    let number = |at: usize, default: usize| args.get(at).map_or(default, |text| text.parse().expect("a number"));
    let plan =
        Plan { clients: number(0, 1000), sessions: number(1, 200), asleep: number(2, 50), rate: number(3, 10), replies: number(4, 3) };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(measure(plan));
}

/// Says 100 pieces at a pace, each with its time.
struct Paced {
    every: Duration,
}

#[async_trait]
impl ModelProvider for Paced {
    async fn stream(&self, _: ModelRequest, _: CancelToken) -> Result<ModelStream, ModelError> {
        let mut ticks = tokio::time::interval(self.every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
        let pieces = futures::stream::unfold((ticks, 0), |(mut ticks, n)| async move {
            if n == PIECES {
                return None;
            }
            ticks.tick().await;
            Some((Ok(ModelEvent::TextDelta { index: 0, text: format!("@{} ", micros()) }), (ticks, n + 1)))
        });
        let end = futures::stream::once(async { Ok(ModelEvent::Finish(Finish::new(FinishReason::Stop))) });
        Ok(pieces.chain(end).boxed())
    }
}

async fn serve(rate: u64) {
    let folder = tempfile::tempdir().unwrap();
    let storage = Arc::new(SledStorage::open(folder.path().join("db")).await.unwrap());
    let model: Arc<dyn ModelProvider> = Arc::new(Paced { every: Duration::from_micros(1_000_000 / rate) });
    let controller = AgentController::builder()
        .id("load")
        .storage(storage)
        .event_bus(Arc::new(LocalBus::new(1024)))
        .mode(Mode::new("build").model("paced/model"))
        .models(move |_: &ModelId| Ok::<_, ModelError>(model.clone()))
        .build()
        .unwrap();
    let mut limits = Limits::default();
    (limits.rate, limits.streams, limits.connections) = (None, usize::MAX, 16_384);
    let server = Server::builder().controller(Served::new("load", controller)).limits(limits).build().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    server.serve(listener, std::future::pending()).await.unwrap();
}

#[derive(Clone, Copy)]
struct Plan {
    clients: usize,
    sessions: usize,
    asleep: usize,
    rate: usize,
    replies: usize,
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What one reading client saw.
struct Seen {
    pieces: usize,
    views: usize,
    bytes: usize,
    took: Vec<u32>,
}

async fn measure(plan: Plan) {
    let own = std::env::current_exe().unwrap();
    let mut server = Command::new(own).args(["serve", &plan.rate.to_string()]).stdout(Stdio::piped()).spawn().map(Running).unwrap();
    let pid = server.0.id();
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address: SocketAddr = line.trim().parse().unwrap();
    for session in 0..plan.sessions {
        post(address, "/api/agent-controller/load/sessions", &format!("{{\"resourceId\":\"r{session}\"}}")).await;
    }
    let barrier = Arc::new(Barrier::new(plan.clients - plan.asleep + 1));
    let done = Arc::new(AtomicUsize::new(0));
    let mut asleep = vec![];
    let mut readers = vec![];
    for client in 0..plan.clients {
        let session = client % plan.sessions;
        let mut socket = TcpStream::connect(address).await.unwrap();
        let head = format!("GET /api/agent-controller/load/sessions/r{session}/stream HTTP/1.1\r\nhost: {address}\r\n\r\n");
        socket.write_all(head.as_bytes()).await.unwrap();
        if client < plan.asleep {
            asleep.push(socket);
        } else {
            readers.push(tokio::spawn(read(socket, plan.replies, barrier.clone(), done.clone())));
        }
    }
    barrier.wait().await;
    let (cpu_before, begun) = (cpu(pid), Instant::now());
    for reply in 1..=plan.replies {
        let posts = (0..plan.sessions).map(|session| async move {
            post(address, &format!("/api/agent-controller/load/sessions/r{session}/messages"), "{\"message\":\"go\"}").await;
        });
        futures::future::join_all(posts).await;
        while done.load(Ordering::Relaxed) < reply * readers.len() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert!(begun.elapsed() < Duration::from_secs(600), "the replies do not end");
        }
    }
    let (spent, took) = (cpu(pid) - cpu_before, begun.elapsed());
    let (now, peak) = (memory(pid, "VmRSS"), memory(pid, "VmHWM"));
    let mut latencies = vec![];
    let (mut lost, mut views, mut bytes) = (0, 0, 0);
    for reader in readers {
        let seen: Seen = reader.await.unwrap();
        lost += plan.replies * usize::try_from(PIECES).unwrap() - seen.pieces;
        (views, bytes) = (views + seen.views, bytes + seen.bytes);
        latencies.extend(seen.took);
    }
    latencies.sort_unstable();
    let at = |part: f64| f64::from(latencies[((latencies.len() - 1) as f64 * part) as usize]) / 1000.0;
    let seconds = took.as_secs_f64();
    println!("{} clients, {} of them asleep, {} sessions, {} deltas/s each", plan.clients, plan.asleep, plan.sessions, plan.rate);
    println!("lost            {lost}");
    println!(
        "delta frames    {} ({:.0}/s), views {views}, {:.1} MB/s",
        latencies.len(),
        latencies.len() as f64 / seconds,
        bytes as f64 / seconds / 1e6
    );
    println!("model to client p50 {:.1} ms, p90 {:.1} ms, p99 {:.1} ms, max {:.1} ms", at(0.5), at(0.9), at(0.99), at(1.0));
    println!("server          {:.0} % of two cores, {now} MB, at most {peak} MB", spent / seconds / 2.0 * 100.0);
    drop(asleep);
}

async fn read(mut socket: TcpStream, replies: usize, barrier: Arc<Barrier>, done: Arc<AtomicUsize>) -> Seen {
    const PIECE: &[u8] = b"\"delta\":\"@";
    const END: &[u8] = b"\"type\":\"agent_end\"";
    const VIEW: &[u8] = b"\"type\":\"display_state_changed\"";
    let mut seen = Seen { pieces: 0, views: 0, bytes: 0, took: vec![] };
    let mut buffer = Vec::with_capacity(1 << 16);
    let (mut ready, mut ends) = (false, 0);
    while ends < replies {
        let before = buffer.len();
        let read = socket.read_buf(&mut buffer).await.unwrap();
        assert!(read > 0, "the server closed a stream");
        let now = micros();
        seen.bytes += buffer.len() - before;
        if !ready && find(&buffer, b": connected").is_some() {
            ready = true;
            barrier.wait().await;
        }
        // Whole frames only.
        let Some(whole) = buffer.windows(2).rposition(|pair| pair == b"\n\n") else { continue };
        for frame in split(&buffer[..whole + 2]) {
            if let Some(at) = find(frame, PIECE) {
                let digits = &frame[at + PIECE.len()..];
                let said =
                    digits.iter().take_while(|byte| byte.is_ascii_digit()).fold(0, |number, byte| number * 10 + u64::from(byte - b'0'));
                seen.pieces += 1;
                seen.took.push(u32::try_from(now.saturating_sub(said)).unwrap_or(u32::MAX));
            } else if find(frame, END).is_some() {
                ends += 1;
                done.fetch_add(1, Ordering::Relaxed);
            } else if find(frame, VIEW).is_some() {
                seen.views += 1;
            }
        }
        buffer.drain(..whole + 2);
    }
    seen
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    let first = *part.first()?;
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|byte| *byte == first) {
        if text[from + at..].starts_with(part) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

fn split(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.windows(2).position(|pair| pair == b"\n\n")?;
        let (frame, after) = rest.split_at(end + 2);
        rest = after;
        Some(frame)
    })
}

async fn post(address: SocketAddr, path: &str, body: &str) {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Seconds of processor time that a process used.
fn cpu(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    ticks as f64 / 100.0
}

/// Megabytes.
fn memory(pid: u32, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}
