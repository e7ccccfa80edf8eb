//! When a model call is tried again.

use std::time::Duration;

use ac_core::ModelError;

/// The wait before try `tries + 1`, or `None` when trying again is no use.
pub(crate) fn delay(error: &ModelError, tries: u32) -> Option<Duration> {
    if !error.kind.is_retryable() {
        return None;
    }
    let backoff = Duration::from_millis(500 * 2u64.saturating_pow(tries.saturating_sub(1)));
    Some(error.retry_after.unwrap_or(backoff).min(Duration::from_secs(60)))
}
