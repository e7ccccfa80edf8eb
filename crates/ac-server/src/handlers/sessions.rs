use ac_controller::{ControllerError, ModelChoice, Session, SessionRequest, is_protected_state_key};
use ac_core::{ModeId, PermissionRules, ResourceId, SessionKey, wire};
use serde_json::{Map, Value, json};

use crate::{
    call::{ACCEPTED, Call, Reply},
    failure::{Failure, Issue},
};

pub(crate) async fn create(call: Call) -> Result<Reply, Failure> {
    let resource = ResourceId::from(call.text("resourceId"));
    let key = SessionKey { resource, scope: call.maybe("sessionScope").map(Into::into) };
    let mut request = SessionRequest::new(key);
    if let Some(thread) = call.maybe("threadId") {
        request = request.thread(thread);
    }
    if let Some(Value::Object(tags)) = call.body.get("tags") {
        for (tag, value) in tags {
            request = request.tag(tag.clone(), value.clone());
        }
    }
    let (_, served) = call.served()?;
    // Seen before anything is made: a thread of somebody else leaves no session and no owner behind.
    if let Some(thread) = call.maybe("threadId")
        && let Some(info) = served.controller.thread(&thread.into()).await?
        && info.resource.as_str() != call.text("resourceId")
    {
        return Err(Failure::not_found("thread.not_found", format!("Thread not found: {thread}")));
    }
    let session = call.begin(request).await?;
    let mut out = json!({ "controllerId": served.name, "resourceId": session.resource() });
    put_some(&mut out, "threadId", session.thread_id().map(|thread| json!(thread)));
    Ok(Reply::Json(out))
}

pub(crate) async fn state(call: Call) -> Result<Reply, Failure> {
    let session = call.look().await?;
    let asked = call.query.get("threadId").map(ac_core::ThreadId::from);
    if let Some(thread) = &asked {
        session
            .thread(thread)
            .await
            .map_err(|_| Failure::not_found("thread.not_found", format!("thread {} not found", Value::from(thread.as_str()))))?;
    }
    let view = session.display_state();
    let thread = asked.clone().or_else(|| session.thread_id());
    let tasks = session.tasks(thread.as_ref()).await?;
    let mut out = json!({
        "controllerId": call.served()?.1.name,
        "resourceId": session.resource(),
        "modeId": session.mode(),
        "modelId": session.model().map_or_else(String::new, |model| model.to_string()),
        "running": view.is_running,
        "tasks": tasks,
        "omProgress": {
            "status": "idle", "pendingTokens": 0, "threshold": 30000, "thresholdPercent": 0, "observationTokens": 0,
            "reflectionThreshold": 40000, "reflectionThresholdPercent": 0, "projectedMessageRemoval": 0, "projectedReflectionSavings": 0,
        },
        "tokenUsage": wire::display_state(&view).get("tokenUsage").cloned().unwrap_or_default(),
        "settings": settings(&session.state()),
    });
    put_some(&mut out, "threadId", thread.map(|thread| json!(thread)));
    Ok(Reply::Json(out))
}

/// What of the state clients show as settings (WIRE 5); what means nothing is left out.
fn settings(state: &Map<String, Value>) -> Value {
    let word = |key: &str, words: &[&str]| {
        let word = state.get(key).and_then(Value::as_str).filter(|word| words.contains(word));
        word.map(str::to_owned)
    };
    let mut out = json!({
        "yolo": state.get("yolo") == Some(&Value::Bool(true)),
        "notifications": word("notifications", &["off", "bell", "system", "both"]).unwrap_or_else(|| "off".into()),
        "smartEditing": state.get("smartEditing") != Some(&Value::Bool(false)),
    });
    let thinking = word("thinkingLevel", &["off", "low", "medium", "high", "xhigh", "max"]);
    put_some(&mut out, "thinkingLevel", thinking.map(Value::String));
    out
}

pub(crate) async fn mode(call: Call) -> Result<Reply, Failure> {
    let mode = ModeId::from(call.text("modeId"));
    known_mode(&call, &mode)?;
    call.session().await?.switch_mode(mode).await?;
    Ok(Reply::Done(ACCEPTED))
}

