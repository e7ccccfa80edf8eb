//! What happened, in the order in which it happened.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::WaitFor;

/// The lines of a recording, while they are written.
#[derive(Debug)]
pub(super) struct Log {
    told: Mutex<Told>,
    changed: watch::Sender<usize>,
    keep_display: bool,
}

#[derive(Debug, Default)]
struct Told {
    lines: Vec<Value>,
    events: Vec<Seen>,
    counts: BTreeMap<String, u64>,
    numbered: u64,
    /// The place of the action that the host is at.
    at: usize,
    driver_error: Option<String>,
}

#[derive(Debug)]
struct Seen {
    session: String,
    body: Value,
    taken: bool,
}

impl Log {
    pub(super) fn new(keep_display: bool) -> Self {
        Self { told: Mutex::default(), changed: watch::Sender::new(0), keep_display }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The host is at this place of the list.
    pub(super) fn reach(&self, at: usize) {
        self.told().at = at;
    }

    pub(super) fn action(&self, name: &str, args: Option<&Value>, session: Option<&str>) {
        let mut told = self.told();
        let mut line = json!({ "k": "action", "i": told.at, "do": name });
        put(&mut line, "args", args.cloned());
        put(&mut line, "s", session.map(Value::from));
        told.lines.push(line);
    }

    /// Something has its result; `None` where it has none.
    pub(super) fn result(&self, name: &str, result: Option<Value>) {
        let mut told = self.told();
        let mut line = json!({ "k": "result", "i": told.at, "do": name });
        put(&mut line, "r", result);
        told.lines.push(line);
    }

    /// Something was refused.
    pub(super) fn threw(&self, name: &str, code: &str, message: &str) {
        let mut told = self.told();
        let line = json!({ "k": "threw", "i": told.at, "do": name, "error": { "__error": code, "message": message } });
        told.lines.push(line);
    }

    pub(super) fn note(&self, note: &str) {
        self.told().lines.push(json!({ "k": "driver_note", "note": note }));
    }

    /// The list could not be followed; the first reason is kept.
    pub(super) fn driver_error(&self, error: impl Into<String>) {
        self.told().driver_error.get_or_insert(error.into());
    }

    pub(super) fn event(&self, session: &str, body: Value) {
        let kind = body.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut told = self.told();
        *told.counts.entry(kind.clone()).or_default() += 1;
        if kind != DISPLAY || self.keep_display {
            told.numbered += 1;
            let mut line = json!({ "k": "event", "n": told.numbered, "s": session });
            if let (Value::Object(line), Value::Object(body)) = (&mut line, &body) {
                line.extend(body.clone());
            }
            told.lines.push(line);
        }
        told.events.push(Seen { session: session.to_owned(), body, taken: false });
        let seen = told.events.len();
        drop(told);
        self.changed.send_replace(seen);
    }

    /// Waits for an event, past ones included. Says whether it came in time.
    pub(super) async fn wait(&self, wait: &WaitFor, patience: Duration) -> bool {
        let mut changed = self.changed.subscribe();
        let found = async { while !self.told().take(wait) && changed.changed().await.is_ok() {} };
        tokio::time::timeout(patience, found).await.is_ok()
    }

    /// How many events came so far.
    pub(super) fn events(&self) -> usize {
        self.told().events.len()
    }

    /// Waits for an event of one of these types in a session that came after the first `begin` events.
    pub(super) async fn wait_after(&self, begin: usize, session: &str, kinds: &[&str], patience: Duration) {
        let mut changed = self.changed.subscribe();
        let came = || {
            let told = self.told();
            told.events.iter().skip(begin).any(|seen| {
                seen.session == session && seen.body.get("type").and_then(Value::as_str).is_some_and(|kind| kinds.contains(&kind))
            })
        };
        let found = async { while !came() && changed.changed().await.is_ok() {} };
        // An action's own limit tells if it never comes.
        let _ = tokio::time::timeout(patience, found).await;
    }

    pub(super) fn take_lines(&self) -> (Vec<Value>, Value, Option<String>) {
        let mut told = self.told();
        (std::mem::take(&mut told.lines), json!(told.counts), told.driver_error.clone())
    }
}

const DISPLAY: &str = "display_state_changed";

impl Told {
    fn take(&mut self, wait: &WaitFor) -> bool {
        let mut fitting = self.events.iter_mut().filter(|seen| seen.fits(wait));
        let found = match wait.nth {
            Some(nth) => fitting.nth(nth.saturating_sub(1)),
            None => fitting.find(|seen| !seen.taken),
        };
        found.map(|seen| seen.taken = true).is_some()
    }
}

impl Seen {
    fn fits(&self, wait: &WaitFor) -> bool {
        self.body.get("type").and_then(Value::as_str) == Some(wait.kind.as_str())
            && wait.s.as_ref().is_none_or(|session| *session == self.session)
            && wait.fields.as_ref().is_none_or(|fields| contains(&self.body, fields))
    }
}

/// Whether all of `part` stands in `whole`.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part.iter().all(|(key, value)| whole.get(key).is_some_and(|of| contains(of, value))),
        _ => whole == part,
    }
}

fn put(line: &mut Value, key: &str, value: Option<Value>) {
    if let (Value::Object(line), Some(value)) = (line, value) {
        line.insert(key.to_owned(), value);
    }
}

/// A line as text, with what people look for first at its beginning.
pub(super) fn text(line: &Value) -> String {
    const FIRST: [&str; 8] = ["k", "i", "n", "s", "do", "type", "path", "id"];
    let Value::Object(fields) = line else { return line.to_string() };
    let first = FIRST.iter().filter_map(|key| fields.get_key_value(*key));
    let rest = fields.iter().filter(|(key, _)| !FIRST.contains(&key.as_str()));
    let pairs: Vec<String> = first.chain(rest).map(|(key, value)| format!("{}:{value}", Value::from(key.as_str()))).collect();
    format!("{{{}}}", pairs.join(","))
}

/// An object, as `final.json` shows maps.
pub(super) fn as_map(value: &Value) -> Value {
    let entries: Map<String, Value> = value.as_object().cloned().unwrap_or_default();
    json!({ "__map": entries.into_iter().map(|(key, value)| json!([key, value])).collect::<Vec<_>>() })
}
