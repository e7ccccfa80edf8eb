use ac_core::{EpochId, Message, MessageId, Part, Role, SessionKey, Timestamp, display::reduce, event::MessageUpdate};
use futures::FutureExt;

use super::*;

fn session() -> SessionId {
    SessionId { controller: "c".into(), key: SessionKey::new("r") }
}

fn event(epoch: &str, seq: u64) -> Arc<Event> {
    told(epoch, seq, EventBody::Info { message: seq.to_string() })
}

fn told(epoch: &str, seq: u64, body: EventBody) -> Arc<Event> {
    let (epoch, at, session) = (EpochId::from(epoch), Timestamp::default(), SessionKey::new("r"));
    Arc::new(Event { epoch, seq, at, session, run: None, thread: None, body })
}

fn large(seq: u64, bytes: usize) -> Arc<Event> {
    told("e", seq, EventBody::Info { message: "x".repeat(bytes) })
}

/// The bytes and the events of a ring.
fn held(bus: &LocalBus, id: &SessionId) -> (usize, usize) {
    let ring = bus.ring(id);
    let kept = ring.lock();
    assert_eq!(kept.bytes, kept.events.iter().map(|kept| kept.weight).sum::<usize>(), "the count is that of what is there");
    (kept.bytes, kept.events.len())
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
    for seq in 1..=100 {
        bus.publish(&id, event("e", seq));
    }
    let mut second = bus.subscribe(&id, None);
    for seq in 101..=200 {
        bus.publish(&id, event("e", seq));
    }
    assert_eq!(read_all(&mut first), (1..=200).map(|seq| seq.to_string()).collect::<Vec<_>>());
    assert_eq!(read_all(&mut second), (101..=200).map(|seq| seq.to_string()).collect::<Vec<_>>());
    assert_eq!(bus.readers(&id), 2);
    drop(first);
    assert_eq!(bus.readers(&id), 1);
}

#[test]
fn a_reader_that_found_nothing_more_gets_what_comes_later() {
    let (bus, id) = (LocalBus::default(), session());
    let mut reader = bus.subscribe(&id, None);
    for seq in 1..=200 {
        bus.publish(&id, event("e", seq));
        // A look after each event, and now and then one more: it stands where it lets others go on, or where it waits.
        assert_eq!(read_all(&mut reader), [seq.to_string()]);
        (0..seq % 3).for_each(|_| assert!(read_all(&mut reader).is_empty()));
    }
}

#[test]
fn a_reader_that_falls_behind_is_told_and_the_ring_stays_bounded() {
    let (bus, id) = (LocalBus::new(4), session());
    let mut slow = bus.subscribe(&id, None);
    for seq in 1..=3 {
        bus.publish(&id, event("e", seq));
    }
    assert_eq!(read_all(&mut slow), ["1", "2", "3"]);
    for seq in 4..=9 {
        bus.publish(&id, event("e", seq));
    }
    assert_eq!(read_all(&mut slow), ["lost"]);
    assert_eq!(bus.ring(&id).lock().events.len(), 4);
}

#[test]
fn large_events_fill_a_ring_by_their_bytes() {
    let (bus, id) = (LocalBus::default().bytes(1_000_000), session());
    let mut prompt = bus.subscribe(&id, None);
    let slow = bus.subscribe(&id, None);
    for seq in 1..=1000 {
        bus.publish(&id, large(seq, 10_000));
        assert_eq!(read_all(&mut prompt), [seq.to_string()]);
    }
    let (bytes, kept) = held(&bus, &id);
    assert!(bytes <= 1_000_000 && (90..=100).contains(&kept), "{bytes} bytes, {kept} events");
    let after = |seq| read_all(&mut bus.subscribe(&id, Some(Cursor { epoch: "e".into(), seq })));
    assert_eq!(after(990), (991..=1000).map(|seq| seq.to_string()).collect::<Vec<_>>());
    assert_eq!(after(100), ["lost"]);
    assert_eq!(read_all(&mut { slow }), ["lost"]);
    // Small events take the place of large ones.
    for seq in 1001..=6000 {
        bus.publish(&id, event("e", seq));
    }
    let (bytes, kept) = held(&bus, &id);
    assert!(kept > 2_000 && bytes <= 1_000_000, "{bytes} bytes, {kept} events");
}

#[test]
fn who_reads_at_once_loses_nothing_however_large_the_events() {
    let (bus, id) = (LocalBus::default().bytes(1000), session());
    let mut reader = bus.subscribe(&id, None);
    let burst = u64::try_from(LocalBus::LEAST).unwrap();
    for seq in 1..=burst {
        bus.publish(&id, large(seq, 100_000));
    }
    assert_eq!(read_all(&mut reader), (1..=burst).map(|seq| seq.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_ring_full_of_views_keeps_what_changed_from_one_to_the_next() {
    let (bus, id) = (LocalBus::default(), session());
    let _reader = bus.subscribe(&id, None);
    let mut state = Arc::new(DisplayState::default());
    let mut seq = 0;
    let mut tell = |body| {
        let event = told("e", seq + 1, body);
        reduce(Arc::make_mut(&mut state), &event);
        bus.publish(&id, event);
        bus.publish(&id, told("e", seq + 2, EventBody::DisplayStateChanged { state: state.clone() }));
        seq += 2;
    };
    let message = Message::new("m", Role::Assistant, vec![Part::text("x".repeat(1_000_000))], Timestamp::default());
    tell(EventBody::MessageStart { message: Arc::new(message) });
    for _ in 0..LocalBus::CAPACITY {
        tell(EventBody::MessageUpdate { id: MessageId::from("m"), update: MessageUpdate::TextDelta("a few words".into()) });
    }
    let (bytes, kept) = held(&bus, &id);
    assert_eq!(kept, LocalBus::CAPACITY, "it is full by number and not by bytes");
    assert!(bytes / kept < 600, "{} bytes an event", bytes / kept);
}

#[test]
fn a_reader_that_comes_back_gets_what_followed_or_is_told_that_it_is_gone() {
    let (bus, id) = (LocalBus::new(4), session());
    let _keeps_the_ring = bus.subscribe(&id, None);
    for seq in 1..=6 {
        bus.publish(&id, event("e", seq));
    }
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
