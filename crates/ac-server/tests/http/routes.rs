//! The reference's routes: what they answer, and what they leave alone.

use ac_server::Limits;
use ac_testkit::Turn;
use serde_json::{Value, json};

use crate::support::Harness;

#[tokio::test]
async fn looking_makes_nothing() {
    let server = Harness::start([]).await;
    for path in ["", "/threads", "/permissions", "/om", "/resources", "/pending", "/queue", "/grants", "/threads/t/messages"] {
        let answer = server.get(&format!("/code/sessions/never{path}")).await;
        let expected = if path.ends_with("/messages") { 404 } else { 200 };
        assert_eq!(answer.status, expected, "{path}: {answer:?}");
    }
    let mut stream = server.listen("/code/sessions/never/stream", &[]).await;
    assert_eq!(stream.frame().await.unwrap(), ": connected");
    drop(stream);
    let state = server.get("/code/sessions/never").await.json();
    assert_eq!(state.get("threadId"), None, "{state}");
    assert_eq!(server.get("/code/sessions/never/threads").await.json(), json!({ "threads": [] }));
    assert_eq!(server.get("/code/sessions/x/resources").await.json(), json!({ "resourceIds": [] }));
}

#[tokio::test]
async fn a_stream_that_was_open_before_its_session_hears_it_begin() {
    let server = Harness::start([Turn::text("hello")]).await;
    let mut stream = server.listen("/code/sessions/later/stream", &[]).await;
    assert_eq!(stream.frame().await.unwrap(), ": connected");
    server.post("/code/sessions/later/messages", json!({ "message": "hi" })).await;
    let names = stream.names_until("agent_end").await;
    assert!(names.contains(&"message_update".to_owned()), "{names:?}");
}

#[tokio::test]
async fn a_reply_reads_as_the_reference_sends_it() {
    let server = Harness::start([Turn::chunks(["hel", "lo"])]).await;
    let thread = server.create("r").await;
    let mut stream = server.listen("/code/sessions/r/stream", &[]).await;
    for header in ["content-type: text/event-stream", "cache-control: no-cache", "x-accel-buffering: no", "transfer-encoding: chunked"] {
        assert!(stream.head.contains(header), "{}", stream.head);
    }
    let sent = server.post("/code/sessions/r/messages", json!({ "message": "hi" })).await;
    assert_eq!((sent.status, sent.json(), sent.header("x-ac-outcome")), (200, json!({ "ok": true }), Some("accepted")));
    let events = stream.until("agent_end").await;
    let names: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(names[..3], ["agent_start", "message_start", "message_end"], "{names:?}");
    let signal = &events[1]["message"];
    assert_eq!(signal["role"], "signal");
    assert_eq!(signal["content"]["parts"][0]["type"], "data-user-message");
    assert_eq!(signal["content"]["parts"][0]["data"]["contents"], "hi");
    let assistant = events.iter().find(|event| event["message"]["role"] == "assistant").unwrap();
    assert_eq!(assistant["message"]["threadId"], thread.as_str());
    assert_eq!(assistant["message"]["content"].get("metadata"), None);
    let text: String = events.iter().filter_map(|event| event["event"]["delta"].as_str()).collect();
    assert_eq!(text, "hello");
    assert_eq!(events.last().unwrap(), &json!({ "type": "agent_end", "reason": "complete" }));
    let page = server.get(&format!("/code/sessions/r/threads/{thread}/messages?limit=10")).await.json();
    let roles: Vec<_> = page["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["signal", "assistant"]);
    assert_eq!(page["messages"][0]["type"], "user");
    assert_eq!(page["messages"][1]["content"]["content"], "hello");
    assert_eq!(page["messages"][1]["content"]["metadata"], json!({ "modelId": "fake-a", "provider": "fake" }));
    assert_eq!((&page["total"], &page["hasMore"]), (&json!(2), &json!(false)));
}

#[tokio::test]
async fn an_approval_is_acknowledged_whatever_comes_of_it_and_the_header_says_what() {
    let server = Harness::start([Turn::tool("c1", "write_note", json!({ "path": "a", "content": "b" })), Turn::text("done")]).await;
    server.create("r").await;
    let mut stream = server.listen("/code/sessions/r/stream", &[]).await;
    server.post("/code/sessions/r/messages", json!({ "message": "go" })).await;
    let asked = stream.until("tool_approval_required").await.pop().unwrap();
    let mut keys: Vec<_> = asked.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["args", "threadId", "toolCallId", "toolName", "type"]);
    let decide = |call: &str, approved: bool| {
        let body = json!({ "toolCallId": call, "approved": approved });
        server.post("/code/sessions/r/tool-approval", body)
    };
    let outcome = |answer: crate::support::Answer| {
        assert_eq!((answer.status, answer.json()), (200, json!({ "ok": true })));
        answer.header("x-ac-outcome").unwrap().to_owned()
    };
    assert_eq!(outcome(decide("nonsense", true).await), "not_pending");
    assert_eq!(outcome(decide("c1", true).await), "accepted");
    let rest = stream.until("agent_end").await;
    let end = rest.iter().find(|event| event["type"] == "tool_end").unwrap();
    assert_eq!((&end["result"], &end["isError"], end.get("denied")), (&json!({ "ok": true, "path": "a" }), &json!(false), None));
    server.rested("r").await;
    assert_eq!(outcome(decide("c1", true).await), "not_pending");
}

