//! What a hostile client tries. Each attempt is refused with the right status, and nothing is made by it.

use std::time::{Duration, Instant};

use ac_server::Limits;
use ac_storage::{Storage as _, domain::ThreadQuery};
use ac_testkit::Turn;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::support::{Harness, token};

/// How many threads and owners there are.
async fn made(server: &Harness) -> (usize, usize) {
    let threads = server.storage.threads().list(&ThreadQuery { hidden: true, ..ThreadQuery::default() }).await.unwrap();
    let mut sessions = 0;
    for rows in ["ac-server.owners", "code"] {
        sessions += server.storage.sessions().list(&rows.into(), None, 0).await.unwrap().items.len();
    }
    (threads.items.len(), sessions)
}

/// Every route that names a resource.
fn routes(thread: &str) -> Vec<(&'static str, String, Value)> {
    let route = |method, path: &str, body| (method, path.to_owned(), body);
    vec![
        route("GET", "", Value::Null),
        route("POST", "/messages", json!({ "message": "x" })),
        route("POST", "/steer", json!({ "message": "x" })),
        route("POST", "/follow-up", json!({ "message": "x" })),
        route("POST", "/abort", Value::Null),
        route("POST", "/tool-approval", json!({ "toolCallId": "c1", "approved": true })),
        route("POST", "/tool-suspension", json!({ "toolCallId": "c1", "resumeData": "x" })),
        route("POST", "/mode", json!({ "modeId": "plan" })),
        route("POST", "/model", json!({ "modelId": "fake/fake-b" })),
        route("POST", "/thread", json!({ "threadId": thread })),
        route("GET", "/threads", Value::Null),
        route("POST", "/threads", json!({})),
        route("POST", "/threads/clone", json!({ "sourceThreadId": thread })),
        route("PUT", &format!("/threads/{thread}"), json!({ "title": "mine" })),
        route("DELETE", &format!("/threads/{thread}"), Value::Null),
        route("GET", &format!("/threads/{thread}/messages"), Value::Null),
        route("POST", &format!("/threads/{thread}/branch"), json!({ "until": "m" })),
        route("GET", "/om", Value::Null),
        route("POST", "/resource", json!({ "newResourceId": "bobs" })),
        route("GET", "/resources", Value::Null),
        route("GET", "/permissions", Value::Null),
        route("PUT", "/permissions/category", json!({ "category": "edit", "policy": "allow" })),
        route("PUT", "/permissions/tool", json!({ "toolName": "boom", "policy": "allow" })),
        route("PUT", "/state", json!({ "state": { "a": 1 } })),
        route("GET", "/pending", Value::Null),
        route("POST", "/pending/x", json!({ "action": "approve" })),
        route("GET", "/queue", Value::Null),
        route("PUT", "/queue", json!({ "order": [] })),
        route("DELETE", "/queue/x", Value::Null),
        route("GET", "/grants", Value::Null),
        route("POST", "/grants", json!({ "toolName": "boom" })),
        route("DELETE", "/grants/x", Value::Null),
        route("POST", "/inject", json!({ "message": "x" })),
    ]
}

#[tokio::test]
async fn nobody_reaches_what_belongs_to_somebody_else_by_any_route() {
    let turns = [Turn::tool("c1", "write_note", json!({ "path": "a", "content": "b" })), Turn::text("ok")];
    let server = Harness::with(turns, Limits::default(), &["ada", "bob", "root all"]).await;
    let thread = server.as_person("ada", "POST", "/code/sessions", json!({ "resourceId": "r" })).await.json()["threadId"].clone();
    let thread = thread.as_str().unwrap();
    server.as_person("ada", "POST", "/code/sessions/r/messages", json!({ "message": "go" })).await;
    while server.as_person("ada", "GET", "/code/sessions/r/pending", Value::Null).await.json() == json!({ "pending": [] }) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let before = (made(&server).await, server.as_person("ada", "GET", "/code/sessions/r", Value::Null).await.json());
    for (method, path, body) in routes(thread) {
        for scope in ["", "?sessionScope=other"] {
            let answer = server.as_person("bob", method, &format!("/code/sessions/r{path}{scope}"), body.clone()).await;
            assert_eq!((answer.status, answer.json()["code"].as_str()), (404, Some("resource.not_found")), "{method} {path}: {answer:?}");
        }
    }
    let create = server.as_person("bob", "POST", "/code/sessions", json!({ "resourceId": "r" })).await;
    assert_eq!((create.status, create.json()["code"].as_str()), (404, Some("resource.not_found")));
    let bearer = format!("Bearer {}", token("bob"));
    let stream = server.send("GET", "/api/agent-controller/code/sessions/r/stream", &[("authorization", &bearer)], b"").await;
    assert_eq!(stream.status, 404);
    // Nor by a thread of it under a resource of their own.
    server.as_person("bob", "POST", "/code/sessions", json!({ "resourceId": "mine" })).await;
    for (method, path, body) in [
        ("POST", "/thread".to_owned(), json!({ "threadId": thread })),
        ("POST", "/threads/clone".to_owned(), json!({ "sourceThreadId": thread })),
        ("GET", format!("/threads/{thread}/messages"), Value::Null),
        ("GET", format!("?threadId={thread}"), Value::Null),
        ("DELETE", format!("/threads/{thread}"), Value::Null),
        ("POST", "/resource".to_owned(), json!({ "newResourceId": "r" })),
    ] {
        let answer = server.as_person("bob", method, &format!("/code/sessions/mine{path}"), body).await;
        assert_eq!(answer.status, 404, "{method} {path}: {answer:?}");
    }
    let steal = server.as_person("bob", "POST", "/code/sessions", json!({ "resourceId": "new", "threadId": thread })).await;
    assert_eq!(steal.status, 404);
    assert_eq!(
        server.as_person("bob", "GET", "/code/sessions/mine/resources", Value::Null).await.json(),
        json!({ "resourceIds": ["mine"] })
    );
    assert_eq!(server.as_person("bob", "GET", "/code/active-runs", Value::Null).await.json(), json!({ "runs": [] }));
    // Ada's is as it was, and who may use everything may.
    assert_eq!(server.as_person("ada", "GET", "/code/sessions/r", Value::Null).await.json(), before.1);
    assert_eq!(made(&server).await.0, before.0.0 + 1);
    assert_eq!(server.as_person("root", "GET", "/code/sessions/r", Value::Null).await.status, 200);
    server.as_person("ada", "POST", "/code/sessions/r/tool-approval", json!({ "toolCallId": "c1", "approved": true })).await;
    server.model.wait_for_requests(2).await;
}

