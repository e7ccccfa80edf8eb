//! Ids and times that differ every time become names that do not.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
};

use ac_core::Ids;
use serde_json::Value;

/// Ids that are recognised wherever they stand, alone or as the beginning of what derives from them: `~run-3~`.
#[derive(Debug, Default)]
pub(super) struct MarkedIds(AtomicU64);

impl Ids for MarkedIds {
    fn fresh(&self, kind: &str) -> String {
        format!("~{kind}-{}~", self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// Names ids in the order in which it meets them.
#[derive(Debug, Default)]
pub(super) struct Normal(HashMap<String, usize>);

/// Numbers that say when or how long.
const TIMES: [&str; 9] =
    ["createdAt", "updatedAt", "startedAt", "timestamp", "durationMs", "activeDurationMs", "duration", "retryDelay", "clonedAt"];

impl Normal {
    pub(super) fn value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                for (key, field) in fields.iter_mut() {
                    if field.is_number() && TIMES.contains(&key.as_str()) {
                        *field = "<num>".into();
                    } else {
                        self.value(field);
                    }
                }
                if fields.keys().any(|key| key.contains('~')) {
                    *fields = std::mem::take(fields).into_iter().map(|(key, field)| (self.text(&key), field)).collect();
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) -> String {
        if is_time(text) {
            return "<ts>".to_owned();
        }
        let (mut out, mut rest) = (String::with_capacity(text.len()), text);
        while let Some((before, from)) = rest.split_once('~') {
            out.push_str(before);
            match mark(from) {
                Some(len) => {
                    let (id, after) = from.split_at_checked(len).unwrap_or((from, ""));
                    let next = self.0.len() + 1;
                    let n = *self.0.entry(id.to_owned()).or_insert(next);
                    out.push_str(&format!("<id{n}>"));
                    rest = after;
                }
                None => {
                    out.push('~');
                    rest = from;
                }
            }
        }
        out.push_str(rest);
        out
    }
}

/// How long the id is that begins before `text`: `run-3~`, and what derives from it.
fn mark(text: &str) -> Option<usize> {
    let (name, after) = text.split_once('~')?;
    let (kind, n) = name.rsplit_once('-')?;
    let known = !kind.is_empty() && kind.bytes().all(|c| c.is_ascii_lowercase() || c == b'-' || c == b'_') && !n.is_empty();
    if !known || !n.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let derived =
        if after.starts_with('/') { after.bytes().take_while(|c| c.is_ascii_alphanumeric() || b"/_#~-".contains(c)).count() } else { 0 };
    Some(name.len() + 1 + derived)
}

/// `2026-01-02T03:04:05.678Z`.
fn is_time(text: &str) -> bool {
    let shape = b"0000-00-00T00:00:00";
    let bytes = text.as_bytes();
    bytes.len() > shape.len()
        && bytes.len() <= 32
        && bytes.ends_with(b"Z")
        && shape.iter().zip(bytes).all(|(shape, byte)| if *shape == b'0' { byte.is_ascii_digit() } else { shape == byte })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_named_in_order_of_appearance_also_within_text_and_with_what_derives_from_them() {
        let mut value = json!([
            "~thread-1~", "~run-2~/3", "run ~run-2~ of ~thread-1~.", "~run-2~/3/c1#1", "a ~ b~c", "2026-01-02T03:04:05.678Z",
            { "createdAt": 5, "durationMs": 7, "count": 7, "text": "T" }
        ]);
        Normal::default().value(&mut value);
        assert_eq!(
            value,
            json!([
                "<id1>", "<id2>", "run <id3> of <id1>.", "<id4>", "a ~ b~c", "<ts>",
                { "createdAt": "<num>", "durationMs": "<num>", "count": 7, "text": "T" }
            ])
        );
    }
}
