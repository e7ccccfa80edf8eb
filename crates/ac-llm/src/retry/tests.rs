use std::time::{Duration, SystemTime};

use ac_core::{ModelError, ModelErrorKind};
use http::{HeaderMap, HeaderValue};
use serde_json::json;

use super::{RetryPolicy, after::retry_after, next};

fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
    list.iter().map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())).collect()
}

fn wait(list: &[(&'static str, &str)]) -> Option<f64> {
    retry_after(&headers(list), None, None, SystemTime::UNIX_EPOCH).map(|wait| wait.as_secs_f64())
}

// B-73: every spelling, and nonsense.
#[test]
fn a_wait_is_read_in_every_spelling_and_nonsense_is_ignored() {
    assert_eq!(wait(&[("retry-after", "60")]), Some(60.0));
    assert_eq!(wait(&[("retry-after", "1.5")]), Some(1.5));
    assert_eq!(wait(&[("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT"), ("date", "Wed, 21 Oct 2026 07:28:00 GMT")]), Some(30.0));
    assert_eq!(wait(&[("retry-after", "Thu, 01 Jan 1970 00:00:20 GMT")]), Some(20.0));
    assert_eq!(wait(&[("retry-after", "Wed, 21 Oct 2020 07:28:00 GMT"), ("date", "Wed, 21 Oct 2026 07:28:00 GMT")]), Some(0.0));
    assert_eq!(wait(&[("retry-after-ms", "1500")]), Some(1.5));
    assert_eq!(wait(&[("retry-after-ms", "0"), ("retry-after", "1")]), Some(1.0));
    for nonsense in ["-5", "1e9", "", "soon", "NaN", "inf"] {
        assert_eq!(wait(&[("retry-after", nonsense)]), None, "{nonsense}");
    }
    let body = json!({"error": {"details": [{"@type": "x"}, {"retryDelay": "28.1s"}]}});
    let read = |body, text| retry_after(&HeaderMap::new(), body, text, SystemTime::UNIX_EPOCH).map(|wait| wait.as_secs_f64());
    assert_eq!(read(Some(&body), None), Some(28.1));
    for (text, seconds) in [
        ("Rate limit reached. Please try again in 6.379s. Visit", Some(6.379)),
        ("Please retry in 48.9s.", Some(48.9)),
        ("try again in 1m30s", Some(90.0)),
        ("try again in 320ms", Some(0.32)),
        ("Try again in 20 seconds.", Some(20.0)),
        ("try again in 7.", Some(7.0)),
        ("try again in a while", None),
        ("no wait", None),
    ] {
        assert_eq!(read(None, Some(text)), seconds, "{text}");
    }
}

fn error(kind: ModelErrorKind, after: Option<u64>) -> ModelError {
    let mut error = ModelError::new(kind, "x");
    error.retry_after = after.map(Duration::from_secs);
    error
}

#[test]
fn a_wait_grows_is_spread_and_ends() {
    let policy = RetryPolicy::default();
    let busy = error(ModelErrorKind::Overloaded, None);
    let waits: Vec<_> = (1..=5).map(|attempt| next(&policy, &busy, attempt, 1.0).map(|wait| wait.as_millis())).collect();
    assert_eq!(waits, [Some(500), Some(1000), Some(2000), Some(4000), None]);
    assert_eq!(next(&policy, &busy, 1, 0.0), Some(Duration::from_millis(250)));
    assert_eq!(next(&RetryPolicy { attempts: 100, ..policy }, &busy, 90, 1.0), Some(Duration::from_secs(30)));
    assert_eq!(next(&RetryPolicy::never(), &busy, 1, 1.0), None);
}

// B-73: never before the time the provider named, and not for ever.
#[test]
fn a_provider_s_wait_is_kept_and_an_endless_one_goes_to_the_person() {
    let policy = RetryPolicy::default();
    assert_eq!(next(&policy, &error(ModelErrorKind::RateLimit, Some(60)), 1, 0.0), Some(Duration::from_secs(60)));
    assert_eq!(next(&policy, &error(ModelErrorKind::RateLimit, Some(60)), 1, 1.0), Some(Duration::from_secs(66)));
    assert_eq!(next(&policy, &error(ModelErrorKind::RateLimit, Some(0)), 3, 1.0), Some(Duration::from_secs(2)));
    assert_eq!(next(&policy, &error(ModelErrorKind::RateLimit, Some(301)), 1, 0.0), None);
}

#[test]
fn what_cannot_work_is_not_tried_again() {
    use ModelErrorKind::*;
    let policy = RetryPolicy::default();
    for kind in [UnknownProvider, UnknownModel, MissingKey, Auth, Quota, ContextTooLong, BadRequest, ContentFilter, Protocol, Cancelled] {
        assert_eq!(next(&policy, &error(kind, None), 1, 0.5), None, "{kind:?}");
        assert_eq!(next(&policy, &error(kind, Some(1)), 1, 0.5), None, "{kind:?}");
    }
    for kind in [RateLimit, Overloaded, Server, Connect, Timeout, Truncated] {
        assert!(next(&policy, &error(kind, None), 1, 0.5).is_some(), "{kind:?}");
    }
    let mut told = error(Overloaded, None);
    told.should_retry = Some(false);
    assert_eq!(next(&policy, &told, 1, 0.5), None);
    let mut failed_call = error(BadRequest, None);
    failed_call.provider_code = Some("tool_use_failed".into());
    assert!(next(&policy, &failed_call, 1, 0.5).is_some());
    assert_eq!(next(&policy, &failed_call, 2, 0.5), None);
}
