//! What people reported of several processes and several sessions: locks of the dead, runs that end because somebody else went away.

use std::{sync::Arc, time::Duration};

use ac_controller::{Answer, Settlement};
use ac_core::{EventBody, SessionKey, event::PendingKind};
use ac_storage::SledStorage;
use ac_testkit::Turn;
use serde_json::json;

use crate::{
    desk::{Desk, build_mode, drain, is_end, modes, names, until},
    histories::killed_in_a_call,
};

/// B-114, B-115: the run of a process that was killed is taken over at once when its lease is over, by exactly one of many.
#[tokio::test]
async fn one_of_eight_processes_takes_over_what_a_dead_one_left() {
    let desk = Desk::new([Turn::tool("c1", "write", json!({ "what": "a", "wait": 60_000 })), Turn::text("noted")]);
    killed_in_a_call(&desk).await;
    let mut sessions = vec![];
    for life in 0..8 {
        let controller = desk.builder(&format!("p{life}")).modes(build_mode()).build().unwrap();
        sessions.push((controller.create_session("ann").await.unwrap(), controller));
    }
    let taken = futures::future::join_all(sessions.iter().map(|(session, _)| session.take_over())).await;
    assert_eq!(taken.into_iter().filter(|taken| taken.as_ref().is_ok_and(Option::is_some)).count(), 1);
    for (session, _) in &sessions {
        let open = session.pending().await.unwrap();
        assert_eq!(open.iter().map(|wait| wait.kind).collect::<Vec<_>>(), [PendingKind::InDoubt]);
    }
    for (_, controller) in &sessions {
        controller.shutdown().await;
    }
}

/// B-115: a live owner is not robbed, however long its call takes.
#[tokio::test]
async fn a_live_owner_is_not_robbed_by_who_starts_meanwhile() {
    let desk = Desk::new([Turn::tool("c1", "look", json!({ "what": "a", "wait": 300 })), Turn::text("done")]);
    let owner = desk.builder("a").modes(build_mode()).build().unwrap();
    let session = owner.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    let submitted = session.submit("look").await.unwrap();
    until(&mut events, |body| matches!(body, EventBody::ToolStart { .. })).await;
    for life in 0..4 {
        let other = desk.builder(&format!("p{life}")).modes(build_mode()).build().unwrap();
        other.init().await.unwrap();
        assert!(other.create_session("ann").await.unwrap().take_over().await.unwrap().is_none());
        other.shutdown().await;
    }
    assert_eq!(submitted.settled().await, Settlement::Complete);
    assert_eq!(desk.done(), ["look a"]);
    owner.shutdown().await;
}

/// B-120: who follows a thread and leaves it, or ends, leaves the run of another process alone.
#[tokio::test]
async fn a_follower_that_leaves_ends_nobodys_run() {
    let desk = Desk::new([Turn::chunks(vec!["."; 60]).slowly(Duration::from_millis(10))]);
    let (owner, follower) =
        (desk.builder("a").modes(build_mode()).build().unwrap(), desk.builder("b").modes(build_mode()).build().unwrap());
    let session = owner.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    let submitted = session.submit("talk").await.unwrap();
    until(&mut events, |body| matches!(body, EventBody::MessageUpdate { .. })).await;
    let other = follower.create_session("ann").await.unwrap();
    assert_eq!(other.thread_id(), session.thread_id());
    other.create_thread(None, "Elsewhere").await.unwrap();
    follower.shutdown().await;
    assert_eq!(submitted.settled().await, Settlement::Complete);
    assert_eq!(names(&drain(&mut events)).into_iter().filter(|name| *name == "agent_end").count(), 1);
    owner.shutdown().await;
}

/// B-118: two windows of one person have nothing in common but the person.
#[tokio::test]
async fn two_scopes_of_one_resource_do_not_touch_each_other() {
    let desk = Desk::new([
        Turn::tool("c1", "ask_user", json!({ "question": "?" })).when_contains("ask me"),
        Turn::hang().when_contains("work"),
        Turn::text("thanks").when_contains("ask me"),
    ]);
    let controller = desk.builder("").modes(modes()).build().unwrap();
    let one = controller.create_session(SessionKey::scoped("ann", "one")).await.unwrap();
    let two = controller.create_session(SessionKey::scoped("ann", "two")).await.unwrap();
    one.switch_mode("plan").await.unwrap();
    two.switch_mode("build").await.unwrap();
    let mut events = one.subscribe();
    assert_eq!(one.send_message("ask me").await.unwrap().settlement, Settlement::Waiting);
    let working = two.submit("work").await.unwrap();
    desk.server.wait_for_requests(2).await;
    assert!(one.thread_id() != two.thread_id());
    assert_eq!((one.mode().as_str(), two.mode().as_str()), ("plan", "build"));
    assert_eq!((one.pending().await.unwrap().len(), two.pending().await.unwrap().len()), (1, 0));
    drain(&mut events);
    assert!(two.abort().await.unwrap());
    assert_eq!(working.settled().await, Settlement::Aborted);
    assert_eq!(names(&drain(&mut events)), Vec::<&str>::new(), "the one window hears nothing of the other");
    let wait = one.pending().await.unwrap().remove(0);
    one.answer(&wait.id, Answer::Reply { value: json!("yes") }).await.unwrap();
    until(&mut events, is_end).await;
    controller.shutdown().await;
}

/// B-117: sessions, threads and stores that come and go leave no file open behind them.
#[tokio::test]
async fn files_do_not_stay_open() {
    let folder = tempfile::tempdir().unwrap();
    // Those of this test only: others open files beside it.
    let open_files = || {
        let targets = std::fs::read_dir("/proc/self/fd")?.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        Ok::<_, std::io::Error>(targets.filter(|target| target.starts_with(folder.path())).count())
    };
    if open_files().is_err() {
        return println!("skipped: nothing tells which files are open");
    }
    let mut desk = Desk::new([]);
    let mut counts = vec![];
    for round in 0..6 {
        desk.storage = Arc::new(SledStorage::open(folder.path().join("store")).await.unwrap());
        let controller = desk.builder(&format!("l{round}")).modes(build_mode()).build().unwrap();
        controller.init().await.unwrap();
        for n in 0..40 {
            let session = controller.create_session(SessionKey::new(format!("person-{round}-{n}").as_str())).await.unwrap();
            session.create_thread(None, "").await.unwrap();
        }
        counts.push(open_files().unwrap());
        controller.shutdown().await;
        // The store goes with its last owner.
        desk.storage = Arc::new(ac_storage::MemoryStorage::new());
        drop(controller);
    }
    assert!(counts.iter().all(|count| *count == counts[0] && *count > 0), "{counts:?}");
    assert_eq!(open_files().unwrap(), 0, "the store is closed with the controller");
}
