//! The scripted model: a small HTTP server that speaks Chat Completions and costs its client nothing but the wire.
//!
//! What it answers is said by the model's name, so that one server does for every row and keeps no state.

use std::fmt::Write as _;

use serde::Deserialize;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{gauge, trouble::Trouble};

/// Serves until its standard input ends, which is when its parent is gone. Prints its address first.
pub(crate) fn serve() -> Result<(), Trouble> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}/v1", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            // Whoever hangs up is no fault of the server.
            tokio::spawn(async move { drop(connection(stream).await) });
        }
    })
}

#[derive(Deserialize)]
struct Request<'a> {
    model: &'a str,
    #[serde(borrow)]
    messages: Vec<Turn<'a>>,
}

#[derive(Deserialize)]
struct Turn<'a> {
    role: &'a str,
}

async fn connection(mut stream: TcpStream) -> Result<(), Trouble> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![];
    loop {
        let Some((from, to)) = read(&mut stream, &mut buffer).await? else { return Ok(()) };
        let body = buffer.get(from..to).unwrap_or_default();
        let request: Request<'_> = serde_json::from_slice(body)?;
        let last = request.messages.last().map_or("", |turn| turn.role);
        let reply = reply(request.model.rsplit('/').next().unwrap_or_default(), last);
        stream.write_all(reply.as_bytes()).await?;
        buffer.drain(..to);
    }
}

/// Reads until one whole request is in the buffer; tells where its body is.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<Option<(usize, usize)>, Trouble> {
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut head = httparse::Request::new(&mut headers);
        if let httparse::Status::Complete(from) = head.parse(buffer)? {
            let length = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
            let length: usize = length.map_or(Ok(0), |header| String::from_utf8_lossy(header.value).parse())?;
            if buffer.len() >= from + length {
                return Ok(Some((from, from + length)));
            }
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

/// A whole response, one transfer chunk for each event, as real servers send them.
fn reply(model: &str, last: &str) -> String {
    let mut out = String::from("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n");
    let mut finish = "stop";
    match (model, last) {
        ("tool", "user") => {
            call(&mut out, "note", r#"{\"text\":\"one line\"}"#);
            finish = "tool_calls";
        }
        ("ask", "user") => {
            call(&mut out, "ask_user", r#"{\"question\":\"Which port?\"}"#);
            finish = "tool_calls";
        }
        // When the first byte is written, for who wants to know how long it takes to the other end.
        ("clock", _) => text(&mut out, &gauge::monotonic().to_string()),
        (name, _) => {
            let pieces = name.strip_prefix("deltas-").and_then(|count| count.parse().ok()).unwrap_or(3);
            for _ in 0..pieces {
                text(&mut out, "some words ");
            }
        }
    }
    event(
        &mut out,
        &format!(
            r#"{{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{{"index":0,"delta":{{}},"finish_reason":"{finish}"}}]}}"#
        ),
    );
    let usage = r#"{"id":"c","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":10,"total_tokens":30}}"#;
    event(&mut out, usage);
    event(&mut out, "[DONE]");
    out.push_str("0\r\n\r\n");
    out
}

fn text(out: &mut String, content: &str) {
    event(
        out,
        &format!(
            r#"{{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{{"index":0,"delta":{{"content":"{content}"}},"finish_reason":null}}]}}"#
        ),
    );
}

fn call(out: &mut String, tool: &str, arguments: &str) {
    event(
        out,
        &format!(
            r#"{{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"id":"call_1","type":"function","function":{{"name":"{tool}","arguments":"{arguments}"}}}}]}},"finish_reason":null}}]}}"#
        ),
    );
}

fn event(out: &mut String, data: &str) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{:x}\r\ndata: {data}\n\n\r\n", data.len() + "data: \n\n".len());
}
