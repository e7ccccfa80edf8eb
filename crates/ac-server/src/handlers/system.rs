use http::StatusCode;
use serde_json::json;

use crate::{
    call::{Call, Reply},
    failure::Failure,
    openapi,
};

pub(crate) async fn health(_: Call) -> Result<Reply, Failure> {
    Ok(Reply::Json(json!({ "success": true })))
}

/// The stores answer, and the server is not on its way out.
pub(crate) async fn ready(call: Call) -> Result<Reply, Failure> {
    let nobody = ac_core::SessionKey::new("ac-server.ready");
    for served in &call.app.served {
        let probe = served.controller.read_session(&nobody);
        let answered = tokio::time::timeout(std::time::Duration::from_secs(5), probe).await;
        if !matches!(answered, Ok(Ok(_))) {
            let message = format!("the store of `{}` does not answer", served.name);
            return Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, "server.not_ready", message).after(1));
        }
    }
    Ok(Reply::Json(json!({ "ready": true })))
}

pub(crate) async fn metrics(call: Call) -> Result<Reply, Failure> {
    let sessions = call.app.served.iter().map(|served| served.controller.sessions().len()).sum();
    Ok(Reply::Text("text/plain; version=0.0.4", call.app.metrics.text(sessions)))
}

pub(crate) async fn description(call: Call) -> Result<Reply, Failure> {
    Ok(Reply::Json(openapi::document(&call.app.prefix)))
}
