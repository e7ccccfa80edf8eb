use ac_core::Message;
use serde_json::json;

use super::*;

fn long(c: char) -> String {
    c.to_string().repeat(LARGE)
}

/// Cuts, writes, reads and joins.
fn round(json: &str) -> (Cut, String) {
    let (cut, texts) = cut(json, |_| true);
    let stored = cut.encode::<Message>();
    if texts.is_empty() {
        assert_eq!(Cut::read::<Message>(&stored), None);
        return (cut, json.to_owned());
    }
    let read = Cut::read::<Message>(&stored).unwrap();
    assert_eq!(read, cut);
    let texts: Vec<String> = texts.into_iter().map(|(_, text)| text.to_owned()).collect();
    let whole = String::from_utf8(read.join::<Message>(&texts).unwrap()).unwrap();
    (cut, whole.strip_prefix(r#"{"schema":2,"row":"#).unwrap().strip_suffix('}').unwrap().to_owned())
}

#[test]
fn what_was_cut_is_the_same_again_to_the_byte() {
    let escaped = format!("\\\"{}\u{1F980}\\", "\"\n\\".repeat(LARGE));
    for value in [
        json!({ "a": 1 }),
        json!(long('x')),
        json!({ "a": long('x'), "b": [long('y'), 1.0, long('x')], "c": "short" }),
        json!({ long('k'): "a key" }),
        json!([escaped, "\"", long('z')]),
    ] {
        for json in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let (cut, whole) = round(&json);
            assert_eq!(whole, json);
            assert!(cut.row.len() < LARGE, "{}", cut.row.len());
            // What is left is JSON still.
            serde_json::from_str::<serde_json::Value>(&cut.row).unwrap();
        }
    }
}

#[test]
fn only_what_is_long_is_cut() {
    let at_least = |bytes: usize| json!({ "a": "x".repeat(bytes - 2), "b": "" }).to_string();
    assert_eq!(find(&at_least(LARGE - 1)).len(), 0);
    assert_eq!(find(&at_least(LARGE)).len(), 1);
}

#[test]
fn the_same_text_is_stored_once() {
    let json = json!([long('x'), long('y'), long('x')]).to_string();
    let (cut, found) = cut(&json, |_| true);
    assert_eq!((cut.large.len(), found.len()), (3, 3));
    let mut texts = Texts::default();
    texts.take(found.clone());
    texts.take(found);
    assert_eq!(texts.into_new().count(), 2);
}

#[test]
fn places_that_are_none_do_not_join() {
    for large in [vec![(99, hash("a"))], vec![(3, hash("a")), (1, hash("b"))], vec![(usize::MAX, hash("a"))]] {
        let cut = Cut { row: r#"{"a":""}"#.to_owned(), large };
        assert_eq!(cut.join::<Message>(&["1".to_owned(), "2".to_owned()]), None);
    }
}

#[test]
fn a_row_of_a_newer_program_is_left_to_who_says_so() {
    assert_eq!(Cut::read::<Message>(br#"{"schema":9,"large":[[0,"a"]],"row":""}"#), None);
    assert_eq!(Cut::read::<Message>(br#"{"schema":2,"large":7,"row":""}"#), None);
    assert_eq!(Cut::read::<Message>(br#"{"schema":2,"row":{"large":1}}"#), None);
}
