//! What must hold of a recording whatever it is compared with.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use crate::scenario::Recording;

/// What is wrong with a recording of ours by itself.
pub fn complaints(recording: &Recording) -> Vec<String> {
    let mut found = recording.violations.clone();
    let mut sessions: BTreeMap<&str, Session> = BTreeMap::new();
    for line in recording.events.iter().filter(|line| field(line, "k") == "event") {
        let session = sessions.entry(field(line, "s")).or_default();
        if let Some(complaint) = session.event(line) {
            found.push(format!("event {}: {complaint}", line.get("n").unwrap_or(&Value::Null)));
        }
    }
    for (label, session) in recording.last.get("sessions").and_then(Value::as_object).into_iter().flatten() {
        let flag = |pointer: &str| session.pointer(pointer) == Some(&Value::Bool(true));
        // While an approval waits its segment stays open.
        if (flag("/run/isRunning") || flag("/displayState/isRunning")) && !flag("/run/armed") {
            found.push(format!("session {label} says that it runs, and nothing does"));
        }
    }
    found
}

#[derive(Default)]
struct Session {
    segments: u32,
    open: HashSet<String>,
}

impl Session {
    fn event(&mut self, event: &Value) -> Option<String> {
        match field(event, "type") {
            "agent_start" => self.segments += 1,
            "agent_end" => match self.segments.checked_sub(1) {
                Some(left) => self.segments = left,
                None => return Some("a segment ends that did not begin".to_owned()),
            },
            "message_start" => {
                let id = event.pointer("/message/id").and_then(Value::as_str).unwrap_or_default();
                self.open.insert(id.to_owned());
            }
            "message_update" if !self.open.contains(field(event, "id")) => return Some("a message goes on that is not open".to_owned()),
            "message_end" if !self.open.remove(field(event, "id")) => return Some("a message ends that is not open".to_owned()),
            _ => {}
        }
        None
    }
}

fn field<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
