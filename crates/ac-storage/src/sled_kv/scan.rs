//! Rows in the order of their keys.

use super::{Shared, damaged, foreign, value, value::Row};
use crate::{Scan, StorageError, Versioned, memory};

/// What a scan finds.
pub(super) type Entries = Vec<(Vec<u8>, Versioned)>;

/// A part of what a scan finds.
#[derive(Default)]
pub(super) struct Part {
    pub(super) rows: Entries,
    /// Beyond which key there may be more.
    pub(super) next: Option<Vec<u8>>,
}

impl Shared {
    /// Entries of a scan, as many as its limit says or fewer. `None` when it would have to read files, which is only done with `files`.
    pub(super) fn scan(&self, scan: &Scan, files: bool) -> Result<Option<Part>, StorageError> {
        let after = scan.after.as_deref().map(value::key);
        let Some(range) = memory::range(&Scan { prefix: value::key(&scan.prefix), after, limit: 0, reverse: scan.reverse }) else {
            return Ok(Some(Part::default()));
        };
        let found = self.read(|db| {
            let entries = db.range(range);
            let collected: Result<Vec<_>, _> =
                if scan.reverse { entries.rev().take(scan.limit).collect() } else { entries.take(scan.limit).collect() };
            collected.map_err(|error| foreign(&self.path, error))
        })?;
        let last = found.last().filter(|_| found.len() == scan.limit).and_then(|(key, _)| key.get(1..));
        let mut part = Part { rows: Vec::with_capacity(found.len()), next: last.map(<[u8]>::to_vec) };
        for (key, stored) in found {
            let row = Row::decode(&stored).ok_or_else(|| damaged(&self.path))?;
            if row.blob().is_some() && !files {
                return Ok(None);
            }
            // A row that was replaced meanwhile is read again; one that was deleted meanwhile was not there the whole time.
            let value = match self.resolve(&row)? {
                Some(value) => Some(value),
                None => self.get(&key)?,
            };
            if let (Some(value), Some(key)) = (value, key.get(1..)) {
                part.rows.push((key.to_vec(), value));
            }
        }
        Ok(Some(part))
    }

    /// All entries of a scan, after those that were found already.
    pub(super) fn scan_on(&self, mut scan: Scan, mut rows: Entries) -> Result<Entries, StorageError> {
        while rows.len() < scan.limit {
            let part = self.scan(&Scan { limit: scan.limit - rows.len(), ..scan.clone() }, true)?.unwrap_or_default();
            rows.extend(part.rows);
            match part.next {
                Some(next) => scan.after = Some(next),
                None => break,
            }
        }
        Ok(rows)
    }
}
