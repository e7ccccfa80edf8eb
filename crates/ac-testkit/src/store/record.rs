use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use ac_storage::{StorageError, StorageErrorKind};
use async_trait::async_trait;

use super::hooked::{Call, Hook, Op};

/// A call that came back.
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    /// The call.
    pub call: Call,
    /// How it failed, if it did.
    pub failure: Option<StorageErrorKind>,
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.failure {
            None => write!(f, "{:?}", self.call),
            Some(kind) => write!(f, "{:?}: {kind:?}", self.call),
        }
    }
}

/// Writes down every call, in the order in which they came back.
#[derive(Debug, Default)]
pub struct Recorder {
    records: Mutex<Vec<Record>>,
}

impl Recorder {
    /// Nothing was called yet.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// What was called so far; begins anew.
    pub fn take(&self) -> Vec<Record> {
        std::mem::take(&mut self.records.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How often `op` was called so far.
    pub fn count(&self, op: Op) -> usize {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).iter().filter(|record| record.call.op == op).count()
    }
}

#[async_trait]
impl Hook for Recorder {
    type Note = ();

    async fn before(&self, _call: &Call) -> Result<(), StorageError> {
        Ok(())
    }

    async fn after(&self, call: Call, (): (), failure: Option<StorageErrorKind>) -> Result<(), StorageError> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).push(Record { call, failure });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
