use ac_core::{ThreadId, event::ThreadInfo};
use ac_storage::domain::ThreadQuery;
use serde_json::{Map, Value, json};

use super::sessions::put_some;
use crate::{
    call::{ACCEPTED, Call, Reply},
    failure::Failure,
    history,
    query::{MessageList, ThreadList},
};

/// Metadata keys that are never shown or matched as tags (WIRE 5.2).
const RESERVED: [&str; 13] = [
    "currentModelId",
    "currentModeId",
    "observerModelId",
    "reflectorModelId",
    "observationThreshold",
    "reflectionThreshold",
    "tokenUsage",
    "thinkingLevel",
    "notifications",
    "titlePinned",
    "forkedSubagent",
    "parentThreadId",
    "scope",
];

fn is_tag(key: &str) -> bool {
    !RESERVED.contains(&key) && !key.starts_with("modeModelId_") && key != "clone"
}

pub(crate) async fn list(call: Call) -> Result<Reply, Failure> {
    let ThreadList { limit, tags } = ThreadList::read(&call.query).map_err(Failure::query)?;
    let controller = call.controller()?;
    let mut query = ThreadQuery {
        resource: Some(call.key()?.resource.clone()),
        metadata: tags.into_iter().filter(|(key, _)| is_tag(key)).collect(),
        limit: if limit == 0 { 256 } else { limit.min(256) },
        ..ThreadQuery::default()
    };
    let mut threads = vec![];
    loop {
        let page = controller.threads(&query).await?;
        for info in page.items {
            let head = controller.storage().runs().head(&info.id).await.map_err(ac_controller::ControllerError::from)?;
            let mut row = listed(&info, head.is_some_and(|head| head.value.active_run.is_some()));
            if call.query.is_set("all")
                && let Value::Object(fields) = &mut row
            {
                fields.insert("createdAt".into(), json!(info.created_at.to_string()));
                fields.insert("sessionScope".into(), info.metadata.get("scope").cloned().unwrap_or_default());
            }
            threads.push(row);
            if limit > 0 && threads.len() == limit {
                return Ok(Reply::Json(json!({ "threads": threads })));
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(Reply::Json(json!({ "threads": threads }))),
        }
    }
}

fn listed(info: &ThreadInfo, active: bool) -> Value {
    let tags: Map<_, _> =
        info.metadata.iter().filter(|(key, value)| is_tag(key) && value.is_string()).map(|(k, v)| (k.clone(), v.clone())).collect();
    let mut out = json!({
        "id": info.id, "title": info.title, "updatedAt": info.updated_at.to_string(), "state": if active { "active" } else { "idle" },
    });
    put_some(&mut out, "tags", (!tags.is_empty()).then_some(Value::Object(tags)));
    out
}

/// A thread that was just made.
pub(super) fn made(info: &ThreadInfo) -> Reply {
    Reply::Json(json!({
        "id": info.id, "title": info.title, "resourceId": info.resource,
        "createdAt": info.created_at.to_string(), "updatedAt": info.updated_at.to_string(),
    }))
}

/// Judged before a session begins: what is refused makes nothing.
pub(super) async fn known(call: &Call, thread: &ThreadId) -> Result<(), Failure> {
    call.look().await?.thread(thread).await?;
    Ok(())
}

pub(crate) async fn switch(call: Call) -> Result<Reply, Failure> {
    let thread = ThreadId::from(call.text("threadId"));
    known(&call, &thread).await?;
    call.session().await?.switch_thread(&thread).await?;
    Ok(Reply::Done(ACCEPTED))
}

pub(crate) async fn create(call: Call) -> Result<Reply, Failure> {
    let info = call.session().await?.create_thread(None, call.text("title")).await?;
    Ok(made(&info))
}

pub(crate) async fn copy(call: Call) -> Result<Reply, Failure> {
    let source = call.maybe("sourceThreadId").map(ThreadId::from);
    match &source {
        Some(source) => known(&call, source).await?,
        None if call.look().await?.thread_id().is_none() => {
            return Err(Failure::not_found("thread.not_found", "No source thread to clone"));
        }
        None => {}
    }
    let title = call.maybe("title").map(str::to_owned);
    let info = call.session().await?.clone_thread(source.as_ref(), title, None).await?;
    Ok(made(&info))
}

pub(crate) async fn rename(call: Call) -> Result<Reply, Failure> {
    let thread = call.thread()?;
    known(&call, &thread).await?;
    call.session().await?.rename_thread(Some(&thread), call.text("title")).await?;
    Ok(Reply::Done(ACCEPTED))
}

pub(crate) async fn delete(call: Call) -> Result<Reply, Failure> {
    let thread = call.thread()?;
    known(&call, &thread).await?;
    call.session().await?.delete_thread(&thread).await?;
    Ok(Reply::Done(ACCEPTED))
}

pub(crate) async fn messages(call: Call) -> Result<Reply, Failure> {
    let query = MessageList::read(&call.query).map_err(Failure::query)?;
    let thread = call.thread()?;
    let session = call.look().await?;
    if session.thread(&thread).await.is_err() {
        return Err(Failure::not_found("thread.not_found", "Thread not found"));
    }
    Ok(Reply::Json(history::page(call.controller()?, &session, &thread, &query).await?))
}
