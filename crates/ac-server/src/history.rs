//! Messages by pages, as the reference tells them (WIRE 6).

use std::collections::BTreeSet;

use ac_controller::{AgentController, Pending, Session};
use ac_core::{Message, MessageId, Role, ThreadId, event::PendingKind, wire};
use ac_storage::{
    domain::MessageQuery,
    record::{MessageCursor, StoredMessage},
};
use serde_json::{Map, Value, json};

use crate::{
    failure::Failure,
    query::{Filter, Include, MessageList},
};

/// How many messages are read at once.
const READ: usize = 256;

pub(crate) async fn page(
    controller: &AgentController,
    session: &Session,
    thread: &ThreadId,
    query: &MessageList,
) -> Result<Value, Failure> {
    let head = controller.storage().runs().head(thread).await.map_err(ac_controller::ControllerError::from)?;
    let everything = head.map_or(0, |head| usize::try_from(head.value.next_position).unwrap_or(usize::MAX));
    let per_page = query.per_page.unwrap_or(usize::MAX);
    let skip = query.page.saturating_mul(per_page);
    let mut found = vec![];
    let mut total = if query.filter.is_empty() { everything } else { 0 };
    if !query.filter.is_empty() || (per_page > 0 && skip < everything) {
        let mut seen = 0_usize;
        let mut read = MessageQuery { after: None, newest_first: query.newest_first, limit: READ };
        'reading: loop {
            let page = session.messages(Some(thread), read.clone()).await?;
            for stored in page.items {
                if !fits(&query.filter, &stored.message) {
                    continue;
                }
                if seen >= skip && found.len() < per_page {
                    found.push((thread.clone(), stored));
                }
                seen += 1;
                if query.filter.is_empty() && found.len() >= per_page {
                    break 'reading;
                }
            }
            match page.next.and_then(|next| next.parse().ok()) {
                Some(next) => read.after = Some(MessageCursor::Position(next)),
                None => break,
            }
        }
        if !query.filter.is_empty() {
            total = seen;
        }
    }
    let told = found.len();
    include(session, thread, query, &mut found).await?;
    if query.legacy {
        found.reverse();
    }
    let waits = controller.pending_on(thread).await?;
    let messages: Vec<_> = found
        .iter()
        .map(|(thread, stored)| {
            let mut out = wire::stored(&stored.message, thread, session.resource());
            put_waits(&mut out, &stored.message, &waits);
            out
        })
        .collect();
    let only_included = query.per_page == Some(0);
    Ok(json!({
        "messages": messages,
        "total": if only_included { 0 } else { total },
        "page": query.page,
        "perPage": query.per_page.map_or(Value::Bool(false), |per_page| json!(per_page)),
        "hasMore": !only_included && skip.saturating_add(told) < total,
    }))
}

fn fits(filter: &Filter, message: &Message) -> bool {
    let role = match message.role {
        Role::User => ["signal", "user"].as_slice(),
        Role::Signal => &["signal"],
        Role::System => &["system"],
        _ => &["assistant"],
    };
    let metadata = |(key, value): (&String, &Value)| message.meta.host.get(key) == Some(value);
    filter.after.is_none_or(|(at, exclusive)| message.at > at || (!exclusive && message.at == at))
        && filter.before.is_none_or(|(at, exclusive)| message.at < at || (!exclusive && message.at == at))
        && filter.roles.as_ref().is_none_or(|roles| roles.iter().any(|wanted| role.contains(&wanted.as_str())))
        && filter.metadata.iter().all(metadata)
}

/// Adds what was asked for by id, in its place.
async fn include(
    session: &Session,
    thread: &ThreadId,
    query: &MessageList,
    found: &mut Vec<(ThreadId, StoredMessage)>,
) -> Result<(), Failure> {
    if query.include.is_empty() {
        return Ok(());
    }
    let mut known: BTreeSet<(ThreadId, MessageId)> =
        found.iter().map(|(thread, stored)| (thread.clone(), stored.message.id.clone())).collect();
    for wanted in &query.include {
        let from = wanted.thread.as_ref().unwrap_or(thread);
        for stored in around(session, from, wanted).await? {
            if known.insert((from.clone(), stored.message.id.clone())) {
                found.push((from.clone(), stored));
            }
        }
    }
    found.sort_by_key(|(_, stored)| (stored.message.at, stored.position));
    if query.newest_first {
        found.reverse();
    }
    Ok(())
}

/// A message and those beside it. One that is not there, or on a thread of somebody else, is nothing.
async fn around(session: &Session, thread: &ThreadId, wanted: &Include) -> Result<Vec<StoredMessage>, Failure> {
    let Ok(info) = session.thread(thread).await else { return Ok(vec![]) };
    let cursor = |newest_first, limit| MessageQuery { after: Some(MessageCursor::Message(wanted.id.clone())), newest_first, limit };
    let Ok(before) = session.messages(Some(&info.id), cursor(true, wanted.before.max(1))).await else { return Ok(vec![]) };
    let after = if wanted.after > 0 { session.messages(Some(&info.id), cursor(false, wanted.after)).await?.items } else { vec![] };
    // The message itself follows the one before it.
    let place = match before.items.first() {
        Some(previous) => MessageQuery { after: Some(MessageCursor::Position(previous.position)), newest_first: false, limit: 1 },
        None => MessageQuery { after: None, newest_first: false, limit: 1 },
    };
    let itself = session.messages(Some(&info.id), place).await?.items;
    let mut out: Vec<_> = before.items.into_iter().take(wanted.before).collect();
    out.extend(itself.into_iter().filter(|stored| stored.message.id == wanted.id));
    out.extend(after);
    Ok(out)
}

/// What of a message waits for a person (WIRE 6.1).
fn put_waits(out: &mut Value, message: &Message, waits: &[Pending]) {
    let (mut approvals, mut suspended) = (Map::new(), Map::new());
    for call in message.tool_calls().filter(|call| !call.state.is_settled()) {
        let Some(open) = waits.iter().find(|open| open.call == call.id) else { continue };
        let mut told = json!({ "toolCallId": open.call, "toolName": open.tool, "args": open.args, "runId": open.run });
        let Value::Object(fields) = &mut told else { continue };
        if let Some(schema) = &open.answer_schema {
            fields.insert("resumeSchema".into(), json!(schema.to_string()));
        }
        match open.kind {
            PendingKind::Approval => {
                fields.insert("type".into(), json!("approval"));
                approvals.insert(open.call.to_string(), told);
            }
            // Nothing of the reference's could answer it.
            PendingKind::InDoubt => {}
            _ => {
                fields.insert("type".into(), json!("suspension"));
                fields.insert("suspendPayload".into(), open.payload.clone());
                suspended.insert(open.call.to_string(), told);
            }
        }
    }
    for (key, map) in [("pendingToolApprovals", approvals), ("suspendedTools", suspended)] {
        if map.is_empty() {
            continue;
        }
        if let Some(Value::Object(content)) = out.get_mut("content")
            && let Value::Object(metadata) = content.entry("metadata").or_insert_with(|| json!({}))
        {
            metadata.insert(key.into(), Value::Object(map));
        }
    }
}