#[tokio::test]
async fn a_question_waits_in_the_history_until_it_is_answered() {
    let ask = json!({ "question": "Which?", "options": [{ "label": "A" }, { "label": "B" }] });
    let server = Harness::start([Turn::tool("c1", "ask_user", ask), Turn::text("done")]).await;
    let thread = server.create("r").await;
    let mut stream = server.listen("/code/sessions/r/stream", &[]).await;
    server.post("/code/sessions/r/messages", json!({ "message": "go" })).await;
    let asked = stream.until("agent_end").await;
    assert_eq!(asked.last().unwrap()["reason"], "suspended");
    let suspended = asked.iter().find(|event| event["type"] == "tool_suspended").unwrap();
    assert_eq!(suspended["suspendPayload"]["question"], "Which?");
    assert_eq!(suspended.get("pendingId"), None);
    let history = || async { server.get(&format!("/code/sessions/r/threads/{thread}/messages?limit=1")).await.json() };
    let parked = history().await;
    assert_eq!(parked["messages"][0]["content"]["metadata"]["suspendedTools"]["c1"]["toolName"], "ask_user", "{parked}");
    let state = server.get("/code/sessions/r").await.json();
    assert_eq!(state["running"], false);
    let reply = |value: Value| server.post("/code/sessions/r/tool-suspension", json!({ "toolCallId": "c1", "resumeData": value }));
    assert_eq!(reply(json!({ "no": "answer" })).await.header("x-ac-outcome"), Some("invalid_answer"));
    assert_eq!(reply(json!("A")).await.header("x-ac-outcome"), Some("accepted"));
    let rest = stream.until("agent_end").await;
    let end = rest.iter().find(|event| event["type"] == "tool_end").unwrap();
    assert_eq!(end["result"], json!({ "content": "User answered: A", "isError": false }));
    assert_eq!(reply(json!("B")).await.json(), json!({ "ok": true }));
}

#[tokio::test]
async fn what_cannot_be_done_makes_no_session() {
    let server = Harness::start([]).await;
    let other = server.create("other").await;
    for (method, path, body, status, code) in [
        ("POST", "/mode", json!({ "modeId": "zzz" }), 404, "mode.not_found"),
        ("POST", "/thread", json!({ "threadId": "nope" }), 404, "thread.not_found"),
        ("POST", "/thread", json!({ "threadId": other }), 404, "thread.not_found"),
        ("PUT", "/threads/nope", json!({ "title": "x" }), 404, "thread.not_found"),
        ("DELETE", "/threads/nope", Value::Null, 404, "thread.not_found"),
        ("POST", "/threads/clone", json!({}), 404, "thread.not_found"),
        ("POST", "/messages", json!({ "message": "" }), 400, "message.empty"),
        ("POST", "/messages", json!({}), 400, "request.body"),
        ("DELETE", "/queue/q", Value::Null, 404, "queue.not_found"),
        ("DELETE", "/grants/g", Value::Null, 404, "grant.not_found"),
        ("POST", "/pending/r%2F1%2Fc%231", json!({ "action": "approve" }), 404, "answer.not_pending"),
    ] {
        let answer = server.json(method, &format!("/code/sessions/fresh{path}"), body).await;
        assert_eq!((answer.status, answer.json()["code"].as_str()), (status, Some(code)), "{method} {path}: {answer:?}");
    }
    let abort = server.post("/code/sessions/fresh/abort", Value::Null).await;
    assert_eq!((abort.status, abort.header("x-ac-outcome")), (200, Some("not_pending")));
    assert_eq!(server.get("/code/sessions/fresh/threads").await.json(), json!({ "threads": [] }));
    assert_eq!(server.get("/code/sessions/x/resources").await.json(), json!({ "resourceIds": ["other"] }));
}

