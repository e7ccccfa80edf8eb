//! Lines that a person types, or a script pipes in.

use std::io::{BufRead, Read};
use std::sync::mpsc::{SyncSender, sync_channel};

use tokio::sync::mpsc::{Receiver, channel};

/// The longest line that is taken.
const LONGEST: u64 = 1 << 20;

/// Where lines come from. Reads one only when it is asked for one, so that what is piped in after it stays for the next question.
#[derive(Debug)]
pub(crate) struct Lines {
    wanted: SyncSender<()>,
    lines: Receiver<Line>,
    /// A line was asked for and has not come yet; the next question takes it.
    asked: bool,
}

/// What was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line, without its end.
    Text(String),
    /// A line that is longer than is taken. Nothing of it is: its end must not be read as the answer to something else.
    Long,
    /// Nothing more comes.
    End,
}

impl Lines {
    /// Reads from here, on a thread of its own: a read from a terminal cannot be taken back.
    pub(crate) fn new(mut from: impl BufRead + Send + 'static) -> Self {
        let (wanted, asks) = sync_channel(1);
        let (tell, lines) = channel(1);
        std::thread::spawn(move || {
            while asks.recv().is_ok() {
                if tell.blocking_send(read(&mut from)).is_err() {
                    break;
                }
            }
        });
        Self { wanted, lines, asked: false }
    }

    /// The next line. Dropping the future loses none.
    pub(crate) async fn next(&mut self) -> Line {
        if !self.asked && self.wanted.send(()).is_err() {
            return Line::End;
        }
        self.asked = true;
        let line = self.lines.recv().await.unwrap_or(Line::End);
        self.asked = false;
        line
    }
}

fn read(from: &mut impl BufRead) -> Line {
    let mut line = vec![];
    match from.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
        Ok(0) | Err(_) => Line::End,
        Ok(_) if line.len() as u64 == LONGEST && !line.ends_with(b"\n") => {
            while matches!(from.by_ref().take(LONGEST).read_until(b'\n', &mut line), Ok(1..)) && !line.ends_with(b"\n") {
                line.clear();
            }
            Line::Long
        }
        Ok(_) => {
            while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
                line.pop();
            }
            Line::Text(String::from_utf8_lossy(&line).into_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_not_cut_into_several() {
        let longest = usize::try_from(LONGEST).unwrap();
        for length in [longest, longest + 1, 2 * longest, 2 * longest + 1, 3 * longest + 7] {
            let mut text = vec![b'y'; length];
            text.extend_from_slice(b"\nnext\n");
            let mut from = &text[..];
            assert_eq!([read(&mut from), read(&mut from), read(&mut from)], [Line::Long, Line::Text("next".into()), Line::End], "{length}");
        }
        let mut from = &vec![b'y'; longest - 1][..];
        assert!(matches!(read(&mut from), Line::Text(text) if text.len() == longest - 1));
    }

    #[tokio::test]
    async fn lines_come_one_by_one_and_none_is_lost_when_nobody_waits() {
        let mut lines = Lines::new(&b"one\r\ntwo\n\nlast"[..]);
        assert_eq!(lines.next().await, Line::Text("one".into()));
        // Asked and given up, as when the question was answered elsewhere.
        let early = {
            let mut given_up = std::pin::pin!(lines.next());
            let waker = std::task::Waker::noop();
            given_up.as_mut().poll(&mut std::task::Context::from_waker(waker))
        };
        // The line may have been there already; then nobody gave up.
        let rest = match early {
            std::task::Poll::Ready(line) => {
                assert_eq!(line, Line::Text("two".into()));
                &["", "last"][..]
            }
            std::task::Poll::Pending => &["two", "", "last"],
        };
        for &expected in rest {
            assert_eq!(lines.next().await, Line::Text(expected.into()));
        }
        assert_eq!((lines.next().await, lines.next().await), (Line::End, Line::End));
    }
}
