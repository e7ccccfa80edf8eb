//! The reference's JSON: what its clients read.
//!
//! Stores keep our own serde form. Events, HTTP, `--json` and scenario output pass through here and nowhere else, so that the form is
//! decided once: camelCase fields, content format 2, ISO times, a person's message as a signal (WIRE sections 4 and 6).

mod event;
mod message;
mod stored;
mod view;

pub use event::{body, event};
pub use message::{live, part};
use serde_json::{Map, Value, json};
pub use stored::stored;
pub use view::display_state;

use crate::{ErrorInfo, Usage, event::ThreadInfo};

/// A thread.
pub fn thread(thread: &ThreadInfo) -> Value {
    let mut out = json!({
        "id": thread.id,
        "resourceId": thread.resource,
        "title": thread.title,
        "createdAt": thread.created_at.to_string(),
        "updatedAt": thread.updated_at.to_string(),
    });
    if !thread.metadata.is_empty() {
        set(&mut out, "metadata", Value::Object(thread.metadata.clone()));
    }
    out
}

/// An error.
pub fn error(error: &ErrorInfo) -> Value {
    json!({ "name": error.code, "message": error.message })
}

/// Tokens of one step.
pub fn usage(usage: &Usage) -> Value {
    let mut out = Map::new();
    out.insert("promptTokens".into(), usage.input.into());
    out.insert("completionTokens".into(), usage.output.into());
    out.insert("totalTokens".into(), usage.total.into());
    for (key, value) in
        [("reasoningTokens", usage.reasoning), ("cachedInputTokens", usage.cached_input), ("cacheCreationInputTokens", usage.cache_write)]
    {
        if let Some(value) = value {
            out.insert(key.into(), value.into());
        }
    }
    if let Some(raw) = &usage.raw {
        out.insert("raw".into(), raw.clone());
    }
    Value::Object(out)
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(map) = object {
        map.insert(key.to_owned(), value);
    }
}

fn set_some(object: &mut Value, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        set(object, key, value);
    }
}
