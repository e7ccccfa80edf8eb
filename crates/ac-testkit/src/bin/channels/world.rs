//! What the people share: the platforms, the child, and what was done and seen.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use ac_testkit::platforms::Platforms;

use crate::{Plan, life::Worker};

/// How long a person waits for what should have come long ago, in beats of the child: a process that gets no processor answers nobody, and
/// that is no fault of it.
const PATIENCE: u64 = 900;
/// And how long when nothing at all happens in the world any more: many times as long as a dead life's lease, or a platform's pause, holds
/// anything up.
const QUIET: u64 = 100;
/// And how long at the very most, if the child does not even beat.
const AT_MOST: Duration = Duration::from_secs(600);

/// Everything that the people share.
pub(crate) struct World {
    pub(crate) platforms: Platforms,
    pub(crate) worker: Worker,
    pub(crate) plan: Plan,
    /// Deliveries that were made.
    pub(crate) made: AtomicU64,
    /// The beat at which a delivery was last made or answered, a platform was last called, or a life began.
    stirred: AtomicU64,
    called: Mutex<Option<Instant>>,
    /// The child does not come back.
    lost: AtomicBool,
    story: Mutex<Vec<Moment>>,
    /// What became of what was sent.
    pub(crate) log: tokio::sync::Mutex<Log>,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    pub(crate) at: SystemTime,
    /// Where; nothing where it happened to everybody.
    pub(crate) channel: Option<String>,
    pub(crate) what: String,
}

/// What people did, and what they missed.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Channel and name of each message.
    pub(crate) said: Vec<(String, String)>,
    /// Names of messages whose call was approved, and of those whose call was declined.
    pub(crate) approved: Vec<String>,
    pub(crate) declined: Vec<String>,
    /// Calls that were in doubt after a kill.
    pub(crate) doubted: Vec<String>,
    /// Where, and what.
    pub(crate) complaints: Vec<(Option<String>, String)>,
}

/// Since when somebody waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since {
    begun: Instant,
    beat: u64,
}

impl World {
    pub(crate) fn new(platforms: Platforms, worker: Worker, plan: Plan) -> Self {
        Self {
            platforms,
            worker,
            plan,
            made: AtomicU64::new(0),
            stirred: AtomicU64::new(0),
            called: Mutex::default(),
            lost: AtomicBool::new(false),
            story: Mutex::default(),
            log: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) fn stir(&self) {
        self.stirred.fetch_max(self.worker.beats(), Ordering::Relaxed);
    }

    pub(crate) fn since(&self) -> Since {
        Since { begun: Instant::now(), beat: self.worker.beats() }
    }

    /// Whether a person who waits since then waits in vain.
    pub(crate) fn in_vain(&self, since: Since) -> bool {
        let last = self.platforms.last_called();
        if std::mem::replace(&mut *lock(&self.called), last) != last {
            self.stir();
        }
        let beat = self.worker.beats();
        let quiet = beat.saturating_sub(self.stirred.load(Ordering::Relaxed).max(since.beat));
        self.lost.load(Ordering::Relaxed)
            || since.begun.elapsed() > AT_MOST
            || beat.saturating_sub(since.beat) > PATIENCE
            || (quiet > QUIET && self.worker.lives())
    }

    /// Nobody needs to wait any longer.
    pub(crate) fn give_up(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    /// Keeps what happened, for the account of a failure.
    pub(crate) fn note(&self, channel: Option<&str>, what: String) {
        lock(&self.story).push(Moment { at: SystemTime::now(), channel: channel.map(str::to_owned), what });
    }

    /// What happened in a channel, and to everybody.
    pub(crate) fn story(&self, channel: &str) -> Vec<Moment> {
        lock(&self.story).iter().filter(|moment| moment.channel.as_ref().is_none_or(|known| known == channel)).cloned().collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Repeatable chance.
#[derive(Clone, Copy)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides.max(1)
    }
}
