//! Who may do what: rules, grants and the one pure decision.

use std::{collections::BTreeMap, fmt, sync::Arc};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Timestamp, ToolCallId, ToolCategory, tool::Capabilities};

/// What a rule says. The stricter one is the greater one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Runs without asking.
    Allow,
    /// Waits for a person.
    Ask,
    /// Never runs.
    Deny,
}

impl Policy {
    /// The name in rules and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// What a person laid down for a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PermissionRules {
    /// By what a tool does.
    pub categories: BTreeMap<ToolCategory, Policy>,
    /// By exposed name.
    pub tools: BTreeMap<String, Policy>,
    /// By a pattern of single calls, such as `execute_command(git status*)`; what a pattern means is up to the host's [`CallRules`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<String, Policy>,
}

impl PermissionRules {
    /// These rules together with others. Where both speak of the same thing, the stricter word counts: a denial is never lifted by adding.
    #[must_use]
    pub fn with(&self, others: &Self) -> Self {
        let mut all = self.clone();
        let add = |policy: &mut Policy, other: Policy| *policy = (*policy).max(other);
        for (category, policy) in &others.categories {
            add(all.categories.entry(*category).or_insert(*policy), *policy);
        }
        for (tool, policy) in &others.tools {
            add(all.tools.entry(tool.clone()).or_insert(*policy), *policy);
        }
        for (pattern, policy) in &others.calls {
            add(all.calls.entry(pattern.clone()).or_insert(*policy), *policy);
        }
        all
    }
}

/// What the rules for single calls say of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallVerdict {
    /// One of them allows it, and none holds it back.
    Allow,
    /// One of them asks.
    Ask,
    /// One of them denies it.
    Deny,
    /// One of them denies some calls of the tool, and whether this is one of those cannot be told. It asks, also where everything else is
    /// allowed.
    Unclear,
}

/// Judges single calls by the patterns of [`PermissionRules::calls`]: brought by the host, because only it knows what an argument means.
#[async_trait]
pub trait CallRules: Send + Sync + 'static {
    /// Whether a pattern can be read.
    ///
    /// # Errors
    /// Why not, and what one looks like.
    fn check(&self, pattern: &str) -> Result<(), String>;

    /// What the patterns say of a call; `None`: nothing. `capabilities` are those that the tool will have.
    async fn judge(
        &self,
        patterns: &BTreeMap<String, Policy>,
        tool: &str,
        args: &Value,
        capabilities: &Capabilities,
    ) -> Option<CallVerdict>;
}

/// A remembered yes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Names it, for listing and revoking.
    pub id: String,
    /// What it allows.
    pub target: GrantTarget,
    /// How far it reaches.
    pub width: GrantWidth,
    /// When it was given.
    pub at: Timestamp,
}

/// What a grant allows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantTarget {
    /// One tool, by exposed name.
    Tool(String),
    /// All tools of a category.
    Category(ToolCategory),
}

impl fmt::Display for GrantTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(name) => write!(f, "tool {name}"),
            Self::Category(category) => write!(f, "category {}", category.as_str()),
        }
    }
}

/// How far a grant reaches.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GrantWidth {
    /// One call: what an approval without more says.
    Call(ToolCallId),
    /// The session, over restarts, until it is revoked.
    Session,
}

/// What happens to tools that no rule and no grant names, by category.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultPolicies(BTreeMap<ToolCategory, Policy>);

/// `Read` and `Interact` are allowed, the rest asks.
impl Default for DefaultPolicies {
    fn default() -> Self {
        Self(BTreeMap::from([(ToolCategory::Read, Policy::Allow), (ToolCategory::Interact, Policy::Allow)]))
    }
}

impl DefaultPolicies {
    /// Everything but [`ToolCategory::Interact`] asks, as the reference does.
    pub fn ask() -> Self {
        Self(BTreeMap::from([(ToolCategory::Interact, Policy::Allow)]))
    }

    /// Sets the default of a category.
    #[must_use]
    pub fn with(mut self, category: ToolCategory, policy: Policy) -> Self {
        self.0.insert(category, policy);
        self
    }

    /// The default of a category; what is not set asks.
    pub fn get(&self, category: ToolCategory) -> Policy {
        self.0.get(&category).copied().unwrap_or(Policy::Ask)
    }
}

/// The tool that is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Its exposed name.
    pub tool: &'a str,
    /// What it does: the host's resolver, else its own definition.
    pub category: ToolCategory,
    /// Its own definition asks before each call.
    pub requires_approval: bool,
    /// What the rules for single calls say of this one. `None`: nothing, or the question is about the tool and not about a call.
    pub call: Option<CallVerdict>,
}

/// Everything that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    /// The person's rules.
    pub rules: &'a PermissionRules,
    /// The person's grants.
    pub grants: &'a [Grant],
    /// What nobody laid down.
    pub defaults: &'a DefaultPolicies,
    /// Everything that is not denied runs.
    pub yolo: bool,
    /// The mode's allow-list; `None` shows everything, empty shows nothing.
    pub visible: Option<&'a [Arc<str>]>,
}

/// What was decided about a call, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What happens.
    pub verdict: Verdict,
    /// Why, for the view and for logs.
    pub reason: Reason,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It runs.
    Allow,
    /// A person is asked.
    Ask,
    /// It does not run; the model is told.
    Deny,
    /// The mode does not show it: answered like a tool that does not exist.
    Hidden,
}

