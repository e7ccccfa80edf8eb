//! Threads, modes and models of a session.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ac_controller::{ModelChoice, Settlement};
use ac_core::{EventBody, ThreadId, event::EndReason};
use ac_storage::{
    MemoryStorage, StorageError, StorageErrorKind,
    domain::{MessageQuery, ThreadQuery},
};
use ac_testkit::{
    Turn,
    store::{Call, Hook, HookedStorage, Op},
};
use async_trait::async_trait;
use serde_json::json;
use tokio::sync::Notify;

use crate::desk::{Desk, build_mode, drain, is_end, names, until};

#[tokio::test]
async fn leaving_a_thread_aborts_what_moves_on_it_first() {
    let desk = Desk::new([Turn::chunks(["a", "b", "c", "d", "e"]).slowly(Duration::from_millis(100)), Turn::text("two")]);
    let controller = desk.open("");
    let session = controller.create_session("ann").await.unwrap();
    let old = session.thread_id().unwrap();
    let mut events = session.subscribe();
    let submitted = session.submit("one").await.unwrap();
    until(&mut events, |body| matches!(body, EventBody::MessageUpdate { .. })).await;
    let new = session.create_thread(None, "Second").await.unwrap();
    assert_eq!(submitted.settled().await, Settlement::Aborted);
    let all = names(&drain(&mut events));
    let tail: Vec<_> = all.iter().rev().take(3).rev().collect();
    assert_eq!(tail, [&"message_end", &"agent_end", &"thread_created"], "{all:?}");
    assert_eq!(session.thread_id(), Some(new.id.clone()));
    assert!(!session.display_state().is_running);
    assert_eq!(session.send_message("m2").await.unwrap().settlement, Settlement::Complete);
    session.switch_thread(&old).await.unwrap();
    let stored = session.messages(None, MessageQuery::default()).await.unwrap();
    assert_eq!(stored.items[0].message.text(), "one");
    controller.shutdown().await;
}

/// ARCHITECTURE, Session: a parked run stays parked on its thread and is answered there.
#[tokio::test]
async fn a_question_on_a_thread_that_was_left_is_still_answered() {
    let desk = Desk::new([Turn::tool("c1", "ask_user", json!({ "question": "?" })), Turn::text("thanks")]);
    let controller = desk.open("");
    let session = controller.create_session("ann").await.unwrap();
    let old = session.thread_id().unwrap();
    session.send_message("ask me").await.unwrap();
    let new = session.create_thread(None, "").await.unwrap();
    assert!(session.display_state().pending_suspensions.is_empty(), "the view shows the new thread");
    let open = session.pending().await.unwrap();
    assert_eq!((open.len(), &open[0].thread), (1, &old));
    let mut events = session.subscribe();
    session.respond_to_tool_suspension(json!("x"), None).await.unwrap();
    let all = until(&mut events, is_end).await;
    assert!(all.iter().all(|event| event.thread.as_ref() == Some(&old) || event.body.name() == "display_state_changed"));
    assert_eq!(session.thread_id(), Some(new.id));
    assert!(session.display_state().current_message.is_none(), "the other thread's events do not touch the view");
    session.switch_thread(&old).await.unwrap();
    assert!(session.pending().await.unwrap().is_empty());
    controller.shutdown().await;
}

/// B-121: each thread keeps its own mode and model, over switches and a restart.
#[tokio::test]
async fn each_thread_has_its_own_mode_and_model() {
    let desk = Desk::new([Turn::text("ok").forever()]);
    let controller = desk.open("a");
    let session = controller.create_session("ann").await.unwrap();
    let t1 = session.thread_id().unwrap();
    session.switch_model("prov/custom").await.unwrap();
    let t2 = session.create_thread(None, "").await.unwrap().id;
    assert_eq!(session.model().unwrap().as_str(), "prov/custom", "a new thread begins as the person has it");
    session.switch_mode("build").await.unwrap();
    session.switch_model(ModelChoice::new("prov/big").mode("build")).await.unwrap();
    let mut events = session.subscribe();
    for _ in 0..3 {
        session.switch_thread(&t1).await.unwrap();
        assert_eq!((session.mode().as_str(), session.model().unwrap().as_str()), ("plan", "prov/custom"));
        session.switch_thread(&t2).await.unwrap();
        assert_eq!((session.mode().as_str(), session.model().unwrap().as_str()), ("build", "prov/big"));
    }
    assert_eq!(names(&drain(&mut events))[..2], ["mode_changed", "thread_changed"]);
    controller.shutdown().await;

    let controller = desk.open("b");
    let session = controller.create_session("ann").await.unwrap();
    assert_eq!((session.thread_id(), session.mode().as_str()), (Some(t2), "build"));
    session.send_message("x").await.unwrap();
    session.switch_thread(&t1).await.unwrap();
    session.send_message("y").await.unwrap();
    let models: Vec<_> = desk.server.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, ["big", "custom"]);
    controller.shutdown().await;
}

#[tokio::test]
async fn a_global_model_is_never_written_and_what_was_chosen_last_counts() {
    let desk = Desk::new([]);
    let controller = desk.open("a");
    let session = controller.create_session("ann").await.unwrap();
    session.switch_model("prov/kept").await.unwrap();
    session.switch_model(ModelChoice::new("prov/passing").global()).await.unwrap();
    assert_eq!(session.model().unwrap().as_str(), "prov/passing");
    session.create_thread(None, "").await.unwrap();
    assert_eq!(session.model().unwrap().as_str(), "prov/passing");
    controller.shutdown().await;
    let controller = desk.open("b");
    let session = controller.create_session("ann").await.unwrap();
    assert_eq!(session.model().unwrap().as_str(), "prov/kept");
    assert_eq!(session.switch_mode("nowhere").await.unwrap_err().code(), "mode.not_found");
    controller.shutdown().await;
}

