use super::{
    Case,
    options::{Cut, Options, Pieces},
};

/// The body as it is served, and how much of it before it is cut.
pub(super) fn prepare(case: &Case, options: &Options) -> (Vec<u8>, Option<usize>) {
    let mut body = case.body.clone();
    let (sse, lines) = (case.file.ends_with(".sse"), case.file.ends_with(".ndjson"));
    if (sse || lines)
        && let Ok(text) = String::from_utf8(body.clone())
    {
        body = rewrite(text, sse, options).into_bytes();
        if options.bom && sse {
            body.splice(0..0, *b"\xef\xbb\xbf");
        }
    }
    body.truncate(body.len().saturating_sub(options.cut_end));
    let cut = options.cut.map(|cut| match cut {
        Cut::Bytes(bytes) => bytes,
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a share of a small body")]
        Cut::Percent(percent) => (body.len() as f64 * percent / 100.0) as usize,
    });
    let cut = cut.filter(|cut| *cut < body.len());
    (body, cut)
}

fn rewrite(mut text: String, sse: bool, options: &Options) -> String {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let reframe =
        options.comments > 0 || options.blank > 0 || options.ids || options.space.is_some() || options.multiline || options.no_event;
    if sse && reframe {
        let unix = text.replace("\r\n", "\n");
        let closed = unix.ends_with("\n\n");
        let events: Vec<&str> = unix.split("\n\n").map(|event| event.trim_matches('\n')).filter(|event| !event.is_empty()).collect();
        let mut out = vec![];
        for (number, event) in events.into_iter().enumerate() {
            let mut lines: Vec<String> = vec![];
            if options.comments > 0 && number % options.comments == 0 {
                lines.extend([": keep-alive".to_owned(), String::new()]);
            }
            if options.ids {
                lines.extend([format!("id: {number}"), "retry: 3000".to_owned()]);
            }
            for line in event.split('\n') {
                match line.strip_prefix("data:") {
                    Some(value) => {
                        let value = value.strip_prefix(' ').unwrap_or(value);
                        let json = value.trim_start().starts_with(['{', '[']) && value.trim() != "[DONE]";
                        let space = options.space.filter(|space| json || space.is_empty()).unwrap_or(" ");
                        let values = if options.multiline && json { spread(value) } else { vec![value.to_owned()] };
                        lines.extend(values.into_iter().map(|value| format!("data:{space}{value}")));
                    }
                    None if line.starts_with("event:") && options.no_event => {}
                    None => lines.push(line.to_owned()),
                }
            }
            out.push(lines.join(end));
        }
        text = out.join(&end.repeat(2 + options.blank)) + &if closed { end.repeat(2) } else { end.to_owned() };
    }
    if let Some(wanted) = options.line_end {
        text = text.replace("\r\n", "\n").replace('\n', wanted);
    }
    if options.no_end {
        text.truncate(text.trim_end_matches(['\r', '\n']).len());
    }
    text
}

/// JSON over several lines, broken only between tokens.
fn spread(json: &str) -> Vec<String> {
    let (mut lines, mut line) = (vec![], String::new());
    let (mut quoted, mut escaped) = (false, false);
    for c in json.chars() {
        if quoted {
            line.push(c);
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '}' | ']' => {
                lines.push(std::mem::take(&mut line));
                line.push(c);
            }
            '{' | '[' | ',' => {
                line.push(c);
                lines.push(std::mem::take(&mut line));
            }
            _ => {
                quoted = c == '"';
                line.push(c);
            }
        }
    }
    lines.push(line);
    lines
}

/// The pieces in which a body is written.
pub(super) fn pieces(body: &[u8], pieces: Pieces) -> Vec<&[u8]> {
    match pieces {
        Pieces::Whole => vec![body],
        Pieces::Bytes(n) => body.chunks(n).collect(),
        Pieces::Lines => body.split_inclusive(|byte| *byte == b'\n').collect(),
        Pieces::Events => {
            let (mut all, mut rest) = (vec![], body);
            while let Some(end) = rest.windows(2).position(|pair| pair == b"\n\n").map(|at| at + 2) {
                let (event, tail) = rest.split_at(end);
                all.push(event);
                rest = tail;
            }
            all.push(rest);
            all
        }
        Pieces::Random(seed, longest) => {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let (mut all, mut rest) = (vec![], body);
            while !rest.is_empty() {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let longest = u64::try_from(longest).unwrap_or(u64::MAX);
                let n = usize::try_from(random % longest + 1).unwrap_or(1).min(rest.len());
                let (piece, tail) = rest.split_at(n);
                all.push(piece);
                rest = tail;
            }
            all
        }
    }
}
