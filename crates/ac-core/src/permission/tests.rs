use super::*;

fn grant(target: GrantTarget) -> Grant {
    Grant { id: "g".into(), target, width: GrantWidth::Session, at: Timestamp::default() }
}

#[derive(Default)]
struct Case {
    rules: PermissionRules,
    grants: Vec<Grant>,
    yolo: bool,
    visible: Option<Vec<Arc<str>>>,
    requires_approval: bool,
    call: Option<CallVerdict>,
}

impl Case {
    fn tool(mut self, policy: Policy) -> Self {
        self.rules.tools.insert("t".into(), policy);
        self
    }

    fn category(mut self, policy: Policy) -> Self {
        self.rules.categories.extend(ToolCategory::ALL.map(|category| (category, policy)));
        self
    }

    fn decide(&self, category: ToolCategory) -> (Verdict, Reason) {
        let defaults = DefaultPolicies::default();
        let now = Circumstances {
            rules: &self.rules,
            grants: &self.grants,
            defaults: &defaults,
            yolo: self.yolo,
            visible: self.visible.as_deref(),
        };
        let subject = Subject { tool: "t", category, requires_approval: self.requires_approval, call: self.call };
        let Decision { verdict, reason } = decide(subject, &now);
        (verdict, reason)
    }
}

#[test]
fn deny_beats_yolo_grants_and_allow_lists() {
    let mut case = Case { yolo: true, ..Case::default() }.tool(Policy::Deny);
    case.grants = vec![grant(GrantTarget::Tool("t".into())), grant(GrantTarget::Category(ToolCategory::Read))];
    case.visible = Some(vec!["t".into()]);
    assert_eq!(case.decide(ToolCategory::Read), (Verdict::Deny, Reason::ToolDenied));
    case.rules.tools.clear();
    let case = case.category(Policy::Deny);
    assert_eq!(case.decide(ToolCategory::Read), (Verdict::Deny, Reason::CategoryDenied));
}

#[test]
fn a_category_deny_gives_way_only_to_an_allow_for_the_tool() {
    let case = Case::default().category(Policy::Deny);
    assert_eq!(case.decide(ToolCategory::Edit).0, Verdict::Deny);
    assert_eq!(Case::default().category(Policy::Deny).tool(Policy::Ask).decide(ToolCategory::Edit).0, Verdict::Deny);
    assert_eq!(Case::default().category(Policy::Deny).tool(Policy::Allow).decide(ToolCategory::Edit), (Verdict::Allow, Reason::ToolRule));
}

#[test]
fn what_the_mode_does_not_list_is_hidden_even_under_yolo() {
    let case = Case { yolo: true, visible: Some(vec![]), ..Case::default() };
    assert_eq!(case.decide(ToolCategory::Read), (Verdict::Hidden, Reason::NotInMode));
}

#[test]
fn a_rule_for_the_tool_beats_grants_and_grants_beat_the_rule_for_its_category() {
    let mut case = Case::default().category(Policy::Ask);
    case.grants = vec![grant(GrantTarget::Category(ToolCategory::Edit))];
    assert_eq!(case.decide(ToolCategory::Edit), (Verdict::Allow, Reason::CategoryGrant));
    let case = case.tool(Policy::Ask);
    assert_eq!(case.decide(ToolCategory::Edit), (Verdict::Ask, Reason::ToolRule));
}

#[test]
fn a_grant_for_one_call_allows_nothing_else() {
    let mut one = grant(GrantTarget::Tool("t".into()));
    one.width = GrantWidth::Call("c1".into());
    let case = Case { grants: vec![one], ..Case::default() };
    assert_eq!(case.decide(ToolCategory::Edit), (Verdict::Ask, Reason::Default));
}

#[test]
fn person_facing_tools_follow_no_rule_by_category() {
    let case = Case::default().category(Policy::Deny);
    assert_eq!(case.decide(ToolCategory::Interact), (Verdict::Allow, Reason::Default));
    assert_eq!(case.tool(Policy::Deny).decide(ToolCategory::Interact).0, Verdict::Deny);
}