/// Why a decision is what it is. In the order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// A rule denies the tool.
    ToolDenied,
    /// A rule denies its category, and no rule allows the tool.
    CategoryDenied,
    /// A rule denies calls like this one.
    CallDenied,
    /// The mode does not list it.
    NotInMode,
    /// A rule denies some calls of the tool, and whether this is one cannot be told.
    CallUnclear,
    /// The session allows everything.
    Yolo,
    /// A rule names calls like this one.
    CallRule,
    /// A rule names the tool.
    ToolRule,
    /// A grant names the tool.
    ToolGrant,
    /// A grant names its category.
    CategoryGrant,
    /// The tool itself asks.
    RequiresApproval,
    /// A rule names its category.
    CategoryRule,
    /// Nobody said anything.
    Default,
}

impl Reason {
    /// A sentence for people.
    pub const fn explain(self) -> &'static str {
        match self {
            Self::ToolDenied => "a rule denies this tool",
            Self::CategoryDenied => "a rule denies this category of tools",
            Self::CallDenied => "a rule denies calls like this one",
            Self::NotInMode => "this mode does not offer the tool",
            Self::CallUnclear => "a rule denies some calls of this tool, and it cannot be told whether this is one of them",
            Self::Yolo => "the session runs everything without asking",
            Self::CallRule => "a rule names calls like this one",
            Self::ToolRule => "a rule names this tool",
            Self::ToolGrant => "this tool was allowed for the session",
            Self::CategoryGrant => "this category was allowed for the session",
            Self::RequiresApproval => "the tool asks before each call",
            Self::CategoryRule => "a rule names this category of tools",
            Self::Default => "the default for this category of tools",
        }
    }
}

/// Decides about one call. Pure and total; the order is that of [`Reason`].
///
/// A `deny` beats allow-lists, grants and yolo. A category `deny` gives way only to an explicit `allow` for the tool. A rule for single
/// calls is narrower than one for the tool, so it is looked at first; it cannot lift a denial of the whole tool. Person-facing
/// built-ins (category `Interact`) follow no rule by category; a rule that names them still counts.
pub fn decide(subject: Subject<'_>, now: &Circumstances<'_>) -> Decision {
    let tool_rule = now.rules.tools.get(subject.tool).copied();
    let category_rule = match subject.category {
        ToolCategory::Interact => None,
        category => now.rules.categories.get(&category).copied(),
    };
    let granted = |target: &GrantTarget| now.grants.iter().any(|grant| grant.width == GrantWidth::Session && grant.target == *target);
    let (verdict, reason) = if tool_rule == Some(Policy::Deny) {
        (Verdict::Deny, Reason::ToolDenied)
    } else if category_rule == Some(Policy::Deny) && tool_rule != Some(Policy::Allow) {
        (Verdict::Deny, Reason::CategoryDenied)
    } else if subject.call == Some(CallVerdict::Deny) {
        (Verdict::Deny, Reason::CallDenied)
    } else if now.visible.is_some_and(|names| !names.iter().any(|name| name.as_ref() == subject.tool)) {
        (Verdict::Hidden, Reason::NotInMode)
    } else if subject.call == Some(CallVerdict::Unclear) {
        (Verdict::Ask, Reason::CallUnclear)
    } else if now.yolo {
        (Verdict::Allow, Reason::Yolo)
    } else if let Some(call) = subject.call {
        (if call == CallVerdict::Allow { Verdict::Allow } else { Verdict::Ask }, Reason::CallRule)
    } else if let Some(policy) = tool_rule {
        (policy.into(), Reason::ToolRule)
    } else if granted(&GrantTarget::Tool(subject.tool.to_owned())) {
        (Verdict::Allow, Reason::ToolGrant)
    } else if granted(&GrantTarget::Category(subject.category)) {
        (Verdict::Allow, Reason::CategoryGrant)
    } else if subject.requires_approval {
        (Verdict::Ask, Reason::RequiresApproval)
    } else if let Some(policy) = category_rule {
        (policy.into(), Reason::CategoryRule)
    } else {
        (now.defaults.get(subject.category).into(), Reason::Default)
    };
    Decision { verdict, reason }
}

/// What the rules for single calls say of a call. Where nobody can read them, one that may hold the call back makes it
/// [`CallVerdict::Unclear`].
pub async fn judge(
    by: Option<&dyn CallRules>,
    rules: &PermissionRules,
    tool: &str,
    args: &Value,
    capabilities: &Capabilities,
) -> Option<CallVerdict> {
    if rules.calls.is_empty() {
        return None;
    }
    if let Some(by) = by {
        return by.judge(&rules.calls, tool, args, capabilities).await;
    }
    let names = |pattern: &str| pattern.split('(').next().is_some_and(|name| name.trim() == tool);
    rules.calls.iter().any(|(pattern, policy)| *policy != Policy::Allow && names(pattern)).then_some(CallVerdict::Unclear)
}

impl From<Policy> for Verdict {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Allow => Self::Allow,
            Policy::Ask => Self::Ask,
            Policy::Deny => Self::Deny,
        }
    }
}

#[cfg(test)]
mod tests;
