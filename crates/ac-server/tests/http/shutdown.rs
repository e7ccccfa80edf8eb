//! Stopping: runs are parked, streams end, and the next life goes on.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ac_server::Limits;
use ac_storage::MemoryStorage;
use ac_testkit::Turn;
use serde_json::json;

use crate::support::Harness;

#[tokio::test]
async fn a_server_that_stops_parks_its_runs_ends_its_streams_and_loses_nothing() {
    let storage = Arc::new(MemoryStorage::default());
    let turns = [Turn::tool("c1", "write_note", json!({ "path": "a", "content": "b" })), Turn::hang()];
    let mut first = Harness::on(storage.clone(), turns, Limits::default(), &[]).await;
    first.create("r").await;
    let mut stream = first.listen("/code/sessions/r/stream", &[]).await;
    first.post("/code/sessions/r/messages", json!({ "message": "go" })).await;
    stream.until("tool_approval_required").await;
    // A second session is in the middle of an answer.
    first.create("s").await;
    first.post("/code/sessions/s/messages", json!({ "message": "go" })).await;
    first.model.wait_for_requests(2).await;
    let begun = Instant::now();
    first.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    while stream.frame().await.is_some() {}

    let turns = [Turn::text("after all").then_text("."), Turn::text("done")];
    let second = Harness::on(storage, turns, Limits::default(), &[]).await;
    let pending = second.get("/code/sessions/r/pending").await.json();
    assert_eq!(pending["pending"][0]["toolCallId"], "c1", "{pending}");
    second.post("/code/sessions/r/tool-approval", json!({ "toolCallId": "c1", "approved": true })).await;
    second.rested("r").await;
    second.rested("s").await;
}
