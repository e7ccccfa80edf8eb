//! What holds for every route, also for those that are added later: the routes and their bodies are read from the description that the
//! server serves.

use ac_server::Limits;
use ac_storage::{Storage as _, domain::ThreadQuery};
use ac_testkit::Turn;
use serde_json::{Map, Value, json};

use crate::support::{Answer, Harness, token};

/// One route, and what its body may hold.
struct Route {
    method: String,
    path: String,
    body: Option<Value>,
}

impl Route {
    /// All of them below the prefix.
    async fn all(server: &Harness) -> Vec<Self> {
        let description = server.send("GET", "/openapi.json", &[], b"").await.json();
        let mut out = vec![];
        for (path, methods) in description["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                if let Some(path) = path.strip_prefix("/api/agent-controller") {
                    let body = operation.pointer("/requestBody/content/application~1json/schema").cloned();
                    out.push(Self { method: method.to_uppercase(), path: path.to_owned(), body });
                }
            }
        }
        assert!(out.len() >= 45, "the routes of the reference and ours");
        out
    }

    fn names(&self, parameter: &str) -> bool {
        self.path.contains(&format!("{{{parameter}}}"))
    }

    /// The path with these in place of its parameters, and `x` for others.
    fn at(&self, resource: &str, others: &[(&str, &str)]) -> String {
        let mut path = self.path.replace("{controllerId}", "code").replace("{resourceId}", resource);
        for (name, value) in others {
            let encoded: String = value.bytes().map(|byte| format!("%{byte:02x}")).collect();
            path = path.replace(&format!("{{{name}}}"), &encoded);
        }
        while let Some((before, rest)) = path.split_once('{') {
            path = format!("{before}x{}", rest.split_once('}').unwrap().1);
        }
        path
    }

    fn fields(&self) -> Map<String, Value> {
        self.body.as_ref().and_then(|body| body["properties"].as_object()).cloned().unwrap_or_default()
    }

    /// A body that fits: what must be there, with `given` where it is text.
    fn sample(&self, given: &[(&str, &str)]) -> Value {
        let Some(body) = &self.body else { return Value::Null };
        let fields = self.fields();
        let required = body["required"].as_array().cloned().unwrap_or_default();
        let named = given.iter().filter(|(name, _)| fields.contains_key(*name)).map(|(name, _)| *name);
        let names = required.iter().filter_map(Value::as_str).chain(named);
        let value = |name: &str| match given.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => json!(value),
            None => fitting(&fields[name]),
        };
        Value::Object(names.map(|name| (name.to_owned(), value(name))).collect())
    }
}

fn fitting(schema: &Value) -> Value {
    match (&schema["enum"][0], schema["type"].as_str()) {
        (Value::String(first), _) => json!(first),
        (_, Some("string") | None) => json!("x"),
        (_, Some("boolean")) => json!(true),
        (_, Some("integer")) => json!(1),
        (_, Some("array")) => json!([]),
        (_, Some("object")) => json!({}),
        (_, other) => panic!("a type that this test does not know: {other:?}"),
    }
}

