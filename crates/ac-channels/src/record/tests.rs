use super::*;
use crate::event::{IncomingKind, Said};

fn event(id: &str) -> Incoming {
    Incoming {
        ids: vec![id.into()],
        conversation: Conversation { id: "slack:D1".into(), channel: "D1".into(), thread: None, direct: true },
        speaker: Speaker::new("U1"),
        kind: IncomingKind::Message(Said { text: "hi".into(), ..Said::default() }),
    }
}

fn record() -> ConversationRecord {
    ConversationRecord::new(event("x").conversation)
}

fn minutes(n: i64) -> Timestamp {
    Timestamp::from_millis(n * 60_000)
}

#[test]
fn a_delivery_is_recognised_for_a_day_and_under_load_for_a_quarter_of_an_hour() {
    // B-126: the life of a key is at least ten minutes, however much comes meanwhile.
    let mut record = record();
    assert!(record.take(&event("Ev1"), minutes(0)));
    assert!(!record.take(&event("Ev1"), minutes(23 * 60)));
    for n in 0..2_000 {
        assert!(record.take(&event(&format!("other {n}")), minutes(14)));
        record.inbox.clear();
    }
    assert!(!record.take(&event("Ev1"), minutes(14)));
    assert!(record.take(&event("later"), minutes(16)));
    assert!(record.take(&event("Ev1"), minutes(16)), "old, and there is no more room");
}

#[test]
fn two_names_of_one_message_are_one_delivery() {
    let mut record = record();
    let mut mention = event("Ev1");
    mention.ids.push("C1/17.1".into());
    assert!(record.take(&mention, minutes(0)));
    let mut message = event("Ev2");
    message.ids.push("C1/17.1".into());
    assert!(!record.take(&message, minutes(0)));
    assert_eq!(record.inbox.len(), 1);
}

#[test]
fn the_form_of_a_record_is_kept() {
    let mut record = record();
    record.take(&event("Ev1"), minutes(1));
    record.binding = Some(Binding { thread: "t".into(), session: SessionKey::new("channel:slack:D1") });
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(
        text,
        "{\"schema\":1,\"conversation\":{\"id\":\"slack:D1\",\"channel\":\"D1\",\"direct\":true},\"binding\":{\"thread\":\"t\",\"session\":{\"resource\":\"channel:slack:D1\"}},\"seen\":[[\"FmFOYhEMdWXnpuHd_PkiDQ\",60000]],\"inbox\":[{\"n\":0,\"at\":60000,\"event\":{\"ids\":[\"Ev1\"],\"conversation\":{\"id\":\"slack:D1\",\"channel\":\"D1\",\"direct\":true},\"speaker\":{\"id\":\"U1\"},\"kind\":{\"type\":\"message\",\"text\":\"hi\",\"addressed\":false,\"follows\":false}}}],\"next_item\":1,\"next_card\":1,\"cards\":[],\"posts\":[],\"notes\":[]}"
    );
    assert_eq!(read(&RawValue::from_string(text).unwrap()).unwrap(), record);
    let newer = RawValue::from_string(r#"{"schema":2}"#.to_owned()).unwrap();
    assert_eq!(read(&newer).unwrap_err().code(), "channel.storage");
}

#[test]
fn a_conversation_takes_so_much_at_once_and_then_asks_to_come_again() {
    let mut record = record();
    for n in 0..MAX_INBOX {
        assert!(!record.is_full());
        assert!(record.take(&event(&n.to_string()), minutes(0)));
    }
    assert!(record.is_full(), "in number");
    record.inbox.clear();
    let mut long = event("long");
    long.kind = IncomingKind::Message(Said { text: "x".repeat(MAX_WAITING), ..Said::default() });
    assert!(!record.is_full() && record.take(&long, minutes(0)));
    assert!(record.is_full(), "in bytes");
}
