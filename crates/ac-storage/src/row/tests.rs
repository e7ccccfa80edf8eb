use std::sync::Arc;

use serde_json::json;

use super::*;

/// A kind with a history: schema 1 `{"n": "3"}`, schema 2 `{"n": 3}`, schema 3 `{"count": 3}`.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Counted {
    count: u64,
}

impl Row for Counted {
    const KIND: &'static str = "counted";
    const STEPS: &'static [Step] = &[
        |row| Some(json!({"n": row.get("n")?.as_str()?.parse::<u64>().ok()?})),
        |mut row| Some(json!({"count": row.get_mut("n")?.take()})),
    ];
}

fn stored(text: &str) -> Versioned {
    Versioned { version: 1, value: Arc::from(text.as_bytes()) }
}

fn failure<R: Row + std::fmt::Debug>(text: &str) -> (StorageErrorKind, String) {
    let error = decode::<R>("the test store", &stored(text)).unwrap_err();
    (error.kind(), error.to_string())
}

#[test]
fn a_row_carries_its_schema_number() {
    let bytes = encode::<Counted>(&Counted { count: 3 }).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), r#"{"schema":3,"row":{"count":3}}"#);
}

#[test]
fn every_older_schema_loads() {
    for text in [r#"{"schema":1,"row":{"n":"3"}}"#, r#"{"schema":2,"row":{"n":3}}"#, r#"{"schema":3,"row":{"count":3}}"#] {
        assert_eq!(decode::<Counted>("the test store", &stored(text)).unwrap(), Counted { count: 3 }, "{text}");
    }
}

#[test]
fn a_row_of_a_newer_program_is_told_as_such_even_if_it_would_read() {
    for text in [r#"{"schema":4,"row":{"count":3}}"#, r#"{"schema":4,"row":"something else"}"#] {
        let (kind, message) = failure::<Counted>(text);
        assert_eq!(kind, StorageErrorKind::NewerSchema);
        assert!(message.contains("counted") && message.contains("the test store") && message.contains("schema 4"), "{message}");
    }
}

#[test]
fn what_does_not_read_is_corrupt_and_the_message_quotes_nothing_of_it() {
    for text in [
        "",
        "secret",
        r#"{"schema":3,"row":{"count":"secret"}}"#,
        r#"{"schema":3,"row":{"secret":1}}"#,
        r#"{"schema":3,"row":{"count":3}"#,
        r#"{"schema":0,"row":{"n":"secret"}}"#,
        r#"{"schema":1,"row":{"n":"secret"}}"#,
        r#"{"schema":-1,"row":{"count":3}}"#,
        r#"{"row":{"count":3}}"#,
        "\0\0\0\0",
    ] {
        let (kind, message) = failure::<Counted>(text);
        assert_eq!(kind, StorageErrorKind::Corrupt, "{text}");
        assert!(!message.contains("secret"), "{message}");
        assert!(message.contains("counted") && message.contains("the test store"), "{message}");
    }
}

#[test]
fn a_raw_body_passes_through_unchanged() {
    let body = RawValue::from_string(r#"{ "b": 1.0,  "a":[ ] }"#.to_owned()).unwrap();
    let bytes = encode::<SessionRow>(&*body).unwrap();
    let read = decode::<SessionRow>("s", &Versioned { version: 1, value: bytes.into() }).unwrap();
    assert_eq!(read.0.get(), body.get());
}
