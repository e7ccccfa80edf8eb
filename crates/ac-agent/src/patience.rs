//! How a store that does not answer is asked again.

use std::time::Duration;

use ac_storage::{StorageError, StorageErrorKind};

/// How often a store that does not answer is asked again, and after how long: five seconds in all. Then the run is left to be recovered.
pub(crate) const TRIES: u32 = 25;
pub(crate) const WAIT: Duration = Duration::from_millis(200);

/// Whether asking again may help.
pub(crate) fn may_pass(error: &StorageError) -> bool {
    matches!(error.kind(), StorageErrorKind::Unknown | StorageErrorKind::Unavailable)
}

/// Patience with a store that does not answer, for what may be done twice: a read, taking a lease.
#[derive(Debug, Default)]
pub(crate) struct Patience(u32);

impl Patience {
    /// Waits, if asking again may help; says whether to.
    pub(crate) async fn allows(&mut self, error: &StorageError) -> bool {
        self.0 += 1;
        let again = self.0 < TRIES && may_pass(error);
        if again {
            tokio::time::sleep(WAIT).await;
        }
        again
    }
}
