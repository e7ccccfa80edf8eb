use ac_core::{
    Decision, EventBody, Grant, PermissionRules, Policy, ToolCategory, ToolDefinition,
    permission::{Circumstances, GrantTarget, Subject, decide},
};
use serde_json::Value;

use super::{Session, handle::View, record::Change};
use crate::{ControllerError, ControllerErrorKind, config::PreparedMode, feed::About};

/// Where the state shows the rules (SPEC T-23).
pub(crate) const RULES_KEY: &str = "permissionRules";

impl View {
    /// Shows the rules in the state, where there are any.
    pub(crate) fn show_rules(&mut self) {
        let rules = &self.record.rules;
        if *rules == PermissionRules::default() && !self.state.contains_key(RULES_KEY) {
            return;
        }
        let shown = serde_json::json!({ "categories": rules.categories, "tools": rules.tools });
        std::sync::Arc::make_mut(&mut self.state).insert(RULES_KEY.into(), shown);
    }
}

impl Session {
    /// What was laid down.
    pub fn rules(&self) -> PermissionRules {
        self.view().record.rules.clone()
    }

    /// Lays down what happens to a tool; `None` takes the rule back. Holds from the next call on.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn set_tool_policy(&self, tool: impl Into<String>, policy: Option<Policy>) -> Result<(), ControllerError> {
        let tool = tool.into();
        self.change_rules(|rules| match policy {
            Some(policy) => rules.tools.insert(tool.clone(), policy) != Some(policy),
            None => rules.tools.remove(&tool).is_some(),
        })
        .await
    }

    /// Lays down what happens to a category of tools; `None` takes the rule back.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn set_category_policy(&self, category: ToolCategory, policy: Option<Policy>) -> Result<(), ControllerError> {
        self.change_rules(|rules| match policy {
            Some(policy) => rules.categories.insert(category, policy) != Some(policy),
            None => rules.categories.remove(&category).is_some(),
        })
        .await
    }

    /// Replaces all rules.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn set_rules(&self, rules: PermissionRules) -> Result<(), ControllerError> {
        self.change_rules(|old| std::mem::replace(old, rules.clone()) != rules).await
    }

    async fn change_rules(&self, change: impl Fn(&mut PermissionRules) -> bool) -> Result<(), ControllerError> {
        let _turn = self.turn().await?;
        self.settle_outbox().await?;
        let write = |changed| if changed { Change::Write(()) } else { Change::Nothing(()) };
        self.write(
            |record| Ok(write(change(&mut record.rules))),
            |()| {
                self.inner().change_view(View::show_rules);
                self.tell(About::default(), EventBody::StateChanged { state: self.state(), changed: vec![RULES_KEY.into()] });
            },
        )
        .await
    }

    /// What was allowed for longer than once, in the order in which it was allowed.
    pub fn grants(&self) -> Vec<Grant> {
        self.view().record.grants.clone()
    }

    /// Allows a tool or a category for the session, until it is revoked; also what waits for that permission now.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn grant(&self, target: GrantTarget) -> Result<(), ControllerError> {
        {
            let _turn = self.turn().await?;
            self.settle_outbox().await?;
            let id = self.shared().ids.fresh("grant");
            let at = self.shared().clock.now();
            self.write(
                |record| {
                    let granted = record.grant(&target, id.clone(), at);
                    Ok(if granted { Change::Write(()) } else { Change::Nothing(()) })
                },
                |()| {},
            )
            .await?;
        }
        self.extend_grant(&target, None).await
    }

    /// Takes a grant back. Calls that were allowed by it and have not begun still run.
    ///
    /// # Errors
    /// [`GrantNotFound`](ControllerErrorKind::GrantNotFound).
    pub async fn revoke(&self, id: &str) -> Result<(), ControllerError> {
        let _turn = self.turn().await?;
        self.settle_outbox().await?;
        self.write(
            |record| {
                let before = record.grants.len();
                record.grants.retain(|grant| grant.id != id);
                if record.grants.len() == before {
                    let message = format!("there is no grant `{id}`; list them with `grants()`");
                    return Err(ControllerError::new(ControllerErrorKind::GrantNotFound, message));
                }
                Ok(Change::Write(()))
            },
            |()| {},
        )
        .await
    }

    /// What would happen to a call of a tool in the present mode, and why. `None` for a tool that does not exist.
    pub fn decide(&self, tool: &str) -> Option<Decision> {
        let mode = self.mode();
        let prepared = self.shared().config.mode(&mode)?;
        let (definition, _) = prepared.tools.get(tool)?;
        Some(self.decide_in(definition, prepared.mode.available_tools.as_deref()))
    }

    /// The category that a tool of the present mode counts as.
    pub fn category_of(&self, tool: &str) -> Option<ac_core::ToolCategory> {
        let config = &self.shared().config;
        let (definition, _) = config.mode(&self.mode())?.tools.get(tool)?;
        Some(config.category(definition))
    }

    pub(crate) fn decide_in(&self, definition: &ToolDefinition, visible: Option<&[std::sync::Arc<str>]>) -> Decision {
        let view = self.view();
        let subject = Subject {
            tool: &definition.name,
            category: self.shared().config.category(definition),
            requires_approval: definition.requires_approval,
        };
        let now = Circumstances {
            rules: &view.record.rules,
            grants: &view.record.grants,
            defaults: &self.shared().config.defaults,
            yolo: view.state.get("yolo").and_then(Value::as_bool).unwrap_or(false),
            visible,
        };
        decide(subject, &now)
    }

    /// The tools that a run in this mode is shown: what is not denied, and what the mode offers.
    pub(crate) fn visible_tools(&self, prepared: &PreparedMode) -> Vec<std::sync::Arc<str>> {
        use ac_core::permission::Verdict;
        let offered = prepared.mode.available_tools.as_deref();
        prepared
            .tools
            .definitions()
            .filter(|definition| !matches!(self.decide_in(definition, offered).verdict, Verdict::Deny | Verdict::Hidden))
            .map(|definition| definition.name.as_str().into())
            .collect()
    }
}
