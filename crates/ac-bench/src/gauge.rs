//! What a process uses, as the kernel tells it.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::{row::Row, trouble::Trouble};

/// The machine's monotonic clock, in nanoseconds: the same in every process.
pub(crate) fn monotonic() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Processor time of this process so far, of all its threads, in user and system mode.
pub(crate) fn processor() -> Duration {
    Duration::from_nanos(nanoseconds(ClockId::ProcessCPUTime))
}

/// What of this process is in memory, in bytes.
pub(crate) fn resident() -> Result<u64, Trouble> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm
        .split_ascii_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .ok_or_else(|| Trouble::new("/proc/self/statm has no resident size; this program needs Linux"))?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// A measured part: from its making to its row.
pub(crate) struct Gauge {
    processor: Duration,
}

impl Gauge {
    pub(crate) fn start() -> Self {
        Self { processor: processor() }
    }

    /// Processor time since the start, in milliseconds.
    pub(crate) fn cpu_ms(&self) -> f64 {
        (processor() - self.processor).as_secs_f64() * 1e3
    }

    pub(crate) fn row(&self, name: &str, value: f64, unit: &str, n: usize) -> Result<Row, Trouble> {
        Ok(Row { name: name.to_owned(), value, unit: unit.to_owned(), n, cpu_ms: self.cpu_ms(), rss_kb: resident()? / 1024 })
    }
}

/// The value below which so much of a hundred lies; `times` is put in order.
pub(crate) fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    let at = (times.len() * percent).div_ceil(100).saturating_sub(1);
    times.get(at).copied().unwrap_or_default()
}

/// In milliseconds.
pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
