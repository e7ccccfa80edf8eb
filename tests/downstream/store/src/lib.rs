//! A store of one's own: everything in memory, each batch a line at the end of a file. One process opens the file at a time.

use std::{collections::BTreeMap, fs, io::Write as _, path::Path, sync::Mutex};

use agent_controller::{async_trait, storage::*};

type Rows = BTreeMap<Vec<u8>, Versioned>;

pub struct LogKv(Mutex<(Rows, fs::File)>);

impl LogKv {
    /// A line without an end was never acknowledged; it is cut off.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let file = fs::File::options().create(true).read(true).append(true).open(path)?;
        let (mut rows, mut whole, text) = (Rows::new(), 0, fs::read(path)?);
        for line in text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            apply(&mut rows, serde_json::from_slice(line)?);
            whole += line.len();
        }
        file.set_len(whole as u64)?;
        Ok(Self(Mutex::new((rows, file))))
    }
}

fn apply(rows: &mut Rows, batch: Vec<Write>) {
    for Write { key, value, .. } in batch {
        let version = rows.remove(&key).map_or(1, |row| row.version + 1);
        rows.extend(value.map(|value| (key, Versioned { version, value: value.into() })));
    }
}

#[async_trait]
impl Kv for LogKv {
    async fn get(&self, key: &[u8]) -> Result<Option<Versioned>, StorageError> {
        Ok(self.0.lock().unwrap().0.get(key).cloned())
    }

    async fn scan(&self, scan: Scan) -> Result<Vec<(Vec<u8>, Versioned)>, StorageError> {
        Ok(scan.select(&self.0.lock().unwrap().0))
    }

    async fn write(&self, batch: Vec<Write>) -> Result<(), StorageError> {
        let (rows, file) = &mut *self.0.lock().unwrap();
        batch.iter().try_for_each(|write| write.expect.check(rows.get(&write.key)))?;
        let line = serde_json::to_string(&batch).unwrap() + "\n";
        let lost = |error| StorageError::new(StorageErrorKind::Unknown, "the file was not written").with_source(error);
        file.write_all(line.as_bytes()).and_then(|()| file.sync_data()).map_err(lost)?;
        apply(rows, batch);
        Ok(())
    }
}
