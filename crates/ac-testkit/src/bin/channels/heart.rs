//! Whether the child gets the processor. What takes long because it does not is no fault of the program.

use std::{
    collections::HashMap,
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How often it is looked at.
const BEAT: Duration = Duration::from_millis(100);

/// Counts the time in which this process could have run and did not.
pub(crate) struct Heart {
    begun: Instant,
    /// The last beat, and the time without the processor until then, in milliseconds.
    beat_at: AtomicU64,
    without: AtomicU64,
}

/// What the system says of the threads of this process, in nanoseconds.
#[derive(Default)]
struct Threads {
    /// For how long each was ready to run and did not, in all.
    waited: HashMap<String, u64>,
    /// For how long they ran, all together.
    ran: u64,
}

impl Threads {
    /// Nothing, where the system does not tell.
    fn now() -> Self {
        let mut threads = Self::default();
        for thread in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            let Ok(said) = fs::read_to_string(thread.path().join("schedstat")) else { continue };
            let mut numbers = said.split_whitespace().map(|number| number.parse::<u64>().unwrap_or(0));
            threads.ran += numbers.next().unwrap_or(0);
            threads.waited.insert(thread.file_name().to_string_lossy().into_owned(), numbers.next().unwrap_or(0));
        }
        threads
    }

    /// For how long at most a thread has waited since then.
    fn waited_since(&self, then: &Self) -> u64 {
        let since = |(thread, waited): (&String, &u64)| waited.saturating_sub(then.waited.get(thread).copied().unwrap_or(*waited));
        self.waited.iter().map(since).max().unwrap_or(0) / 1_000_000
    }

    fn ran_since(&self, then: &Self) -> u64 {
        self.ran.saturating_sub(then.ran) / 1_000_000
    }
}

impl Heart {
    /// Begins to look; `beat` is called each time.
    pub(crate) fn start(beat: impl Fn() + Send + 'static) -> Arc<Self> {
        let heart = Arc::new(Self { begun: Instant::now(), beat_at: AtomicU64::new(0), without: AtomicU64::new(0) });
        let beating = heart.clone();
        std::thread::spawn(move || {
            let mut before = Threads::now();
            loop {
                std::thread::sleep(BEAT);
                let (now, threads) = (beating.now(), Threads::now());
                let passed = now.saturating_sub(beating.beat_at.load(Ordering::Acquire));
                // A stopped process is not ready to run, and wakes up late. While it runs itself nobody else keeps it from running.
                let late = passed.saturating_sub(millis(BEAT));
                let idle = passed.saturating_sub(threads.ran_since(&before));
                beating.without.fetch_add(threads.waited_since(&before).max(late).min(idle), Ordering::AcqRel);
                beating.beat_at.store(now, Ordering::Release);
                before = threads;
                beat();
            }
        });
        heart
    }

    fn now(&self) -> u64 {
        millis(self.begun.elapsed())
    }

    /// For how long in all it did not run though it could have, as of now.
    pub(crate) fn without_processor(&self) -> u64 {
        let overdue = self.now().saturating_sub(self.beat_at.load(Ordering::Acquire) + millis(BEAT));
        self.without.load(Ordering::Acquire) + overdue
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
