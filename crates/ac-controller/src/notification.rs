use ac_core::{RunId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::Signal;

/// Something from outside that the model of a thread may want to know (WIRE section 8). Its serde form is the one on the wire.
///
/// ```
/// use ac_controller::{Notification, NotificationPriority, Session};
///
/// # async fn run(session: &Session) -> Result<(), ac_controller::ControllerError> {
/// let mail = Notification::new("mail", "message", "Grace asks for the figures.").priority(NotificationPriority::High).dedupe_key("mail-17");
/// session.send_notification(mail).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[must_use]
pub struct Notification {
    /// Where it comes from: `ci`, `mail`.
    pub source: String,
    /// What it is there: `build`.
    pub kind: String,
    /// What the model reads of it.
    pub summary: String,
    /// How urgent it is.
    #[serde(default)]
    pub priority: NotificationPriority,
    /// What programs read of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// Its id at its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    /// Of several with this key from one source only the first counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedupe_key: Option<String>,
    /// Of several with this key from one source that wait only the last is shown, with how many it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coalesce_key: Option<String>,
    /// What the model reads besides.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub attributes: Map<String, Value>,
    /// What the host keeps with it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Notification {
    /// A notification of middling priority.
    pub fn new(source: impl Into<String>, kind: impl Into<String>, summary: impl Into<String>) -> Self {
        Self { source: source.into(), kind: kind.into(), summary: summary.into(), ..Self::default() }
    }

    /// How urgent it is.
    pub fn priority(mut self, priority: NotificationPriority) -> Self {
        self.priority = priority;
        self
    }

    /// Of several with this key from its source only the first counts.
    pub fn dedupe_key(mut self, key: impl Into<String>) -> Self {
        self.dedupe_key = Some(key.into());
        self
    }

    /// Of several with this key from its source that wait only the last is shown.
    pub fn coalesce_key(mut self, key: impl Into<String>) -> Self {
        self.coalesce_key = Some(key.into());
        self
    }

    /// What the model reads besides.
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }

    /// What programs read of it.
    pub fn payload(mut self, payload: Value) -> Self {
        self.payload = Some(payload);
        self
    }
}

/// How urgent a notification is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationPriority {
    /// Worth a line in a summary.
    Low,
    /// Worth telling, not worth a run.
    #[default]
    Medium,
    /// Worth a run where nothing runs.
    High,
    /// Worth telling in the middle of a run.
    Urgent,
}

impl NotificationPriority {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Urgent => "urgent",
        }
    }
}

/// What is done with a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotificationRoute {
    /// The model reads it now: at the next step of the open run, or by a run of its own.
    Wake,
    /// It is put into the thread, and the open run reads it; without one, the next run does.
    Deliver,
    /// It waits in the inbox; the next run that starts on the thread reads one summary of all that wait.
    Summarize,
    /// It is not kept.
    Discard,
}

impl NotificationRoute {
    /// What happens unless the host says otherwise. While a run is open only what is urgent reaches it; else low waits for the next run,
    /// medium is put into the thread, high and urgent start a run.
    pub const fn by_priority(priority: NotificationPriority, active: bool) -> Self {
        match (priority, active) {
            (NotificationPriority::Urgent, _) | (NotificationPriority::High, false) => Self::Wake,
            (NotificationPriority::Medium, false) => Self::Deliver,
            (NotificationPriority::Low, false) | (_, true) => Self::Summarize,
        }
    }
}

/// What was decided about a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationDecision {
    /// The model reads it by itself.
    Deliver,
    /// It waits for a summary.
    Summarize,
    /// It does not count: its key came before, or the host does not want it.
    Discard,
}

/// What became of a notification. Its serde form is the answer on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NotificationSent {
    /// It was delivered.
    pub accepted: bool,
    /// Its id in the inbox; of the one that came before, where it repeats that. None where it is not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notification_id: Option<String>,
    /// What was decided.
    pub decision: NotificationDecision,
    /// The run that reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}

