use ac_core::{
    SessionKey, Timestamp,
    event::{EndReason, MessageUpdate},
};
use futures::{FutureExt, StreamExt};

use super::*;
use crate::{Delivery, LocalBus};

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1)
    }
}

fn feed(capacity: usize) -> Arc<Feed> {
    let id = SessionId { controller: "c".into(), key: SessionKey::new("r") };
    Feed::new(id, "epoch".into(), Arc::new(LocalBus::new(capacity)), Arc::new(Still), TaskTracker::new())
}

fn about(run: &str) -> About {
    About { run: Some(run.into()), thread: Some("t".into()) }
}

fn delta(text: &str) -> EventBody {
    EventBody::MessageUpdate { id: "m".into(), update: MessageUpdate::TextDelta(text.into()) }
}

fn end(reason: EndReason) -> EventBody {
    EventBody::AgentEnd { reason, finish: None, error: None }
}

/// What a subscriber got so far, one word each.
fn read(subscription: &mut Subscription) -> Vec<String> {
    let mut out = vec![];
    while let Some(Some(delivery)) = subscription.next().now_or_never() {
        out.push(match delivery {
            Delivery::State(state) => format!("state@{}", state.cursor.seq),
            Delivery::Event(event) => format!("{}:{}", event.seq, event.body.name()),
        });
    }
    out
}

#[tokio::test(start_paused = true)]
async fn a_view_follows_each_event_and_deltas_share_one_per_interval() {
    let feed = feed(100);
    feed.show(Some("t".into()), |_| {});
    let mut reader = feed.subscribe(None);
    feed.tell(about("r"), EventBody::AgentStart);
    for text in ["a", "b", "c"] {
        feed.tell(about("r"), delta(text));
    }
    assert_eq!(
        read(&mut reader),
        [
            "state@0",
            "1:agent_start",
            "2:display_state_changed",
            "3:message_update",
            "4:display_state_changed",
            "5:message_update",
            "6:message_update"
        ]
    );
    tokio::time::sleep(Duration::from_millis(17)).await;
    assert_eq!(read(&mut reader), ["7:display_state_changed"], "what was withheld comes at the end of the interval");
    feed.tell(about("r"), delta("d"));
    feed.tell(about("r"), end(EndReason::Complete));
    assert_eq!(
        read(&mut reader),
        ["8:message_update", "9:display_state_changed", "10:agent_end", "11:display_state_changed"],
        "a withheld view comes before the next other event"
    );
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(read(&mut reader), Vec::<String>::new(), "no view comes late");
}

#[tokio::test]
async fn nothing_is_built_or_kept_while_nobody_listens_and_numbers_have_no_gap() {
    let feed = feed(100);
    feed.show(Some("t".into()), |_| {});
    feed.tell(About::default(), EventBody::Info { message: "unheard".into() });
    feed.tell(about("r"), EventBody::AgentStart);
    let mut late = feed.subscribe(None);
    feed.tell(about("r"), EventBody::Info { message: "heard".into() });
    assert_eq!(read(&mut late), ["state@2", "3:info", "4:display_state_changed"]);
    let Some(Delivery::State(state)) = feed.subscribe(None).next().await else { panic!("a subscription begins with the state") };
    assert!(state.state.is_running);
    assert_eq!(state.cursor, Cursor { epoch: "epoch".into(), seq: 4 });
}

#[tokio::test]
async fn a_reader_that_fell_behind_goes_on_from_the_present_state() {
    let feed = feed(4);
    let mut slow = feed.subscribe(None);
    for n in 0..20 {
        feed.tell(About::default(), EventBody::Info { message: n.to_string() });
    }
    let got = read(&mut slow);
    assert_eq!(got, ["state@0", "state@40"]);
    feed.tell(About::default(), EventBody::Info { message: "next".into() });
    assert_eq!(read(&mut slow), ["41:info", "42:display_state_changed"]);
}

#[tokio::test]
async fn a_client_that_comes_back_during_a_run_misses_nothing() {
    let feed = feed(100);
    feed.tell(about("r"), EventBody::AgentStart);
    let mut first = feed.subscribe(None);
    feed.tell(about("r"), EventBody::Info { message: "1".into() });
    assert_eq!(read(&mut first).last().unwrap(), "3:display_state_changed");
    drop(first);
    feed.tell(about("r"), EventBody::Info { message: "2".into() });
    let after = |epoch: &str, seq| Some(Cursor { epoch: epoch.into(), seq });
    assert_eq!(read(&mut feed.subscribe(after("epoch", 3))), ["4:info"]);
    assert_eq!(read(&mut feed.subscribe(after("another", 3))), ["state@4"]);
    assert_eq!(read(&mut feed.subscribe(after("epoch", 99))), ["state@4"]);
}

#[tokio::test]
async fn a_run_on_another_thread_does_not_touch_the_view() {
    let feed = feed(100);
    feed.show(Some("here".into()), |_| {});
    let mut reader = feed.subscribe(None);
    feed.tell(About { run: Some("r".into()), thread: Some("there".into()) }, EventBody::AgentStart);
    assert_eq!(read(&mut reader), ["state@0", "1:agent_start", "2:display_state_changed"]);
    assert!(!feed.state().is_running);
}

#[tokio::test]
async fn streams_end_when_the_session_does() {
    let feed = feed(100);
    let mut reader = feed.subscribe(None);
    feed.close();
    feed.tell(About::default(), EventBody::Info { message: "late".into() });
    assert!(matches!(reader.next().await, Some(Delivery::State(_))));
    assert!(reader.next().await.is_none());
    assert!(feed.subscribe(None).next().await.is_none());
}

#[tokio::test]
async fn who_has_seen_nothing_is_told_the_state_where_something_happened_meanwhile() {
    let feed = feed(100);
    let mut first = feed.subscribe(None);
    assert_eq!(read(&mut first), ["state@0"]);
    let at = Cursor { epoch: "epoch".into(), seq: 0 };
    drop(first);
    assert_eq!(read(&mut feed.subscribe(Some(at.clone()))), Vec::<String>::new(), "nothing happened");
    // Nobody listens and nothing runs: it is on no bus.
    feed.tell(About::default(), EventBody::FollowUpQueued { count: 0 });
    assert_eq!(read(&mut feed.subscribe(Some(at))), ["state@1"]);
}
