use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};

use super::{Delivery, Framing, ScriptedServer, Setup, Turn, Violation, turn::Match};

/// A client of a dozen lines: the point is what stands on the wire.
fn post(server: &ScriptedServer, body: &Value) -> TcpStream {
    let mut to = TcpStream::connect(server.address()).unwrap();
    to.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let body = body.to_string();
    write!(to, "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .unwrap();
    to
}

/// Reads one chunked answer: its chunks, and whether it came to its end.
fn chunks(from: &mut TcpStream) -> (Vec<Vec<u8>>, bool) {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    while !bytes.ends_with(b"\r\n0\r\n\r\n") {
        match from.read(&mut piece) {
            Ok(n) if n > 0 => bytes.extend(&piece[..n]),
            _ => break,
        }
    }
    let Some(head) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return (Vec::new(), false) };
    let mut rest = &bytes[head + 4..];
    let mut out = Vec::new();
    while let Ok(httparse::Status::Complete((line, size))) = httparse::parse_chunk_size(rest) {
        let size = usize::try_from(size).unwrap();
        if size == 0 {
            return (out, true);
        }
        out.push(rest[line..line + size].to_vec());
        rest = &rest[line + size + 2..];
    }
    (out, false)
}

fn body_of(server: &ScriptedServer, body: &Value) -> String {
    String::from_utf8(chunks(&mut post(server, body)).0.concat()).unwrap()
}

fn hello() -> Value {
    json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "hello" }] })
}

#[test]
fn a_turn_is_streamed_in_the_providers_form() {
    let server = ScriptedServer::start([
        Turn::reasoning("hm").then_text("hé").then_tool("c1", "view", json!({ "path": "a" })),
        Turn::text("cut off").finish("length").tokens(3, 4),
    ]);
    insta::assert_snapshot!(body_of(&server, &hello()), @r#"
    data: {"choices":[{"delta":{"content":"","role":"assistant"},"finish_reason":null,"index":0}],"created":1767225600,"id":"chatcmpl-0","model":"m","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{"reasoning_content":"hm"},"finish_reason":null,"index":0}],"created":1767225600,"id":"chatcmpl-0","model":"m","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{"content":"hé"},"finish_reason":null,"index":0}],"created":1767225600,"id":"chatcmpl-0","model":"m","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"","name":"view"},"id":"c1","index":0,"type":"function"}]},"finish_reason":null,"index":0}],"created":1767225600,"id":"chatcmpl-0","model":"m","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{\"path\":\"a\"}"},"index":0}]},"finish_reason":null,"index":0}],"created":1767225600,"id":"chatcmpl-0","model":"m","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{},"finish_reason":"tool_calls","index":0}],"created":1767225600,"id":"chatcmpl-0","model":"m","object":"chat.completion.chunk"}

    data: {"choices":[],"created":1767225600,"id":"chatcmpl-0","model":"m","object":"chat.completion.chunk","usage":{"completion_tokens":5,"prompt_tokens":10,"total_tokens":15}}

    data: [DONE]
    "#);
    insta::assert_snapshot!(body_of(&server, &hello()), @r#"
    data: {"choices":[{"delta":{"content":"","role":"assistant"},"finish_reason":null,"index":0}],"created":1767225600,"id":"chatcmpl-1","model":"m","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{"content":"cut off"},"finish_reason":null,"index":0}],"created":1767225600,"id":"chatcmpl-1","model":"m","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{},"finish_reason":"length","index":0}],"created":1767225600,"id":"chatcmpl-1","model":"m","object":"chat.completion.chunk"}

    data: {"choices":[],"created":1767225600,"id":"chatcmpl-1","model":"m","object":"chat.completion.chunk","usage":{"completion_tokens":4,"prompt_tokens":3,"total_tokens":7}}

    data: [DONE]
    "#);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].body, hello());
    assert_eq!(requests[0].header("connection"), Some("close"));
}

#[test]
fn every_framing_carries_the_same_bytes() {
    let turn = Turn::chunks(["grün ", "🦀"]).then_tool("c1", "view", json!({ "path": "a/ä" }));
    let whole = body_of(&ScriptedServer::start([turn.clone()]), &hello());
    for framing in [Framing::Whole, Framing::Bytes(1), Framing::Bytes(7), Framing::Bytes(0)] {
        let server = Setup::new([turn.clone()]).framing(framing).start().unwrap();
        assert_eq!(body_of(&server, &hello()), whole, "{framing:?}");
    }
    for at in 0..=whole.len() {
        let server = Setup::new([turn.clone()]).framing(Framing::SplitAt(at)).start().unwrap();
        let (got, complete) = chunks(&mut post(&server, &hello()));
        assert!(complete);
        assert_eq!(got.concat(), whole.as_bytes());
        if at > 0 && at < whole.len() {
            assert_eq!(got[0].len(), at);
        }
    }
}

