//! A text that grows and is shared.

use std::{fmt, sync::Arc};

use serde::{Serialize, Serializer};

/// A text that grows at its end and can be copied cheaply at any moment.
///
/// It is a list of shared chunks and a short tail. Appending costs what is appended; a copy costs the tail (at most [`SharedText::CHUNK`]
/// bytes) and one pointer for each chunk, never the text. The view uses it for everything that streams.
#[derive(Clone, Default)]
pub struct SharedText {
    chunks: Arc<Vec<Arc<str>>>,
    tail: String,
    len: usize,
}

impl SharedText {
    /// Bytes after which the tail becomes a shared chunk.
    pub const CHUNK: usize = 2048;

    /// An empty text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends `text`.
    pub fn push_str(&mut self, text: &str) {
        self.tail.push_str(text);
        self.len += text.len();
        if self.tail.len() >= Self::CHUNK {
            // A snapshot may share the list. Copying it then copies pointers, once per chunk.
            Arc::make_mut(&mut self.chunks).push(std::mem::take(&mut self.tail).into());
        }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The text in pieces, in order.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        self.chunks.iter().map(AsRef::as_ref).chain(std::iter::once(self.tail.as_str()))
    }
}

/// Equal when the text is equal, however it came in.
impl PartialEq for SharedText {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.pieces().flat_map(str::bytes).eq(other.pieces().flat_map(str::bytes))
    }
}

impl Eq for SharedText {}

impl From<&str> for SharedText {
    fn from(text: &str) -> Self {
        let mut shared = Self::new();
        shared.push_str(text);
        shared
    }
}

impl fmt::Display for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces().try_for_each(|piece| f.write_str(piece))
    }
}

impl fmt::Debug for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl Serialize for SharedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
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
}
