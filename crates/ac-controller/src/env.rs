use std::time::{SystemTime, UNIX_EPOCH};

use ac_core::{Clock, Ids, Timestamp};

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }
}

/// Random ids that sort by the time they were made (UUID version 7).
#[derive(Clone, Copy, Debug, Default)]
pub struct UuidIds;

impl Ids for UuidIds {
    fn fresh(&self, _: &str) -> String {
        uuid::Uuid::now_v7().to_string()
    }
}
