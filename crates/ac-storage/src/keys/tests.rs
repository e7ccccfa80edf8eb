use ac_core::SessionKey;

use super::*;

const TEXTS: [&str; 9] = ["", "\0", "\0\0", "\u{1}", "a", "a\0b", "a/b", "ab", "é"];

#[test]
fn escaped_text_reads_back_and_keeps_its_order() {
    let mut keys = Vec::new();
    for text in TEXTS {
        let key = thread(&text.into());
        assert_eq!(read_id(&threads(), &key).as_deref(), Some(text));
        keys.push((key, text));
    }
    keys.sort();
    let mut texts = TEXTS.to_vec();
    texts.sort_unstable();
    assert_eq!(keys.iter().map(|(_, text)| *text).collect::<Vec<_>>(), texts);
}

#[test]
fn no_id_reaches_into_the_rows_of_another() {
    for a in TEXTS {
        for b in TEXTS {
            if a != b {
                assert!(!message(&b.into(), 0).starts_with(&messages(&a.into())), "{a:?} covers {b:?}");
                assert!(!block(&b.into(), 0).starts_with(&blocks(&a.into())), "{a:?} covers {b:?}");
            }
        }
    }
}

#[test]
fn two_ids_in_one_key_cannot_be_confused() {
    assert_ne!(run_of(&"a".into(), &"b/c".into()), run_of(&"a/b".into(), &"c".into()));
    assert_ne!(run_of(&"a\0".into(), &"b".into()), run_of(&"a".into(), &"\0b".into()));
}

#[test]
fn recency_goes_from_the_newest_to_the_oldest_also_before_1970() {
    let at = |millis| recency(&"r".into(), Timestamp::from_millis(millis), &"t".into(), Follows::Head);
    let mut keys = [at(-5), at(i64::MAX), at(0), at(i64::MIN), at(7)];
    keys.sort();
    let times: Vec<_> = keys.iter().map(|key| read_recency(key).unwrap().0.as_millis()).collect();
    assert_eq!(times, [i64::MAX, 7, 0, -5, i64::MIN]);
    let key = recency(&"r\0".into(), Timestamp::from_millis(3), &"t/1".into(), Follows::Row);
    assert_eq!(read_recency(&key), Some((Timestamp::from_millis(3), "t/1".into(), Follows::Row)));
    assert!(key < recency_after(&"r\0".into(), Timestamp::from_millis(3), &"t/1".into()));
}

#[test]
fn closed_runs_go_from_the_oldest_to_the_newest() {
    let old = closed_run(Timestamp::from_millis(-1), &"z".into());
    let new = closed_run(Timestamp::from_millis(1), &"a".into());
    assert!(old < new);
    assert_eq!(read_closed_run(&old), Some((Timestamp::from_millis(-1), "z".into())));
}

#[test]
fn a_session_without_scope_differs_from_one_with_an_empty_scope() {
    for key in [SessionKey::new("r"), SessionKey::scoped("r", ""), SessionKey::scoped("r\0", "s")] {
        let id = SessionId { controller: "c".into(), key };
        assert_eq!(read_session(&session(&id)), Some(id));
    }
}

#[test]
fn blocks_stand_behind_heads_and_before_messages_and_read_back() {
    for text in TEXTS {
        let key = block(&text.into(), 258);
        assert_eq!(read_block(&key), Some((text.into(), 258)));
        assert!(key.starts_with(&blocks(&text.into())) && block(&text.into(), 2) < key);
        // The check of a store reads the rows in this order, and goes by what heads say.
        assert!(head(&"\u{10ffff}".into()) < key && key < message(&"".into(), 0));
    }
}

#[test]
fn a_damaged_key_reads_as_none() {
    assert_eq!(read_block(b"i/a\0\x01\0"), None);
    assert_eq!(read_id(b"t/", b"t/abc"), None);
    assert_eq!(read_id(b"t/", b"t/a\0\x02"), None);
    assert_eq!(read_recency(b"u/"), None);
    assert_eq!(read_session(b"s"), None);
}