/// Values that do not fit.
fn unfitting(schema: &Value) -> Vec<Value> {
    let all = [json!("x"), json!(7), json!(true), json!([]), json!({}), Value::Null, json!(-1), json!(0.5)];
    let Some(kind) = schema["type"].as_str() else { return vec![] };
    let fits = |value: &Value| match kind {
        "string" => value.is_string() && schema["enum"].is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_u64().is_some(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    all.into_iter().filter(|value| !fits(value)).collect()
}

fn code(answer: &Answer) -> (u16, String) {
    (answer.status, answer.json()["code"].as_str().unwrap_or_default().to_owned())
}

/// How many threads, sessions and owners there are.
async fn made(server: &Harness) -> usize {
    let mut count = server.storage.threads().list(&ThreadQuery { hidden: true, ..ThreadQuery::default() }).await.unwrap().items.len();
    for rows in ["ac-server.owners", "code"] {
        count += server.storage.sessions().list(&rows.into(), None, 0).await.unwrap().items.len();
    }
    count
}

/// A resource of Ada's with everything in it that has an id.
async fn busy(server: &Harness) -> Vec<(&'static str, String)> {
    let ada = |method: &'static str, path: &'static str, body: Value| async move {
        let answer = server.as_person("ada", method, path, body).await;
        assert_eq!(answer.status, 200, "{method} {path}: {answer:?}");
        answer.json()
    };
    let thread = ada("POST", "/code/sessions", json!({ "resourceId": "r" })).await["threadId"].as_str().unwrap().to_owned();
    ada("POST", "/code/sessions/r/grants", json!({ "toolName": "boom" })).await;
    ada("POST", "/code/sessions/r/messages", json!({ "message": "go" })).await;
    let pending = loop {
        let pending = ada("GET", "/code/sessions/r/pending", Value::Null).await;
        if let Some(id) = pending["pending"][0]["id"].as_str() {
            break id.to_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    ada("POST", "/code/sessions/r/follow-up", json!({ "message": "later" })).await;
    let queued = ada("GET", "/code/sessions/r/queue", Value::Null).await["queue"][0]["id"].as_str().unwrap().to_owned();
    let grant = ada("GET", "/code/sessions/r/grants", Value::Null).await["grants"][0]["id"].as_str().unwrap().to_owned();
    vec![("threadId", thread), ("pendingId", pending), ("messageId", queued), ("grantId", grant)]
}

/// Everything that is to be seen of it.
async fn seen(server: &Harness) -> Vec<Value> {
    let mut out = vec![];
    for path in ["", "/pending", "/queue", "/grants", "/permissions", "/goal", "/threads?all=1"] {
        out.push(server.as_person("ada", "GET", &format!("/code/sessions/r{path}"), Value::Null).await.json());
    }
    out
}

/// The model wants to write a note, and says nothing much to anybody else.
fn turns() -> [Turn; 2] {
    [Turn::tool("c1", "write_note", json!({ "path": "a", "content": "b" })), Turn::text("ok").forever()]
}

#[tokio::test]
async fn every_route_of_a_resource_is_closed_to_others_and_to_nobody() {
    let server = Harness::with(turns(), Limits::default(), &["ada", "bob"]).await;
    let ids = busy(&server).await;
    let ids: Vec<_> = ids.iter().map(|(name, id)| (*name, id.as_str())).collect();
    let before = (seen(&server).await, made(&server).await);
    for route in Route::all(&server).await {
        let path = route.at("r", &ids);
        let body = route.sample(&ids);
        let nobody = server.json(&route.method, &path, body.clone()).await;
        assert_eq!(code(&nobody), (401, "auth.invalid_token".into()), "{} {path}", route.method);
        if route.names("resourceId") {
            for query in ["", "?sessionScope=other", "?resourceId=mine", "?events=all&all=1"] {
                let answer = server.as_person("bob", &route.method, &format!("{path}{query}"), body.clone()).await;
                assert_eq!(code(&answer), (404, "resource.not_found".into()), "{} {path}{query}", route.method);
            }
        }
    }
    assert_eq!((seen(&server).await, made(&server).await), before);
}

#[tokio::test]
async fn what_is_somebody_elses_is_not_reached_by_its_id_from_ones_own() {
    let server = Harness::with(turns(), Limits::default(), &["ada", "bob"]).await;
    let ids = busy(&server).await;
    server.as_person("bob", "POST", "/code/sessions", json!({ "resourceId": "mine" })).await;
    let mut ids: Vec<_> = ids.iter().map(|(name, id)| (*name, id.as_str())).collect();
    let thread = ids[0].1;
    ids.extend([("sourceThreadId", thread), ("toolCallId", "c1")]);
    let before = seen(&server).await;
    for route in Route::all(&server).await {
        // The session goes on as another resource's; it comes last.
        if !route.names("resourceId") || route.path.ends_with("/stream") || route.path.ends_with("/resource") {
            continue;
        }
        let path = route.at("mine", &ids);
        let answer = server.as_person("bob", &route.method, &path, route.sample(&ids)).await;
        let named = ["threadId", "pendingId", "messageId", "grantId"].iter().any(|name| route.names(name));
        let fields = route.fields();
        if named || fields.contains_key("threadId") || fields.contains_key("sourceThreadId") {
            assert_eq!(answer.status, 404, "{} {path}: {answer:?}", route.method);
        } else if fields.contains_key("toolCallId") {
            assert_ne!(answer.header("x-ac-outcome"), Some("accepted"), "{path}: {answer:?}");
        } else {
            assert!(answer.status < 500, "{} {path}: {answer:?}", route.method);
        }
        let text = String::from_utf8_lossy(&answer.body);
        assert!(answer.status == 404 || !text.contains(thread), "{} {path} tells of it: {text}", route.method);
    }
    for query in [format!("?threadId={thread}"), "?sessionScope=r".to_owned()] {
        let answer = server.as_person("bob", "GET", &format!("/code/sessions/mine{query}"), Value::Null).await;
        assert!(!String::from_utf8_lossy(&answer.body).contains(&format!("\"threadId\":\"{thread}\"")), "{answer:?}");
    }
    // Messages of a thread of one's own, with some of another's asked for.
    let own = server.as_person("bob", "POST", "/code/sessions/mine/threads", json!({})).await.json()["id"].as_str().unwrap().to_owned();
    let hers = server.as_person("ada", "GET", &format!("/code/sessions/r/threads/{thread}/messages"), Value::Null).await.json();
    let message = hers["messages"][0]["id"].as_str().unwrap();
    let include: String = json!([{ "id": message, "threadId": thread, "withPreviousMessages": 9, "withNextMessages": 9 }])
        .to_string()
        .bytes()
        .map(|byte| format!("%{byte:02x}"))
        .collect();
    let page = server.as_person("bob", "GET", &format!("/code/sessions/mine/threads/{own}/messages?include={include}"), Value::Null).await;
    assert_eq!(page.json()["messages"], json!([]), "{page:?}");
    assert_eq!(seen(&server).await, before);
}

#[tokio::test]
async fn a_body_of_the_wrong_kind_is_refused_by_every_route_and_makes_nothing() {
    let server = Harness::start([]).await;
    for route in Route::all(&server).await.into_iter().filter(|route| route.body.is_some()) {
        let path = route.at("r", &[]);
        for bad in [json!([]), json!([{}]), json!("x"), json!(7), json!(true)] {
            let answer = server.json(&route.method, &path, bad.clone()).await;
            let field = answer.json()["issues"][0]["field"].clone();
            assert_eq!((answer.status, field), (400, json!("root")), "{} {path} {bad}", route.method);
        }
        let sample = route.sample(&[]);
        for (name, schema) in route.fields() {
            for bad in unfitting(&schema) {
                let mut body = sample.clone();
                body[&name] = bad.clone();
                let answer = server.json(&route.method, &path, body).await;
                let field = answer.json()["issues"][0]["field"].as_str().unwrap_or_default().to_owned();
                assert_eq!((answer.status, field), (400, name.clone()), "{} {path} {name}: {bad}", route.method);
            }
            if sample.get(&name).is_some() {
                let mut body = sample.clone();
                body.as_object_mut().unwrap().remove(&name);
                let answer = server.json(&route.method, &path, body).await;
                assert_eq!(answer.status, 400, "{} {path} without {name}", route.method);
            }
            if let Some(most) = schema["maxLength"].as_u64() {
                let mut body = sample.clone();
                body[&name] = json!("x".repeat(usize::try_from(most).unwrap() + 1));
                assert_eq!(server.json(&route.method, &path, body).await.status, 400, "{} {path}: a long {name}", route.method);
            }
        }
    }
    assert_eq!(made(&server).await, 0);
}

#[tokio::test]
async fn nothing_that_is_sent_gets_into_the_head_of_an_answer_or_breaks_a_route() {
    let server = Harness::start([Turn::text("ok").forever()]).await;
    let evil = "x\r\nx-evil: 1\r\n\r\n<script>\u{0}\u{2028}";
    let encoded: String = evil.bytes().map(|byte| format!("%{byte:02x}")).collect();
    for route in Route::all(&server).await {
        if route.path.ends_with("/stream") {
            continue;
        }
        let given: Vec<_> =
            route.fields().into_iter().filter(|(_, schema)| schema["type"] == "string" && schema["enum"].is_null()).collect();
        let given: Vec<_> = given.iter().map(|(name, _)| (name.as_str(), evil)).collect();
        let parameters = ["threadId", "pendingId", "messageId", "grantId"].map(|name| (name, evil));
        let mut body = route.sample(&given);
        if let Value::Object(fields) = &mut body {
            // What is not known is not looked at.
            fields.extend([("__proto__".to_owned(), json!({ "a": 1 })), ("constructor".to_owned(), json!([]))]);
        }
        for controller in ["code", encoded.as_str()] {
            let path = format!(
                "{}?requestContext=%7b%22a%22%3a1%7d&x={encoded}",
                route.at(&encoded, &parameters).replace("/code", &format!("/{controller}"))
            );
            let answer = server.json(&route.method, &path, body.clone()).await;
            assert!((200..500).contains(&answer.status), "{} {path}: {answer:?}", route.method);
            assert!(!answer.head.contains("evil") && !answer.head.contains("<script>"), "{}", answer.head);
            assert_eq!(answer.header("content-type"), Some("application/json"), "{} {path}", route.method);
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
            answer.json();
        }
    }
    server.model.settled().await;
}

#[tokio::test]
async fn paths_that_go_elsewhere_lead_nowhere() {
    let server = Harness::start([]).await;
    for path in [
        "/api/agent-controller/code/sessions/r/..",
        "/api/agent-controller/code/sessions/../../../../etc/passwd",
        "/api/agent-controller/code/sessions/r/%2e%2e/stream/x",
        "/api/agent-controller//code/sessions",
        "/api/agent-controller/code/sessions/r/threads//messages",
        "/console/%2e%2e/Cargo.toml",
        "/console/..%2fCargo.toml",
        "//health",
        "/api",
        "/api/agent-controllers/code/channels/none/webhook/x",
    ] {
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "PROPFIND"] {
            let answer = server.send(method, path, &[("content-type", "application/json")], b"{}").await;
            assert!((400..500).contains(&answer.status), "{method} {path}: {answer:?}");
        }
    }
    assert_eq!(made(&server).await, 0);
}

#[tokio::test]
async fn who_listens_to_what_is_nobodys_yet_sees_nothing_of_it_however_they_ask() {
    let server = Harness::with([Turn::text("secret")], Limits::default(), &["ada", "bob"]).await;
    let bob = format!("Bearer {}", token("bob"));
    let mut spies = vec![];
    for (query, id) in [("", "x-1"), ("?events=all", "x-1"), ("?events=all", ""), ("", "0-0")] {
        let mut headers = vec![("authorization", bob.as_str())];
        if !id.is_empty() {
            headers.push(("last-event-id", id));
        }
        spies.push(server.listen(&format!("/code/sessions/r/stream{query}"), &headers).await);
    }
    server.as_person("ada", "POST", "/code/sessions/r/messages", json!({ "message": "secret" })).await;
    server.model.settled().await;
    for mut spy in spies {
        while let Some(frame) = spy.frame().await {
            assert!(!frame.contains("secret") && !frame.contains("\"isRunning\":true"), "{frame}");
        }
    }
}
