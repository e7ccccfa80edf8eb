//! What is measured, at which sizes, and how often.

mod deltas;
mod resume;
mod sessions;
mod soak;
mod start;
mod threads;
mod turns;

use crate::{row::Row, trouble::Trouble};

/// One measuring process: its rows come from the same run.
pub(crate) struct Measure {
    pub(crate) name: &'static str,
    /// The rows that it prints.
    pub(crate) rows: &'static [&'static str],
    /// The stated size; measured too at a tenth of it, if it has any.
    size: usize,
    /// How many processes measure it; the middle value counts.
    pub(crate) takes: usize,
}

const ALL: [Measure; 9] = [
    Measure { name: "start", rows: &["startup", "idle_rss"], size: 1, takes: 11 },
    Measure { name: "sessions_mem", rows: &["sessions_mem"], size: 10_000, takes: 1 },
    Measure { name: "sessions_sled", rows: &["sessions_sled"], size: 10_000, takes: 1 },
    Measure { name: "deltas", rows: &["deltas"], size: 20_000, takes: 5 },
    Measure { name: "tool_turns", rows: &["tool_turns"], size: 600, takes: 3 },
    Measure { name: "turn", rows: &["turn"], size: 300, takes: 3 },
    Measure { name: "resume", rows: &["resume", "resume_p99"], size: 300, takes: 3 },
    Measure { name: "threads", rows: &["thread_list", "thread_page", "thread_switch", "thread_clone"], size: 5000, takes: 1 },
    Measure { name: "soak", rows: &["soak"], size: 600, takes: 1 },
];

impl Measure {
    pub(crate) fn all() -> &'static [Self] {
        &ALL
    }

    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|measure| measure.name == name)
    }

    /// The stated size, and a tenth of it.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = usize> {
        let tenth = self.size / 10;
        std::iter::once(self.size).chain((tenth > 0).then_some(tenth))
    }

    /// Measures in this process. `born` is when the process was started, for who counts from there.
    pub(crate) fn take(&self, url: &str, size: usize, born: Option<u64>) -> Result<Vec<Row>, Trouble> {
        // As an application would have it: one worker for each core.
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async {
            match self.name {
                "start" => start::measure(url, born).await,
                "sessions_mem" => sessions::in_memory(url, size).await,
                "sessions_sled" => sessions::on_sled(url, size).await,
                "deltas" => deltas::measure(url, size).await,
                "tool_turns" => turns::with_tools(url, size).await,
                "turn" => turns::plain(url, size).await,
                "resume" => resume::measure(url, size).await,
                "threads" => threads::measure(url, size).await,
                "soak" => soak::measure(url, size).await,
                other => Err(Trouble::new(format!("`{other}` has no measuring code"))),
            }
        })
    }
}
