//! Which session a key gives, and what is left of one.

use ac_controller::{Delivery, SessionRequest};
use ac_core::{Policy, SessionKey};
use ac_storage::domain::ThreadQuery;
use ac_testkit::Turn;
use futures::StreamExt;
use serde_json::{Map, json};

use crate::desk::{Desk, build_mode, words};

#[tokio::test]
async fn the_same_key_is_the_same_session_even_for_many_at_once() {
    let desk = Desk::new([]);
    let controller = desk.open("");
    let sessions = futures::future::join_all((0..32).map(|_| controller.create_session("ann"))).await;
    let sessions: Vec<_> = sessions.into_iter().map(Result::unwrap).collect();
    assert!(sessions.iter().all(|session| *session == sessions[0]));
    assert_eq!(controller.threads(&ThreadQuery::default()).await.unwrap().items.len(), 1, "one thread was made, not one each");
    let other = controller.create_session(SessionRequest::new("ann").scope("tab")).await.unwrap();
    assert_ne!(other, sessions[0]);
    assert_ne!(other.thread_id(), sessions[0].thread_id(), "two scopes never share a thread by accident");
    assert_eq!(controller.sessions().len(), 2);
    assert_eq!(controller.session(&SessionKey::new("ann")), Some(sessions[0].clone()));
    assert_eq!(controller.session(&SessionKey::new("nobody")), None);
    controller.shutdown().await;
    assert_eq!(controller.create_session("ann").await.unwrap_err().code(), "controller.closed");
    assert_eq!(sessions[0].send_message("late").await.unwrap_err().code(), "controller.closed");
}

/// SPEC C-25, C-29.
#[tokio::test]
async fn a_session_is_bound_to_the_thread_that_is_asked_for() {
    let desk = Desk::new([Turn::text("one")]);
    let controller = desk.open("");
    let ann = controller.create_session(SessionRequest::new("ann").thread("T")).await.unwrap();
    assert_eq!(ann.thread_id().unwrap().as_str(), "T", "a thread that does not exist is made with that id");
    ann.send_message("m").await.unwrap();
    let bob = controller.create_session("bob").await.unwrap();
    let own = bob.thread_id();
    for key in ["bob", "eve"] {
        assert_eq!(controller.create_session(SessionRequest::new(key).thread("T")).await.unwrap_err().code(), "thread.not_found");
    }
    assert_eq!(bob.thread_id(), own, "a refusal changes nothing");
    let again = controller.create_session(SessionRequest::new("ann").thread("T2")).await.unwrap();
    assert_eq!((again == ann, ann.thread_id().unwrap().as_str()), (true, "T2"));
    controller.create_session(SessionRequest::new("ann").thread("T")).await.unwrap();
    assert_eq!(ann.thread_id().unwrap().as_str(), "T");
    controller.create_session("ann").await.unwrap();
    assert_eq!(ann.thread_id().unwrap().as_str(), "T", "who asks for nothing changes nothing");
    controller.shutdown().await;
}

#[tokio::test]
async fn what_a_person_laid_down_ends_with_the_session_and_not_before() {
    let desk = Desk::new([]);
    let key = SessionKey::new("ann");
    let controller = desk.open("a");
    let session = controller.create_session(key.clone()).await.unwrap();
    let thread = session.thread_id();
    session.switch_mode("build").await.unwrap();
    session.set_tool_policy("run", Some(Policy::Deny)).await.unwrap();
    session.set_state(Map::from_iter([("k".to_owned(), json!(1))])).await.unwrap();
    controller.shutdown().await;

    let controller = desk.open("b");
    let session = controller.create_session(key.clone()).await.unwrap();
    assert_eq!((session.mode().as_str(), session.thread_id()), ("build", thread.clone()));
    assert_eq!(session.rules().tools["run"], Policy::Deny);
    let state: Vec<_> = session.state().keys().cloned().collect();
    assert_eq!(state, ["permissionRules"], "the rules are shown; other state does not survive unless the host says so");
    let mut events = session.subscribe();
    assert!(controller.delete_session(&key).await.unwrap());
    assert!(matches!(events.next().await, Some(Delivery::State(_))));
    assert!(events.next().await.is_none(), "its streams end");
    assert!(!controller.delete_session(&key).await.unwrap());
    assert_eq!(session.send_message("late").await.unwrap_err().code(), "session.deleted");
    let fresh = controller.create_session(key).await.unwrap();
    assert_ne!(fresh, session);
    assert_eq!((fresh.mode().as_str(), fresh.rules().tools.len()), ("plan", 0));
    assert_eq!(fresh.thread_id(), thread, "threads stay");
    controller.shutdown().await;
}

#[tokio::test]
async fn permissions_are_forgotten_and_state_is_kept_where_the_host_says_so() {
    let desk = Desk::new([]);
    let open = |life: &str| desk.builder(life).modes(build_mode()).ephemeral_permissions(true).persist_state(true).build().unwrap();
    let controller = open("a");
    let session = controller.create_session("ann").await.unwrap();
    session.set_tool_policy("run", Some(Policy::Deny)).await.unwrap();
    session.grant(ac_core::permission::GrantTarget::Tool("write".into())).await.unwrap();
    session.set_state(Map::from_iter([("k".to_owned(), json!(1)), ("yolo".to_owned(), json!(true))])).await.unwrap();
    controller.shutdown().await;
    let controller = open("b");
    let session = controller.create_session("ann").await.unwrap();
    assert_eq!((session.rules().tools.len(), session.grants().len()), (0, 0));
    assert_eq!(serde_json::Value::Object(session.state().as_ref().clone()), json!({ "k": 1 }), "yolo never survives");
    controller.shutdown().await;
}

#[tokio::test]
async fn a_view_follows_every_event() {
    let desk = Desk::new([Turn::text("hi")]);
    let controller = desk.open("");
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    session.switch_mode("build").await.unwrap();
    session.send_message("hi").await.unwrap();
    let words = words(&mut events);
    assert_eq!(words[..5], ["state", "mode_changed", "display_state_changed", "model_changed", "display_state_changed"]);
    assert_eq!(words.last().unwrap(), "display_state_changed");
    controller.shutdown().await;
}
