//! Two processes on one store: what one moves, the other answers, stops and leaves alone.

use std::{sync::Arc, time::Duration};

use ac_controller::{AgentController, Answer, RuntimeSettings, Settlement, SystemClock};
use ac_core::EventBody;
use ac_testkit::Turn;
use serde_json::json;

use crate::desk::{Desk, build_mode, drain, is_end, names, until};

/// A process with short leases, on the real clock.
fn process(desk: &Desk, life: &str) -> AgentController {
    let mut settings = RuntimeSettings::default();
    settings.lease = Duration::from_millis(300);
    settings.grace = Duration::from_millis(50);
    settings.poll = Duration::from_millis(30);
    desk.builder(life).clock(Arc::new(SystemClock)).runtime(settings).modes(build_mode()).build().unwrap()
}

/// A lease is renewed while a long answer arrives in many small pieces; nobody else takes the run over.
#[tokio::test]
async fn a_long_answer_keeps_its_run() {
    let desk = Desk::new([Turn::chunks(vec!["."; 40]).slowly(Duration::from_millis(25))]);
    let (a, b) = (process(&desk, "a"), process(&desk, "b"));
    let session = a.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    let submitted = session.submit("talk").await.unwrap();
    let robber = async {
        // Later than the first lease lasts.
        for _ in 0..6 {
            tokio::time::sleep(Duration::from_millis(130)).await;
            b.init().await.unwrap();
            let taken = b.create_session("ann").await.unwrap().take_over().await.unwrap();
            assert!(taken.is_none(), "the run was taken away from a process that moves it");
        }
    };
    let (settlement, ()) = tokio::join!(submitted.settled(), robber);
    assert_eq!(settlement, Settlement::Complete);
    assert_eq!(names(&drain(&mut events)).iter().filter(|name| **name == "agent_end").count(), 1);
    assert_eq!(desk.server.requests().len(), 1);
    a.shutdown().await;
    b.shutdown().await;
}

#[tokio::test]
async fn an_abort_from_another_process_stops_a_model_that_hangs() {
    let desk = Desk::new([Turn::text("I was say").then_hang()]);
    let (a, b) = (process(&desk, "a"), process(&desk, "b"));
    let session = a.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    let submitted = session.submit("talk").await.unwrap();
    until(&mut events, |body| matches!(body, EventBody::MessageUpdate { .. })).await;
    let other = b.create_session("ann").await.unwrap();
    assert_eq!(other.thread_id(), session.thread_id());
    assert!(other.abort().await.unwrap());
    let settlement = tokio::time::timeout(Duration::from_secs(5), submitted.settled()).await.unwrap();
    assert_eq!(settlement, Settlement::Aborted);
    a.shutdown().await;
    b.shutdown().await;
}

#[tokio::test]
async fn an_answer_in_another_process_moves_the_run_once() {
    let desk = Desk::new([Turn::tool("c1", "write", json!({ "what": "a" })), Turn::text("done")]);
    let (a, b) = (process(&desk, "a"), process(&desk, "b"));
    let session = a.create_session("ann").await.unwrap();
    let submitted = session.submit("write").await.unwrap();
    submitted.handle().unwrap().resting().await;
    let other = b.create_session("ann").await.unwrap();
    let mut events = other.subscribe();
    let open = other.pending().await.unwrap();
    assert_eq!(open, session.pending().await.unwrap());
    assert_eq!(b.pending_ids().await.unwrap(), [open[0].id.clone()].into());
    // Both at once, and both the same: one moves it, the other hears that it was said.
    let (x, y) = tokio::join!(
        session.answer(&open[0].id, Answer::Approve { grant: None }),
        other.answer(&open[0].id, Answer::Approve { grant: None })
    );
    assert_eq!([x.unwrap().repeated, y.unwrap().repeated].iter().filter(|repeated| !**repeated).count(), 1);
    tokio::time::timeout(Duration::from_secs(5), async {
        while session.current_run().await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
    assert_eq!(desk.done(), ["write a"]);
    assert_eq!(desk.server.requests().len(), 2);
    drop(drain(&mut events));
    a.shutdown().await;
    b.shutdown().await;
}

#[tokio::test]
async fn a_message_from_another_process_joins_the_run() {
    let desk = Desk::new([Turn::tool("c1", "look", json!({ "what": "slowly", "wait": 300 })), Turn::text("both")]);
    let (a, b) = (process(&desk, "a"), process(&desk, "b"));
    let session = a.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    let submitted = session.submit("first").await.unwrap();
    until(&mut events, |body| matches!(body, EventBody::ToolStart { .. })).await;
    let other = b.create_session("ann").await.unwrap();
    assert_eq!(other.send_message("second").await.unwrap().settlement, Settlement::Joined);
    until(&mut events, is_end).await;
    assert_eq!(submitted.settled().await, Settlement::Complete);
    assert!(desk.server.requests()[1].body.to_string().contains("second"));
    a.shutdown().await;
    b.shutdown().await;
}
