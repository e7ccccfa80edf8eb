use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// What one server, one connection and one principal may use.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The longest body, in bytes.
    pub body: usize,
    /// The longest head of a request, in bytes; also how much is buffered for one connection that does not read.
    pub head: usize,
    /// The most headers.
    pub headers: usize,
    /// The most open connections.
    pub connections: usize,
    /// The most open streams of one principal.
    pub streams: usize,
    /// How long a head may take to arrive.
    pub head_time: Duration,
    /// How long a body may take to arrive.
    pub body_time: Duration,
    /// How long a connection may take nothing of what is there for it.
    pub stall_time: Duration,
    /// Requests a second of one principal (of one address, where nobody is known) over time; `None` counts nothing.
    pub rate: Option<u32>,
    /// Requests of one principal at once.
    pub burst: u32,
    /// How long streams and runs get to end at shutdown.
    pub drain: Duration,
    /// A stream that has nothing to say says so this often.
    pub heartbeat: Duration,
}

impl Default for Limits {
    /// 4.5 MiB bodies, 32 KiB heads, 4,096 connections, 1,024 streams each, 10 s for a head, 30 s for a body, 100 requests a second.
    fn default() -> Self {
        Self {
            body: 4_718_592,
            head: 32 * 1024,
            headers: 64,
            connections: 4096,
            streams: 1024,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            stall_time: Duration::from_secs(120),
            rate: Some(100),
            burst: 1000,
            drain: Duration::from_secs(4),
            heartbeat: Duration::from_secs(25),
        }
    }
}

/// A bucket for each principal.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<HashMap<Arc<str>, Bucket>>);

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Rates {
    /// More principals than this are forgotten once their buckets are full again.
    const MANY: usize = 10_000;

    /// Takes a token. `Err` is the number of seconds until there is one.
    pub(crate) fn take(&self, who: &Arc<str>, limits: &Limits, now: Instant) -> Result<(), u64> {
        let Some(rate) = limits.rate.map(f64::from).filter(|rate| *rate > 0.0) else { return Ok(()) };
        let burst = f64::from(limits.burst.max(1));
        let mut buckets = lock(&self.0);
        if buckets.len() > Self::MANY {
            buckets.retain(|_, bucket| bucket.tokens + now.duration_since(bucket.at).as_secs_f64() * rate < burst);
        }
        let bucket = buckets.entry(who.clone()).or_insert(Bucket { tokens: burst, at: now });
        bucket.tokens = (bucket.tokens + now.duration_since(bucket.at).as_secs_f64() * rate).min(burst);
        bucket.at = now;
        if bucket.tokens >= 1.0 {
            bucket.tokens -= 1.0;
            return Ok(());
        }
        Err(((1.0 - bucket.tokens) / rate).ceil().max(1.0) as u64)
    }
}

/// How many streams each principal has open.
#[derive(Debug, Default)]
pub(crate) struct Streams(Mutex<HashMap<Arc<str>, usize>>);

/// One open stream; gone when dropped.
#[derive(Debug)]
pub(crate) struct OpenStream {
    all: Arc<Streams>,
    who: Arc<str>,
}

impl Streams {
    pub(crate) fn open(self: &Arc<Self>, who: &Arc<str>, most: usize) -> Option<OpenStream> {
        let mut open = lock(&self.0);
        let count = open.entry(who.clone()).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(OpenStream { all: self.clone(), who: who.clone() })
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut open = lock(&self.all.0);
        if let Some(count) = open.get_mut(&self.who) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.who);
            }
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_too_often_waits_and_others_do_not() {
        let limits = Limits { rate: Some(2), burst: 3, ..Limits::default() };
        let (rates, now) = (Rates::default(), Instant::now());
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        assert_eq!([(); 4].map(|()| rates.take(&a, &limits, now)), [Ok(()), Ok(()), Ok(()), Err(1)]);
        assert_eq!(rates.take(&b, &limits, now), Ok(()));
        assert_eq!(rates.take(&a, &limits, now + Duration::from_millis(600)), Ok(()));
    }

    #[test]
    fn a_closed_stream_makes_room_for_another() {
        let (streams, who): (_, Arc<str>) = (Arc::new(Streams::default()), "a".into());
        let first = streams.open(&who, 1);
        assert!(first.is_some() && streams.open(&who, 1).is_none());
        drop(first);
        assert!(streams.open(&who, 1).is_some());
    }
}
