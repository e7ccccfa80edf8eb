//! Lines out of bytes that come in any pieces.

use memchr::memchr2;

/// Splits bytes into lines. A line ends with LF, CR or CRLF, and is handed out as soon as its end is known, so a CR is an end at once and
/// an LF right after it belongs to it, also when it comes with the next piece. A byte order mark before the first line is dropped.
///
/// What is kept between two calls is the line that has not ended yet, never more than the limit.
#[derive(Debug)]
pub(crate) struct Lines {
    open: Vec<u8>,
    limit: usize,
    after_cr: bool,
    first: bool,
}

/// A line is longer than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineTooLong;

const BOM: &[u8] = b"\xef\xbb\xbf";

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Self { open: Vec::new(), limit, after_cr: false, first: true }
    }

    /// Takes the next bytes and calls `line` for each line that ends in them. `line` says whether to go on; the rest is dropped if not.
    pub(crate) fn push<E: From<LineTooLong>>(
        &mut self,
        mut bytes: &[u8],
        mut line: impl FnMut(&[u8]) -> Result<bool, E>,
    ) -> Result<bool, E> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr)
                && let Some(rest) = bytes.strip_prefix(b"\n")
            {
                bytes = rest;
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', bytes) else {
                if self.open.len().saturating_add(bytes.len()) > self.limit {
                    return Err(LineTooLong.into());
                }
                self.open.extend_from_slice(bytes);
                return Ok(true);
            };
            let (head, tail) = bytes.split_at(end);
            if self.open.len().saturating_add(head.len()) > self.limit {
                return Err(LineTooLong.into());
            }
            let (mark, rest) = tail.split_at(1);
            self.after_cr = mark == b"\r";
            bytes = rest;
            let go_on = if self.open.is_empty() {
                let head = self.without_bom(head);
                line(head)?
            } else {
                self.open.extend_from_slice(head);
                let whole = std::mem::take(&mut self.open);
                let go_on = line(self.without_bom(&whole));
                // The buffer is kept: a stream of long lines allocates once.
                self.open = whole;
                self.open.clear();
                go_on?
            };
            if !go_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The line that never ended, if there is one.
    pub(crate) fn end(&mut self) -> Option<Vec<u8>> {
        let whole = std::mem::take(&mut self.open);
        let line = self.without_bom(&whole);
        (!line.is_empty()).then(|| line.to_vec())
    }

    fn without_bom<'a>(&mut self, line: &'a [u8]) -> &'a [u8] {
        if std::mem::take(&mut self.first) { line.strip_prefix(BOM).unwrap_or(line) } else { line }
    }
}
