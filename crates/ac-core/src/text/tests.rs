use super::*;

#[test]
fn a_copy_keeps_what_it_was_while_the_text_grows() {
    let mut text = SharedText::new();
    let mut expect = String::new();
    let mut copies = vec![];
    for i in 0..2000 {
        let piece = format!("{i}ü,");
        text.push_str(&piece);
        expect.push_str(&piece);
        if i % 97 == 0 {
            copies.push((text.clone(), expect.clone()));
        }
    }
    for (copy, expect) in copies {
        assert_eq!(copy.to_string(), expect);
        assert_eq!(copy.len(), expect.len());
    }
    assert_eq!(text.to_string(), expect);
}

#[test]
fn copies_that_go_on_differently_do_not_touch_each_other() {
    for begun in ["", "a", &"a".repeat(SharedText::CHUNK - 1), &"a".repeat(SharedText::CHUNK)] {
        let mut one = SharedText::from(begun);
        let mut other = one.clone();
        one.push_str("x");
        other.push_str("yy");
        let third = other.clone();
        drop(one.clone());
        one.push_str(&"z".repeat(SharedText::CHUNK));
        drop(other);
        assert_eq!(one.to_string(), format!("{begun}x{}", "z".repeat(SharedText::CHUNK)));
        assert_eq!(third.to_string(), format!("{begun}yy"));
    }
}

/// The bytes of all pieces that these texts keep alive, each piece once.
fn kept<'a>(texts: impl IntoIterator<Item = &'a SharedText>) -> usize {
    let mut seen = std::collections::BTreeMap::new();
    for text in texts {
        for piece in std::iter::successors(text.last.as_ref(), |piece| piece.before.as_ref()) {
            seen.insert(Arc::as_ptr(piece).addr(), piece.text.capacity());
        }
    }
    seen.values().sum()
}

#[test]
fn a_copy_after_each_piece_keeps_the_text_and_not_a_text_for_each_copy() {
    let mut text = SharedText::new();
    let mut copies = vec![];
    for i in 0..10_000 {
        text.push_str(&format!("{i:08} "));
        copies.push(text.clone());
    }
    // What came in, and the chunks that it was joined to.
    assert!(kept(&copies) <= text.len() * 2, "{} bytes for a text of {}", kept(&copies), text.len());
    // And what nobody looks back at any more is in chunks.
    drop(copies);
    let pieces = text.pieces().count();
    assert!(pieces <= text.len() / SharedText::CHUNK + SharedText::CHUNK / 9 + 1, "{pieces} pieces");
    assert_eq!(std::mem::size_of::<SharedText>(), 24, "a copy is this much, whatever the length");
}

#[test]
fn a_text_that_nobody_copies_takes_what_it_is_long() {
    let mut text = SharedText::new();
    (0..100_000).for_each(|_| text.push_str("ab"));
    assert!(kept([&text]) <= text.len() + 2 * SharedText::CHUNK, "{}", kept([&text]));
    assert!(text.pieces().count() <= text.len() / SharedText::CHUNK + 1);
}

#[test]
fn a_chain_that_is_longer_than_a_stack_is_deep_goes_away() {
    let mut text = SharedText::new();
    let chunk = "a".repeat(SharedText::CHUNK);
    (0..12_500).for_each(|_| text.push_str(&chunk));
    let small = std::thread::Builder::new().stack_size(64 * 1024).spawn(move || drop(text)).unwrap();
    small.join().unwrap();
}
