use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

use super::{Case, body, options::Options};

/// Serves `/case/N/…` on loopback, one request a connection.
pub(super) struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

struct Shared {
    cases: Vec<Case>,
    options: Options,
    failures: Vec<AtomicU32>,
}

/// A request head and body longer than this is none of ours.
const REQUEST_LIMIT: usize = 4 << 20;

impl Server {
    pub(super) async fn start(cases: Vec<Case>, options: Options) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let failures = cases.iter().map(|_| AtomicU32::new(0)).collect();
        let shared = Arc::new(Shared { cases, options, failures });
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let shared = Arc::clone(&shared);
                connections.spawn(async move {
                    // The other side may close whenever it has read enough.
                    let _ = shared.answer(socket).await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, task })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) async fn stop(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

impl Shared {
    async fn answer(&self, mut socket: TcpStream) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let Some(number) = read_request(&mut socket).await? else { return Ok(()) };
        let Some(case) = self.cases.get(number) else {
            return socket.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await;
        };
        if let (Some((times, status, after)), Some(failures)) = (&self.options.fail, self.failures.get(number))
            && failures.fetch_add(1, Ordering::Relaxed) < *times
        {
            let body = r#"{"error":{"message":"injected failure","type":"server_error","code":null}}"#;
            let after = after.as_ref().map_or_else(String::new, |after| format!("retry-after: {after}\r\n"));
            let head =
                format!("HTTP/1.1 {status} Injected\r\ncontent-type: application/json\r\n{after}content-length: {}\r\n\r\n", body.len());
            return socket.write_all(format!("{head}{body}").as_bytes()).await;
        }
        let (body, cut) = body::prepare(case, &self.options);
        let plain = !case.file.ends_with(".sse") && !case.file.ends_with(".ndjson");
        let with_length = self.options.length || plain && matches!(self.options.pieces, super::options::Pieces::Whole);
        tokio::time::sleep(self.options.first_byte).await;
        socket.write_all(self.head(case, with_length.then_some(body.len())).as_bytes()).await?;
        let sent = body.get(..cut.unwrap_or(body.len())).unwrap_or(&body);
        let pieces = body::pieces(sent, self.options.pieces);
        let half = pieces.len() / 2;
        for (at, piece) in pieces.into_iter().filter(|piece| !piece.is_empty()).enumerate() {
            if with_length {
                socket.write_all(piece).await?;
            } else {
                let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
                chunk.extend_from_slice(piece);
                chunk.extend_from_slice(b"\r\n");
                socket.write_all(&chunk).await?;
            }
            if !self.options.delay.is_zero() {
                tokio::time::sleep(self.options.delay).await;
            }
            if at == half {
                tokio::time::sleep(self.options.stall).await;
            }
        }
        if cut.is_some() {
            if self.options.reset {
                socket.set_zero_linger()?;
            }
            return Ok(());
        }
        if !with_length {
            socket.write_all(b"0\r\n\r\n").await?;
        }
        socket.shutdown().await
    }

    fn head(&self, case: &Case, length: Option<usize>) -> String {
        let mut head = format!("HTTP/1.1 {} Recorded\r\nconnection: close\r\n", self.options.status.unwrap_or(case.status));
        let own = ["transfer-encoding", "content-length", "connection", "content-encoding", "date", "keep-alive"];
        for (name, value) in &case.headers {
            let replaced = self.options.content_type.is_some() && name.eq_ignore_ascii_case("content-type");
            if !replaced && !own.iter().any(|own| name.eq_ignore_ascii_case(own)) {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        if let Some(kind) = self.options.content_type.as_deref().filter(|kind| *kind != "none") {
            head.push_str(&format!("content-type: {kind}\r\n"));
        }
        match length {
            Some(length) => head.push_str(&format!("content-length: {length}\r\n\r\n")),
            None => head.push_str("transfer-encoding: chunked\r\n\r\n"),
        }
        head
    }
}

/// Reads a whole request; the number in its path.
async fn read_request(socket: &mut TcpStream) -> io::Result<Option<usize>> {
    let mut bytes = vec![];
    loop {
        let n = socket.read_buf(&mut bytes).await?;
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            if n == 0 || bytes.len() > REQUEST_LIMIT {
                return Ok(None);
            }
            continue;
        };
        let head = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok()).unwrap_or(0);
        if bytes.len() >= end.saturating_add(4).saturating_add(length) || n == 0 {
            return Ok(head.split_once("/case/").and_then(|(_, rest)| rest.split('/').next()?.parse().ok()));
        }
    }
}