/// How far a notification is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationStatus {
    /// It waits.
    Pending,
    /// It stands in the thread.
    Delivered,
    /// It stands in a summary in the thread.
    Summarized,
    /// A person, or a program, has seen to it; a model is not told any more.
    Acknowledged,
}

impl NotificationStatus {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Summarized => "summarized",
            Self::Acknowledged => "acknowledged",
        }
    }
}

/// A notification in the inbox of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InboxItem {
    /// Its id.
    pub id: String,
    /// The notification; of several that were joined, the last.
    #[serde(flatten)]
    pub notification: Notification,
    /// How far it is.
    pub status: NotificationStatus,
    /// How many it stands for.
    pub count: u32,
    /// When the first of them came.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl InboxItem {
    /// As the model reads it.
    pub(crate) fn signal(&self, status: NotificationStatus) -> Signal {
        let Notification { source, kind, summary, priority, attributes, .. } = &self.notification;
        let about = json!({
            "signal": "notification",
            "recordId": self.id,
            "source": source,
            "kind": kind,
            "priority": priority.as_str(),
            "status": status.as_str(),
        });
        let mut signal = Signal::new("notification", summary.clone());
        for (name, value) in attributes {
            signal = signal.attribute(name.clone(), value.clone());
        }
        let ours = [
            ("id", self.id.as_str()),
            ("source", source),
            ("type", kind),
            ("kind", kind),
            ("priority", priority.as_str()),
            ("status", status.as_str()),
        ];
        for (name, value) in ours {
            signal = signal.attribute(name, value);
        }
        signal.metadata(Map::from_iter([("notification".to_owned(), about)]))
    }
}

/// One text for everything that waits: most urgent first, then in the order in which it came.
pub(crate) fn summary(waiting: &[InboxItem]) -> Signal {
    let mut order: Vec<&InboxItem> = waiting.iter().collect();
    order.sort_by_key(|item| std::cmp::Reverse(item.notification.priority));
    let mut text = format!("{} notifications came meanwhile:", waiting.iter().map(|item| u64::from(item.count)).sum::<u64>());
    for item in &order {
        let Notification { source, kind, summary, priority, .. } = &item.notification;
        let times = if item.count > 1 { format!(" ×{}", item.count) } else { String::new() };
        text.push_str(&format!("\n- [{}] {source}/{kind}{times}: {summary}", priority.as_str()));
    }
    let ids: Vec<&str> = order.iter().map(|item| item.id.as_str()).collect();
    let about = json!({ "signal": "notification-summary", "recordIds": ids });
    Signal::new("notification-summary", text)
        .attribute("count", waiting.len())
        .metadata(Map::from_iter([("notification".to_owned(), about)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_has_its_wire_form() {
        let json = json!({ "source": "ci", "kind": "build", "summary": "s", "priority": "urgent", "payload": { "job": 7 },
            "sourceId": "1", "dedupeKey": "d", "coalesceKey": "c", "attributes": { "repo": "x" }, "metadata": { "m": 1 } });
        let read: Notification = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), json);
        let least: Notification = serde_json::from_value(json!({ "source": "ci", "kind": "build", "summary": "s" })).unwrap();
        assert_eq!(least, Notification::new("ci", "build", "s"));
        assert!(serde_json::from_value::<Notification>(json!({ "source": "a", "kind": "b", "summary": "c", "priority": "x" })).is_err());
    }

    #[test]
    fn priority_decides() {
        use NotificationPriority::{High, Low, Medium, Urgent};
        use NotificationRoute::{Deliver, Summarize, Wake};
        let idle = [Low, Medium, High, Urgent].map(|priority| NotificationRoute::by_priority(priority, false));
        assert_eq!(idle, [Summarize, Deliver, Wake, Wake]);
        let active = [Low, Medium, High, Urgent].map(|priority| NotificationRoute::by_priority(priority, true));
        assert_eq!(active, [Summarize, Summarize, Summarize, Wake]);
    }
}