#[tokio::test]
async fn without_a_token_there_is_nothing() {
    let server = Harness::with([], Limits::default(), &["ada"]).await;
    for (header, value) in [("x", "y"), ("authorization", "Bearer nonsense"), ("authorization", "Basic YTpi"), ("authorization", "Bearer")]
    {
        let body = br#"{"resourceId":"r"}"#;
        let headers = [("content-type", "application/json"), (header, value)];
        let answer = server.send("POST", "/api/agent-controller/code/sessions", &headers, body).await;
        assert_eq!((answer.status, answer.json()["error"].as_str()), (401, Some("Invalid or expired token")));
        assert_eq!(server.send("GET", "/api/agent-controller/code/sessions/r/stream", &[(header, value)], b"").await.status, 401);
    }
    let by_query = format!("/api/agent-controller?apiKey={}", token("ada"));
    assert_eq!(server.send("GET", &by_query, &[], b"").await.status, 200);
    assert_eq!(server.send("GET", "/health", &[], b"").await.status, 200);
    assert_eq!(server.send("GET", "/metrics", &[], b"").await.status, 401);
    assert_eq!(made(&server).await, (0, 0));
}

#[tokio::test]
async fn protected_keys_of_the_state_need_the_right() {
    let server = Harness::with([], Limits::default(), &["ada", "eve state"]).await;
    for key in ["yolo", "permissionRules"] {
        let body = json!({ "state": { key: true } });
        let refused = server.as_person("ada", "PUT", "/code/sessions/r/state", body).await;
        assert_eq!((refused.status, refused.json()["code"].as_str()), (403, Some("state.protected")));
    }
    assert_eq!(made(&server).await, (0, 0));
    assert_eq!(server.as_person("eve", "PUT", "/code/sessions/e/state", json!({ "state": { "yolo": true } })).await.status, 200);
}

#[tokio::test]
async fn a_stream_on_what_is_nobodys_yet_shows_nothing_of_who_takes_it() {
    let server = Harness::with([Turn::text("secret")], Limits::default(), &["ada", "bob"]).await;
    let bob = format!("Bearer {}", token("bob"));
    let mut spy = server.listen("/code/sessions/r/stream", &[("authorization", &bob)]).await;
    assert_eq!(spy.frame().await.unwrap(), ": connected");
    server.as_person("ada", "POST", "/code/sessions/r/messages", json!({ "message": "hi" })).await;
    assert_eq!(spy.frame().await, None);
    server.model.settled().await;
}