#[tokio::test]
async fn threads_are_listed_named_cloned_and_deleted_by_their_owner_only() {
    let desk = Desk::new([Turn::text("hello").forever()]);
    let controller = desk.open("");
    let session = controller.create_session("ann").await.unwrap();
    let first = session.thread_id().unwrap();
    session.send_message("hi").await.unwrap();
    session.rename_thread(None, "Greetings").await.unwrap();
    session.set_thread_setting(None, "k", Some(json!(5))).await.unwrap();
    assert_eq!(session.thread_settings(None).await.unwrap()["k"], json!(5));
    desk.clock.advance(10);
    let copy = session.clone_thread(None, None, None).await.unwrap();
    assert_eq!(copy.title, "Copy of Greetings");
    let texts = |items: &[ac_storage::record::StoredMessage]| items.iter().map(|stored| stored.message.text()).collect::<Vec<_>>();
    assert_eq!(texts(&session.messages(None, MessageQuery::default()).await.unwrap().items), ["hi", "hello"]);
    let page = session.threads(ThreadQuery { limit: 1, ..ThreadQuery::default() }).await.unwrap();
    assert_eq!((page.items.len(), page.next.is_some()), (1, true));

    let bob = controller.create_session("bob").await.unwrap();
    for result in [
        bob.switch_thread(&first).await,
        bob.delete_thread(&first).await,
        bob.rename_thread(Some(&first), "mine").await,
        bob.messages(Some(&first), MessageQuery::default()).await.map(drop),
        bob.clone_thread(Some(&first), None, None).await.map(drop),
    ] {
        assert_eq!(result.unwrap_err().code(), "thread.not_found");
    }
    session.delete_thread(&copy.id).await.unwrap();
    assert_eq!(session.thread_id(), None);
    assert_eq!(session.send_message("still here").await.unwrap().settlement, Settlement::Complete);
    assert!(session.thread_id().is_some_and(|thread| thread != copy.id && thread != first));
    controller.shutdown().await;
}

#[tokio::test]
async fn deleting_a_thread_ends_its_run_moving_or_waiting() {
    let desk = Desk::new([Turn::tool("c1", "write", json!({ "what": "a" })), Turn::text("never ends").then_hang()]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    for text in ["waits", "moves"] {
        let thread = session.create_thread(Some(ThreadId::from(text)), "").await.unwrap().id;
        let mut events = session.subscribe();
        let submitted = session.submit(text).await.unwrap();
        until(&mut events, |body| {
            matches!(
                body,
                EventBody::ToolApprovalRequired { .. }
                    | EventBody::MessageUpdate { update: ac_core::event::MessageUpdate::TextDelta(_), .. }
            )
        })
        .await;
        session.delete_thread(&thread).await.unwrap();
        assert_eq!(submitted.settled().await, Settlement::Aborted);
        let told = drain(&mut events);
        assert!(told.iter().any(|event| matches!(event.body, EventBody::AgentEnd { reason: EndReason::Aborted, .. })));
        assert_eq!(names(&told).iter().filter(|name| **name == "thread_deleted").count(), 1);
        assert!(session.pending().await.unwrap().is_empty());
        assert_eq!(controller.thread(&thread).await.unwrap(), None);
        assert!(!session.display_state().is_running);
        assert_eq!(session.create_thread(Some(thread), "").await.unwrap_err().code(), "thread.exists", "a deleted id is never used again");
    }
    controller.shutdown().await;
}

/// Holds the first copy up until it may go on.
#[derive(Default)]
struct Held {
    held: AtomicBool,
    begun: Notify,
    go_on: Notify,
}

#[async_trait]
impl Hook for Held {
    type Note = ();

    async fn before(&self, call: &Call) -> Result<(), StorageError> {
        if call.op == Op::CopyMessages && !self.held.swap(true, Ordering::SeqCst) {
            self.begun.notify_one();
            self.go_on.notified().await;
        }
        Ok(())
    }

    async fn after(&self, _: Call, (): (), _: Option<StorageErrorKind>) -> Result<(), StorageError> {
        Ok(())
    }
}

/// A step that is stored while the thread is copied is as open as one that was there before.
#[tokio::test]
async fn a_copy_never_has_a_call_that_is_still_open() {
    let held = Arc::new(Held::default());
    let slow = Turn::tool("c1", "write", json!({ "what": "a" })).slowly(Duration::from_millis(30));
    let mut desk = Desk::new([Turn::text("hello"), slow]);
    desk.storage = Arc::new(HookedStorage::new(MemoryStorage::new(), held.clone()));
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    session.send_message("hi").await.unwrap();
    let mut events = session.subscribe();
    session.submit("write").await.unwrap();
    let copying = tokio::spawn({
        let session = session.clone();
        async move { session.clone_thread(None, None, None).await }
    });
    held.begun.notified().await;
    until(&mut events, |body| matches!(body, EventBody::ToolApprovalRequired { .. })).await;
    held.go_on.notify_one();
    let copy = copying.await.unwrap().unwrap();
    let copied = session.messages(Some(&copy.id), MessageQuery::default()).await.unwrap().items;
    let texts: Vec<_> = copied.iter().map(|stored| stored.message.text()).collect();
    assert_eq!(texts, ["hi", "hello", "write"]);
    assert_eq!(session.threads(ThreadQuery::default()).await.unwrap().items.len(), 2, "the thread and one copy");
    controller.shutdown().await;
}
