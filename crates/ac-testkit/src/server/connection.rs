//! One connection: requests in, bytes out, with the network's bad manners on demand.

use std::{io, time::Duration};

use serde_json::Value;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use super::framing::{Framer, Framing};

/// Larger heads are no request of a model client.
const MAX_HEAD: usize = 64 * 1024;
/// Written in one go.
const WRITE_AT: usize = 64 * 1024;

/// A request as it arrived.
pub(crate) struct Incoming {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct Connection {
    stream: TcpStream,
    /// Read, not yet understood.
    input: Vec<u8>,
    /// Made, not yet written.
    output: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, input: Vec::new(), output: Vec::new() }
    }

    /// The next request; `None` when the client closed.
    pub(crate) async fn request(&mut self) -> io::Result<Option<Incoming>> {
        loop {
            if let Some((mut incoming, head)) = parse_head(&self.input)? {
                self.input.drain(..head);
                let find =
                    |name: &str| incoming.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str());
                let chunked = find("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
                let length = find("content-length").and_then(|value| value.trim().parse::<usize>().ok()).unwrap_or(0);
                let expects = find("expect").is_some();
                if expects {
                    self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
                }
                incoming.body = if chunked { self.chunked_body().await? } else { self.take(length).await? };
                return Ok(Some(incoming));
            }
            if self.input.len() > MAX_HEAD {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the head of the request is too long"));
            }
            if self.read().await? == 0 {
                return Ok(None);
            }
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.input.len() < length {
            if self.read().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.input.drain(..length).collect())
    }

    async fn chunked_body(&mut self) -> io::Result<Vec<u8>> {
        let bad = || io::Error::new(io::ErrorKind::InvalidData, "not a chunk size");
        let mut body = Vec::new();
        loop {
            match httparse::parse_chunk_size(&self.input).map_err(|_| bad())? {
                httparse::Status::Complete((line, size)) => {
                    self.input.drain(..line);
                    let size = usize::try_from(size).map_err(|_| bad())?;
                    body.extend(self.take(size).await?);
                    self.take(2).await?;
                    if size == 0 {
                        return Ok(body);
                    }
                }
                httparse::Status::Partial if self.read().await? == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                httparse::Status::Partial => {}
            }
        }
    }

    async fn read(&mut self) -> io::Result<usize> {
        loop {
            self.stream.readable().await?;
            let mut piece = [0; 16 * 1024];
            match self.stream.try_read(&mut piece) {
                Ok(n) => {
                    self.input.extend(piece.iter().take(n));
                    return Ok(n);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Answers with a whole JSON body.
    pub(crate) async fn json(&mut self, status: u16, headers: &[(&str, &str)], body: &Value) -> io::Result<()> {
        let body = body.to_string();
        self.head(status, "application/json", headers);
        self.output.extend(format!("content-length: {}\r\n\r\n{body}", body.len()).into_bytes());
        self.flush().await
    }

    /// Answers with a file.
    #[cfg(feature = "platforms")]
    pub(crate) async fn bytes(&mut self, status: u16, headers: &[(&str, &str)], body: &[u8]) -> io::Result<()> {
        self.head(status, "application/octet-stream", headers);
        self.output.extend(format!("content-length: {}\r\n\r\n", body.len()).into_bytes());
        self.output.extend(body);
        self.flush().await
    }

    /// Begins an answer that arrives in chunks.
    pub(super) fn begin(&mut self, content_type: &str) {
        self.head(200, content_type, &[("cache-control", "no-cache")]);
        self.output.extend(b"transfer-encoding: chunked\r\n\r\n");
    }

    fn head(&mut self, status: u16, content_type: &str, headers: &[(&str, &str)]) {
        self.output.extend(format!("HTTP/1.1 {status} Scripted\r\ncontent-type: {content_type}\r\n").into_bytes());
        for (name, value) in headers {
            self.output.extend(format!("{name}: {value}\r\n").into_bytes());
        }
    }

    /// Sends bytes of the body, framed.
    pub(super) async fn write(&mut self, framer: &mut Framer, bytes: &[u8]) -> io::Result<()> {
        framer.push(bytes, &mut self.output);
        if self.output.len() >= WRITE_AT || framer.framing() != Framing::Event {
            self.flush().await?;
        }
        Ok(())
    }

    /// Sends what is held back.
    pub(super) async fn settle(&mut self, framer: &mut Framer) -> io::Result<()> {
        framer.finish(&mut self.output);
        self.flush().await
    }

    /// Ends a body that arrived in chunks.
    pub(super) async fn end(&mut self, framer: &mut Framer) -> io::Result<()> {
        framer.finish(&mut self.output);
        self.output.extend(b"0\r\n\r\n");
        self.flush().await
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.output).await?;
        self.output.clear();
        Ok(())
    }

    /// Waits; ends early with an error when the client leaves.
    pub(super) async fn pause(&mut self, pause: Duration) -> io::Result<()> {
        tokio::select! {
            () = tokio::time::sleep(pause) => Ok(()),
            error = self.left() => Err(error),
        }
    }

    /// Waits until the client leaves.
    pub(super) async fn left(&mut self) -> io::Error {
        loop {
            match self.read().await {
                Ok(0) => return io::ErrorKind::ConnectionAborted.into(),
                Ok(_) => {}
                Err(error) => return error,
            }
        }
    }

    /// Closes with a TCP reset.
    pub(super) fn reset(self) -> io::Result<()> {
        self.stream.set_zero_linger()
    }
}

fn parse_head(input: &[u8]) -> io::Result<Option<(Incoming, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 128];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(input) {
        Ok(httparse::Status::Partial) => Ok(None),
        Ok(httparse::Status::Complete(head)) => {
            let headers =
                request.headers.iter().map(|header| (header.name.to_owned(), String::from_utf8_lossy(header.value).into_owned())).collect();
            let owned = |text: Option<&str>| text.unwrap_or_default().to_owned();
            Ok(Some((Incoming { method: owned(request.method), path: owned(request.path), headers, body: Vec::new() }, head)))
        }
        Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, error)),
    }
}
