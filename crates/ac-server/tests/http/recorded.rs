//! Recorded exchanges of the published client with the reference server, sent again. Skipped where they are not at hand.

use std::{collections::HashMap, path::PathBuf};

use serde_json::{Value, json};

use crate::support::Harness;

/// The exchanges that need no model. Those with a stream are checked by the tests of the stream.
const REPLAYED: [&str; 28] = [
    "001", "003", "005", "007", "009", "011", "013", "015", "017", "093", "095", "099", "101", "103", "107", "111", "117", "123", "125",
    "127", "129", "133", "137", "141", "143", "145", "149", "165",
];

/// Accidents of the reference that are not ours: the request, what it answered, what we answer (HTTP.md).
fn deviates(method: &str, path: &str, recorded: u16) -> Option<u16> {
    match (method, path, recorded) {
        // Q2, Q3: unknown modes and threads.
        (_, _, 500) => Some(404),
        _ => None,
    }
}

struct Exchange {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
    status: u16,
    answer: String,
}

fn folder() -> Option<PathBuf> {
    let shared = std::env::var_os("AC_SHARED").map(PathBuf::from);
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = shared.unwrap_or(beside).join("cases/http");
    folder.is_dir().then_some(folder)
}

fn read(text: &str) -> Vec<Exchange> {
    let mut out = vec![];
    for part in text.split("=== #").skip(1) {
        let Some((_, rest)) = part.split_once(">>> REQUEST\n") else { continue };
        let Some((request, response)) = rest.split_once("<<< RESPONSE\n") else { continue };
        let (head, body) = request.split_once("\n\n").unwrap_or((request, ""));
        let mut lines = head.lines();
        let mut first = lines.next().unwrap().split(' ');
        let (method, path) = (first.next().unwrap().to_owned(), first.next().unwrap().to_owned());
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .filter(|(name, _)| matches!(*name, "content-type" | "accept"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let (head, answer) = response.split_once("\n\n").unwrap_or((response, ""));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        out.push(Exchange { method, path, headers, body: body.trim().to_owned(), status, answer: answer.trim().to_owned() });
    }
    out
}

/// Ids and times of then, and what they are now.
#[derive(Default)]
struct Now(HashMap<String, String>);

impl Now {
    fn of(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (then, now)| text.replace(then, now))
    }

    /// Compares, and learns what stands for what.
    fn compare(&mut self, then: &Value, now: &Value, at: &str, found: &mut Vec<String>) {
        match (then, now) {
            (Value::Object(then), Value::Object(now)) => {
                for (key, value) in then {
                    match now.get(key) {
                        Some(ours) => self.compare(value, ours, &format!("{at}.{key}"), found),
                        None => found.push(format!("{at}.{key} is missing")),
                    }
                }
                // What an error says besides is ours.
                for key in now.keys().filter(|key| !then.contains_key(*key) && *key != "code") {
                    found.push(format!("{at}.{key} is not the reference's"));
                }
            }
            (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
                for (n, (then, now)) in then.iter().zip(now).enumerate() {
                    self.compare(then, now, &format!("{at}.{n}"), found);
                }
            }
            (Value::String(then), Value::String(now)) if is_fresh(then) => {
                let known = self.0.entry(then.clone()).or_insert_with(|| now.clone());
                if known != now && then.len() == 36 {
                    found.push(format!("{at}: {now} where {known} was expected"));
                }
            }
            (Value::Number(then), Value::Number(_)) if then.as_u64().is_some_and(|number| number > 1_000_000_000_000) => {}
            // A sentence that names an id.
            (Value::String(then), Value::String(now)) if self.of(then) == *now => {}
            (then, now) if then == now => {}
            (then, now) => found.push(format!("{at}: {now} where the reference has {then}")),
        }
    }
}

/// A random id, or a time.
fn is_fresh(text: &str) -> bool {
    let uuid = text.len() == 36 && text.bytes().filter(|byte| *byte == b'-').count() == 4;
    uuid || (text.len() == 24 && text.ends_with('Z'))
}

#[tokio::test]
async fn recorded_requests_are_answered_as_they_were_but_for_accidents() {
    let Some(folder) = folder() else {
        eprintln!("skipped: there are no recorded exchanges here");
        return;
    };
    let server = Harness::start([]).await;
    let mut problems = vec![];
    let mut compared = 0;
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if !REPLAYED.iter().any(|number| name.starts_with(number)) {
            continue;
        }
        let mut now = Now::default();
        for exchange in read(&std::fs::read_to_string(&file).unwrap()) {
            if exchange.path.contains("/stream") || exchange.path.contains("/messages?perPage") || is_run(&exchange) {
                continue;
            }
            // Times are milliseconds; what was recorded one after the other must not happen within one.
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            let headers: Vec<_> = exchange.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let answer = server.send(&exchange.method, &now.of(&exchange.path), &headers, now.of(&exchange.body).as_bytes()).await;
            let place = format!("{name} {} {}", exchange.method, exchange.path);
            let expected = deviates(&exchange.method, &exchange.path, exchange.status).unwrap_or(exchange.status);
            if answer.status != expected {
                problems.push(format!(
                    "{place}: {} where {expected} was expected: {}",
                    answer.status,
                    String::from_utf8_lossy(&answer.body)
                ));
                continue;
            }
            compared += 1;
            // Q13: ours is JSON.
            let then = serde_json::from_str(&exchange.answer).unwrap_or_else(|_| json!({ "error": "Not found" }));
            let mut found = vec![];
            now.compare(&then, &answer.json(), "", &mut found);
            problems.extend(found.into_iter().map(|problem| format!("{place}: {problem}")));
        }
    }
    assert!(problems.is_empty(), "{} problems in {compared} exchanges:\n{}", problems.len(), problems.join("\n"));
    assert!(compared > 70, "only {compared} exchanges were compared");
}

/// What would need the recorded model.
fn is_run(exchange: &Exchange) -> bool {
    exchange.path.ends_with("/messages") && exchange.status == 200 && exchange.method == "POST"
}
