//! Rules for single calls: listed, and taken back.

use agent_controller::core::{PermissionRules, event::ThreadInfo};
use serde_json::{Value, json};

use crate::{
    app::{self, App},
    exit::{Exit, Failure},
};

/// All rules: those of the settings, which hold everywhere, and those of each conversation.
pub(super) async fn list(app: &App) -> Result<Value, Failure> {
    let mut rows = rows(&app.settings.rules, None);
    for info in app::threads(app.storage()).await? {
        rows.extend(self::rows(&app.session(&info.id).await?.rules(), Some(&info)));
    }
    Ok(Value::Array(rows))
}

fn rows(rules: &PermissionRules, info: Option<&ThreadInfo>) -> Vec<Value> {
    let row = |(pattern, policy): (&String, &agent_controller::core::Policy)| json!({ "policy": policy.as_str(), "pattern": pattern, "thread": info.map(|info| &info.id), "title": info.map(|info| &info.title) });
    rules.calls.iter().map(row).collect()
}

/// Takes a rule of a conversation back.
pub(super) async fn forget(app: &App, thread: &str, pattern: &str) -> Result<Exit, Failure> {
    let known = app::threads(app.storage()).await?.into_iter().find(|info| info.id.as_str() == thread);
    if let Some(info) = known {
        let session = app.session(&info.id).await?;
        if session.rules().calls.contains_key(pattern) {
            session.set_call_policy(pattern, None).await?;
            return Ok(Exit::Complete);
        }
    }
    Err(Failure::usage(format!(
        "conversation `{thread}` has no rule `{pattern}`; acode rules lists them, those of settings are changed in their file"
    )))
}
