//! A clock that is set by hand.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use ac_core::{Clock, Timestamp};

/// 2026-01-01T00:00:00Z, where a [`ManualClock`] begins.
const START: i64 = 1_767_225_600_000;

/// A clock that moves only when it is told to, or by a fixed step with each reading. Clones show the same time.
///
/// ```
/// use ac_core::Clock;
/// let clock = ac_testkit::ManualClock::new();
/// clock.advance(1_500);
/// assert_eq!(clock.now().to_string(), "2026-01-01T00:00:01.500Z");
/// let ticking = ac_testkit::ManualClock::ticking(10);
/// assert_eq!(ticking.now().plus_millis(10), ticking.now());
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    millis: Arc<AtomicI64>,
    step: i64,
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl ManualClock {
    /// Stands at 2026-01-01T00:00:00Z until it is moved.
    pub fn new() -> Self {
        Self::ticking(0)
    }

    /// The first reading is 2026-01-01T00:00:00Z, each further one `step` milliseconds later.
    pub fn ticking(step: i64) -> Self {
        Self { millis: Arc::new(AtomicI64::new(START)), step }
    }

    /// Moves on by `millis` milliseconds; negative goes back.
    pub fn advance(&self, millis: i64) {
        self.millis.fetch_add(millis, Ordering::SeqCst);
    }

    /// Sets the time of the next reading.
    pub fn set(&self, at: Timestamp) {
        self.millis.store(at.as_millis(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis.fetch_add(self.step, Ordering::SeqCst))
    }
}
