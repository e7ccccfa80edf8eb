//! A store as JSON lines: a backup, a way into another backend, something to look at.
//!
//! The first line names the layout of keys; each other line is a row, `{"key":…,"row":…}`. In keys, bytes that are no plain ASCII, and
//! `%`, are written `%XX`. A row that is no JSON in one line is written `"bytes"`, in hexadecimal.

use std::io::{BufRead, Write as Output};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Expect, Kv, KvStorage, Scan, StorageError, StorageErrorKind, Write, keys};

/// Rows per batch.
const CHUNK: usize = 128;

#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(rename = "agent-controller store layout")]
    layout: u32,
}

#[derive(Serialize)]
struct Line<'a> {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<String>,
}

#[derive(Deserialize)]
struct ReadLine {
    key: String,
    #[serde(default)]
    row: Option<Box<RawValue>>,
    #[serde(default)]
    bytes: Option<String>,
}

impl<K: Kv> KvStorage<K> {
    /// Writes every row to `out`, in the order of keys. Returns how many. The store should be at rest: rows that change meanwhile are
    /// exported as they are when their turn comes.
    ///
    /// # Errors
    /// When the store does not answer, or `out` fails ([`Unavailable`](StorageErrorKind::Unavailable)).
    pub async fn export(&self, out: &mut (dyn Output + Send)) -> Result<u64, StorageError> {
        write_line(out, &Header { layout: keys::LAYOUT })?;
        let (mut exported, mut after) = (0, None);
        loop {
            let rows = self.kv().scan(Scan { after, limit: CHUNK, ..Scan::default() }).await?;
            let more = rows.len() == CHUNK;
            after = rows.last().map(|(key, _)| key.clone());
            for (key, stored) in rows {
                if key == keys::layout() {
                    continue;
                }
                let row = serde_json::from_slice::<&RawValue>(&stored.value).ok();
                let row = row.filter(|row| row.get().len() == stored.value.len() && !row.get().contains(['\n', '\r']));
                let bytes = row.is_none().then(|| hex(&stored.value));
                write_line(out, &Line { key: escape(&key), row, bytes })?;
                exported += 1;
            }
            if !more {
                return out.flush().map(|()| exported).map_err(no_output);
            }
        }
    }

    /// Reads rows from an export into this store, which must have none of them. Returns how many. Versions begin anew.
    ///
    /// # Errors
    /// [`Exists`](StorageErrorKind::Exists) when the store has one of the rows, [`NewerSchema`](StorageErrorKind::NewerSchema),
    /// [`Corrupt`](StorageErrorKind::Corrupt) when a line is none of an export. Rows of earlier lines are in the store then.
    pub async fn import(&self, from: &mut (dyn BufRead + Send)) -> Result<u64, StorageError> {
        let mut lines = from.lines().enumerate();
        let header = lines.next().map(|(_, line)| line.map_err(no_output)).transpose()?.unwrap_or_default();
        let Header { layout } = serde_json::from_str(&header).map_err(|_| no_line(0))?;
        if layout > keys::LAYOUT {
            return Err(StorageError::new(
                StorageErrorKind::NewerSchema,
                format!("the export has layout {layout}, this program knows {}: use the program that wrote it, or newer", keys::LAYOUT),
            ));
        }
        let (mut imported, mut batch) = (0, Vec::with_capacity(CHUNK));
        for (number, line) in lines {
            let line: ReadLine = serde_json::from_str(&line.map_err(no_output)?).map_err(|_| no_line(number))?;
            let value = match (line.row, line.bytes) {
                (Some(row), None) => Some(row.get().as_bytes().to_vec()),
                (None, Some(bytes)) => unhex(&bytes),
                _ => None,
            };
            let (Some(key), Some(value)) = (unescape(&line.key), value) else { return Err(no_line(number)) };
            batch.push(Write { key, expect: Expect::Absent, value: Some(value) });
            if batch.len() == CHUNK {
                imported += self.import_batch(std::mem::take(&mut batch)).await?;
            }
        }
        imported += self.import_batch(batch).await?;
        self.upgrade(layout).await?;
        Ok(imported)
    }

    async fn import_batch(&self, batch: Vec<Write>) -> Result<u64, StorageError> {
        let count = batch.len() as u64;
        match self.kv().write(batch).await {
            Err(error) if error.kind() == StorageErrorKind::Conflict => Err(StorageError::new(
                StorageErrorKind::Exists,
                "the store to import into has some of the rows already; import into an empty one",
            )),
            done => done.map(|()| count),
        }
    }
}

fn write_line(out: &mut (dyn Output + Send), line: &impl Serialize) -> Result<(), StorageError> {
    let mut text = serde_json::to_vec(line).map_err(|_| StorageError::new(StorageErrorKind::Corrupt, "a row cannot be written as JSON"))?;
    text.push(b'\n');
    out.write_all(&text).map_err(no_output)
}

fn no_output(error: std::io::Error) -> StorageError {
    StorageError::new(StorageErrorKind::Unavailable, "the export cannot be read or written; see to its file and disk").with_source(error)
}

fn no_line(number: usize) -> StorageError {
    StorageError::new(StorageErrorKind::Corrupt, format!("line {} is none of an export", number + 1))
}

/// A key as text.
pub(crate) fn escape(key: &[u8]) -> String {
    let mut text = String::with_capacity(key.len());
    for byte in key {
        match byte {
            b'%' => text.push_str("%25"),
            b' '..=b'~' => text.push(char::from(*byte)),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut key = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    loop {
        match rest {
            [] => return Some(key),
            [b'%', high, low, after @ ..] => {
                key.push(digit(*high)? << 4 | digit(*low)?);
                rest = after;
            }
            [b'%', ..] => return None,
            [byte, after @ ..] => {
                key.push(*byte);
                rest = after;
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

fn digit(character: u8) -> Option<u8> {
    char::from(character).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests;
