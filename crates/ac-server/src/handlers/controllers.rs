use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::{
    call::{Call, Reply},
    failure::Failure,
};

pub(crate) async fn list(call: Call) -> Result<Reply, Failure> {
    let all: Vec<_> = call.app.served.iter().map(|served| json!({ "id": served.name })).collect();
    Ok(Reply::Json(json!({ "agentControllers": all })))
}

pub(crate) async fn modes(call: Call) -> Result<Reply, Failure> {
    let modes: Vec<_> = call.controller()?.modes().map(|mode| json!({ "id": mode.id(), "name": mode.display_name() })).collect();
    Ok(Reply::Json(json!({ "modes": modes })))
}

pub(crate) async fn models(call: Call) -> Result<Reply, Failure> {
    let more = call.query.is_set("all");
    let (_, served) = call.served()?;
    let known = served.controller.models().await?;
    if served.models.is_empty() {
        return Ok(Reply::Json(json!({ "models": known })));
    }
    let models: Vec<_> = served
        .models
        .iter()
        .map(|model| {
            let (provider, name) = model.id.as_str().split_once('/').unwrap_or(("", model.id.as_str()));
            let mut out = if more { model.details.clone() } else { Map::new() };
            out.insert("id".into(), json!(model.id));
            out.insert("provider".into(), json!(provider));
            out.insert("modelName".into(), json!(name));
            out.insert("hasApiKey".into(), json!(model.has_key));
            let used = known.iter().find(|known| known.id == model.id).map_or(0, |known| known.use_count);
            out.insert("useCount".into(), json!(used));
            Value::Object(out)
        })
        .collect();
    Ok(Reply::Json(json!({ "models": models })))
}

pub(crate) async fn active_runs(call: Call) -> Result<Reply, Failure> {
    let (_, served) = call.served()?;
    let (mut runs, mut theirs) = (vec![], HashMap::new());
    for run in served.controller.active_runs().await? {
        // Once for each resource, however many runs others have.
        let granted = match theirs.get(&run.resource) {
            Some(known) => *known,
            None => {
                let granted = call.app.owners.check(served, &run.resource, &call.who).await.is_ok();
                *theirs.entry(run.resource.clone()).or_insert(granted)
            }
        };
        if granted {
            runs.push(json!({ "runId": run.run, "resourceId": run.resource, "threadId": run.thread }));
        }
    }
    Ok(Reply::Json(json!({ "runs": runs })))
}

pub(crate) async fn workspace(call: Call) -> Result<Reply, Failure> {
    let ready = call.served()?.1.workspace;
    Ok(Reply::Json(json!({ "hasWorkspace": ready.is_some(), "isReady": ready.unwrap_or(false) })))
}
