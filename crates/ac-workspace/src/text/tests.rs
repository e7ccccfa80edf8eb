use super::*;

fn edit(bytes: &[u8], old: &str, new: &str) -> Vec<u8> {
    let text = Text::decode(bytes).unwrap();
    text.encode(&replace(&text.content, old, new, false).unwrap().content).unwrap()
}

/// What the file holds, what is replaced by what, what the file holds then.
type Edit<'a> = (&'a [u8], &'a str, &'a str, &'a [u8]);

fn holds(edits: &[Edit<'_>]) {
    for (bytes, old, new, edited) in edits {
        assert_eq!(edit(bytes, old, new), *edited, "{old:?} -> {new:?} in {bytes:?}");
    }
}

/// B-84.
#[test]
fn an_edit_keeps_the_line_ends_of_what_it_replaces() {
    holds(&[
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny", b"x\r\ny\r\nc\r\n"),
        (b"a\nb\nc\n", "a\r\nb", "x\r\ny", b"x\ny\nc\n"),
        // Mixed, and no line end at the end.
        (b"a\r\nb\nc\r\nd", "b\nc", "1\n2\n3", b"a\r\n1\n2\n3\r\nd"),
        (b"a\r\nb\nc\r\nd", "d", "d\ne", b"a\r\nb\nc\r\nd\r\ne"),
        (b"a\r\nb\r\n", "b\n", "", b"a\r\n"),
        (b"a\r\nb\r\n", "\nb", "\nc", b"a\r\nc\r\n"),
        (b"one", "one", "1\n2", b"1\n2"),
        // A lone carriage return is a character like any other.
        (b"a\rb\nc\r\n", "c", "x", b"a\rb\nx\r\n"),
        (b"a\r\r\nb", "\nb", "\nc", b"a\r\r\nc"),
    ]);
}

/// B-85.
#[test]
fn an_edit_keeps_every_byte_that_it_does_not_touch() {
    holds(&[
        (b"let n = 7; // d\xE9j\xE0\nfin\n", "n = 7", "n = 8", b"let n = 8; // d\xE9j\xE0\nfin\n"),
        (b"n = 7 \xD6\xD0\xCE\xC4\n", "n = 7", "n = 8", b"n = 8 \xD6\xD0\xCE\xC4\n"),
        (b"\xEF\xBB\xBFa b\n", "a", "c", b"\xEF\xBB\xBFc b\n"),
        (b"\xFF\xFEa\0\r\0\n\0\xE9\0", "a\n", "b\n", b"\xFF\xFEb\0\r\0\n\0\xE9\0"),
        (b"\xFE\xFF\0a\0b", "b", "c", b"\xFE\xFF\0a\0c"),
    ]);
}

#[test]
fn all_bytes_of_an_eight_bit_text_come_back() {
    let bytes: Vec<u8> = (0x20..=0xFF).cycle().take(4096).collect();
    let text = Text::decode(&bytes).unwrap();
    assert_eq!((text.encoding, text.encode(&text.content).unwrap()), (Encoding::Windows1252, bytes));
}

#[test]
fn what_is_no_text_is_not_read_as_text() {
    for binary in [b"a\0b".as_slice(), b"\xFF\xFE\x00\xD8", b"\xFF\xFEa", b"\x01\x02\x03\x04\x80\x90", b"\xEF\xBB\xBF\xFF"] {
        assert_eq!(Text::decode(binary), None, "{binary:?}");
    }
    assert_eq!(Text::decode(b"").unwrap(), Text::default());
}

#[test]
fn a_character_that_the_file_cannot_hold_is_refused() {
    let text = Text::decode(b"caf\xE9").unwrap();
    assert_eq!(text.encode("caf\u{e9} \u{20ac}"), Some(b"caf\xE9 \x80".to_vec()));
    assert_eq!(text.encode("\u{4e2d}"), None);
}

#[test]
fn a_replacement_needs_one_place_or_all() {
    assert_eq!(replace("a b a\nc a", "a", "x", false), Err(ReplaceError::Ambiguous(vec![1, 1, 2])));
    assert_eq!(replace("a b", "z", "x", false), Err(ReplaceError::Missing));
    assert_eq!(replace("a b", "", "x", true), Err(ReplaceError::Nothing));
    assert_eq!(replace("a b", "a", "a", true), Err(ReplaceError::Nothing));
    assert_eq!(replace("a\r\nb a\n", "a", "x", true), Ok(Replaced { content: "x\r\nb x\n".into(), lines: vec![1, 2] }));
}

/// B-87: what differs in the middle is no match.
#[test]
fn a_block_that_differs_is_not_replaced() {
    let disk = "fn a() {\n    let limit = 5;\n    go(limit);\n}\n";
    assert_eq!(replace(disk, "fn a() {\n    let limit = 50;\n    go(limit);\n}", "x", false), Err(ReplaceError::Missing));
}

#[test]
fn a_file_of_fifty_megabytes_is_edited_in_one_place() {
    let mut bytes = b"line\r\nline\n".repeat(50 * 1024 * 1024 / 11);
    bytes.extend_from_slice(b"needle\xE9\r\nlast");
    let edited = edit(&bytes, "needle", "thread\nand more");
    let tail = b"thread\r\nand more\xE9\r\nlast";
    let same = bytes.len() - b"needle\xE9\r\nlast".len();
    assert!(edited[..same] == bytes[..same]);
    assert_eq!(&edited[same..], tail);
}

/// A few edits that double a text would take all memory there is.
#[test]
fn a_text_does_not_grow_without_end() {
    let mut text = "a".to_owned();
    for _ in 0..40 {
        match replace(&text, "a", "aa", true) {
            Ok(done) => text = done.content,
            Err(error) => {
                assert_eq!(error, ReplaceError::TooLong);
                assert!(text.len() > 1 << 20);
                return;
            }
        }
    }
    panic!("{} bytes", text.len());
}
