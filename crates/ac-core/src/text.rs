//! A text that grows and is shared.

use std::{fmt, sync::Arc};

use serde::{Serialize, Serializer};

/// A text that grows at its end and can be copied cheaply at any moment.
///
/// It is a chain of shared pieces, each of which points back to the one before it. Appending costs what is appended; a copy costs a
/// pointer, never the text, and shares every piece with the copies before and after it. The view uses it for everything that streams.
#[derive(Clone, Default)]
pub struct SharedText {
    last: Option<Arc<Piece>>,
    /// How many bytes at the end are in pieces as they came in, and not yet in a chunk.
    open: usize,
    len: usize,
}

struct Piece {
    text: String,
    before: Option<Arc<Piece>>,
}

impl SharedText {
    /// Bytes after which pieces that came in one by one are joined.
    pub const CHUNK: usize = 2048;

    /// An empty text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends `text`.
    pub fn push_str(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.last.as_mut().filter(|_| self.open > 0).and_then(Arc::get_mut) {
            // No copy has it.
            Some(last) => last.text.push_str(text),
            None => self.last = Some(Arc::new(Piece { text: text.to_owned(), before: self.last.take() })),
        }
        self.len += text.len();
        self.open += text.len();
        if self.open >= Self::CHUNK {
            self.join();
        }
    }

    /// Makes one chunk of what came in since the last one. Copies that were taken meanwhile keep the pieces for as long as they live.
    fn join(&mut self) {
        let mut pieces = vec![];
        let mut before = self.last.as_ref();
        let mut left = std::mem::take(&mut self.open);
        while let Some(piece) = before.filter(|_| left > 0) {
            left = left.saturating_sub(piece.text.len());
            pieces.push(piece.text.as_str());
            before = piece.before.as_ref();
        }
        if pieces.len() > 1 {
            pieces.reverse();
            self.last = Some(Arc::new(Piece { text: pieces.concat(), before: before.cloned() }));
        } else if let Some(piece) = self.last.as_mut().and_then(Arc::get_mut) {
            piece.text.shrink_to_fit();
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
        let mut pieces: Vec<&str> =
            std::iter::successors(self.last.as_deref(), |piece| piece.before.as_deref()).map(|piece| piece.text.as_str()).collect();
        pieces.reverse();
        pieces.into_iter()
    }
}

/// One piece after the other: a chain may be longer than a stack is deep.
impl Drop for Piece {
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(mut piece) = next.and_then(Arc::into_inner) {
            next = piece.before.take();
        }
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
mod tests;
