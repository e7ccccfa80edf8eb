//! Routes that the reference does not have: their outcomes are typed.

use ac_controller::{Answer, ControllerErrorKind};
use ac_core::{
    MessageId, PendingId,
    permission::{GrantTarget, GrantWidth},
};
use serde_json::{Value, json};

use super::{permissions::word, talk::message_of, threads};
use crate::{
    call::{Call, Reply},
    failure::{Failure, Issue},
    query::request_context,
};

/// What waits for a person: in this session, or with `all=1` in every session of the resource.
pub(crate) async fn pending(call: Call) -> Result<Reply, Failure> {
    let key = call.key()?;
    let open =
        if call.query.is_set("all") { call.controller()?.pending_of(&key.resource).await? } else { call.look().await?.pending().await? };
    let all: Vec<_> = open
        .into_iter()
        .map(|open| {
            json!({
                "id": open.id, "kind": open.kind.as_str(), "toolCallId": open.call, "toolName": open.tool, "category": open.category,
                "args": open.args, "payload": open.payload, "answerSchema": open.answer_schema, "runId": open.run, "threadId": open.thread,
                "since": open.since.to_string(), "parentToolCallId": open.parent_call, "sessionScope": open.session.scope,
            })
        })
        .collect();
    Ok(Reply::Json(json!({ "pending": all })))
}

pub(crate) async fn answer(call: Call) -> Result<Reply, Failure> {
    let named = call.param("pendingId").unwrap_or_default();
    let not_pending =
        || Failure::not_found("answer.not_pending", format!("nothing waits under `{named}`; list what waits with GET …/pending"));
    let id: PendingId = named.parse().map_err(|_| not_pending())?;
    let session = call.look().await?;
    let known = session.pending().await?.into_iter().find(|open| open.id == id);
    let answer = match call.text("action") {
        "approve" => {
            let target = match (call.maybe("always"), &known) {
                (None, _) => None,
                (Some("tool"), Some(open)) => Some(GrantTarget::Tool(open.tool.clone())),
                (Some(_), Some(open)) => Some(GrantTarget::Category(open.category)),
                // It does not wait any more, so nothing can be granted with it.
                (Some(_), None) => None,
            };
            Answer::Approve { grant: target }
        }
        "decline" => Answer::Decline { reason: call.maybe("reason").map(str::to_owned) },
        "run_again" => Answer::RunAgain,
        "record_failed" => Answer::RecordFailed,
        _ => match call.body.get("value") {
            Some(value) => Answer::Reply { value: value.clone() },
            None => return Err(Failure::body(vec![Issue::new("value", "Invalid input: expected nonoptional, received undefined")])),
        },
    };
    // Where it waits its session did begin once; where it does not, none begins.
    let session = if known.is_some() { call.session().await? } else { session };
    match session.answer_with(&id, answer, request_context(&call.query, &call.body)).await {
        Ok(accepted) => Ok(Reply::Json(json!({ "ok": true, "repeated": accepted.repeated }))),
        Err(error) if error.kind() == ControllerErrorKind::NotPending => {
            // A wait of this session that is over is stale; anything else was never there.
            Err(not_pending())
        }
        Err(error) => Err(error.into()),
    }
}

pub(crate) async fn queue(call: Call) -> Result<Reply, Failure> {
    let items: Vec<_> = call
        .look()
        .await?
        .queue()
        .await?
        .into_iter()
        .map(|item| json!({ "id": item.id, "kind": item.kind, "threadId": item.thread, "text": item.text }))
        .collect();
    Ok(Reply::Json(json!({ "queue": items })))
}

pub(crate) async fn reorder(call: Call) -> Result<Reply, Failure> {
    let order: Vec<MessageId> = match call.body.get("order") {
        Some(Value::Array(ids)) => ids.iter().filter_map(Value::as_str).map(MessageId::from).collect(),
        _ => vec![],
    };
    let waiting = call.look().await?.queue().await?;
    if let Some(id) = order.iter().find(|id| !waiting.iter().any(|item| item.id == **id)) {
        return Err(Failure::not_found("queue.not_found", format!("no follow-up waits under `{id}`")));
    }
    call.session().await?.reorder_queue(&order).await?;
    Ok(Reply::Json(json!({ "ok": true })))
}

pub(crate) async fn remove(call: Call) -> Result<Reply, Failure> {
    let id = MessageId::from(call.param("messageId").unwrap_or_default());
    if !call.look().await?.queue().await?.iter().any(|item| item.id == id) {
        return Err(Failure::not_found("queue.not_found", format!("nothing waits under `{id}`")));
    }
    call.session().await?.remove_queued(&id).await?;
    Ok(Reply::Json(json!({ "ok": true })))
}

pub(crate) async fn grants(call: Call) -> Result<Reply, Failure> {
    let all: Vec<_> = call
        .look()
        .await?
        .grants()
        .into_iter()
        .map(|grant| {
            let (kind, name) = match &grant.target {
                GrantTarget::Tool(name) => ("toolName", name.as_str()),
                GrantTarget::Category(category) => ("category", category.as_str()),
            };
            let width = match &grant.width {
                GrantWidth::Session => "session",
                _ => "call",
            };
            json!({ "id": grant.id, kind: name, "width": width, "at": grant.at.to_string() })
        })
        .collect();
    Ok(Reply::Json(json!({ "grants": all })))
}

pub(crate) async fn grant(call: Call) -> Result<Reply, Failure> {
    let target = match (call.maybe("toolName"), call.body.contains_key("category")) {
        (Some(tool), false) => GrantTarget::Tool(tool.to_owned()),
        (None, true) => GrantTarget::Category(word(&call, "category")?),
        _ => return Err(Failure::body(vec![Issue::new("root", "Invalid input: expected toolName or category, and not both")])),
    };
    call.session().await?.grant(target).await?;
    Ok(Reply::Json(json!({ "ok": true })))
}

pub(crate) async fn revoke(call: Call) -> Result<Reply, Failure> {
    let id = call.param("grantId").unwrap_or_default().to_owned();
    if !call.look().await?.grants().iter().any(|grant| grant.id == id) {
        return Err(Failure::not_found("grant.not_found", format!("there is no grant `{id}`")));
    }
    call.session().await?.revoke(&id).await?;
    Ok(Reply::Json(json!({ "ok": true })))
}

pub(crate) async fn branch(call: Call) -> Result<Reply, Failure> {
    let (thread, until) = (call.thread()?, MessageId::from(call.text("until")));
    threads::known(&call, &thread).await?;
    let stored = call.controller()?.storage().messages().get(&thread, &until).await.map_err(ac_controller::ControllerError::from)?;
    if stored.is_none() {
        return Err(Failure::not_found("message.not_found", format!("the thread has no message `{until}`")));
    }
    let title = call.maybe("title").map(str::to_owned);
    let info = call.session().await?.clone_thread(Some(&thread), title, Some(&until)).await?;
    Ok(threads::made(&info))
}

pub(crate) async fn inject(call: Call) -> Result<Reply, Failure> {
    let message = message_of(&call)?;
    let id = call.session().await?.inject(message).await?;
    Ok(Reply::Json(json!({ "ok": true, "messageId": id })))
}
