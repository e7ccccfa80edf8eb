use super::*;

type Seen = Vec<(Option<String>, String, bool)>;

fn read(pieces: &[&[u8]]) -> Result<Seen, SseError> {
    let mut parser = SseParser::new(SseLimits::default());
    let mut seen = vec![];
    let mut each = |event: SseEvent<'_>| {
        seen.push((event.name.map(Cow::into_owned), event.data.into_owned(), event.closed));
        Ok::<_, SseError>(SseFlow::Continue)
    };
    for piece in pieces {
        parser.push(piece, &mut each)?;
    }
    parser.end(&mut each)?;
    Ok(seen)
}

fn event(name: Option<&str>, data: &str) -> (Option<String>, String, bool) {
    (name.map(Into::into), data.into(), true)
}

const BODY: &str = "\u{feff}: hello\n\nevent: a\ndata: {\"x\":1}\n\ndata:no blank\ndata:  two\ndata\nid: 7\nretry: 10\n\n: ping\nevent: lost\n\ndata: 世界\n\ndata: [DONE]\n\n";

fn expected() -> Seen {
    vec![event(Some("a"), "{\"x\":1}"), event(None, "no blank\n two\n"), event(None, "世界"), event(None, "[DONE]")]
}

// B-52, B-51: line ends of every kind, a byte order mark, cut at every byte.
#[test]
fn every_line_end_and_every_cut_give_the_same_events() {
    for body in [BODY.to_owned(), BODY.replace('\n', "\r\n"), BODY.replace('\n', "\r")] {
        let bytes = body.as_bytes();
        assert_eq!(read(&[bytes]).unwrap(), expected());
        for cut in 0..=bytes.len() {
            assert_eq!(read(&[&bytes[..cut], &bytes[cut..]]).unwrap(), expected(), "cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single).unwrap(), expected());
    }
}

#[test]
fn an_event_is_handed_out_as_soon_as_it_is_complete() {
    let mut parser = SseParser::new(SseLimits::default());
    let mut seen = 0;
    for byte in b"data: 1\r\n\r" {
        parser
            .push(&[*byte], |_| {
                seen += 1;
                Ok::<_, SseError>(SseFlow::Continue)
            })
            .unwrap();
    }
    assert_eq!(seen, 1, "the second CR is the empty line; nobody waits for its LF");
}

#[test]
fn the_last_event_may_lack_its_empty_line() {
    assert_eq!(read(&[b"data: 1\n\ndata: 2"]).unwrap(), [event(None, "1"), (None, "2".into(), false)]);
}

// B-51: a byte that is never UTF-8 spoils one character, not the stream.
#[test]
fn a_byte_that_is_no_utf8_reads_as_a_replacement_character() {
    assert_eq!(read(&[b"data: a\xffb\n\ndata: c\n\n"]).unwrap(), [event(None, "a\u{fffd}b"), event(None, "c")]);
}

#[test]
fn a_line_and_an_event_are_bounded_whatever_the_pieces() {
    let small = SseLimits { line: 100, event: 150 };
    for piece in [1, 7, 1000] {
        let long_line = format!("data: {}", "x".repeat(200));
        let long_event = format!("data: {}\n", "x".repeat(40)).repeat(5);
        for body in [long_line, long_event] {
            let mut parser = SseParser::new(small);
            let result =
                body.as_bytes().chunks(piece).try_for_each(|bytes| parser.push(bytes, |_| Ok::<_, SseError>(SseFlow::Continue)).map(drop));
            assert_eq!(result, Err(SseError::TooLong));
        }
    }
}

#[test]
fn unframed_json_and_html_are_kept_aside() {
    let mut parser = SseParser::new(SseLimits::default());
    parser.push(b"data: 1\n\n{\n  \"error\": {\n  \"code\": 429}\n}\n", |_| Ok::<_, SseError>(SseFlow::Continue)).unwrap();
    assert_eq!(parser.stray(), b"{\n  \"error\": {\n  \"code\": 429}\n}\n");
    assert_eq!(parser.events(), 1);
}

#[test]
fn stopping_drops_the_rest() {
    let mut parser = SseParser::new(SseLimits::default());
    let mut seen = 0;
    let flow = parser.push(b"data: 1\n\ndata: 2\n\n", |_| {
        seen += 1;
        Ok::<_, SseError>(SseFlow::Stop)
    });
    assert_eq!((flow, seen), (Ok(SseFlow::Stop), 1));
}
