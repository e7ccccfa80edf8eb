use ac_controller::{GoalStatus, GoalUpdate, NewGoal, Notification};
use serde_json::{Value, json};

use super::{permissions::word, sessions::put_some};
use crate::{
    call::{ACCEPTED, Call, Reply},
    failure::{Failure, Issue},
};

pub(crate) async fn get(call: Call) -> Result<Reply, Failure> {
    told(call.look().await?.goal().await?)
}

pub(crate) async fn set(call: Call) -> Result<Reply, Failure> {
    let mut goal = NewGoal::new(call.text("objective"));
    if let Some(model) = call.maybe("judgeModelId") {
        goal = goal.judge_model(model);
    }
    if let Some(runs) = runs(&call) {
        goal = goal.max_runs(runs);
    }
    told(Some(call.session().await?.set_goal(goal).await?))
}

/// Where there is no goal nothing changes, and no session begins for it.
pub(crate) async fn update(call: Call) -> Result<Reply, Failure> {
    let mut update = GoalUpdate::new();
    if call.body.contains_key("status") {
        update = update.status(word::<GoalStatus>(&call, "status")?);
    }
    if let Some(model) = call.maybe("judgeModelId") {
        update = update.judge_model(model);
    }
    if let Some(runs) = runs(&call) {
        update = update.max_runs(runs);
    }
    let looked = call.look().await?;
    if looked.thread_id().is_some() && looked.goal().await?.is_none() {
        return told(None);
    }
    told(call.session().await?.update_goal(update).await?)
}

pub(crate) async fn clear(call: Call) -> Result<Reply, Failure> {
    let looked = call.look().await?;
    if looked.thread_id().is_some() && looked.goal().await?.is_none() {
        return Ok(Reply::Done(ACCEPTED));
    }
    call.session().await?.clear_goal().await?;
    Ok(Reply::Done(ACCEPTED))
}

fn runs(call: &Call) -> Option<u32> {
    call.body.get("maxRuns").and_then(Value::as_u64).map(|runs| u32::try_from(runs).unwrap_or(u32::MAX))
}

fn told(goal: Option<ac_controller::Goal>) -> Result<Reply, Failure> {
    let mut out = json!({});
    put_some(&mut out, "goal", goal.map(|goal| json!(goal)));
    Ok(Reply::Json(out))
}

pub(crate) async fn notify(call: Call) -> Result<Reply, Failure> {
    let notification: Notification = serde_json::from_value(Value::Object(call.body.clone()))
        .map_err(|error| Failure::body(vec![Issue::new("root", error.to_string())]))?;
    Ok(Reply::Json(json!(call.session().await?.send_notification(notification).await?)))
}
