use std::{sync::Arc, time::Duration};

use ac_core::{
    CancelToken, Message, ModelError, ModelErrorKind, ModelEvent, ModelProvider, ModelRequest, Part, Role, ToolDefinition,
    message::{Opaque, ReasoningPart, ToolCallPart, ToolCallState},
    tool::ToolOutput,
};
use futures::StreamExt;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use super::{OpenAiCompatible, Timeouts};
use crate::{HttpProvider, ModelNames, Profile, ReqwestTransport, profile::Api};

/// What the server does with one connection after it read the request.
#[derive(Clone)]
enum Serve {
    /// Writes this and closes.
    Whole(&'static str),
    /// Writes this and keeps the connection open until the other side closes it.
    Hold(&'static str),
}

/// A server of one answer. Reports each request, and `closed` when the other side closed the connection.
async fn serve(serve: Serve) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let (tell, told) = mpsc::channel(8);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let request = read_request(&mut socket).await;
            tell.send(request).await.unwrap();
            match serve {
                Serve::Whole(text) => drop(socket.write_all(text.as_bytes()).await),
                Serve::Hold(text) => {
                    socket.write_all(text.as_bytes()).await.unwrap();
                    let mut rest = [0; 16];
                    while socket.read(&mut rest).await.is_ok_and(|n| n > 0) {}
                    tell.send("closed".into()).await.unwrap();
                }
            }
        }
    });
    (base, told)
}

async fn read_request(socket: &mut TcpStream) -> String {
    let mut bytes = vec![];
    let mut buffer = [0; 4096];
    loop {
        let n = socket.read(&mut buffer).await.unwrap();
        bytes.extend_from_slice(&buffer[..n]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok());
            if n == 0 || body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
    }
}

fn provider(base: &str) -> OpenAiCompatible {
    OpenAiCompatible::new(base, Arc::new(ReqwestTransport::new().unwrap()))
}

fn request() -> ModelRequest {
    ModelRequest::new("local/some/model", vec![Arc::new(Message::user("u1", "hello", Default::default()))])
}

