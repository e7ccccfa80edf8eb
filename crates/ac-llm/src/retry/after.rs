//! How long a provider asks to wait, in all the ways it can be said.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use serde_json::Value;

/// Longer than this is no answer to "when": a nonsense number, or a date of another age.
const SANE: Duration = Duration::from_secs(7 * 24 * 3600);

/// The wait that headers or body of an error ask for.
///
/// Looked at in this order: `retry-after-ms`, `retry-after` (seconds, also with a fraction, or an HTTP date, measured from the `date`
/// header of the same answer, else from `now`), Gemini's `RetryInfo.retryDelay`, and "try again in 6.379s" in the text of the message.
/// Nonsense (`-5`, `1e9`, nothing) counts as nothing said.
pub fn retry_after(headers: &HeaderMap, body: Option<&Value>, message: Option<&str>, now: SystemTime) -> Option<Duration> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let millis = header("retry-after-ms").and_then(|text| text.parse::<f64>().ok()).and_then(|ms| sane(ms / 1000.0));
    // Azure sends `retry-after-ms: 0` beside `retry-after: 1`. The longer one is right.
    let seconds = header("retry-after").and_then(|text| match text.parse::<f64>() {
        Ok(seconds) => sane(seconds),
        Err(_) => {
            let at = httpdate::parse_http_date(text).ok()?;
            let now = header("date").and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or(now);
            let wait = at.duration_since(now).unwrap_or_default();
            (wait <= SANE).then_some(wait)
        }
    });
    millis.max(seconds).or_else(|| body.and_then(retry_info)).or_else(|| message.and_then(in_text))
}

fn sane(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().filter(|wait| *wait <= SANE)
}

/// `error.details[].retryDelay: "48s"`.
fn retry_info(body: &Value) -> Option<Duration> {
    let error = body.get("error").unwrap_or(body);
    error.get("details")?.as_array()?.iter().find_map(|detail| duration(detail.get("retryDelay")?.as_str()?))
}

/// "Please try again in 6.379s", "retry in 48.9s", "try again in 1m30s", "in 320ms", "in 20 seconds".
fn in_text(text: &str) -> Option<Duration> {
    let lower = text.to_ascii_lowercase();
    let (_, rest) =
        lower.split_once("try again in ").or_else(|| lower.split_once("retry in ")).or_else(|| lower.split_once("retry after "))?;
    duration(rest)
}

/// The duration at the start of a text: numbers with a unit, added up. A number alone counts seconds.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim_start();
    let mut total: Option<f64> = None;
    while let Some(end) = rest.find(|c: char| !c.is_ascii_digit() && c != '.').or((!rest.is_empty()).then_some(rest.len())) {
        let (number, tail) = rest.split_at_checked(end)?;
        // A sentence may end right after its number.
        let Ok(number) = number.trim_end_matches('.').parse::<f64>() else { break };
        let tail = tail.trim_start();
        let end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at_checked(end)?;
        let factor = match unit {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            _ if total.is_none() => 1.0,
            _ => break,
        };
        total = Some(total.unwrap_or(0.0) + number * factor);
        rest = tail;
    }
    sane(total?)
}
