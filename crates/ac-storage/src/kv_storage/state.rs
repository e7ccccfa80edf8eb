use ac_core::ThreadId;
use async_trait::async_trait;
use serde_json::Value;

use super::{KvStorage, remove};
use crate::{Expect, Kv, StateStore, StorageError, StorageErrorKind, Stored, keys, row::StateRow};

#[async_trait]
impl<K: Kv> StateStore for KvStorage<K> {
    async fn get(&self, thread: &ThreadId, name: &str) -> Result<Option<Stored<Value>>, StorageError> {
        if self.read_head(thread).await?.is_none_or(|head| head.value.head.deleted) {
            return Ok(None);
        }
        let found = self.read::<StateRow>(&keys::state(thread, name)).await?;
        Ok(found.map(|Stored { version, value }| Stored { version, value: value.0 }))
    }

    async fn put(&self, thread: &ThreadId, name: &str, expect: Option<u64>, value: &Value) -> Result<u64, StorageError> {
        self.live_head(thread).await?;
        let condition = expect.map_or(Expect::Absent, Expect::Version);
        match self.kv.write(vec![self.put::<StateRow>(keys::state(thread, name), condition, value)?]).await {
            Err(error) if error.kind() == StorageErrorKind::Conflict => {
                return Err(self.conflict("the state was changed by somebody else"));
            }
            done => done?,
        }
        // The head is not part of the batch: state must not make a run's commit fail. So a deletion may have passed by; it left a tombstone.
        match self.live_head(thread).await {
            Err(error) if error.kind() == StorageErrorKind::Deleted => {
                self.kv.write(vec![remove(keys::state(thread, name))]).await?;
                Err(error)
            }
            _ => Ok(expect.unwrap_or(0) + 1),
        }
    }
}