/// Judged before a session begins: what is refused makes nothing.
fn known_mode(call: &Call, mode: &ModeId) -> Result<(), Failure> {
    match call.controller()?.modes().any(|known| known.id() == mode) {
        true => Ok(()),
        false => Err(Failure::not_found("mode.not_found", format!("Mode not found: {mode}"))),
    }
}

pub(crate) async fn model(call: Call) -> Result<Reply, Failure> {
    let mut choice = ModelChoice::new(call.text("modelId"));
    if let Some(mode) = call.maybe("modeId") {
        known_mode(&call, &mode.into())?;
        choice = choice.mode(mode);
    }
    if call.maybe("scope") == Some("global") {
        choice = choice.global();
    }
    call.session().await?.switch_model(choice).await?;
    Ok(Reply::Done(ACCEPTED))
}

pub(crate) async fn set_state(call: Call) -> Result<Reply, Failure> {
    let mut set = match call.body.get("state") {
        Some(Value::Object(set)) => set.clone(),
        _ => Map::new(),
    };
    if !call.who.state
        && let Some(key) = set.keys().find(|key| is_protected_state_key(key))
    {
        let message = format!("`{key}` decides permissions; setting it needs the right `state`");
        return Err(Failure::forbidden("state.protected", message));
    }
    let rules = match set.remove("permissionRules") {
        Some(rules) => Some(read_rules(&rules)?),
        None => None,
    };
    let session = call.session().await?;
    if let Some(rules) = rules {
        session.set_rules(rules).await?;
    }
    session.set_state(set).await?;
    Ok(Reply::Done(ACCEPTED))
}

fn read_rules(rules: &Value) -> Result<PermissionRules, Failure> {
    let bad = || Failure::body(vec![Issue::new("state.permissionRules", "Invalid input: expected {categories, tools} with policies")]);
    let part = |key: &str| rules.get(key).cloned().unwrap_or_else(|| json!({}));
    if !rules.is_object() {
        return Err(bad());
    }
    serde_json::from_value(json!({ "categories": part("categories"), "tools": part("tools") })).map_err(|_| bad())
}

pub(crate) async fn memory(_: Call) -> Result<Reply, Failure> {
    Ok(Reply::Json(json!({})))
}

/// The session goes on as one of another resource: its mode, rules and state come with it where that one is new, and it is bound as a new
/// session of that resource would be (Q11). A later request for the old one begins afresh.
pub(crate) async fn set_resource(call: Call) -> Result<Reply, Failure> {
    let (place, served) = call.served()?;
    let from = call.key()?.clone();
    let to = SessionKey { resource: call.text("newResourceId").into(), scope: from.scope.clone() };
    if to == from {
        return Ok(Reply::Done(ACCEPTED));
    }
    call.app.owners.check(served, &to.resource, &call.who).await?;
    let old = call.look().await?;
    let is_new = !served.controller.has_session(&to).await?;
    let session = call.begin(SessionRequest::new(to.clone())).await?;
    if is_new && let Err(error) = carry_over(&old, &session).await {
        // Whoever asks again must not find half of it, and take that for what was there before.
        served.controller.delete_session(&to).await?;
        return Err(error.into());
    }
    call.app.moves(place, from.clone(), to);
    served.controller.delete_session(&from).await?;
    Ok(Reply::Done(ACCEPTED))
}

/// Rules first: what is denied is denied from the beginning.
async fn carry_over(old: &Session, session: &Session) -> Result<(), ControllerError> {
    session.set_rules(old.rules()).await?;
    session.set_state(old.state().as_ref().clone()).await?;
    session.switch_mode(old.mode()).await?;
    match old.model() {
        Some(model) => session.switch_model(ModelChoice::new(model)).await,
        None => Ok(()),
    }
}

pub(crate) async fn resources(call: Call) -> Result<Reply, Failure> {
    let mut all = call.app.owners.resources(call.served()?.1, &call.who).await?;
    // The one that they ask as, if it is anything.
    if call.access == Some(crate::owners::Access::Granted) && call.controller()?.live_session(call.key()?).is_some() {
        all.insert(call.key()?.resource.clone());
    }
    Ok(Reply::Json(json!({ "resourceIds": all })))
}

pub(crate) fn put_some(object: &mut Value, key: &str, value: Option<Value>) {
    if let (Value::Object(fields), Some(value)) = (object, value) {
        fields.insert(key.to_owned(), value);
    }
}
