//! The one parser of server-sent events.
//!
//! It is incremental and does not care where the bytes were cut: inside a line end, inside a character, inside a byte order mark. It keeps
//! no more than one event, and an event no longer than its limits allow. It costs what comes in: no byte is looked at twice.

use std::borrow::Cow;

use crate::lines::{LineTooLong, Lines};

/// One event. Comments, `id:` and `retry:` are no events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// What the `event:` line said.
    pub name: Option<Cow<'a, str>>,
    /// The `data:` lines, joined by line feeds. A byte sequence that is no UTF-8 reads as U+FFFD.
    pub data: Cow<'a, str>,
    /// Whether the event was closed by an empty line. Only the last event of a body can lack it.
    pub closed: bool,
}

/// How much one event may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseLimits {
    /// The longest line, in bytes.
    pub line: usize,
    /// The longest data of one event, in bytes.
    pub event: usize,
}

/// Room for an event that repeats a whole answer with a picture in it.
impl Default for SseLimits {
    fn default() -> Self {
        Self { line: 32 << 20, event: 32 << 20 }
    }
}

/// A body that is no usable event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// A line or an event is longer than the limit.
    #[error("an event of the stream is longer than the limit")]
    TooLong,
}

impl From<LineTooLong> for SseError {
    fn from(_: LineTooLong) -> Self {
        Self::TooLong
    }
}

/// What a caller of [`SseParser::push`] wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseFlow {
    /// The next event.
    Continue,
    /// No more; the rest of the bytes is dropped.
    Stop,
}

/// Bytes in, events out.
#[derive(Debug)]
pub struct SseParser {
    lines: Lines,
    event: Pending,
}

#[derive(Debug)]
struct Pending {
    name: String,
    has_name: bool,
    data: Vec<u8>,
    has_data: bool,
    limit: usize,
    stray: Vec<u8>,
    events: u64,
    unknown: bool,
}

/// What is kept of lines that belong to no event stream, for the message of the error that they are.
const STRAY_LIMIT: usize = 64 << 10;

impl SseParser {
    /// A parser at the start of a body.
    pub fn new(limits: SseLimits) -> Self {
        Self {
            lines: Lines::new(limits.line),
            event: Pending {
                name: String::new(),
                has_name: false,
                data: Vec::new(),
                has_data: false,
                limit: limits.event,
                stray: Vec::new(),
                events: 0,
                unknown: false,
            },
        }
    }

    /// Takes the next bytes and calls `each` for each event that is complete with them.
    ///
    /// # Errors
    /// [`SseError::TooLong`] and whatever `each` returns. After an error the parser is of no more use.
    pub fn push<E: From<SseError>>(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(SseEvent<'_>) -> Result<SseFlow, E>,
    ) -> Result<SseFlow, E> {
        let event = &mut self.event;
        let go_on =
            self.lines.push::<Wrapped<E>>(bytes, |line| event.line(line, &mut each).map_err(Wrapped)).map_err(|Wrapped(error)| error)?;
        Ok(if go_on { SseFlow::Continue } else { SseFlow::Stop })
    }

    /// The body ended. A last event without its empty line is handed out with [`SseEvent::closed`] false: some servers forget the line, and
    /// of a body that was cut it may be a part.
    ///
    /// # Errors
    /// As [`SseParser::push`].
    pub fn end<E: From<SseError>>(&mut self, mut each: impl FnMut(SseEvent<'_>) -> Result<SseFlow, E>) -> Result<SseFlow, E> {
        if let Some(line) = self.lines.end()
            && !self.event.line(&line, &mut each)?
        {
            return Ok(SseFlow::Stop);
        }
        if self.event.has_data { self.event.dispatch(false, &mut each) } else { Ok(SseFlow::Continue) }
    }

    /// How many events came so far.
    pub fn events(&self) -> u64 {
        self.event.events
    }

    /// Whether lines came that belong to no event stream.
    pub fn has_unknown_lines(&self) -> bool {
        self.event.unknown
    }

    /// Lines that are no field of an event stream, from the first on that begins like JSON or HTML: an error that was written into the
    /// stream without framing, or a body that is none. At most 64 KiB of them.
    pub fn stray(&self) -> &[u8] {
        &self.event.stray
    }
}

/// Lets an error of the caller pass through the line splitter.
struct Wrapped<E>(E);

impl<E: From<SseError>> From<LineTooLong> for Wrapped<E> {
    fn from(error: LineTooLong) -> Self {
        Self(SseError::from(error).into())
    }
}

impl Pending {
    /// Takes a line; says whether to go on.
    fn line<E: From<SseError>>(&mut self, line: &[u8], each: &mut impl FnMut(SseEvent<'_>) -> Result<SseFlow, E>) -> Result<bool, E> {
        if line.is_empty() {
            return if self.has_data {
                Ok(self.dispatch(true, each)? == SseFlow::Continue)
            } else {
                self.has_name = false;
                Ok(true)
            };
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.data.len().saturating_add(value.len()).saturating_add(1) > self.limit {
                    return Err(SseError::TooLong.into());
                }
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"event" => {
                self.name.clear();
                self.name.push_str(&lossy(value));
                self.has_name = true;
            }
            b"" | b"id" | b"retry" => {}
            _ => self.stray_line(line),
        }
        Ok(true)
    }

    fn stray_line(&mut self, line: &[u8]) {
        // The last line of a body that was cut may be the beginning of a field.
        self.unknown |= !["data", "event", "retry", "id"].iter().any(|field| field.as_bytes().starts_with(line));
        let begins = matches!(line.first(), Some(b'{' | b'[' | b'<'));
        if (begins || !self.stray.is_empty()) && self.stray.len().saturating_add(line.len()) < STRAY_LIMIT {
            self.stray.extend_from_slice(line);
            self.stray.push(b'\n');
        }
    }

    fn dispatch<E>(&mut self, closed: bool, each: &mut impl FnMut(SseEvent<'_>) -> Result<SseFlow, E>) -> Result<SseFlow, E> {
        self.events = self.events.saturating_add(1);
        let name = std::mem::take(&mut self.has_name).then_some(Cow::Borrowed(self.name.as_str()));
        let flow = each(SseEvent { name, data: lossy(&self.data), closed });
        self.data.clear();
        self.has_data = false;
        flow
    }
}

/// As [`String::from_utf8_lossy`], which is slow where nothing is wrong.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[cfg(test)]
mod tests;
