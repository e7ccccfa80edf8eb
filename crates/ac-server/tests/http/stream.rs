//! The event stream: numbers, resuming, several readers, slow ones.

use std::time::Duration;

use ac_server::Limits;
use ac_testkit::Turn;
use serde_json::json;

use crate::support::{Harness, PATIENCE, token};

#[tokio::test]
async fn a_client_that_comes_back_misses_nothing() {
    let server = Harness::start([Turn::chunks(["a", "b", "c"]), Turn::chunks(["d", "e"])]).await;
    server.create("r").await;
    // Somebody else listens all the time, so that the events are kept.
    let mut witness = server.listen("/code/sessions/r/stream", &[]).await;
    let mut stream = server.listen("/code/sessions/r/stream", &[]).await;
    server.post("/code/sessions/r/messages", json!({ "message": "one" })).await;
    let mut seen = vec![];
    while seen.len() < 4 {
        seen.push(stream.event().await.unwrap());
    }
    drop(stream);
    witness.until("agent_end").await;
    server.post("/code/sessions/r/messages", json!({ "message": "two" })).await;
    witness.until("agent_end").await;
    let last = seen.last().unwrap().0.clone();
    let mut again = server.listen("/code/sessions/r/stream", &[("last-event-id", &last)]).await;
    let mut ends = 0;
    while ends < 2 {
        let (id, event) = again.event().await.unwrap();
        ends += usize::from(event["type"] == "agent_end");
        seen.push((id, event));
    }
    let text: String = seen.iter().filter_map(|(_, event)| event["event"]["delta"].as_str()).collect();
    assert_eq!(text, "abcde");
    let numbers: Vec<u64> = seen.iter().map(|(id, _)| id.rsplit_once('-').unwrap().1.parse().unwrap()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
}

#[tokio::test]
async fn a_number_from_nowhere_is_answered_with_the_view() {
    let server = Harness::start([]).await;
    server.create("r").await;
    for forged in ["elsewhere-7", "nonsense", "-", "99999999999999999999", "0-0", "a-b-c-1"] {
        let mut stream = server.listen("/code/sessions/r/stream", &[("last-event-id", forged)]).await;
        assert_eq!(stream.frame().await.unwrap(), ": connected");
        let (_, event) = stream.event().await.unwrap();
        assert_eq!(event["type"], "display_state_changed", "{forged}");
        assert_eq!(event["displayState"].as_object().unwrap().len(), 15);
    }
}

#[tokio::test]
async fn all_readers_get_the_same_bytes_in_the_same_order() {
    let server = Harness::start([Turn::chunks(["x", "y", "z"])]).await;
    server.create("r").await;
    let mut readers = vec![];
    for _ in 0..3 {
        readers.push(server.listen("/code/sessions/r/stream", &[]).await);
    }
    server.post("/code/sessions/r/messages", json!({ "message": "hi" })).await;
    let mut all = vec![];
    for reader in &mut readers {
        let mut frames = vec![];
        loop {
            let frame = reader.frame().await.unwrap();
            let done = frame.contains("\"agent_end\"");
            frames.push(frame);
            if done {
                break;
            }
        }
        all.push(frames);
    }
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
}

#[tokio::test]
async fn everything_is_shown_to_who_asks_for_it() {
    let server = Harness::start([Turn::tool("c1", "write_note", json!({ "path": "a", "content": "b" })), Turn::text("ok")]).await;
    server.create("r").await;
    let mut stream = server.listen("/code/sessions/r/stream?events=all", &[]).await;
    let (_, view) = stream.event().await.unwrap();
    assert_eq!((&view["type"], &view["pending"], &view["queue"]), (&json!("display_state_changed"), &json!([]), &json!([])));
    server.post("/code/sessions/r/messages", json!({ "message": "go" })).await;
    let asked = stream.until("tool_approval_required").await.pop().unwrap();
    assert!(asked["pendingId"].is_string() && asked["seq"].is_u64() && asked["at"].is_string(), "{asked}");
    server.post("/code/sessions/r/tool-approval", json!({ "toolCallId": "c1", "approved": false })).await;
    let names = stream.names_until("agent_end").await;
    assert!(names.contains(&"pending_resolved".to_owned()), "{names:?}");
}

#[tokio::test]
async fn a_quiet_stream_says_that_it_is_alive() {
    let mut limits = Limits::default();
    limits.heartbeat = Duration::from_millis(200);
    let server = Harness::with([], limits, &[]).await;
    server.create("r").await;
    let mut stream = server.listen("/code/sessions/r/stream", &[]).await;
    assert_eq!(stream.frame().await.unwrap(), ": connected");
    assert_eq!(stream.frame().await.unwrap(), ": heartbeat");
    assert_eq!(stream.frame().await.unwrap(), ": heartbeat");
}

#[tokio::test]
async fn a_reader_that_reads_nothing_delays_nobody_and_the_run_goes_on_without_readers() {
    let pieces: Vec<_> = (0..400).map(|n| format!("{n} ").repeat(50)).collect();
    let server = Harness::start([Turn::chunks(pieces.clone())]).await;
    let thread = server.create("r").await;
    // Never read again.
    let asleep = server.listen("/code/sessions/r/stream", &[]).await;
    let mut stream = server.listen("/code/sessions/r/stream", &[]).await;
    server.post("/code/sessions/r/messages", json!({ "message": "go" })).await;
    for _ in 0..5 {
        stream.event().await.unwrap();
    }
    drop(stream);
    server.rested("r").await;
    drop(asleep);
    let page = server.get(&format!("/code/sessions/r/threads/{thread}/messages?limit=1")).await.json();
    assert_eq!(page["messages"][0]["content"]["content"], pieces.concat());
}

#[tokio::test]
async fn a_stream_ends_when_its_token_is_taken_away() {
    let mut limits = Limits::default();
    limits.heartbeat = Duration::from_millis(100);
    let server = Harness::with([], limits, &["ada"]).await;
    assert_eq!(server.as_person("ada", "POST", "/code/sessions", json!({ "resourceId": "r" })).await.status, 200);
    let bearer = format!("Bearer {}", token("ada"));
    let mut stream = server.listen("/code/sessions/r/stream", &[("authorization", &bearer)]).await;
    assert_eq!(stream.frame().await.unwrap(), ": connected");
    assert_eq!(stream.frame().await.unwrap(), ": heartbeat");
    // The time of a file may be no finer than this.
    tokio::time::sleep(Duration::from_millis(20)).await;
    server.revoke();
    let ended = async { while stream.frame().await.is_some() {} };
    tokio::time::timeout(PATIENCE, ended).await.expect("it goes on");
}
