//! What waits for nothing but time.

use tokio::time::Instant;

use super::{Driver, Go};
use crate::RunError;

impl Driver {
    fn kill_at(&self) -> Option<Instant> {
        self.working.values().filter_map(|working| working.kill_at).min()
    }

    fn lease_at(&self) -> Option<Instant> {
        self.lease.as_ref().map(|_| self.renew_at)
    }

    /// When the next thing is due that waits for nothing but time.
    pub(super) fn due(&self) -> Instant {
        [self.kill_at(), self.lease_at(), self.backoff].into_iter().flatten().fold(self.poll_at, Instant::min)
    }

    /// Does what is due. It may be nothing: what the alarm was set for may have gone, or have been put off.
    pub(super) async fn alarm(&mut self) -> Result<Go, RunError> {
        let now = Instant::now();
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let done = if is_due(self.kill_at()) {
            self.kill_overdue().await
        } else if is_due(self.lease_at()) {
            self.renew().await
        } else if is_due(Some(self.poll_at)) {
            self.poll_store().await
        } else {
            if is_due(self.backoff) {
                self.backoff = None;
            }
            Ok(Go::On)
        };
        let due = self.due();
        self.alarm.as_mut().reset(due);
        done
    }
}
