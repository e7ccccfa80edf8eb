//! Rules and grants.

use ac_controller::Session;
use ac_core::permission::{GrantTarget, Policy, Verdict};
use serde_json::{Value, json};

use super::{Args, Done, Trouble};
use crate::scenario::{file::Verb, finish, stage::category};

pub(super) async fn act(session: &Session, verb: Verb, args: &Args) -> Done {
    match verb {
        Verb::GrantTool => session.grant(GrantTarget::Tool(args.needed("toolName")?.to_owned())).await?,
        Verb::GrantCategory => session.grant(GrantTarget::Category(named(args)?)).await?,
        Verb::SetForTool => session.set_tool_policy(args.needed("toolName")?, policy(args)?).await?,
        Verb::SetForCategory => session.set_category_policy(named(args)?, policy(args)?).await?,
        _ => {}
    }
    Ok(Some(match verb {
        Verb::ResolveToolApproval => {
            let verdict = session.decide(args.needed("toolName")?).map_or(Verdict::Ask, |decision| decision.verdict);
            match verdict {
                Verdict::Allow => "allow".into(),
                Verdict::Ask => "ask".into(),
                Verdict::Deny | Verdict::Hidden => "deny".into(),
            }
        }
        Verb::SetForTool | Verb::SetForCategory | Verb::GetRules => json!(session.rules()),
        _ => finish::grants(&session.grants()),
    }))
}

fn named(args: &Args) -> Result<ac_core::ToolCategory, Trouble> {
    Ok(category(args.get("category").unwrap_or(&Value::Null))?)
}

fn policy(args: &Args) -> Result<Option<Policy>, Trouble> {
    let value = args.get("policy").cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|error| Trouble::Driver(format!("no policy: {error}")))
}
