//! Signals and notifications: what happened elsewhere, on its way to the model.

use std::time::Duration;

use ac_controller::{
    Notification, NotificationDecision, NotificationPriority, NotificationRoute, NotificationStatus, Settlement, Signal, SignalAction,
    WhenActive, WhenIdle,
};
use ac_core::{EventBody, Role, wire};
use ac_storage::domain::MessageQuery;
use ac_testkit::Turn;
use serde_json::json;

use crate::desk::{Desk, build_mode, drain, is_end, names, until};

#[tokio::test]
async fn an_idle_thread_is_woken_or_told_or_left_alone() {
    let desk = Desk::new([Turn::text("seen"), Turn::text("ok")]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    let gone = session.send_signal(Signal::new("ci", "x").if_idle(WhenIdle::Discard)).await.unwrap();
    assert_eq!(gone.action, SignalAction::Discarded);
    let kept = session.send_signal(Signal::new("ci", "first").if_idle(WhenIdle::Persist)).await.unwrap();
    assert_eq!(kept.action, SignalAction::Persisted);
    assert_eq!(names(&drain(&mut events)), ["message_start", "message_end"]);
    assert!(desk.server.requests().is_empty());
    let woke = session.send_signal(Signal::new("ci", "a </ci> b").attribute("source", "x")).await.unwrap();
    assert!(matches!(woke.action, SignalAction::Woke { .. }));
    until(&mut events, is_end).await;
    let sent = desk.server.requests()[0].body["messages"].as_array().unwrap().clone();
    assert_eq!(sent[1]["content"], "<ci>first</ci>");
    assert_eq!(sent[2]["content"], "<ci source=\"x\">a &lt;/ci> b</ci>", "what comes from elsewhere does not end its element");
    assert_eq!(session.send_signal(Signal::new("ci", "")).await.unwrap_err().code(), "message.empty");
    controller.shutdown().await;
}

/// A note for the thread makes no run go on; one for the model does.
#[tokio::test]
async fn a_run_is_told_and_a_note_waits_for_its_end() {
    for (behaviour, requests) in [(WhenActive::Deliver, 2), (WhenActive::Persist, 1), (WhenActive::Discard, 1)] {
        let slow = Turn::chunks(["a", "b", "c", "d"]).slowly(Duration::from_millis(50));
        let desk = Desk::new([slow, Turn::text("after")]);
        let controller = desk.builder("").modes(build_mode()).build().unwrap();
        let session = controller.create_session("ann").await.unwrap();
        let mut events = session.subscribe();
        let run = session.submit("go").await.unwrap();
        until(&mut events, |body| matches!(body, EventBody::MessageUpdate { .. })).await;
        let sent = session.send_signal(Signal::new("note", "by the way").if_active(behaviour)).await.unwrap();
        match behaviour {
            WhenActive::Deliver => assert_eq!(sent.action, SignalAction::Delivered { run: run.run.clone() }),
            WhenActive::Persist => assert_eq!(sent.action, SignalAction::Persisted),
            WhenActive::Discard => assert_eq!(sent.action, SignalAction::Discarded),
        }
        assert_eq!(run.settled().await, Settlement::Complete);
        until(&mut events, is_end).await;
        assert_eq!(desk.server.requests().len(), requests, "{behaviour:?}");
        let stored = session.messages(None, MessageQuery::default()).await.unwrap().items;
        assert_eq!(stored.iter().any(|m| m.message.role == Role::Signal), behaviour != WhenActive::Discard);
        controller.shutdown().await;
    }
}

/// SPEC S-18: only a person's message declines what waits.
#[tokio::test]
async fn a_signal_declines_nothing_and_reaches_foreign_threads_never() {
    let desk = Desk::new([Turn::tool("c1", "write", json!({ "what": "w" })), Turn::text("done")]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let thread = session.thread_id().unwrap();
    crate::desk::send_and_rest(&session, "go").await;
    session.send_signal(Signal::new("note", "hello")).await.unwrap();
    let open = session.pending().await.unwrap();
    assert_eq!(open.len(), 1, "the approval is still open");
    let other = session.create_thread(None, "").await.unwrap();
    let sent = session.send_signal_to_thread(&other.id, Signal::new("note", "there")).await.unwrap();
    assert_eq!(sent.action, SignalAction::Persisted);
    let parked = session.send_signal_to_thread(&thread, Signal::new("note", "here")).await.unwrap();
    assert_eq!(parked.action, SignalAction::Persisted, "by the run that holds the thread");
    let bob = controller.create_session("bob").await.unwrap();
    let refused = bob.send_signal_to_thread(&thread, Signal::new("note", "x")).await.unwrap_err();
    assert_eq!(refused.code(), "thread.not_found");
    controller.shutdown().await;
}

fn note(priority: NotificationPriority) -> Notification {
    Notification::new("ci", "build", "Build broke").priority(priority)
}

#[tokio::test]
async fn priority_decides_and_what_waits_is_told_once() {
    use NotificationPriority::{High, Low, Medium, Urgent};
    let desk = Desk::new([Turn::text("woken").forever()]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    let low = session.send_notification(note(Low)).await.unwrap();
    assert_eq!(
        serde_json::to_value(&low).unwrap(),
        json!({ "accepted": false, "notificationId": low.notification_id, "decision": "summarize" })
    );
    let medium = session.send_notification(note(Medium).attribute("repo", "x").payload(json!({ "job": 7 }))).await.unwrap();
    assert_eq!((medium.accepted, medium.decision, medium.run_id), (true, NotificationDecision::Deliver, None));
    let told = drain(&mut events);
    assert_eq!(names(&told), ["message_start", "message_end"]);
    let live = wire::body(&told[0]);
    let data = &live["message"]["content"]["parts"][0]["data"];
    let id = medium.notification_id.unwrap();
    assert_eq!(
        (&data["type"], &data["tagName"], &data["contents"]),
        (&json!("notification"), &json!("notification"), &json!("Build broke"))
    );
    assert_eq!(
        data["attributes"],
        json!({ "repo": "x", "id": id, "source": "ci", "type": "build", "kind": "build", "priority": "medium", "status": "delivered" })
    );
    assert_eq!(
        data["metadata"]["notification"],
        json!({ "signal": "notification", "recordId": id, "source": "ci", "kind": "build", "priority": "medium", "status": "delivered" })
    );
    assert!(desk.server.requests().is_empty());
    let urgent = session.send_notification(note(Urgent)).await.unwrap();
    assert!(urgent.accepted && urgent.run_id.is_some(), "it wakes the model");
    until(&mut events, is_end).await;
    let request = desk.server.requests()[0].body["messages"].to_string();
    assert_eq!(request.matches("notifications came meanwhile").count(), 1, "{request}");
    assert!(request.contains("[low] ci/build: Build broke"));
    let inbox: Vec<_> = session.notifications().await.unwrap().into_iter().map(|item| item.status).collect();
    assert_eq!(inbox, [NotificationStatus::Summarized, NotificationStatus::Delivered, NotificationStatus::Delivered]);
    session.send_message("go").await.unwrap();
    let request = desk.server.requests()[1].body["messages"].to_string();
    assert_eq!(request.matches("notifications came meanwhile").count(), 1, "told once");

    let slow = Turn::chunks(["a", "b", "c", "d"]).slowly(Duration::from_millis(50));
    let desk = Desk::new([slow, Turn::text("after")]);
    let controller2 = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller2.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    session.submit("go").await.unwrap();
    until(&mut events, |body| matches!(body, EventBody::MessageUpdate { .. })).await;
    assert_eq!(session.send_notification(note(High)).await.unwrap().decision, NotificationDecision::Summarize);
    assert_eq!(session.send_notification(note(Medium)).await.unwrap().decision, NotificationDecision::Summarize);
    let urgent = session.send_notification(note(Urgent)).await.unwrap();
    assert!(urgent.accepted && urgent.run_id.is_some());
    until(&mut events, is_end).await;
    assert_eq!(desk.server.requests().len(), 2, "the open run reads it");
    controller2.shutdown().await;
    controller.shutdown().await;
}

#[tokio::test]
async fn repeated_ones_count_once_and_waiting_ones_are_joined() {
    use NotificationPriority::Low;
    let desk = Desk::new([Turn::text("ok").forever()]);
    let controller = desk.builder("a").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let first = session.send_notification(note(Low).dedupe_key("d")).await.unwrap();
    let again = session.send_notification(note(Low).dedupe_key("d")).await.unwrap();
    assert_eq!((again.decision, again.notification_id), (NotificationDecision::Discard, first.notification_id.clone()));
    for n in 1..4 {
        let item = Notification::new("mail", "new", format!("{n} mails")).priority(Low).coalesce_key("inbox");
        session.send_notification(item).await.unwrap();
    }
    let inbox = session.notifications().await.unwrap();
    assert_eq!(
        inbox.iter().map(|item| (item.count, item.notification.summary.as_str())).collect::<Vec<_>>(),
        [(1, "Build broke"), (3, "3 mails"),]
    );
    assert_eq!(session.acknowledge_notifications(&[first.notification_id.unwrap(), "unknown".into()]).await.unwrap(), 1);
    controller.shutdown().await;
    // What waits survives, and what was seen to is not told.
    let second = desk.builder("b").modes(build_mode()).build().unwrap();
    let session = second.create_session("ann").await.unwrap();
    session.send_message("go").await.unwrap();
    let request = desk.server.requests()[0].body["messages"].to_string();
    assert!(request.contains("[low] mail/new ×3: 3 mails") && !request.contains("Build broke"), "{request}");
    // Another one after that is another one.
    let later = Notification::new("mail", "new", "4 mails").priority(Low).coalesce_key("inbox");
    session.send_notification(later).await.unwrap();
    assert_eq!(session.notifications().await.unwrap().last().unwrap().count, 1);
    for bad in [Notification::new("", "k", "s"), Notification::new("s", "k", " ")] {
        assert_eq!(session.send_notification(bad).await.unwrap_err().code(), "notification.invalid");
    }
    let large = note(Low).payload("x".repeat(17_000).into());
    assert_eq!(session.send_notification(large).await.unwrap_err().code(), "message.too_large");
    for n in 0..120 {
        session.send_notification(Notification::new("s", "k", n.to_string()).priority(Low)).await.unwrap();
    }
    assert_eq!(session.notifications().await.unwrap().len(), 100, "an inbox is bounded");
    second.shutdown().await;
}

#[tokio::test]
async fn a_host_decides_otherwise() {
    let desk = Desk::new([]);
    let policy = |note: &Notification, _| if note.source == "spam" { NotificationRoute::Discard } else { NotificationRoute::Deliver };
    let controller = desk.builder("").modes(build_mode()).notification_policy(policy).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let spam = session.send_notification(Notification::new("spam", "k", "s")).await.unwrap();
    assert_eq!((spam.accepted, spam.notification_id), (false, None));
    assert!(session.send_notification(note(NotificationPriority::Urgent)).await.unwrap().accepted);
    assert!(desk.server.requests().is_empty());
    controller.shutdown().await;
}
