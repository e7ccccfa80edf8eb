//! The page for people, as it is served, and what it reads that other clients do not.

use ac_testkit::Turn;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};

use crate::support::Harness;

#[tokio::test]
async fn the_page_comes_with_the_headers_that_keep_it_safe_and_is_sent_once() {
    let server = Harness::start([]).await;
    let page = server.send("GET", "/", &[], b"").await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let html = String::from_utf8(page.body.clone()).unwrap();
    assert!(html.contains("<meta name=\"ac-prefix\" content=\"/api\" />"), "{html}");
    let policy = page.header("content-security-policy").unwrap();
    for rule in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "trusted-types 'none'"] {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!((page.header("x-content-type-options"), page.header("cache-control")), (Some("nosniff"), Some("no-cache")));
    // Every file that the page names is there, and a browser that has one is told so.
    let named = html.split('"').filter(|word| word.starts_with("console/"));
    for path in named {
        let file = server.send("GET", &format!("/{path}"), &[], b"").await;
        assert_eq!((file.status, file.header("x-content-type-options")), (200, Some("nosniff")), "{path}");
        let tag = file.header("etag").unwrap();
        let again = server.send("GET", &format!("/{path}"), &[("if-none-match", tag)], b"").await;
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
    }
    assert_eq!(server.send("GET", "/console/../Cargo.toml", &[], b"").await.status, 404);
    assert_eq!(server.send("GET", "/console/test/package.json", &[], b"").await.status, 404);
    assert_eq!(server.send("POST", "/", &[], b"").await.status, 404);
    assert_eq!(server.send("GET", "/", &[("origin", "http://evil.example")], b"").await.status, 403);
}

#[tokio::test]
async fn the_page_needs_no_token_and_what_it_shows_does() {
    let server = Harness::with([], ac_server::Limits::default(), &["ada"]).await;
    assert_eq!(server.send("GET", "/", &[], b"").await.status, 200);
    assert_eq!(server.get("").await.status, 401);
}

#[tokio::test]
async fn what_waits_in_any_session_of_a_resource_is_listed_with_the_session_that_takes_the_answer() {
    let note = |call: &str| Turn::tool(call, "write_note", json!({ "path": "a", "content": "b" }));
    let server = Harness::start([note("c1"), Turn::text("ok")]).await;
    server.create("other").await;
    let made = server.post("/code/sessions", json!({ "resourceId": "r", "sessionScope": "s 1", "threadId": "t1" })).await;
    assert_eq!(made.status, 200, "{made:?}");
    server.post("/code/sessions/r/messages?sessionScope=s%201", json!({ "message": "go" })).await;
    let mut all = vec![];
    for _ in 0..500 {
        all = server.get("/code/sessions/r/pending?all=1").await.json()["pending"].as_array().unwrap().clone();
        if !all.is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!((&all[0]["threadId"], &all[0]["sessionScope"]), (&json!("t1"), &json!("s 1")));
    assert_eq!(server.get("/code/sessions/r/pending").await.json(), json!({ "pending": [] }));
    assert_eq!(server.get("/code/sessions/other/pending?all=1").await.json(), json!({ "pending": [] }));
    let threads = server.get("/code/sessions/r/threads?all=1").await.json();
    let thread = &threads["threads"][0];
    assert_eq!((&thread["id"], &thread["sessionScope"], &thread["state"]), (&json!("t1"), &json!("s 1"), &json!("active")));
    assert!(thread["createdAt"].is_string());
    let plain: Value = server.get("/code/sessions/r/threads").await.json();
    assert_eq!(plain["threads"][0].get("sessionScope"), None, "the reference's clients see the reference's fields");
    let id = all[0]["id"].as_str().unwrap().replace('/', "%2F").replace('#', "%23");
    let answered = server.post(&format!("/code/sessions/r/pending/{id}?sessionScope=s%201"), json!({ "action": "approve" })).await;
    assert_eq!(answered.status, 200, "{answered:?}");
}

#[tokio::test]
async fn a_host_with_a_page_of_its_own_has_no_console() {
    let server = ac_server::Server::builder().console(false).build().unwrap();
    let own = axum::Router::new().route("/", axum::routing::get(|| async { "the shop" })).merge(server.router());
    let service = TowerToHyperService::new(own);
    for (path, status) in [("/", 200), ("/console/app.js", 404), ("/api/agent-controller", 200)] {
        let request = http::Request::get(path).body(axum::body::Body::empty()).unwrap();
        assert_eq!(service.call(request).await.unwrap().status(), status, "{path}");
    }
}
