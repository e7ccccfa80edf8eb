use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::limits::lock;

/// What is counted, told in Prometheus' text form.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(&'static str, u16), Times>>,
    streams_opened: AtomicU64,
    streams_closed: AtomicU64,
    frames: AtomicU64,
    resyncs: AtomicU64,
    connections: AtomicU64,
    refused_connections: AtomicU64,
}

#[derive(Debug, Default)]
struct Times {
    count: u64,
    sum: Duration,
    buckets: [u64; BUCKETS.len()],
}

/// Upper bounds in seconds, after OpenTelemetry's `http.server.request.duration`.
const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

impl Metrics {
    pub(crate) fn request(&self, route: &'static str, status: u16, took: Duration) {
        let mut requests = lock(&self.requests);
        let times = requests.entry((route, status)).or_default();
        times.count += 1;
        times.sum += took;
        for (bucket, bound) in times.buckets.iter_mut().zip(BUCKETS) {
            if took.as_secs_f64() <= bound {
                *bucket += 1;
            }
        }
    }

    pub(crate) fn stream_opened(&self) {
        self.streams_opened.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stream_closed(&self) {
        self.streams_closed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn frame(&self) {
        self.frames.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn resynced(&self) {
        self.resyncs.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused_connection(&self) {
        self.refused_connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Everything, in the text form of version 0.0.4. No label holds what a client sent.
    pub(crate) fn text(&self, sessions: usize) -> String {
        let mut out = String::new();
        let name = "http_server_request_duration_seconds";
        let _ = writeln!(out, "# HELP {name} Time from the head of a request to the head of its answer.\n# TYPE {name} histogram");
        for ((route, status), times) in lock(&self.requests).iter() {
            let labels = format!("http_route=\"{route}\",http_response_status_code=\"{status}\"");
            for (bucket, bound) in times.buckets.iter().zip(BUCKETS) {
                let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {bucket}");
            }
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", times.count);
            let _ = writeln!(out, "{name}_sum{{{labels}}} {}", times.sum.as_secs_f64());
            let _ = writeln!(out, "{name}_count{{{labels}}} {}", times.count);
        }
        let (opened, closed) = (self.streams_opened.load(Ordering::Relaxed), self.streams_closed.load(Ordering::Relaxed));
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let sessions = u64::try_from(sessions).unwrap_or(u64::MAX);
        for (name, kind, help, value) in [
            ("ac_server_streams", "gauge", "Open event streams.", opened.saturating_sub(closed)),
            ("ac_server_sessions", "gauge", "Sessions in this process.", sessions),
            ("ac_server_streams_opened_total", "counter", "Event streams that were opened.", opened),
            ("ac_server_frames_total", "counter", "Frames handed to event streams.", read(&self.frames)),
            (
                "ac_server_resyncs_total",
                "counter",
                "Times that a stream was told the whole view instead of what it missed.",
                read(&self.resyncs),
            ),
            ("ac_server_connections_total", "counter", "Connections that were accepted.", read(&self.connections)),
            ("ac_server_connections_refused_total", "counter", "Connections beyond the limit.", read(&self.refused_connections)),
        ] {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_under_its_route_and_in_every_bucket_above_it() {
        let metrics = Metrics::default();
        metrics.request("/api/x/{id}", 200, Duration::from_millis(30));
        let text = metrics.text(2);
        assert!(text.contains("_bucket{http_route=\"/api/x/{id}\",http_response_status_code=\"200\",le=\"0.025\"} 0\n"));
        assert!(text.contains("_bucket{http_route=\"/api/x/{id}\",http_response_status_code=\"200\",le=\"0.05\"} 1\n"));
        assert!(text.contains("ac_server_sessions 2\n"));
    }
}