#[test]
fn defaults_allow_looking_and_ask_for_the_rest() {
    let verdicts: Vec<_> = ToolCategory::ALL.map(|category| Case::default().decide(category).0).into();
    assert_eq!(verdicts, [Verdict::Allow, Verdict::Ask, Verdict::Ask, Verdict::Ask, Verdict::Allow, Verdict::Ask]);
}

#[test]
fn a_tool_that_requires_approval_asks_unless_yolo_its_rule_or_a_grant_allows() {
    let asks = || Case { requires_approval: true, ..Case::default() };
    assert_eq!(asks().decide(ToolCategory::Read), (Verdict::Ask, Reason::RequiresApproval));
    assert_eq!(asks().category(Policy::Allow).decide(ToolCategory::Read).0, Verdict::Ask);
    assert_eq!(asks().tool(Policy::Allow).decide(ToolCategory::Read).0, Verdict::Allow);
    assert_eq!(Case { yolo: true, ..asks() }.decide(ToolCategory::Read).0, Verdict::Allow);
    assert_eq!(Case { grants: vec![grant(GrantTarget::Tool("t".into()))], ..asks() }.decide(ToolCategory::Read).0, Verdict::Allow);
}

#[test]
fn a_rule_for_single_calls_is_narrower_than_one_for_the_tool_and_lifts_no_denial() {
    let call = |call| Case { call: Some(call), ..Case::default() };
    assert_eq!(call(CallVerdict::Allow).decide(ToolCategory::Execute), (Verdict::Allow, Reason::CallRule));
    assert_eq!(call(CallVerdict::Allow).tool(Policy::Ask).decide(ToolCategory::Execute).0, Verdict::Allow);
    assert_eq!(call(CallVerdict::Ask).tool(Policy::Allow).decide(ToolCategory::Execute), (Verdict::Ask, Reason::CallRule));
    assert_eq!(call(CallVerdict::Allow).tool(Policy::Deny).decide(ToolCategory::Execute), (Verdict::Deny, Reason::ToolDenied));
    assert_eq!(call(CallVerdict::Allow).category(Policy::Deny).decide(ToolCategory::Execute).0, Verdict::Deny);
    let granted = Case { grants: vec![grant(GrantTarget::Tool("t".into()))], ..call(CallVerdict::Ask) };
    assert_eq!(granted.decide(ToolCategory::Execute).0, Verdict::Ask);
}

#[test]
fn what_may_be_a_denied_call_asks_even_where_everything_is_allowed() {
    let yolo = |call| Case { call: Some(call), yolo: true, ..Case::default() }.tool(Policy::Allow).decide(ToolCategory::Execute);
    assert_eq!(yolo(CallVerdict::Deny), (Verdict::Deny, Reason::CallDenied));
    assert_eq!(yolo(CallVerdict::Unclear), (Verdict::Ask, Reason::CallUnclear));
    assert_eq!(yolo(CallVerdict::Ask), (Verdict::Allow, Reason::Yolo));
    let hidden = Case { call: Some(CallVerdict::Unclear), visible: Some(vec![]), ..Case::default() };
    assert_eq!(hidden.decide(ToolCategory::Execute).0, Verdict::Hidden);
}

#[test]
fn rules_that_are_joined_hold_back_what_either_holds_back() {
    let rules = |json: &str| serde_json::from_str::<PermissionRules>(json).unwrap();
    let one = rules(r#"{"tools": {"a": "allow", "b": "deny"}, "categories": {"edit": "ask"}, "calls": {"x(1)": "allow"}}"#);
    let other = rules(r#"{"tools": {"a": "ask", "b": "allow", "c": "allow"}, "categories": {"edit": "allow"}, "calls": {"x(1)": "deny"}}"#);
    let both = rules(r#"{"tools": {"a": "ask", "b": "deny", "c": "allow"}, "categories": {"edit": "ask"}, "calls": {"x(1)": "deny"}}"#);
    assert_eq!((one.with(&other), other.with(&one)), (both.clone(), both));
    // What was stored before there were rules for calls still reads, and reads back the same.
    assert_eq!(serde_json::to_string(&rules(r#"{"categories":{},"tools":{}}"#)).unwrap(), r#"{"categories":{},"tools":{}}"#);
}