#[test]
fn arguments_arrive_in_as_many_pieces_as_asked() {
    let turn: Turn =
        serde_json::from_value(json!({ "parts": [{ "tool": { "id": "c", "name": "n", "args": { "t": "ééé" }, "split": 3 } }] })).unwrap();
    let body = body_of(&ScriptedServer::start([turn]), &hello());
    let pieces = body.lines().filter(|line| line.contains(r#""function":{"arguments":""#) && !line.contains(r#""name":"n""#)).count();
    assert_eq!(pieces, 3, "{body}");
}

#[tokio::test]
async fn a_cut_a_reset_and_a_hang_are_what_they_say() {
    let server =
        ScriptedServer::start([Turn::text("a").then_cut(), Turn::text("b").then_reset(), Turn::text("c").then_hang(), Turn::hang()]);
    let (got, complete) = chunks(&mut post(&server, &hello()));
    assert!(!complete && String::from_utf8(got.concat()).unwrap().contains(r#""content":"a""#));

    let mut to = post(&server, &hello());
    let mut bytes = Vec::new();
    assert_eq!(to.read_to_end(&mut bytes).unwrap_err().kind(), ErrorKind::ConnectionReset);

    for _ in 0..2 {
        let mut to = post(&server, &hello());
        to.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        assert!(!chunks(&mut to).1);
    }
    let exchanges = server.settled().await;
    let deliveries: Vec<_> = exchanges.iter().map(|exchange| exchange.delivery).collect();
    assert_eq!(deliveries, [Delivery::Broken, Delivery::Broken, Delivery::Left, Delivery::Left]);
}

#[test]
fn an_error_has_its_status_and_headers() {
    let server = ScriptedServer::start([Turn::error(429, "slow down").header("Retry-After", "2"), Turn::text("ok")]);
    let mut to = post(&server, &hello());
    let mut text = vec![0; 512];
    let n = to.read(&mut text).unwrap();
    let text = String::from_utf8_lossy(&text[..n]).into_owned();
    assert!(
        text.starts_with("HTTP/1.1 429 ") && text.contains("\r\nRetry-After: 2\r\n") && text.ends_with(r#""type":"scripted"}}"#),
        "{text}"
    );
    // Without streaming the answer is one object; the connection can be used again.
    let mut plain = hello();
    plain["stream"] = json!(false);
    let mut to = post(&server, &plain);
    let mut text = [0; 1024];
    let n = to.read(&mut text).unwrap();
    assert!(String::from_utf8_lossy(&text[..n]).contains(r#""message":{"#));
}

#[test]
fn turns_are_taken_by_match_and_in_order() {
    let only = |last_role: &str| Match { last_role: Some(last_role.to_owned()), not_contains: Some("SUB".to_owned()), ..Match::default() };
    let server = ScriptedServer::start([
        Turn::text("to a tool").when(only("tool")),
        Turn::text("one").times(2),
        Turn::text("for ever").forever(),
        Turn::text("never"),
    ]);
    let said: Vec<_> = (0..5).map(|_| body_of(&server, &hello())).map(|body| body.contains(r#""content":"one""#)).collect();
    assert_eq!(said, [true, true, false, false, false]);
    assert_eq!(server.unused_turns(), [0, 3]);
}

#[test]
fn an_illegal_history_is_a_violation() {
    let server = ScriptedServer::start([Turn::text("x").forever()]);
    let call = json!({ "id": "c1", "type": "function", "function": { "name": "view", "arguments": "{}" } });
    body_of(&server, &json!({ "stream": true, "messages": [{ "role": "assistant", "tool_calls": [call] }] }));
    let detail = "message 1: call `c1` has no result before it".to_owned();
    assert_eq!(server.violations(), [Violation::Pairing { request: 0, detail }]);
    assert_eq!(server.violations(), [], "who took it has seen it");
}

#[test]
#[should_panic(expected = "no turn of the script fits request 0")]
fn a_violation_that_nobody_took_fails_the_test() {
    let server = ScriptedServer::start([]);
    post(&server, &hello()).read_to_end(&mut Vec::new()).ok();
}

#[test]
fn models_are_listed() {
    let server = Setup::new([]).models(["a", "b"]).start().unwrap();
    let mut to = TcpStream::connect(server.address()).unwrap();
    write!(to, "GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut text = [0; 1024];
    let n = to.read(&mut text).unwrap();
    assert!(String::from_utf8_lossy(&text[..n]).contains(r#"{"id":"b","object":"model","owned_by":"scripted"}"#));
}