async fn answer(provider: &dyn ModelProvider) -> (Vec<ModelEvent>, Option<ModelError>) {
    let mut events = vec![];
    match provider.stream(request(), CancelToken::new()).await {
        Err(error) => return (events, Some(error)),
        Ok(mut stream) => {
            while let Some(event) = stream.next().await {
                match event {
                    Ok(event) => events.push(event),
                    Err(error) => {
                        assert!(stream.next().await.is_none(), "nothing after an error");
                        return (events, Some(error));
                    }
                }
            }
        }
    }
    (events, None)
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn an_answer_comes_over_a_socket() {
    let body = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let (base, mut told) = serve(Serve::Hold(body)).await;
    let (events, error) = answer(&provider(&base).key(SecretString::from("sk-test"))).await;
    assert!(error.is_none());
    assert!(matches!(events.as_slice(), [ModelEvent::TextDelta { .. }, ModelEvent::PartDone { .. }, ModelEvent::Finish(_)]), "{events:?}");
    let sent = told.recv().await.unwrap();
    assert!(sent.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{sent}");
    assert!(sent.to_lowercase().contains("authorization: bearer sk-test"), "{sent}");
    let body: Value = serde_json::from_str(sent.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(
        body,
        json!({"model": "some/model", "messages": [{"role": "user", "content": "hello"}], "stream": true, "stream_options": {"include_usage": true}})
    );
    assert_eq!(told.recv().await.unwrap(), "closed", "after [DONE] nobody waits for the server to close");
}

/// A body ends a moment after the answer in it does, where the server writes the end on its own.
#[tokio::test]
async fn a_connection_is_used_again_though_its_body_ended_after_the_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        for _ in 0..2 {
            read_request(&mut socket).await;
            let answer =
                "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
            let chunk = format!("{head}{:x}\r\n{answer}\r\n", answer.len());
            socket.write_all(chunk.as_bytes()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
            socket.write_all(b"0\r\n\r\n").await.unwrap();
        }
    });
    let provider = provider(&base);
    for _ in 0..2 {
        let answered = tokio::time::timeout(Duration::from_secs(5), answer(&provider)).await;
        assert!(answered.expect("the second request went over another connection").1.is_none());
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    server.await.unwrap();
}

#[tokio::test]
async fn a_model_id_can_be_sent_whole() {
    let (base, mut told) = serve(Serve::Whole(HEAD)).await;
    answer(&provider(&base).model_names(ModelNames::Whole)).await;
    assert!(told.recv().await.unwrap().contains("\"model\":\"local/some/model\""));
}

#[tokio::test]
async fn errors_before_the_first_event_say_what_to_do() {
    let cases = [
        (
            "HTTP/1.1 401 Unauthorized\r\ncontent-length: 66\r\n\r\n{\"error\":{\"message\":\"bad key sk-secret\",\"code\":\"invalid_api_key\"}}",
            ModelErrorKind::Auth,
            "SOME_API_KEY",
        ),
        (
            "HTTP/1.1 404 Not Found\r\ncontent-length: 49\r\n\r\n{\"error\":{\"message\":\"no model some/model here\"}}\n",
            ModelErrorKind::UnknownModel,
            "some/model",
        ),
        ("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n", ModelErrorKind::Protocol, "302"),
        (
            "HTTP/1.1 503 Busy\r\ncontent-length: 45\r\n\r\n<html><title>503 Busy</title><p>x</p></html>\n",
            ModelErrorKind::Overloaded,
            "a web page (503 Busy)",
        ),
        ("HTTP/1.1 429 No\r\nretry-after: 7\r\ncontent-length: 2\r\n\r\n{}", ModelErrorKind::RateLimit, "later"),
    ];
    for (served, kind, says) in cases {
        let (base, _told) = serve(Serve::Whole(served)).await;
        let profile = Profile::new("some", Api::OpenAiChat, &base).key_from(["SOME_API_KEY"]);
        let provider = HttpProvider::new(profile, Arc::new(ReqwestTransport::new().unwrap())).key(SecretString::from("sk-secret"));
        let (_, error) = answer(&provider).await;
        let error = error.unwrap();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert!(!format!("{error} {error:?} {provider:?}").contains("sk-secret"), "{error:?}");
        assert_eq!(error.retry_after, (kind == ModelErrorKind::RateLimit).then_some(Duration::from_secs(7)));
    }
}

#[tokio::test]
async fn an_unreachable_server_a_bad_address_and_a_missing_key_are_told_apart() {
    let transport = Arc::new(ReqwestTransport::new().unwrap());
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (_, error) = answer(&provider(&format!("http://{closed}/v1"))).await;
    let error = error.unwrap();
    assert_eq!(error.kind, ModelErrorKind::Connect);
    assert!(error.to_string().contains("refused") && error.to_string().contains("base URL"), "{error}");
    for base in ["localhost:8080/v1", "not a url", "ftp://x/v1", ""] {
        let (_, error) = answer(&provider(base)).await;
        assert_eq!(error.unwrap().kind, ModelErrorKind::BadRequest, "{base}");
    }
    let keyed =
        HttpProvider::new(Profile::new("some", Api::OpenAiChat, "http://127.0.0.1:1/v1").key_from(["SOME_API_KEY", "OTHER"]), transport);
    let (_, error) = answer(&keyed).await;
    let error = error.unwrap();
    assert_eq!(
        (error.kind, error.to_string().as_str()),
        (ModelErrorKind::MissingKey, "some: no key is configured; set SOME_API_KEY (or OTHER)")
    );
}

/// The status is known by then: what follows must not make a fault of the key look like one of the network.
#[tokio::test]
async fn a_failure_whose_body_breaks_off_or_hangs_is_what_its_status_says() {
    let cut = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 66\r\n\r\n{\"error\":{\"message\":\"bad key\"";
    let (base, _told) = serve(Serve::Whole(cut)).await;
    let error = answer(&provider(&base)).await.1.unwrap();
    assert_eq!((error.kind, error.status), (ModelErrorKind::Auth, Some(401)), "{error}");
    let hangs = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\ncontent-length: 66\r\n\r\n{";
    let (base, _told) = serve(Serve::Hold(hangs)).await;
    let short = Timeouts::new(Duration::from_millis(100), Duration::from_millis(100), Duration::from_secs(60));
    let error = answer(&provider(&base).timeouts(short)).await.1.unwrap();
    assert_eq!((error.kind, error.retry_after), (ModelErrorKind::RateLimit, Some(Duration::from_secs(7))), "{error}");
}

/// Some servers say that the answer has ended and not that the stream has.
#[tokio::test]
async fn an_answer_that_has_ended_is_whole_though_the_connection_stays_open() {
    let body = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    let (base, _told) = serve(Serve::Hold(body)).await;
    let long = Duration::from_secs(60);
    let (events, error) = answer(&provider(&base).timeouts(Timeouts::new(long, Duration::from_millis(100), long))).await;
    assert!(error.is_none(), "{error:?}");
    assert!(matches!(events.last(), Some(ModelEvent::Finish(_))), "{events:?}");
}

#[tokio::test]
async fn an_address_is_told_without_what_may_be_a_key() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let provider = provider(&format!("http://me:geheim@{address}/v1?key=secret"));
    let error = answer(&provider).await.1.unwrap();
    for text in [error.to_string(), format!("{error:?}"), format!("{provider:?}")] {
        assert!(text.contains(&address.to_string()) && !text.contains("geheim") && !text.contains("secret"), "{text}");
    }
}

#[tokio::test]
async fn a_connection_lost_in_the_middle_is_a_cut_answer_and_keeps_what_came() {
    for served in [
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n3d\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n",
    ] {
        let (base, _told) = serve(Serve::Whole(served)).await;
        let (events, error) = answer(&provider(&base)).await;
        assert_eq!(error.unwrap().kind, ModelErrorKind::Truncated);
        assert_eq!(events, [ModelEvent::TextDelta { index: 0, text: "hi".into() }]);
    }
}

#[tokio::test]
async fn cancelling_closes_the_socket_at_once() {
    for head in ["", HEAD] {
        let (base, mut told) = serve(Serve::Hold(head)).await;
        let cancel = CancelToken::new();
        let provider = provider(&base);
        let waiting = tokio::spawn({
            let cancel = cancel.clone();
            async move {
                match provider.stream(request(), cancel).await {
                    Err(error) => (error, None),
                    Ok(mut stream) => (stream.next().await.unwrap().unwrap_err(), Some(stream)),
                }
            }
        });
        told.recv().await.unwrap();
        tokio::time::sleep(Duration::from_millis(60)).await;
        assert!(!waiting.is_finished());
        cancel.cancel();
        let (error, stream) = tokio::time::timeout(Duration::from_secs(1), waiting).await.unwrap().unwrap();
        assert_eq!(error.kind, ModelErrorKind::Cancelled);
        // The stream still lives, the connection does not.
        let closed = tokio::time::timeout(Duration::from_secs(1), told.recv()).await.unwrap();
        assert_eq!(closed.as_deref(), Some("closed"));
        if let Some(mut stream) = stream {
            assert!(stream.next().await.is_none());
        }
    }
}

#[tokio::test]
async fn each_time_out_ends_the_wait() {
    let (short, long) = (Duration::from_millis(60), Duration::from_secs(60));
    let piece =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n";
    for (served, timeouts, says) in [
        ("", Timeouts::new(short, long, long), "did not begin"),
        (HEAD, Timeouts::new(short, long, long), "stopped coming"),
        (piece, Timeouts::new(long, short, long), "stopped coming"),
        (piece, Timeouts::new(long, long, short), "whole time"),
    ] {
        let (base, mut told) = serve(Serve::Hold(served)).await;
        let (_, error) = answer(&provider(&base).timeouts(timeouts)).await;
        let error = error.unwrap();
        assert_eq!(error.kind, ModelErrorKind::Timeout);
        assert!(error.to_string().contains(says), "{error}");
        told.recv().await.unwrap();
        assert_eq!(told.recv().await.unwrap(), "closed");
    }
}

#[tokio::test]
async fn models_are_listed() {
    let (base, mut told) =
        serve(Serve::Whole("HTTP/1.1 200 OK\r\ncontent-length: 44\r\n\r\n{\"data\":[{\"id\":\"a/b\"},{\"id\":\"c\"},{\"object\":1}]}"))
            .await;
    let _ = told.try_recv();
    assert_eq!(provider(&base).models(CancelToken::new()).await.unwrap_err().kind, ModelErrorKind::Protocol, "cut by its length");
    let (base, mut told) =
        serve(Serve::Whole("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"data\":[{\"id\":\"a/b\"},{\"id\":\"c\"},{\"object\":1}]}"))
            .await;
    assert_eq!(provider(&base).models(CancelToken::new()).await.unwrap(), ["a/b", "c"]);
    assert!(told.recv().await.unwrap().starts_with("GET /v1/models HTTP/1.1"));
}

// B-69: thinking that the provider refuses is left out once, and the thread goes on.
#[tokio::test]
async fn refused_thinking_is_left_out_and_asked_once_more() {
    let refusal = "HTTP/1.1 400 Bad\r\ncontent-length: 79\r\n\r\n{\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Invalid `signature` here\"}}";
    assert_eq!(refusal.split_once("\r\n\r\n").unwrap().1.len(), 79);
    let (base, mut told) = serve(Serve::Whole(refusal)).await;
    let profile = Profile::new("p", Api::Anthropic, &base);
    let provider = HttpProvider::new(profile, Arc::new(ReqwestTransport::new().unwrap()));
    let signed = Opaque { provider: "p".into(), value: json!({"signature": "s1"}) };
    let parts = vec![Part::Reasoning(ReasoningPart { text: "hm".into(), opaque: Some(signed) }), Part::text("so")];
    let mut asked = request();
    asked.model = "p/m".into();
    asked.messages.push(Arc::new(Message::new("a1", Role::Assistant, parts, Default::default())));
    asked.messages.push(Arc::new(Message::user("u2", "more", Default::default())));
    assert_eq!(provider.stream(asked, CancelToken::new()).await.err().unwrap().kind, ModelErrorKind::BadRequest);
    assert!(told.recv().await.unwrap().contains("\"signature\":\"s1\""));
    let again = told.recv().await.unwrap();
    assert!(!again.contains("s1") && again.contains("so"), "{again}");
    assert!(told.try_recv().is_err(), "and not a third time");
}

#[test]
fn results_follow_their_calls_and_what_is_foreign_stays_behind() {
    let mut done = ToolCallPart::new("c1", "db.query", json!({"q": 1}));
    done.state = ToolCallState::Result { output: ToolOutput::new(json!({"rows": 2})), is_error: false };
    let mut denied = ToolCallPart::new("c2", "rm", json!(null));
    denied.state = ToolCallState::OutputDenied { reason: "not now".into() };
    let open = ToolCallPart::new("c3", "view", json!({}));
    let foreign = Opaque { provider: "other".into(), value: json!({"reasoning_details": [{"data": "x"}]}) };
    let reply = Message::new(
        "a1",
        Role::Assistant,
        vec![
            Part::Reasoning(ReasoningPart { text: "hm".into(), opaque: Some(foreign) }),
            Part::text("I look"),
            Part::ToolCall(done),
            Part::ToolCall(denied),
            Part::ToolCall(open),
        ],
        Default::default(),
    );
    let mut signal = Message::new("s1", Role::Signal, vec![Part::text("done")], Default::default());
    signal.meta.attributes.insert("source".into(), "ci \"x\"".into());
    let mut request =
        ModelRequest::new("p/m", vec![Arc::new(Message::user("u1", "go", Default::default())), Arc::new(reply), Arc::new(signal)]);
    request.instructions = Some("be good".into());
    request.temperature = Some(0.7);
    request.max_output_tokens = Some(10);
    request.tools = Arc::new([ToolDefinition::new("db.query", "asks", json!({"type": "object"}))]);
    request.options.insert("p".into(), json!({"seed": 7}));
    request.options.insert("q".into(), json!({"seed": 8}));
    let sent = crate::request::build(&Profile::new("p", Api::OpenAiChat, "http://x/v1/"), &request).unwrap();
    assert_eq!(sent.url, "http://x/v1/chat/completions");
    assert_eq!(
        sent.body,
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "be good"},
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": "I look", "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "db_query_82223c7d", "arguments": "{\"q\":1}"}},
                    {"id": "c2", "type": "function", "function": {"name": "rm", "arguments": "{}"}},
                    {"id": "c3", "type": "function", "function": {"name": "view", "arguments": "{}"}},
                ]},
                {"role": "tool", "tool_call_id": "c1", "content": "{\"rows\":2}"},
                {"role": "tool", "tool_call_id": "c2", "content": "not now"},
                {"role": "tool", "tool_call_id": "c3", "content": "No result: the call did not finish."},
                {"role": "user", "content": "<signal source=\"ci &quot;x&quot;\">done</signal>"},
            ],
            "tools": [{"type": "function", "function": {"name": "db_query_82223c7d", "description": "asks", "parameters": {"type": "object", "properties": {}}}}],
            "max_tokens": 10,
            "temperature": 0.7,
            "stream": true,
            "stream_options": {"include_usage": true},
            "seed": 7,
        })
    );
}
