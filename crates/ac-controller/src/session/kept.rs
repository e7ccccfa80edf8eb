//! What a controller keeps with a thread: values by name, changed by compare-and-set.

use ac_core::ThreadId;
use ac_storage::StorageErrorKind;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{ControllerError, ControllerErrorKind, controller::Shared};

/// How often a change is tried again when somebody else was faster.
const TRIES: usize = 32;

/// What becomes of a value.
pub(crate) enum Kept<T, R> {
    /// It stays as it is.
    Same(R),
    /// It is this now.
    Put(T, R),
    /// There is none now.
    Gone(R),
}

impl Shared {
    /// A value that is kept with a thread.
    pub(crate) async fn kept<T: DeserializeOwned>(&self, thread: &ThreadId, name: &str) -> Result<Option<T>, ControllerError> {
        match self.storage.state().get(thread, name).await? {
            Some(stored) => read(name, stored.value),
            None => Ok(None),
        }
    }

    /// Changes a value. `change` runs again on what somebody else wrote meanwhile.
    pub(crate) async fn change_kept<T, R>(
        &self,
        thread: &ThreadId,
        name: &str,
        mut change: impl FnMut(Option<T>) -> Result<Kept<T, R>, ControllerError>,
    ) -> Result<R, ControllerError>
    where
        T: Serialize + DeserializeOwned,
    {
        for _ in 0..TRIES {
            let stored = self.storage.state().get(thread, name).await?;
            let version = stored.as_ref().map(|stored| stored.version);
            let value = stored.map(|stored| read(name, stored.value)).transpose()?.flatten();
            let (next, result) = match change(value)? {
                Kept::Same(result) => return Ok(result),
                Kept::Put(next, result) => (write(name, &next)?, result),
                Kept::Gone(result) => (Value::Null, result),
            };
            match self.storage.state().put(thread, name, version, &next).await {
                Ok(_) => return Ok(result),
                Err(error) if error.kind() == StorageErrorKind::Conflict => {}
                // The reply was lost: what is there now tells.
                Err(error) if error.kind() == StorageErrorKind::Unknown => {
                    if self.storage.state().get(thread, name).await?.is_some_and(|stored| stored.value == next) {
                        return Ok(result);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(ControllerError::new(ControllerErrorKind::Contended, format!("others keep changing the {name} of this thread; try again")))
    }
}

/// The form of such values that this version writes. An older one loads for ever; a newer one is refused, not cut down.
const SCHEMA: u64 = 1;

fn read<T: DeserializeOwned>(name: &str, value: Value) -> Result<Option<T>, ControllerError> {
    let schema = value.get("schema").and_then(Value::as_u64).unwrap_or(SCHEMA);
    if schema > SCHEMA {
        let message = format!("the {name} of this thread was written by a newer version (schema {schema}); use that version");
        return Err(ControllerError::new(ControllerErrorKind::NewerSchema, message));
    }
    serde_json::from_value(value).map_err(|error| {
        let kind = ControllerErrorKind::Storage(StorageErrorKind::Corrupt);
        ControllerError::new(kind, format!("what is stored as the {name} of this thread cannot be read; it is left as it is"))
            .with_source(error)
    })
}

fn write<T: Serialize>(name: &str, value: &T) -> Result<Value, ControllerError> {
    let mut value = serde_json::to_value(value).map_err(|error| {
        ControllerError::new(ControllerErrorKind::InvalidState, format!("the {name} cannot be written as JSON")).with_source(error)
    })?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("schema".to_owned(), SCHEMA.into());
    }
    Ok(value)
}
