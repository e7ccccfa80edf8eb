//! Text in files: what its bytes mean, and how an edit changes nothing but what it names.

use encoding_rs::{UTF_16BE, UTF_16LE, WINDOWS_1252};

/// How a file writes its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// UTF-8.
    #[default]
    Utf8,
    /// UTF-16, low byte first; with a byte-order mark, or it is not recognised.
    Utf16Le,
    /// UTF-16, high byte first; with a byte-order mark, or it is not recognised.
    Utf16Be,
    /// What is neither of these and no binary file. Each byte is one character, so whatever the encoding really is, bytes that an edit does
    /// not touch stay.
    Windows1252,
}

impl Encoding {
    /// The name to show.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
            Self::Windows1252 => "Latin-1 (Windows-1252)",
        }
    }
}

/// The text of a file, and how to write it back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Text {
    /// What it says, without a byte-order mark.
    pub content: String,
    /// How it was written.
    pub encoding: Encoding,
    /// Whether it began with a byte-order mark.
    pub bom: bool,
}

const BOM: char = '\u{feff}';

impl Text {
    /// Reads bytes as text. `None` for a binary file: one with a NUL byte, or whose bytes would not come back the same.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (encoding, bom, rest) = match bytes {
            [0xEF, 0xBB, 0xBF, rest @ ..] => (Encoding::Utf8, true, rest),
            [0xFF, 0xFE, rest @ ..] => (Encoding::Utf16Le, true, rest),
            [0xFE, 0xFF, rest @ ..] => (Encoding::Utf16Be, true, rest),
            _ if bytes.contains(&0) => return None,
            _ if std::str::from_utf8(bytes).is_ok() => (Encoding::Utf8, false, bytes),
            _ if looks_like_text(bytes) => (Encoding::Windows1252, false, bytes),
            _ => return None,
        };
        let content = match encoding {
            Encoding::Utf8 => std::str::from_utf8(rest).ok()?.to_owned(),
            Encoding::Utf16Le => UTF_16LE.decode_without_bom_handling_and_without_replacement(rest)?.into_owned(),
            Encoding::Utf16Be => UTF_16BE.decode_without_bom_handling_and_without_replacement(rest)?.into_owned(),
            Encoding::Windows1252 => WINDOWS_1252.decode_without_bom_handling(rest).0.into_owned(),
        };
        let text = Self { content, encoding, bom };
        (text.encode(&text.content).as_deref() == Some(bytes)).then_some(text)
    }

    /// Writes another content as this text was written. `None` when the encoding has no such character.
    pub fn encode(&self, content: &str) -> Option<Vec<u8>> {
        let mark = if self.bom { BOM.to_string() } else { String::new() };
        Some(match self.encoding {
            Encoding::Utf8 => [mark.as_bytes(), content.as_bytes()].concat(),
            Encoding::Utf16Le => mark.encode_utf16().chain(content.encode_utf16()).flat_map(u16::to_le_bytes).collect(),
            Encoding::Utf16Be => mark.encode_utf16().chain(content.encode_utf16()).flat_map(u16::to_be_bytes).collect(),
            Encoding::Windows1252 => {
                let (bytes, _, unmappable) = WINDOWS_1252.encode(content);
                if unmappable {
                    return None;
                }
                bytes.into_owned()
            }
        })
    }

    /// Whether every line ends with a carriage return and a line feed, and there is at least one.
    pub fn is_crlf(&self) -> bool {
        let crlf = self.content.matches("\r\n").count();
        crlf > 0 && crlf == self.content.matches('\n').count()
    }
}

/// Bytes of a text in some eight-bit encoding hold next to no control characters.
fn looks_like_text(bytes: &[u8]) -> bool {
    let head = bytes.get(..8192).unwrap_or(bytes);
    let control = head.iter().filter(|byte| **byte < 0x20 && !matches!(**byte, b'\t' | b'\n' | b'\r' | 0x0C | 0x1B)).count();
    control * 50 <= head.len()
}

