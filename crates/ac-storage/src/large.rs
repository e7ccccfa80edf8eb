//! Long texts: stored once, and referred to.
//!
//! What a tool puts out may be long, and it stands in the message of its step and in the record of the run, which is written again with
//! every commit. So a long string of a message's JSON is a row of its own, named by its hash, and in its place stands an empty string; the
//! row says where, and which. A record refers to the texts of its thread's messages in the same way. The cut is one of JSON text, so what is
//! put together again is the same to the byte, and the store needs to know nothing of what it cuts.
//!
//! The texts belong to the thread, and are deleted with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::row::{self, Row};

/// Strings whose JSON takes so many bytes are cut out.
pub(crate) const LARGE: usize = 16 * 1024;
/// What stands in the place of a string.
const HOLE: &str = r#""""#;

/// A row without its long texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Its JSON.
    pub(crate) row: String,
    /// Where something is missing in it, and the hash of what.
    pub(crate) large: Vec<(usize, String)>,
}

/// A text that was cut out: its hash, and its JSON.
pub(crate) type Text<'a> = (String, &'a str);

/// The long strings of a JSON text.
pub(crate) fn find(json: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if json.len() < LARGE {
        return found;
    }
    let bytes = json.as_bytes();
    let (mut at, mut begin) = (0, None);
    while let Some(byte) = bytes.get(at) {
        match (byte, begin) {
            (b'\\', Some(_)) => at += 1,
            (b'"', None) => begin = Some(at),
            (b'"', Some(from)) => {
                if at + 1 - from >= LARGE {
                    found.push(from..at + 1);
                }
                begin = None;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Cuts the long strings out of a row, those that `fits` lets go.
pub(crate) fn cut<'a>(json: &'a str, mut fits: impl FnMut(&str) -> bool) -> (Cut, Vec<Text<'a>>) {
    let mut row = String::new();
    let (mut large, mut texts, mut from) = (Vec::new(), Vec::new(), 0);
    for span in find(json) {
        let Some(text) = json.get(span.clone()) else { continue };
        let hash = hash(text);
        if !fits(&hash) {
            continue;
        }
        row.push_str(json.get(from..span.start).unwrap_or_default());
        large.push((row.len(), hash.clone()));
        row.push_str(HOLE);
        texts.push((hash, text));
        from = span.end;
    }
    row.push_str(json.get(from..).unwrap_or_default());
    (Cut { row, large }, texts)
}

/// Names a text by what it is.
pub(crate) fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Cut {
    /// The bytes of the row.
    pub(crate) fn encode<R: Row>(&self) -> Vec<u8> {
        let schema = row::schema::<R>();
        let head = if self.large.is_empty() {
            format!(r#"{{"schema":{schema},"row":"#)
        } else {
            let places: Vec<String> = self.large.iter().map(|(at, hash)| format!(r#"[{at},"{hash}"]"#)).collect();
            format!(r#"{{"schema":{schema},"large":[{}],"row":"#, places.join(","))
        };
        [head.as_bytes(), self.row.as_bytes(), b"}"].concat()
    }

    /// What a stored row is, if anything was cut out of it. A row that does not read is none: whoever reads it will say so.
    pub(crate) fn read<R: Row>(stored: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Envelope<'a> {
            schema: u32,
            large: Vec<(usize, String)>,
            #[serde(borrow)]
            row: &'a RawValue,
        }
        // Rows that are whole are the most by far, and are told by their first bytes.
        let comma = stored.iter().take(24).position(|byte| *byte == b',')?;
        if !stored.get(comma..)?.starts_with(br#","large":"#) {
            return None;
        }
        let Envelope { schema, large, row } = serde_json::from_slice(stored).ok()?;
        (schema <= row::schema::<R>()).then(|| Self { row: row.get().to_owned(), large })
    }

    /// The bytes of the row with everything in its place; `None` where the places are none.
    pub(crate) fn join<R: Row>(&self, texts: &[String]) -> Option<Vec<u8>> {
        let mut row = String::with_capacity(self.row.len() + texts.iter().map(String::len).sum::<usize>());
        let mut from = 0;
        for ((at, _), text) in self.large.iter().zip(texts) {
            row.push_str(self.row.get(from..*at)?);
            row.push_str(text);
            from = at.checked_add(HOLE.len())?;
        }
        row.push_str(self.row.get(from..)?);
        Some(Self { row, large: Vec::new() }.encode::<R>())
    }
}

/// The long texts of a batch, each once.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    new: BTreeMap<String, String>,
    known: BTreeSet<String>,
}

impl Texts {
    /// These are stored already.
    pub(crate) fn know(&mut self, stored: &Cut) {
        self.known.extend(stored.large.iter().map(|(_, hash)| hash.clone()));
    }

    pub(crate) fn knows(&self, hash: &str) -> bool {
        self.known.contains(hash) || self.new.contains_key(hash)
    }

    /// Takes what was cut out of a message.
    pub(crate) fn take(&mut self, texts: Vec<Text<'_>>) {
        for (hash, text) in texts {
            if !self.knows(&hash) {
                self.new.insert(hash, text.to_owned());
            }
        }
    }

    /// Hash and JSON of those that have to be stored.
    pub(crate) fn into_new(self) -> impl Iterator<Item = (String, String)> {
        self.new.into_iter()
    }
}

#[cfg(test)]
mod tests;
