use ac_core::ControllerId;
use async_trait::async_trait;
use serde_json::value::RawValue;

use super::{CHUNK, KvStorage, remove};
use crate::{
    Expect, Kv, Page, Scan, SessionId, SessionStore, StorageError, StorageErrorKind, Stored, keys,
    row::{self, SessionRow},
};

#[async_trait]
impl<K: Kv> SessionStore for KvStorage<K> {
    async fn load(&self, id: &SessionId) -> Result<Option<Stored<Box<RawValue>>>, StorageError> {
        let found = self.read::<SessionRow>(&keys::session(id)).await?;
        Ok(found.map(|Stored { version, value }| Stored { version, value: value.0 }))
    }

    async fn save(&self, id: &SessionId, expect: Option<u64>, body: &RawValue) -> Result<u64, StorageError> {
        let condition = expect.map_or(Expect::Absent, Expect::Version);
        match self.kv.write(vec![self.put::<SessionRow>(keys::session(id), condition, body)?]).await {
            Ok(()) => Ok(expect.unwrap_or(0) + 1),
            Err(error) if error.kind() == StorageErrorKind::Conflict => Err(self.conflict("the session was changed by somebody else")),
            Err(error) => Err(error),
        }
    }

    async fn list(&self, controller: &ControllerId, after: Option<&str>, limit: usize) -> Result<Page<SessionId>, StorageError> {
        let prefix = keys::sessions(controller);
        let mut after = after.map(|after| read_cursor(after).map(|id| keys::session(&id))).transpose()?;
        let mut items: Vec<SessionId> = Vec::new();
        loop {
            let chunk = if limit == 0 { CHUNK } else { (limit - items.len()).saturating_add(1).min(CHUNK) };
            let rows = self.kv.scan(Scan { prefix: prefix.clone(), after, limit: chunk, reverse: false }).await?;
            let more = rows.len() == chunk;
            after = rows.last().map(|(key, _)| key.clone());
            for (key, _) in rows {
                if limit > 0 && items.len() == limit {
                    return Ok(Page { next: items.last().map(cursor).transpose()?, items });
                }
                items.push(keys::read_session(&key).ok_or_else(|| row::corrupt_key(&self.name, "session"))?);
            }
            if !more {
                return Ok(Page { items, next: None });
            }
        }
    }

    async fn delete(&self, id: &SessionId) -> Result<(), StorageError> {
        self.kv.write(vec![remove(keys::session(id))]).await
    }
}

/// A session id has two or three texts, so its cursor is JSON.
fn cursor(id: &SessionId) -> Result<String, StorageError> {
    serde_json::to_string(id).map_err(|_| no_page())
}

fn read_cursor(text: &str) -> Result<SessionId, StorageError> {
    serde_json::from_str(text).map_err(|_| no_page())
}

fn no_page() -> StorageError {
    StorageError::new(StorageErrorKind::NotFound, "no page of sessions begins there; use the `next` of a page as it is")
}
