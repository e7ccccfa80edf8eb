use ac_core::{
    Decision, EventBody, Grant, PermissionRules, Policy, ToolCategory, ToolDefinition,
    permission::{CallVerdict, Circumstances, GrantTarget, Subject, decide, judge},
    tool::Capabilities,
};
use serde_json::Value;

use super::{Session, handle::View, record::Change};
use crate::{
    ControllerError, ControllerErrorKind,
    config::{PreparedMode, check_pattern},
    feed::About,
};

/// Where the state shows the rules (SPEC T-23).
pub(crate) const RULES_KEY: &str = "permissionRules";

impl View {
    /// Shows the rules in the state, where there are any.
    pub(crate) fn show_rules(&mut self) {
        let rules = &self.record.rules;
        if *rules == PermissionRules::default() && !self.state.contains_key(RULES_KEY) {
            return;
        }
        let mut shown = serde_json::json!({ "categories": rules.categories, "tools": rules.tools });
        // An addition to the reference's form, so only where there are some.
        if let (false, Some(fields)) = (rules.calls.is_empty(), shown.as_object_mut()) {
            fields.insert("calls".into(), serde_json::json!(rules.calls));
        }
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

    /// Lays down what happens to single calls, by a pattern such as `execute_command(git status*)`; `None` takes the rule back. Kept with
    /// the session like every rule. Deny beats ask beats allow among the rules that mean a call, and none of them lifts a denial of the
    /// tool.
    ///
    /// # Errors
    /// [`InvalidRule`](ControllerErrorKind::InvalidRule); when the store does not answer.
    pub async fn set_call_policy(&self, pattern: impl Into<String>, policy: Option<Policy>) -> Result<(), ControllerError> {
        let pattern = pattern.into();
        if policy.is_some() {
            check_pattern(self.shared().config.call_rules.as_deref(), &pattern)?;
        }
        self.change_rules(|rules| match policy {
            Some(policy) => rules.calls.insert(pattern.clone(), policy) != Some(policy),
            None => rules.calls.remove(&pattern).is_some(),
        })
        .await
    }

    /// Replaces all rules.
    ///
    /// # Errors
    /// [`InvalidRule`](ControllerErrorKind::InvalidRule); when the store does not answer.
    pub async fn set_rules(&self, rules: PermissionRules) -> Result<(), ControllerError> {
        for pattern in rules.calls.keys() {
            check_pattern(self.shared().config.call_rules.as_deref(), pattern)?;
        }
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
        Some(self.decide_in(definition, prepared.mode.available_tools.as_deref(), None))
    }

    /// The category that a tool of the present mode counts as.
    pub fn category_of(&self, tool: &str) -> Option<ac_core::ToolCategory> {
        let config = &self.shared().config;
        let (definition, _) = config.mode(&self.mode())?.tools.get(tool)?;
        Some(config.category(definition))
    }

    /// As [`Session::decide`], of a call with these arguments.
    pub async fn decide_call(&self, tool: &str, args: &Value) -> Option<Decision> {
        let mode = self.mode();
        let prepared = self.shared().config.mode(&mode)?;
        let (definition, _) = prepared.tools.get(tool)?;
        let call = self.judge_call(tool, args, &Capabilities::new()).await;
        Some(self.decide_in(definition, prepared.mode.available_tools.as_deref(), call))
    }

    /// What the rules for single calls, the host's and the session's, say of a call.
    pub(crate) async fn judge_call(&self, tool: &str, args: &Value, capabilities: &Capabilities) -> Option<CallVerdict> {
        let rules = self.all_rules();
        judge(self.shared().config.call_rules.as_deref(), &rules, tool, args, capabilities).await
    }

    /// The session's rules together with the host's.
    pub(crate) fn all_rules(&self) -> PermissionRules {
        let host = &self.shared().config.rules;
        let record = self.view().record;
        if *host == PermissionRules::default() { record.rules.clone() } else { record.rules.with(host) }
    }

    pub(crate) fn decide_in(
        &self,
        definition: &ToolDefinition,
        visible: Option<&[std::sync::Arc<str>]>,
        call: Option<CallVerdict>,
    ) -> Decision {
        let view = self.view();
        let rules = self.all_rules();
        let subject = Subject {
            tool: &definition.name,
            category: self.shared().config.category(definition),
            requires_approval: definition.requires_approval,
            call,
        };
        let now = Circumstances {
            rules: &rules,
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
            .filter(|definition| !matches!(self.decide_in(definition, offered, None).verdict, Verdict::Deny | Verdict::Hidden))
            .map(|definition| definition.name.as_str().into())
            .collect()
    }
}
