//! What is said twice, late or in the middle of something else: nothing is lost, nothing runs twice, and nothing stays stuck.

use std::{sync::Arc, time::Duration};

use ac_controller::{AgentController, RuntimeSettings, SessionRequest, Settlement, SystemClock, UserMessage};
use ac_core::{ControllerId, EventBody, SessionKey};
use ac_storage::{
    Commit, SessionId, ThreadRecord,
    domain::{MessageQuery, OpenRuns},
};
use ac_testkit::Turn;
use serde_json::{json, value::RawValue};

use crate::{
    desk::{Desk, build_mode, drain, is_end, names, until},
    histories::killed_in_a_call,
};

fn open(desk: &Desk, life: &str) -> AgentController {
    desk.builder(life).modes(build_mode()).build().unwrap()
}

/// A process on the real clock that looks at the store often.
fn process(desk: &Desk, life: &str) -> AgentController {
    let mut settings = RuntimeSettings::default();
    settings.poll = Duration::from_millis(30);
    desk.builder(life).clock(Arc::new(SystemClock)).runtime(settings).modes(build_mode()).build().unwrap()
}

async fn asked(desk: &Desk, times: usize) {
    let waiting = async {
        while desk.server.requests().len() < times {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("the model was not asked so often");
}

/// R8: who closes a run reads the queue as it is stored.
#[tokio::test]
async fn a_follow_up_of_another_process_begins_when_the_run_ends() {
    let desk = Desk::new([Turn::chunks(vec!["."; 20]).slowly(Duration::from_millis(20)), Turn::text("and more")]);
    let (a, b) = (process(&desk, "a"), process(&desk, "b"));
    let moving = b.create_session("ann").await.unwrap();
    let mut events = moving.subscribe();
    let submitted = moving.submit("talk").await.unwrap();
    until(&mut events, |body| matches!(body, EventBody::MessageUpdate { .. })).await;
    let queued = a.create_session("ann").await.unwrap().follow_up("then more").await.unwrap();
    assert!(queued.started.is_none());
    assert_eq!(submitted.settled().await, Settlement::Complete);
    asked(&desk, 2).await;
    let second = format!("{:?}", desk.server.requests()[1]);
    assert!(second.contains("then more"), "{second}");
    a.shutdown().await;
    b.shutdown().await;
}

#[tokio::test]
async fn a_message_id_that_is_known_is_refused_and_the_run_goes_on() {
    let desk = Desk::new([Turn::tool("c1", "look", json!({ "what": "a", "wait": 300 })), Turn::text("ok"), Turn::text("again")]);
    let controller = open(&desk, "");
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    let named = || UserMessage::new("look").id("m1");
    let submitted = session.submit(named()).await.unwrap();
    until(&mut events, |body| matches!(body, EventBody::ToolStart { .. })).await;
    assert_eq!(session.submit(named()).await.unwrap_err().code(), "storage.exists");
    assert_eq!(session.inject(named()).await.unwrap_err().code(), "storage.exists");
    assert_eq!(session.steer(named()).await.unwrap_err().code(), "storage.exists", "and nothing was stopped for it");
    assert_eq!(session.follow_up(named()).await.unwrap_err().code(), "storage.exists");
    assert!(session.submit_once(named()).await.unwrap().is_none());
    session.follow_up(UserMessage::new("again").id("m2")).await.unwrap();
    assert_eq!(session.follow_up(UserMessage::new("again").id("m2")).await.unwrap_err().code(), "storage.exists", "it waits already");
    assert_eq!(submitted.settled().await, Settlement::Complete);
    asked(&desk, 3).await;
    until(&mut events, is_end).await;
    until(&mut events, is_end).await;
    let stored = session.messages(None, MessageQuery::default()).await.unwrap().items;
    assert_eq!(stored.iter().filter(|stored| stored.message.id.as_str().starts_with('m')).count(), 2);
    controller.shutdown().await;
}

#[tokio::test]
async fn a_session_whose_thread_another_one_deleted_goes_on_with_a_new_one() {
    let desk = Desk::new([Turn::text("one"), Turn::text("two")]);
    let controller = open(&desk, "");
    let ann = controller.create_session(SessionRequest::new("ann").thread("T")).await.unwrap();
    let tab = controller.create_session(SessionRequest::new("ann").scope("tab").thread("T")).await.unwrap();
    let other = controller.create_session(SessionRequest::new("ann").scope("other").thread("T")).await.unwrap();
    let third = controller.create_session(SessionRequest::new("ann").scope("third").thread("T")).await.unwrap();
    ann.delete_thread(&"T".into()).await.unwrap();
    assert_eq!(tab.set_goal("tidy up").await.unwrap_err().code(), "session.no_thread");
    assert_eq!(tab.send_message("hello").await.unwrap().settlement, Settlement::Complete);
    assert_ne!(tab.thread_id().unwrap().as_str(), "T");
    let again = controller.create_session(SessionRequest::new("ann").scope("other")).await.unwrap();
    assert!(again == other && other.thread_id().unwrap().as_str() != "T", "who asks for a session gets one that works");
    let named = controller.create_session(SessionRequest::new("ann").scope("third").thread("T")).await;
    assert_eq!(named.unwrap_err().code(), "thread.exists", "its id is not given again");
    // Who does not know yet may delete it too.
    third.delete_thread(&"T".into()).await.unwrap();
    assert_eq!(third.thread_id(), None);
    assert_eq!(third.delete_thread(&"T".into()).await.unwrap_err().code(), "thread.not_found");
    controller.shutdown().await;
}

#[tokio::test]
async fn a_move_that_the_view_has_not_made_yet_is_made_when_it_is_asked_for_again() {
    let desk = Desk::new([]);
    let (a, b) = (open(&desk, "a"), open(&desk, "b"));
    let here = a.create_session(SessionRequest::new("ann").thread("T1")).await.unwrap();
    b.create_session(SessionRequest::new("ann").thread("T2")).await.unwrap();
    // It reads where the other process put it, and still shows the first one.
    here.queue().await.unwrap();
    assert_eq!(here.thread_id().unwrap().as_str(), "T2");
    let mut events = here.subscribe();
    here.switch_thread(&"T2".into()).await.unwrap();
    assert_eq!(names(&drain(&mut events)), ["thread_changed"]);
    here.switch_thread(&"T2".into()).await.unwrap();
    assert_eq!(names(&drain(&mut events)), Vec::<&str>::new(), "and once");
    a.shutdown().await;
    b.shutdown().await;
}

#[tokio::test]
async fn a_session_that_cannot_be_read_keeps_no_other_run_from_going_on() {
    let desk = Desk::new([Turn::tool("c1", "write", json!({ "what": "a", "wait": 60_000 }))]);
    killed_in_a_call(&desk).await;
    let id = SessionId { controller: ControllerId::from("desk"), key: SessionKey::new("ann") };
    let version = desk.storage.sessions().load(&id).await.unwrap().map(|stored| stored.version);
    let newer = RawValue::from_string(r#"{"schema":99}"#.to_owned()).unwrap();
    desk.storage.sessions().save(&id, version, &newer).await.unwrap();
    let controller = open(&desk, "b");
    controller.init().await.unwrap();
    assert!(controller.create_session("ann").await.is_err());
    assert!(controller.create_session("bob").await.is_ok());
    controller.shutdown().await;
}

/// A run in a form of tomorrow, of somebody whose name comes first, on a thread of its own.
async fn leave_a_run_of_a_newer_version(desk: &Desk) {
    let open = desk.storage.runs().open(&OpenRuns::default()).await.unwrap().items.remove(0);
    let mut record = desk.storage.runs().load(&open.run).await.unwrap().unwrap().value;
    record.header.run = "a-newer".into();
    record.header.thread = "X".into();
    record.header.session = SessionKey::new("bob");
    record.body = RawValue::from_string(r#"{"schema":99}"#.to_owned()).unwrap();
    desk.storage.threads().create(&ThreadRecord::new("X".into(), "bob".into(), record.header.at)).await.unwrap();
    let commit = Commit { expect: None, record: &record, put: &[], usage: None };
    desk.storage.runs().commit(commit).await.unwrap();
}

#[tokio::test]
async fn a_run_that_cannot_be_read_keeps_no_other_run_from_going_on() {
    let desk = Desk::new([Turn::tool("c1", "write", json!({ "what": "a", "wait": 60_000 }))]);
    killed_in_a_call(&desk).await;
    leave_a_run_of_a_newer_version(&desk).await;
    let controller = open(&desk, "b");
    controller.init().await.unwrap();
    let ann = controller.create_session("ann").await.unwrap();
    let doubt = async {
        while ann.pending().await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), doubt).await.expect("the run of the other session was not taken over");
    let open = desk.storage.runs().open(&OpenRuns::default()).await.unwrap().items;
    assert_eq!(open.len(), 2, "and the one that cannot be read is left as it is");
    controller.shutdown().await;
}

/// R8: whoever took a follow-up may die before it can start it, and nobody may come back to the session.
#[tokio::test]
async fn a_follow_up_that_a_dead_process_left_is_started_by_the_next_one() {
    let desk =
        Desk::new([Turn::tool("c1", "look", json!({ "what": "a", "wait": 200 })), Turn::text("1"), Turn::text("2"), Turn::text("3")]);
    let controller = open(&desk, "a");
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    session.submit("look").await.unwrap();
    session.follow_up(UserMessage::new("and then this").id("m2")).await.unwrap();
    let id = SessionId { controller: ControllerId::from("desk"), key: SessionKey::new("ann") };
    let waiting = desk.storage.sessions().load(&id).await.unwrap().unwrap().value;
    until(&mut events, is_end).await;
    until(&mut events, is_end).await;
    controller.shutdown().await;
    // As a process leaves it that took one more and died.
    let version = desk.storage.sessions().load(&id).await.unwrap().map(|stored| stored.version);
    let waiting = RawValue::from_string(waiting.get().replace("m2", "m3")).unwrap();
    desk.storage.sessions().save(&id, version, &waiting).await.unwrap();
    let controller = open(&desk, "b");
    controller.init().await.unwrap();
    asked(&desk, 4).await;
    assert!(format!("{:?}", desk.server.requests()[3]).matches("and then this").count() == 2);
    controller.shutdown().await;
}

#[tokio::test]
async fn deleting_a_thread_that_is_gone_forgets_what_the_session_keeps_of_it() {
    let desk = Desk::new([Turn::text("one")]);
    let controller = open(&desk, "");
    let ann = controller.create_session(SessionRequest::new("ann").thread("U")).await.unwrap();
    let tab = controller.create_session(SessionRequest::new("ann").scope("tab").thread("U")).await.unwrap();
    tab.switch_model("prov/other").await.unwrap();
    tab.create_thread(Some("V".into()), "").await.unwrap();
    ann.delete_thread(&"U".into()).await.unwrap();
    let id = SessionId { controller: ControllerId::from("desk"), key: SessionKey::scoped("ann", "tab") };
    let kept = || async { desk.storage.sessions().load(&id).await.unwrap().unwrap().value.get().contains("\"U\"") };
    assert!(kept().await);
    tab.delete_thread(&"U".into()).await.unwrap();
    assert!(!kept().await);
    assert_eq!(tab.thread_id().unwrap().as_str(), "V", "it stays where it is");
    assert_eq!(tab.delete_thread(&"U".into()).await.unwrap_err().code(), "thread.not_found");
    controller.shutdown().await;
}
