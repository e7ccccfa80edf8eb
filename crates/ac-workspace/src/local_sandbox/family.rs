//! The processes that belong to a command, and their end.

use std::{
    fs,
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
    time::Duration,
};

use rustix::process::{Pid, Signal};
use tokio::{process::Child, time::Instant};

/// The variable by which a process is known even after it left group and session of its command.
pub(super) const MARK: &str = "AC_COMMAND";

/// A mark that nobody else uses.
pub(super) fn mark() -> String {
    format!("{:016x}{:x}", RandomState::new().build_hasher().finish(), std::process::id())
}

/// A command and everything that it started.
#[derive(Clone, Debug)]
pub(super) struct Family {
    leader: Option<Pid>,
    mark: Arc<str>,
}

impl Family {
    pub(super) fn new(leader: u32, mark: String) -> Self {
        Self { leader: i32::try_from(leader).ok().and_then(Pid::from_raw), mark: mark.into() }
    }

    /// Who is still there.
    pub(super) async fn members(&self) -> Vec<u32> {
        let this = self.clone();
        tokio::task::spawn_blocking(move || this.find()).await.unwrap_or_default()
    }

    /// Asks all to end, kills them after the grace period, and returns when nobody is left.
    pub(super) async fn end(&self, grace: Duration, mut child: Option<&mut Child>) {
        let started = Instant::now();
        self.signal(Signal::TERM, &self.members().await);
        loop {
            if let Some(child) = child.as_mut() {
                child.try_wait().ok();
            }
            let members = self.members().await;
            if members.is_empty() {
                break;
            }
            if started.elapsed() >= grace {
                self.signal(Signal::KILL, &members);
            }
            if started.elapsed() >= grace + Duration::from_secs(10) {
                // Whoever is still there cannot be killed: the kernel holds it.
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if let Some(child) = child {
            child.wait().await.ok();
        }
    }

    /// Kills all at once, without waiting.
    pub(super) fn kill(&self) {
        for _ in 0..3 {
            let members = self.find();
            self.signal(Signal::KILL, &members);
            if members.is_empty() {
                break;
            }
        }
    }

    fn signal(&self, signal: Signal, members: &[u32]) {
        // The group only while somebody of it is there: its number may belong to others later.
        if let Some(leader) = self.leader.filter(|_| !members.is_empty()) {
            rustix::process::kill_process_group(leader, signal).ok();
        }
        for pid in members.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
            rustix::process::kill_process(pid, signal).ok();
        }
    }

    /// Looks through all processes for those of the group, of the session, or with the mark.
    #[cfg(target_os = "linux")]
    fn find(&self) -> Vec<u32> {
        let leader = self.leader.map(Pid::as_raw_nonzero).map(std::num::NonZero::get);
        let mark = format!("{MARK}={}", self.mark).into_bytes();
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| {
            let Some(stat) = Stat::of(*pid) else { return false };
            if stat.zombie {
                return false;
            }
            let ours = leader.is_some_and(|leader| stat.group == leader || stat.session == leader);
            ours || fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|variable| variable == mark))
        })
        .collect()
    }

    /// Whether the group still exists is all that can be asked here.
    #[cfg(not(target_os = "linux"))]
    fn find(&self) -> Vec<u32> {
        match self.leader {
            Some(leader) if rustix::process::test_kill_process_group(leader).is_ok() => vec![leader.as_raw_nonzero().get().unsigned_abs()],
            _ => Vec::new(),
        }
    }
}

/// What the kernel says of a process.
#[cfg(target_os = "linux")]
struct Stat {
    zombie: bool,
    group: i32,
    session: i32,
}

#[cfg(target_os = "linux")]
impl Stat {
    fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may hold anything.
        let (_, rest) = text.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?;
        let group = fields.nth(1)?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        Some(Self { zombie: matches!(state, "Z" | "X"), group, session })
    }
}
