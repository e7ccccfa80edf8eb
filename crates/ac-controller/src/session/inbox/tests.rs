use ac_core::Timestamp;
use serde_json::json;

use super::*;
use crate::NotificationPriority;

/// What version 1 wrote loads for ever.
#[test]
fn a_stored_inbox_loads() {
    let stored = json!({ "schema": 1, "items": [{
        "id": "n1", "source": "ci", "kind": "build", "summary": "s", "priority": "low", "coalesceKey": "c", "attributes": { "repo": "x" },
        "status": "pending", "count": 3, "createdAt": 1, "updatedAt": 2
    }] });
    let inbox: Inbox = serde_json::from_value(stored.clone()).unwrap();
    let item = &inbox.items[0];
    assert_eq!((item.count, item.notification.priority, item.status), (3, NotificationPriority::Low, NotificationStatus::Pending));
    let mut written = serde_json::to_value(&inbox).unwrap();
    written["schema"] = json!(1);
    assert_eq!(written, stored);
}

#[test]
fn keys_count_per_source_and_full_inboxes_lose_what_was_seen_to_first() {
    let mut inbox = Inbox::default();
    let now = Timestamp::from_millis(1);
    let note = |source: &str, n: usize| Notification::new(source, "k", n.to_string());
    for (n, source) in ["a", "b"].into_iter().enumerate() {
        let arrived = inbox.take(&format!("{source}{n}"), &note(source, n).dedupe_key("d"), now);
        assert!(matches!(arrived, Arrived::Item(_)), "another source's key is another key");
    }
    assert!(matches!(inbox.take("x", &note("a", 9).dedupe_key("d"), now), Arrived::Repeats(known) if known == "a0"));
    assert_eq!(inbox.mark(&["b1".to_owned()], NotificationStatus::Acknowledged, now), 1);
    for n in 0..ITEMS - 1 {
        inbox.take(&format!("n{n}"), &note("c", n), now);
    }
    assert_eq!((inbox.items.len(), inbox.items[0].id.as_str(), inbox.items[1].id.as_str()), (ITEMS, "a0", "n0"));
    inbox.take("last", &note("c", 1000), now);
    assert_eq!(inbox.items[0].id, "n0", "then the oldest");
}