/// Why a replacement did not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplaceError {
    /// The text does not occur.
    Missing,
    /// It occurs more often than once, at these lines.
    Ambiguous(Vec<usize>),
    /// It is empty, or the same as what takes its place.
    Nothing,
    /// The new text could be longer than 64 MiB.
    TooLong,
}

/// The longest text that a replacement makes, in bytes: a few edits could double it each time.
const LONGEST: usize = 64 << 20;

/// What a replacement did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replaced {
    /// The new text.
    pub content: String,
    /// The lines, from 1, at which the old text began.
    pub lines: Vec<usize>,
}

/// Replaces `old` by `new`: in one place, or in all with `all`.
///
/// A line end in `old` matches both kinds (a model that was shown lines does not know which there are). What takes its place is written with
/// the line ends of what it replaces, or of the lines around it. Everything else stays as it is, byte for byte.
///
/// # Errors
/// See [`ReplaceError`].
pub fn replace(content: &str, old: &str, new: &str, all: bool) -> Result<Replaced, ReplaceError> {
    let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
    if old.is_empty() || old == new {
        return Err(ReplaceError::Nothing);
    }
    let flat = Flat::new(content);
    let found: Vec<usize> = flat.text.match_indices(old.as_str()).map(|(at, _)| at).collect();
    let lines = flat.lines(&found);
    match found.len() {
        0 => return Err(ReplaceError::Missing),
        1 => {}
        _ if all => {}
        _ => return Err(ReplaceError::Ambiguous(lines)),
    }
    // A line end may become two characters.
    let grown = content.len().saturating_add(found.len().saturating_mul(new.len().saturating_mul(2)));
    if grown > LONGEST {
        return Err(ReplaceError::TooLong);
    }
    let mut out = String::with_capacity(content.len());
    let mut done = 0;
    for at in found {
        let (start, end) = (flat.original(at), flat.original(at + old.len()));
        out.push_str(content.get(done..start).unwrap_or_default());
        if new.contains('\n') && ends_with_crlf(content, start, end) {
            out.push_str(&new.replace('\n', "\r\n"));
        } else {
            out.push_str(&new);
        }
        done = end;
    }
    out.push_str(content.get(done..).unwrap_or_default());
    Ok(Replaced { content: out, lines })
}

/// A text with all line ends as `\n`, and where its places are in the original.
struct Flat {
    text: String,
    /// Where the shortened line ends are, in the flat text.
    shortened: Vec<usize>,
}

impl Flat {
    fn new(content: &str) -> Self {
        let mut text = String::with_capacity(content.len());
        let mut shortened = Vec::new();
        let mut pieces = content.split("\r\n").peekable();
        while let Some(piece) = pieces.next() {
            text.push_str(piece);
            if pieces.peek().is_some() {
                shortened.push(text.len());
                text.push('\n');
            }
        }
        Self { text, shortened }
    }

    /// The place in the original that belongs to one in the flat text.
    fn original(&self, flat: usize) -> usize {
        flat + self.shortened.partition_point(|at| *at < flat)
    }

    /// The lines, from 1, of ascending places.
    fn lines(&self, places: &[usize]) -> Vec<usize> {
        let (mut line, mut at) = (1, 0);
        places
            .iter()
            .map(|place| {
                line += self.text.get(at..*place).unwrap_or_default().matches('\n').count();
                at = *place;
                line
            })
            .collect()
    }
}

/// Which line end a replacement of this part of the text takes: that of the part, else of the line it is in, else of the line before.
fn ends_with_crlf(content: &str, start: usize, end: usize) -> bool {
    let part = content.get(start..end).unwrap_or_default();
    let all = part.matches('\n').count();
    if all > 0 {
        return part.matches("\r\n").count() * 2 > all;
    }
    let (before, after) = (content.get(..start).unwrap_or_default(), content.get(end..).unwrap_or_default());
    match (after.find('\n'), before.rfind('\n')) {
        (Some(at), _) => after.get(..at).is_some_and(|line| line.ends_with('\r')),
        (None, Some(at)) => before.get(..at).is_some_and(|line| line.ends_with('\r')),
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests;