#[tokio::test]
async fn bodies_that_are_too_large_or_no_json_are_refused() {
    let server = Harness::start([]).await;
    let path = "/api/agent-controller/code/sessions";
    let json_type = ("content-type", "application/json");
    let large = vec![b' '; 4_718_593];
    assert_eq!(server.send("POST", path, &[json_type], &large).await.status, 413);
    // Without a length.
    let mut chunked =
        format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n").into_bytes();
    for _ in 0..80 {
        chunked.extend_from_slice(b"10000\r\n");
        chunked.extend(std::iter::repeat_n(b' ', 0x10000));
        chunked.extend_from_slice(b"\r\n");
    }
    assert_eq!(server.raw(&chunked).await.status, 413);
    for bad in ["{", "{\"resourceId\":\"a\"} x", "\u{0}", "{\"resourceId\":\"\\ud800\"}"] {
        let answer = server.send("POST", path, &[json_type], bad.as_bytes()).await;
        assert_eq!((answer.status, answer.json()["issues"][0]["field"].as_str()), (400, Some("body")), "{bad}: {answer:?}");
    }
    let invalid = server.send("POST", path, &[json_type], &[b'"', 0xff, b'"']).await;
    assert_eq!(invalid.status, 400);
    let deep = "[".repeat(100_000);
    assert_eq!(server.send("POST", path, &[json_type], deep.as_bytes()).await.status, 400);
    let text = server.send("POST", path, &[("content-type", "text/plain")], br#"{"resourceId":"r"}"#).await;
    assert_eq!((text.status, text.json()["issues"][0]["field"].as_str()), (400, Some("root")));
    let long = "a".repeat(1025);
    assert_eq!(server.post("/code/sessions", json!({ "resourceId": long })).await.status, 400);
    assert_eq!(server.get(&format!("/code/sessions/{long}")).await.status, 400);
    assert_eq!(server.get("/code/sessions/%FF").await.status, 400);
    assert_eq!(made(&server).await, (0, 0));
}

#[tokio::test]
async fn heads_that_are_too_long_too_many_or_too_slow_are_cut_off() {
    let mut limits = Limits::default();
    (limits.head_time, limits.body_time) = (Duration::from_millis(300), Duration::from_millis(300));
    let server = Harness::with([], limits, &[]).await;
    let long = format!("GET /health HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "a".repeat(100_000));
    assert_eq!(server.raw(long.as_bytes()).await.status, 431);
    let many: String = (0..100).map(|n| format!("x{n}: y\r\n")).collect();
    assert_eq!(server.raw(format!("GET /health HTTP/1.1\r\nhost: x\r\n{many}\r\n").as_bytes()).await.status, 431);
    // A head that trickles in.
    let begun = Instant::now();
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(b"GET /health HTTP/1.1\r\nhost:").await.unwrap();
    let mut rest = vec![];
    tokio::time::timeout(Duration::from_secs(5), slow.read_to_end(&mut rest)).await.expect("the server closes").ok();
    assert!(begun.elapsed() < Duration::from_secs(4));
    // A body that never comes.
    let head =
        "POST /api/agent-controller/code/sessions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n{";
    assert_eq!(server.raw(head.as_bytes()).await.status, 408);
    assert_eq!(made(&server).await, (0, 0));
}

#[tokio::test]
async fn requests_that_can_be_read_in_two_ways_are_refused() {
    let server = Harness::start([]).await;
    for head in [
        // Two lengths, a length beside chunks, two hosts.
        "POST /api/agent-controller/code/sessions HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        "GET /health HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: close\r\n\r\n",
        "GET /health HTTP/1.1\r\nhost: a\r\nx y: z\r\n\r\n",
        "GET /health\u{0} HTTP/1.1\r\nhost: a\r\n\r\n",
    ] {
        let answer = server.raw(head.as_bytes()).await;
        assert!((400..500).contains(&answer.status), "{head:?}: {answer:?}");
    }
    assert_eq!(made(&server).await, (0, 0));
}

#[tokio::test]
async fn pages_of_other_sites_are_refused() {
    let server = Harness::start([]).await;
    let headers = [("origin", "http://evil.example"), ("content-type", "application/json")];
    let answer = server.send("POST", "/api/agent-controller/code/sessions", &headers, br#"{"resourceId":"r"}"#).await;
    assert_eq!((answer.status, answer.json()["code"].as_str()), (403, Some("request.origin")));
    let plain = server.send("GET", "/api/agent-controller", &[], b"").await;
    assert!(!plain.head.contains("access-control"), "{}", plain.head);
    assert_eq!(server.send("OPTIONS", "/api/agent-controller", &[("origin", "http://evil.example")], b"").await.status, 404);
    assert_eq!(made(&server).await, (0, 0));
}

#[tokio::test]
async fn who_asks_too_often_or_opens_too_much_waits() {
    let mut limits = Limits::default();
    (limits.rate, limits.burst, limits.streams) = (Some(1), 5, 2);
    let server = Harness::with([], limits, &[]).await;
    let (_a, _b) = (server.listen("/code/sessions/r/stream", &[]).await, server.listen("/code/sessions/r/stream", &[]).await);
    let third = server.get("/code/sessions/r/stream").await;
    assert_eq!((third.status, third.json()["code"].as_str()), (429, Some("stream.too_many")));
    let mut statuses = vec![];
    for _ in 0..4 {
        statuses.push(server.get("/code/modes").await.status);
    }
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed_and_room_comes_back() {
    let mut limits = Limits::default();
    limits.connections = 2;
    let server = Harness::with([], limits, &[]).await;
    let held = [TcpStream::connect(server.address).await.unwrap(), TcpStream::connect(server.address).await.unwrap()];
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.send("GET", "/health", &[], b"").await.status, 0);
    drop(held);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.send("GET", "/health", &[], b"").await.status, 200);
}
