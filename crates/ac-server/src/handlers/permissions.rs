use ac_core::{Policy, ToolCategory};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    call::{ACCEPTED, Call, Reply},
    failure::{Failure, Issue},
};

pub(crate) async fn get(call: Call) -> Result<Reply, Failure> {
    let rules = call.look().await?.rules();
    Ok(Reply::Json(json!({ "categories": rules.categories, "tools": rules.tools })))
}

pub(crate) async fn set_category(call: Call) -> Result<Reply, Failure> {
    let (category, policy) = (word::<ToolCategory>(&call, "category")?, word::<Policy>(&call, "policy")?);
    call.session().await?.set_category_policy(category, Some(policy)).await?;
    Ok(Reply::Done(ACCEPTED))
}

pub(crate) async fn set_tool(call: Call) -> Result<Reply, Failure> {
    let policy = word::<Policy>(&call, "policy")?;
    call.session().await?.set_tool_policy(call.text("toolName"), Some(policy)).await?;
    Ok(Reply::Done(ACCEPTED))
}

/// A word that was checked already.
pub(crate) fn word<T: DeserializeOwned>(call: &Call, field: &str) -> Result<T, Failure> {
    let value = call.body.get(field).cloned().unwrap_or(Value::Null);
    serde_json::from_value(value).map_err(|_| Failure::body(vec![Issue::new(field, "Invalid option")]))
}
