use ac_core::{EpochId, EventBody, SessionKey, Timestamp};
use futures::FutureExt;

use super::*;

fn session() -> SessionId {
    SessionId { controller: "c".into(), key: SessionKey::new("r") }
}

fn event(epoch: &str, seq: u64) -> Arc<Event> {
    Arc::new(Event {
        epoch: EpochId::from(epoch),
        seq,
        at: Timestamp::default(),
        session: SessionKey::new("r"),
        run: None,
        thread: None,
        body: EventBody::Info { message: seq.to_string() },
    })
}

fn read_all(items: &mut BoxStream<'static, BusItem>) -> Vec<String> {
    let mut out = vec![];
    while let Some(Some(item)) = items.next().now_or_never() {
        out.push(match item {
            BusItem::Event(event) => event.seq.to_string(),
            BusItem::Lost => "lost".into(),
        });
    }
    out
}

#[test]
fn each_reader_gets_every_event_from_its_beginning_once_and_in_order() {
    let (bus, id) = (LocalBus::default(), session());
    let mut first = bus.subscribe(&id, None);
    (1..=100).for_each(|seq| bus.publish(&id, event("e", seq)));
    let mut second = bus.subscribe(&id, None);
    (101..=200).for_each(|seq| bus.publish(&id, event("e", seq)));
    assert_eq!(read_all(&mut first), (1..=200).map(|seq| seq.to_string()).collect::<Vec<_>>());
    assert_eq!(read_all(&mut second), (101..=200).map(|seq| seq.to_string()).collect::<Vec<_>>());
    assert_eq!(bus.readers(&id), 2);
    drop(first);
    assert_eq!(bus.readers(&id), 1);
}

#[test]
fn a_reader_that_falls_behind_is_told_and_the_ring_stays_bounded() {
    let (bus, id) = (LocalBus::new(4), session());
    let mut slow = bus.subscribe(&id, None);
    (1..=3).for_each(|seq| bus.publish(&id, event("e", seq)));
    assert_eq!(read_all(&mut slow), ["1", "2", "3"]);
    (4..=9).for_each(|seq| bus.publish(&id, event("e", seq)));
    assert_eq!(read_all(&mut slow), ["lost"]);
    assert_eq!(bus.ring(&id).lock().events.len(), 4);
}

#[test]
fn a_reader_that_comes_back_gets_what_followed_or_is_told_that_it_is_gone() {
    let (bus, id) = (LocalBus::new(4), session());
    let _keeps_the_ring = bus.subscribe(&id, None);
    (1..=6).for_each(|seq| bus.publish(&id, event("e", seq)));
    let after = |epoch: &str, seq| read_all(&mut bus.subscribe(&id, Some(Cursor { epoch: epoch.into(), seq })));
    assert_eq!(after("e", 6), Vec::<String>::new());
    assert_eq!(after("e", 4), ["5", "6"]);
    assert_eq!(after("e", 2), ["3", "4", "5", "6"]);
    assert_eq!(after("e", 1), ["lost"]);
    assert_eq!(after("e", 7), ["lost"]);
    assert_eq!(after("another life", 4), ["lost"]);
}

#[test]
fn what_nobody_reads_is_forgotten_at_rest_and_streams_end_at_close() {
    let (bus, id) = (LocalBus::default(), session());
    bus.publish(&id, event("e", 1));
    bus.rest(&id);
    assert!(bus.rings.get(&id).is_none());
    let mut reader = bus.subscribe(&id, None);
    bus.publish(&id, event("e", 2));
    bus.rest(&id);
    bus.close(&id);
    assert_eq!(reader.next().now_or_never().flatten().map(|item| matches!(item, BusItem::Event(_))), Some(true));
    assert!(matches!(reader.next().now_or_never(), Some(None)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_reader_wakes_for_each_event() {
    let (bus, id) = (Arc::new(LocalBus::default()), session());
    let items = bus.subscribe(&id, None);
    let reader = tokio::spawn(items.take(500).count());
    for seq in 1..=500 {
        bus.publish(&id, event("e", seq));
        if seq % 7 == 0 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(tokio::time::timeout(std::time::Duration::from_secs(10), reader).await.unwrap().unwrap(), 500);
}