#[tokio::test]
async fn threads_are_listed_switched_renamed_copied_and_deleted() {
    let server = Harness::start([Turn::text("one")]).await;
    let first = server.create("r").await;
    server.post("/code/sessions/r/messages", json!({ "message": "hi" })).await;
    server.rested("r").await;
    let second = server.post("/code/sessions/r/threads", json!({ "title": "b" })).await.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(server.json("PUT", &format!("/code/sessions/r/threads/{first}"), json!({ "title": "a" })).await.status, 200);
    // Renaming does not move the session (Q9).
    assert_eq!(server.get("/code/sessions/r").await.json()["threadId"], second.as_str());
    let clone = server.post("/code/sessions/r/threads/clone", json!({ "sourceThreadId": first, "title": "c" })).await.json();
    let copied = server.get(&format!("/code/sessions/r/threads/{}/messages", clone["id"].as_str().unwrap())).await.json();
    assert_eq!(copied["total"], 2);
    assert_eq!(server.post("/code/sessions/r/thread", json!({ "threadId": first })).await.status, 200);
    let titles = |value: Value| {
        let mut titles: Vec<_> =
            value["threads"].as_array().unwrap().iter().map(|thread| thread["title"].as_str().unwrap().to_owned()).collect();
        titles.sort_unstable();
        titles
    };
    assert_eq!(titles(server.get("/code/sessions/r/threads").await.json()), ["a", "b", "c"]);
    assert_eq!(server.get("/code/sessions/r/threads?limit=2").await.json()["threads"].as_array().unwrap().len(), 2);
    assert_eq!(server.json("DELETE", &format!("/code/sessions/r/threads/{first}"), Value::Null).await.status, 200);
    let state = server.get("/code/sessions/r").await.json();
    assert_eq!(state.get("threadId"), None, "{state}");
    assert_eq!(server.get(&format!("/code/sessions/r/threads/{first}/messages")).await.status, 404);
}

