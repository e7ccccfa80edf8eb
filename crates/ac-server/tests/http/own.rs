//! Routes that the reference does not have.

use ac_testkit::Turn;
use serde_json::{Value, json};

use crate::support::Harness;

fn note(call: &str) -> Turn {
    Turn::tool(call, "write_note", json!({ "path": "a", "content": "b" }))
}

fn encode(id: &str) -> String {
    id.replace('%', "%25").replace('/', "%2F").replace('#', "%23")
}

async fn waiting(server: &Harness, resource: &str, count: usize) -> Vec<Value> {
    for _ in 0..500 {
        let pending = server.get(&format!("/code/sessions/{resource}/pending")).await.json()["pending"].as_array().unwrap().clone();
        if pending.len() == count {
            return pending;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("nothing waits");
}

#[tokio::test]
async fn an_answer_is_taken_once_and_later_ones_are_told_that_they_are_late() {
    let ask = json!({ "question": "Which?", "options": [{ "label": "A" }, { "label": "B" }] });
    let both = Turn::tool("c1", "ask_user", ask.clone()).then_tool("c2", "ask_user", ask);
    let server = Harness::start([both, Turn::text("ok")]).await;
    server.create("r").await;
    server.post("/code/sessions/r/messages", json!({ "message": "go" })).await;
    let open = waiting(&server, "r", 2).await;
    assert_eq!((&open[0]["kind"], &open[0]["toolName"]), (&json!("question"), &json!("ask_user")));
    let answer = |at: usize, body: Value| {
        let path = format!("/code/sessions/r/pending/{}", encode(open[at]["id"].as_str().unwrap()));
        let server = &server;
        async move { server.post(&path, body).await }
    };
    let unfit = answer(0, json!({ "action": "reply", "value": { "x": 1 } })).await;
    assert_eq!((unfit.status, unfit.json()["code"].as_str()), (422, Some("answer.invalid")), "{unfit:?}");
    assert_eq!(answer(0, json!({ "action": "reply" })).await.status, 400);
    assert_eq!(answer(0, json!({ "action": "reply", "value": "A" })).await.json(), json!({ "ok": true, "repeated": false }));
    assert_eq!(answer(0, json!({ "action": "reply", "value": "A" })).await.json(), json!({ "ok": true, "repeated": true }));
    let late = answer(0, json!({ "action": "reply", "value": "B" })).await;
    assert_eq!((late.status, late.json()["code"].as_str()), (409, Some("answer.already_resolved")), "{late:?}");
    assert_eq!(answer(1, json!({ "action": "reply", "value": "B" })).await.status, 200);
    server.rested("r").await;
}

#[tokio::test]
async fn always_grants_the_tool_and_the_grant_can_be_taken_back() {
    let server = Harness::start([note("c1"), note("c2"), Turn::text("ok"), note("c3"), Turn::text("ok")]).await;
    server.create("r").await;
    server.post("/code/sessions/r/messages", json!({ "message": "go" })).await;
    let open = waiting(&server, "r", 1).await;
    let path = format!("/code/sessions/r/pending/{}", encode(open[0]["id"].as_str().unwrap()));
    assert_eq!(server.post(&path, json!({ "action": "approve", "always": "tool" })).await.status, 200);
    server.rested("r").await;
    let grants = server.get("/code/sessions/r/grants").await.json()["grants"].as_array().unwrap().clone();
    assert_eq!((grants.len(), &grants[0]["toolName"], &grants[0]["width"]), (1, &json!("write_note"), &json!("session")));
    let revoke = format!("/code/sessions/r/grants/{}", encode(grants[0]["id"].as_str().unwrap()));
    assert_eq!(server.json("DELETE", &revoke, Value::Null).await.status, 200);
    assert_eq!(server.json("DELETE", &revoke, Value::Null).await.status, 404);
    server.post("/code/sessions/r/messages", json!({ "message": "again" })).await;
    let open = waiting(&server, "r", 1).await;
    let path = format!("/code/sessions/r/pending/{}", encode(open[0]["id"].as_str().unwrap()));
    assert_eq!(server.post(&path, json!({ "action": "decline", "reason": "not now" })).await.status, 200);
    server.rested("r").await;
}

#[tokio::test]
async fn always_grants_the_category_that_the_call_has() {
    let server = Harness::start([note("c1"), note("c2"), Turn::text("ok")]).await;
    server.create("r").await;
    server.post("/code/sessions/r/messages", json!({ "message": "go" })).await;
    let open = waiting(&server, "r", 1).await;
    let path = format!("/code/sessions/r/pending/{}", encode(open[0]["id"].as_str().unwrap()));
    assert_eq!(server.post(&path, json!({ "action": "approve", "always": "category" })).await.status, 200);
    server.rested("r").await;
    let grants = server.get("/code/sessions/r/grants").await.json()["grants"].clone();
    assert_eq!((&grants[0]["category"], &open[0]["category"]), (&json!("edit"), &json!("edit")), "{grants}");
    assert_eq!(grants.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_queue_is_shown_and_items_are_taken_back() {
    let server = Harness::start([note("c1"), Turn::text("one"), Turn::text("three")]).await;
    server.create("r").await;
    server.post("/code/sessions/r/messages", json!({ "message": "go" })).await;
    waiting(&server, "r", 1).await;
    for text in ["two", "three"] {
        assert_eq!(server.post("/code/sessions/r/follow-up", json!({ "message": text })).await.status, 200);
    }
    let queue = server.get("/code/sessions/r/queue").await.json()["queue"].as_array().unwrap().clone();
    let texts: Vec<_> = queue.iter().map(|item| item["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["two", "three"]);
    let order: Vec<_> = queue.iter().rev().map(|item| item["id"].clone()).collect();
    assert_eq!(server.json("PUT", "/code/sessions/r/queue", json!({ "order": order })).await.status, 200);
    let first = queue[0]["id"].as_str().unwrap();
    assert_eq!(server.json("DELETE", &format!("/code/sessions/r/queue/{first}"), Value::Null).await.status, 200);
    assert_eq!(server.json("DELETE", &format!("/code/sessions/r/queue/{first}"), Value::Null).await.status, 404);
    server.post("/code/sessions/r/tool-approval", json!({ "toolCallId": "c1", "approved": false })).await;
    server.rested("r").await;
    server.model.wait_for_requests(3).await;
    server.rested("r").await;
}

#[tokio::test]
async fn a_branch_ends_before_the_message_it_names() {
    let server = Harness::start([Turn::text("one"), Turn::text("two")]).await;
    let thread = server.create("r").await;
    for text in ["a", "b"] {
        server.post("/code/sessions/r/messages", json!({ "message": text })).await;
        server.rested("r").await;
    }
    let all = server.get(&format!("/code/sessions/r/threads/{thread}/messages?limit=10")).await.json();
    let until = all["messages"][2]["id"].as_str().unwrap();
    let path = format!("/code/sessions/r/threads/{thread}/branch");
    assert_eq!(server.post(&path, json!({ "until": "nope" })).await.status, 404);
    let made = server.post(&path, json!({ "until": until, "title": "fork" })).await.json();
    let copied = server.get(&format!("/code/sessions/r/threads/{}/messages", made["id"].as_str().unwrap())).await.json();
    assert_eq!((&made["title"], &copied["total"]), (&json!("fork"), &json!(2)));
}

#[tokio::test]
async fn the_server_says_how_it_is_and_what_it_can() {
    let server = Harness::start([]).await;
    assert_eq!(server.send("GET", "/health", &[], b"").await.json(), json!({ "success": true }));
    assert_eq!(server.send("GET", "/ready", &[], b"").await.json(), json!({ "ready": true }));
    let metrics = server.send("GET", "/metrics", &[], b"").await;
    assert!(String::from_utf8(metrics.body).unwrap().contains("http_route=\"/-/health\""));
    let served = server.send("GET", "/openapi.json", &[], b"").await.json();
    assert_eq!(served, ac_server::document("/api"));
    let missing = server.send("GET", "/api/agent-controller/code/zzz", &[], b"").await;
    assert_eq!((missing.status, missing.json()), (404, json!({ "error": "Not found", "code": "route.not_found" })));
    assert_eq!(server.send("POST", "/api/agent-controller/code/modes", &[], b"").await.status, 404);
}

#[test]
fn the_checked_in_description_is_the_one_that_is_served() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
    let made = format!("{:#}\n", ac_server::document("/api"));
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(found == made, "crates/ac-server/openapi.json is not what the routes say; write it again with UPDATE_OPENAPI=1");
}
