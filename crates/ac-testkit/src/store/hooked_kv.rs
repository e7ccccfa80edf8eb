use std::sync::Arc;

use ac_storage::{Expect, Kv, Scan, StorageError, Versioned, Write};
use async_trait::async_trait;

use super::hooked::{Call, Failure, Hook, Op, around};

/// A backend with a hook around every call; under a [`KvStorage`](ac_storage::KvStorage) it reaches every single batch.
#[derive(Clone, Debug)]
pub struct HookedKv<K, H> {
    inner: K,
    hook: Arc<H>,
}

impl<K: Kv, H: Hook> HookedKv<K, H> {
    /// Puts `hook` around `inner`.
    pub fn new(inner: K, hook: Arc<H>) -> Self {
        Self { inner, hook }
    }

    /// The backend itself, without the hook.
    pub fn inner(&self) -> &K {
        &self.inner
    }

    /// The hook.
    pub fn hook(&self) -> &Arc<H> {
        &self.hook
    }

    async fn around<T>(
        &self,
        op: Op,
        about: String,
        call: impl Future<Output = Result<T, StorageError>> + Send,
    ) -> Result<T, StorageError> {
        around(&*self.hook, Call { op, about }, call, |_| None).await.map_err(Failure::into_error)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<K: Kv, H: Hook> Kv for HookedKv<K, H> {
    async fn get(&self, key: &[u8]) -> Result<Option<Versioned>, StorageError> {
        self.around(Op::KvGet, key.escape_ascii().to_string(), self.inner.get(key)).await
    }

    async fn scan(&self, scan: Scan) -> Result<Vec<(Vec<u8>, Versioned)>, StorageError> {
        let about = format!("{} limit {}", scan.prefix.escape_ascii(), scan.limit);
        self.around(Op::KvScan, about, self.inner.scan(scan)).await
    }

    async fn write(&self, batch: Vec<Write>) -> Result<(), StorageError> {
        let writes = batch.iter().map(|write| {
            let sign = if write.value.is_some() { '+' } else { '-' };
            let expect = match write.expect {
                Expect::Any => String::new(),
                Expect::Absent => "@0".to_owned(),
                Expect::Version(version) => format!("@{version}"),
            };
            format!("{sign}{}{expect}", write.key.escape_ascii())
        });
        let about = writes.collect::<Vec<_>>().join(" ");
        self.around(Op::KvWrite, about, self.inner.write(batch)).await
    }
}