#[tokio::test]
async fn messages_come_by_pages_filtered_and_with_those_asked_for() {
    let server = Harness::start([Turn::text("one"), Turn::text("two"), Turn::text("three")]).await;
    let thread = server.create("r").await;
    for text in ["a", "b", "c"] {
        server.post("/code/sessions/r/messages", json!({ "message": text })).await;
        server.rested("r").await;
    }
    let page = |query: &str| {
        let path = format!("/code/sessions/r/threads/{thread}/messages{query}");
        let server = &server;
        async move { server.get(&path).await.json() }
    };
    let texts = |page: &Value| -> Vec<String> {
        page["messages"].as_array().unwrap().iter().map(|m| m["content"]["parts"][0]["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts(&page("?perPage=false").await), ["three", "c", "two", "b", "one", "a"]);
    assert_eq!(texts(&page("?limit=2").await), ["c", "three"]);
    let ascending = "&orderBy=%7B%22field%22%3A%22createdAt%22%2C%22direction%22%3A%22ASC%22%7D";
    let second = page(&format!("?page=1&perPage=4{ascending}")).await;
    assert_eq!(texts(&second), ["c", "three"]);
    assert_eq!(
        (&second["total"], &second["page"], &second["perPage"], &second["hasMore"]),
        (&json!(6), &json!(1), &json!(4), &json!(false))
    );
    assert_eq!(page("?perPage=2").await["hasMore"], true);
    let answers = page("?filter=%7B%22roles%22%3A%5B%22assistant%22%5D%7D").await;
    assert_eq!((texts(&answers), &answers["total"]), (vec!["three".into(), "two".into(), "one".into()], &json!(3)));
    let wanted = page("?perPage=false").await["messages"][3]["id"].as_str().unwrap().to_owned();
    let include = format!("%5B%7B%22id%22%3A%22{wanted}%22%2C%22withPreviousMessages%22%3A1%2C%22withNextMessages%22%3A1%7D%5D");
    let included = page(&format!("?perPage=0&include={include}")).await;
    assert_eq!((texts(&included), &included["total"]), (vec!["two".into(), "b".into(), "one".into()], &json!(0)));
}

#[tokio::test]
async fn a_session_is_told_from_others_by_its_scope() {
    let server = Harness::start([]).await;
    for scope in ["A", "B"] {
        server.post("/code/sessions", json!({ "resourceId": "r", "sessionScope": scope })).await;
    }
    server.post("/code/sessions/r/mode?sessionScope=A", json!({ "modeId": "plan" })).await;
    server.json("PUT", "/code/sessions/r/permissions/tool?sessionScope=A", json!({ "toolName": "echo", "policy": "deny" })).await;
    server.json("PUT", "/code/sessions/r/state?sessionScope=A", json!({ "state": { "yolo": true, "thinkingLevel": "high" } })).await;
    let state = |scope: &str| {
        let path = format!("/code/sessions/r?sessionScope={scope}");
        let server = &server;
        async move { server.get(&path).await.json() }
    };
    let (a, b) = (state("A").await, state("B").await);
    assert_eq!((&a["modeId"], &b["modeId"]), (&json!("plan"), &json!("build")));
    assert_ne!(a["threadId"], b["threadId"]);
    assert_eq!(a["settings"], json!({ "yolo": true, "notifications": "off", "smartEditing": true, "thinkingLevel": "high" }));
    assert_eq!(
        server.get("/code/sessions/r/permissions?sessionScope=A").await.json(),
        json!({ "categories": {}, "tools": { "echo": "deny" } })
    );
    assert_eq!(server.get("/code/sessions/r/permissions?sessionScope=B").await.json(), json!({ "categories": {}, "tools": {} }));
}

#[tokio::test]
async fn any_text_is_an_id_and_comes_back_as_it_was() {
    let server = Harness::start([]).await;
    for (id, path) in
        [("a/b", "a%2Fb"), ("ü?#%", "%C3%BC%3F%23%25"), ("a\u{0}b", "a%00b"), ("line\r\nset-cookie: x", "line%0D%0Aset-cookie%3A%20x")]
    {
        server.create(id).await;
        let state = server.get(&format!("/code/sessions/{path}")).await;
        assert_eq!((state.status, state.json()["resourceId"].as_str()), (200, Some(id)), "{id:?}");
        assert!(!state.head.contains("set-cookie"));
    }
}

#[tokio::test]
async fn a_session_that_gets_another_resource_goes_on_there_with_its_streams() {
    let server = Harness::start([Turn::text("there")]).await;
    server.create("old").await;
    server.json("PUT", "/code/sessions/old/permissions/tool", json!({ "toolName": "echo", "policy": "allow" })).await;
    server.post("/code/sessions/old/mode", json!({ "modeId": "plan" })).await;
    let mut stream = server.listen("/code/sessions/old/stream", &[]).await;
    assert_eq!(server.post("/code/sessions/old/resource", json!({ "newResourceId": "new" })).await.status, 200);
    let state = server.get("/code/sessions/new").await.json();
    assert_eq!((&state["resourceId"], &state["modeId"]), (&json!("new"), &json!("plan")));
    assert!(state["threadId"].is_string());
    assert_eq!(server.get("/code/sessions/new/permissions").await.json(), json!({ "categories": {}, "tools": { "echo": "allow" } }));
    server.post("/code/sessions/new/messages", json!({ "message": "hi" })).await;
    let names = stream.names_until("agent_end").await;
    assert!(names.contains(&"message_update".to_owned()), "{names:?}");
    assert_eq!(server.get("/code/sessions/old/permissions").await.json(), json!({ "categories": {}, "tools": {} }));
    assert_eq!(server.get("/code/sessions/old").await.json()["modeId"], "build");
}

#[tokio::test]
async fn a_session_that_is_stored_and_asleep_keeps_what_it_has_when_another_one_becomes_it() {
    let mut first = Harness::start([]).await;
    first.create("new").await;
    first.post("/code/sessions/new/mode", json!({ "modeId": "plan" })).await;
    first.stop().await;
    let server = Harness::on(first.storage.clone(), [], Limits::default(), &[]).await;
    server.create("old").await;
    assert_eq!(server.post("/code/sessions/old/resource", json!({ "newResourceId": "new" })).await.status, 200);
    assert_eq!(server.get("/code/sessions/new").await.json()["modeId"], "plan");
}
