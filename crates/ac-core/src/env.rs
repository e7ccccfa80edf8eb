//! What a program may not take from thin air: time and fresh ids. Both are injected, so that a transcript is the same every time.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A point in time, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since the epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This moment and `millis` later; stops at the end of time.
    pub const fn plus_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Reads what an ISO 8601 text with an offset says, or the beginning of a day in UTC.
    pub fn parse(text: &str) -> Option<Self> {
        let at = text.parse::<jiff::Timestamp>().or_else(|_| format!("{text}T00:00:00Z").parse()).ok()?;
        Some(Self(at.as_millisecond()))
    }

    /// Milliseconds from `earlier` to this moment, negative if it is later.
    pub const fn millis_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// RFC 3339 with milliseconds, in UTC: the form that the wire carries.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(at) => write!(f, "{at:.3}"),
            Err(_) => write!(f, "{}", self.0),
        }
    }
}

/// The time. Implementations must not go far backwards: leases are judged by it.
pub trait Clock: Send + Sync + 'static {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// A source of ids that were never given out before, by any process on the same store.
pub trait Ids: Send + Sync + 'static {
    /// A fresh id. `kind` (`thread`, `run`, `message`, `owner`, …) is a hint for readable ids in tests; it need not be used.
    fn fresh(&self, kind: &str) -> String;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_reads_as_rfc_3339_with_milliseconds() {
        assert_eq!(Timestamp::from_millis(1_767_225_600_042).to_string(), "2026-01-01T00:00:00.042Z");
        assert_eq!(Timestamp::from_millis(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::from_millis(i64::MAX).to_string(), i64::MAX.to_string());
    }

    #[test]
    fn a_time_that_was_written_is_read_again() {
        let at = Timestamp::from_millis(1_767_225_600_042);
        assert_eq!(Timestamp::parse(&at.to_string()), Some(at));
        assert_eq!(Timestamp::parse("2026-01-01T01:00:00+01:00"), Timestamp::parse("2026-01-01"));
        assert_eq!(Timestamp::parse("yesterday"), None);
    }
}
