use ac_core::{ErrorInfo, error::Source};

/// Why a store did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StorageErrorKind {
    /// There is no such row.
    NotFound,
    /// A row with that id exists already.
    Exists,
    /// Somebody else changed the row first.
    Conflict,
    /// The row was deleted for good; nothing can be written to it.
    Deleted,
    /// What is stored is no valid row. It is kept as it is, never defaulted away.
    Corrupt,
    /// The store was written by a newer version of this program.
    NewerSchema,
    /// Another process uses this store.
    Locked,
    /// No room left.
    Full,
    /// The value is larger than the store takes.
    TooLarge,
    /// The store did not answer; the operation was not done.
    Unavailable,
    /// The store did not answer; the operation may or may not have been done.
    Unknown,
}

/// A store that did not do what it was asked. No value and no key material is in the message.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct StorageError {
    kind: StorageErrorKind,
    message: String,
    #[source]
    source: Option<Source>,
}

impl StorageError {
    /// A failure of this kind.
    pub fn new(kind: StorageErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Keeps the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Why.
    pub fn kind(&self) -> StorageErrorKind {
        self.kind
    }

    /// `storage.conflict`, … Stable.
    pub const fn code(&self) -> &'static str {
        match self.kind {
            StorageErrorKind::NotFound => "storage.not_found",
            StorageErrorKind::Exists => "storage.exists",
            StorageErrorKind::Conflict => "storage.conflict",
            StorageErrorKind::Deleted => "storage.deleted",
            StorageErrorKind::Corrupt => "storage.corrupt",
            StorageErrorKind::NewerSchema => "storage.newer_schema",
            StorageErrorKind::Locked => "storage.locked",
            StorageErrorKind::Full => "storage.full",
            StorageErrorKind::TooLarge => "storage.too_large",
            StorageErrorKind::Unavailable => "storage.unavailable",
            StorageErrorKind::Unknown => "storage.unknown",
        }
    }
}

impl From<&StorageError> for ErrorInfo {
    fn from(error: &StorageError) -> Self {
        let mut info = Self::new(error.code(), error.message.clone());
        info.retryable = matches!(error.kind, StorageErrorKind::Conflict | StorageErrorKind::Unavailable | StorageErrorKind::Unknown);
        info
    }
}
