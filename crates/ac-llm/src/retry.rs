//! When to ask a model again: a pure policy that the driver of a run applies.
//!
//! A provider never retries by itself, because only the driver knows what was shown already and what the run may still cost.

pub mod after;

use std::time::Duration;

use ac_core::{ModelError, ModelErrorKind};

/// How often and how long.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// How often a model is asked at most, the first time included.
    pub attempts: u32,
    /// The wait before the second attempt; it doubles with each further one.
    pub first: Duration,
    /// The longest wait of the policy's own.
    pub longest: Duration,
    /// The longest wait that a provider may ask for. If it asks for more, the error goes to the person, who sees how long.
    pub patience: Duration,
}

/// Five attempts; half a second, doubling, at most 30 s; a provider may ask for up to five minutes.
impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 5, first: Duration::from_millis(500), longest: Duration::from_secs(30), patience: Duration::from_secs(300) }
    }
}

impl RetryPolicy {
    /// Never asks again.
    pub const fn never() -> Self {
        Self { attempts: 1, first: Duration::ZERO, longest: Duration::ZERO, patience: Duration::ZERO }
    }
}

/// How long to wait before attempt `attempt + 1`, after attempt `attempt` (from 1) failed with `error`. `None`: do not ask again.
///
/// `jitter` is a fresh number from 0 to 1. It spreads clients that failed together: a wait of the policy's own becomes between half and
/// all of itself; a wait that the provider asked for is never cut, a tenth at most is added.
///
/// If text was shown before the error, the driver says that it is retried, so that a view discards the partial message.
pub fn next(policy: &RetryPolicy, error: &ModelError, attempt: u32, jitter: f64) -> Option<Duration> {
    let jitter = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 0.5 };
    if attempt >= attempts(policy, error) {
        return None;
    }
    let own = policy.first.saturating_mul(1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX)).min(policy.longest);
    let own = own.mul_f64(0.5 + jitter / 2.0);
    match error.retry_after {
        Some(asked) if asked > policy.patience => None,
        Some(asked) => Some(asked.saturating_add((asked / 10).min(policy.longest).mul_f64(jitter)).max(own)),
        None => Some(own),
    }
}

fn attempts(policy: &RetryPolicy, error: &ModelError) -> u32 {
    if error.is_retryable() {
        policy.attempts
    } else if error.kind != ModelErrorKind::Cancelled && error.provider_code.as_deref() == Some("tool_use_failed") {
        // The model wrote a call that the provider could not read; it often writes a better one when asked again.
        policy.attempts.min(2)
    } else {
        1
    }
}

#[cfg(test)]
mod tests;
