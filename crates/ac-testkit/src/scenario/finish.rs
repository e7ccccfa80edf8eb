//! How the sessions were left, and the recording as a whole.

use std::sync::Arc;

use ac_controller::Session;
use ac_core::{DisplayState, Grant, ResourceId, ThreadId, Usage, permission::GrantTarget, wire};
use ac_storage::{
    domain::{MessageQuery, ThreadQuery},
    record::StoredMessage,
};
use serde_json::{Map, Value, json};

use super::{
    Recording, Scenario,
    log::as_map,
    normal::Normal,
    play::{Host, Listener},
    stage::{Cast, Stage},
};
use crate::server::Violation;

pub(super) async fn recording(scenario: &Scenario, host: &Arc<Host>, stage: &Stage) -> Recording {
    let mut sessions = Map::new();
    let listeners: Vec<_> = host.sessions().clone();
    let cast = host.cast();
    for (label, listener) in listeners {
        sessions.insert(label, left(&listener, &cast).await);
    }
    let exchanges = stage.server.requests();
    let mut requests: Vec<Value> = vec![];
    let mut summary: Vec<Value> = vec![];
    for (at, exchange) in exchanges.iter().enumerate() {
        let n = at + 1;
        let mut body = exchange.body.clone();
        let same =
            exchanges.iter().take(at).position(|other| other.body.get("tools").is_some() && other.body.get("tools") == body.get("tools"));
        if let (Some(same), Value::Object(fields)) = (same, &mut body) {
            fields.insert("tools".to_owned(), format!("<same as request {}>", same + 1).into());
        }
        requests.push(json!({ "n": n, "path": exchange.path, "body": body }));
        summary.push(summarised(n, &exchange.body));
    }
    let (mut events, counts, driver_error) = host.log.take_lines();
    let mut last = json!({
        "name": scenario.name,
        "desc": scenario.desc,
        "driverError": driver_error,
        "unhandled": [],
        "unusedTurns": stage.server.unused_turns(),
        "sessions": sessions,
        "requestsSummary": summary,
        "eventCounts": counts,
    });
    let mut normal = Normal::default();
    events.iter_mut().chain(&mut requests).for_each(|line| normal.value(line));
    normal.value(&mut last);
    let violations = stage.server.violations();
    let violations =
        violations.iter().filter(|violation| matches!(violation, Violation::Pairing { .. })).map(ToString::to_string).collect();
    Recording { name: scenario.name.clone(), events, requests, last, violations }
}

/// A session, as it stands. One whose process ended shows what it showed last; its messages are read by the present one.
async fn left(listener: &Listener, present: &Arc<Cast>) -> Value {
    let session = &listener.session;
    let here = Arc::ptr_eq(&listener.cast, present);
    let deleted = here && present.controller.session(session.key()).as_ref() != Some(session);
    let state = session.display_state();
    let thread = session.thread_id().filter(|_| !deleted);
    let usage = match session.token_usage().await {
        Ok(usage) if !deleted => usage,
        _ => state.token_usage.as_ref().clone(),
    };
    let (mut shown, mut threads) = (json!([]), vec![]);
    if let Some(thread) = &thread {
        let query = MessageQuery::default();
        if let Ok(page) = present.controller.messages(thread, &query).await {
            shown = messages(&page.items, thread, session.resource());
        }
        let query = ThreadQuery { resource: Some(session.resource().clone()), ..ThreadQuery::default() };
        if let Ok(page) = present.controller.threads(&query).await {
            threads = page.items.iter().map(wire::thread).collect();
        }
    }
    json!({
        "threadId": thread,
        "resourceId": session.resource(),
        "mode": session.mode(),
        "model": session.model(),
        "state": session.state().as_ref(),
        "grants": grants(&session.grants()),
        "rules": session.rules(),
        "usage": self::usage(&usage),
        "run": run(session, &state).await,
        "displayState": display(&state),
        "messages": shown,
        "threads": threads,
    })
}

async fn run(session: &Session, state: &DisplayState) -> Value {
    let running = session.is_running();
    let run = session.current_run().await.ok().flatten();
    json!({
        "isRunning": running,
        "runId": run.filter(|_| running),
        "pending": !state.pending_suspensions.is_empty(),
        "armed": !state.pending_approvals.is_empty(),
    })
}

/// Stored messages in the reference's form.
pub(super) fn messages(page: &[StoredMessage], thread: &ThreadId, resource: &ResourceId) -> Value {
    page.iter().map(|stored| wire::stored(&stored.message, thread, resource)).collect()
}

pub(super) fn grants(grants: &[Grant]) -> Value {
    let (mut categories, mut tools) = (vec![], vec![]);
    for grant in grants {
        match &grant.target {
            GrantTarget::Tool(name) => tools.push(name.as_str()),
            GrantTarget::Category(category) => categories.push(category.as_str()),
        }
    }
    json!({ "categories": categories, "tools": tools })
}

/// Tokens, with the counters that the reference always shows.
pub(super) fn usage(usage: &Usage) -> Value {
    let mut shown = wire::usage(usage);
    if let Value::Object(fields) = &mut shown {
        for key in ["cachedInputTokens", "cacheCreationInputTokens"] {
            fields.entry(key).or_insert(json!(0));
        }
    }
    shown
}

/// The view, with its maps as the reference's files show them.
pub(super) fn display(state: &DisplayState) -> Value {
    const MAPS: [&str; 5] = ["activeTools", "toolInputBuffers", "pendingSuspensions", "activeSubagents", "modifiedFiles"];
    let mut shown = wire::display_state(state);
    if let Value::Object(fields) = &mut shown {
        for key in MAPS {
            if let Some(field) = fields.get_mut(key) {
                *field = as_map(field);
            }
        }
    }
    shown
}

fn summarised(n: usize, body: &Value) -> Value {
    let list = |key: &str| body.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let tools: Vec<Value> = list("tools").iter().filter_map(|tool| tool.pointer("/function/name").cloned()).collect();
    let messages: Vec<Value> = list("messages").iter().map(message).collect();
    json!({ "n": n, "model": body.get("model"), "tools": tools, "messages": messages })
}

fn message(message: &Value) -> Value {
    let mut out = json!({ "role": message.get("role"), "content": message.get("content") });
    let calls: Vec<Value> = message
        .get("tool_calls")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|call| json!([call.get("id"), call.pointer("/function/name"), call.pointer("/function/arguments")]))
        .collect();
    if let Value::Object(out) = &mut out {
        if !calls.is_empty() {
            out.insert("tool_calls".to_owned(), calls.into());
        }
        if let Some(id) = message.get("tool_call_id") {
            out.insert("tool_call_id".to_owned(), id.clone());
        }
    }
    out
}
