use std::time::Duration;

use ac_llm::retry::RetryPolicy;

/// How a runtime behaves in time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RuntimeSettings {
    /// How long a lease lasts; it is renewed after a third of it. After a crash nobody takes the run over before it ends.
    pub lease: Duration,
    /// How long a tool may go on after it was told to stop; also the least that a lease must last when a tool is started.
    pub grace: Duration,
    /// How often a run that waits looks for what other processes stored.
    pub poll: Duration,
    /// At most so many tool calls of one step run at once.
    pub parallel: usize,
    /// At most so many child runs of one run move at once; others wait for their turn. One that waits for a person is not counted.
    pub children: usize,
    /// How much text the result of a call may hold, in bytes, whatever tool it comes from. Of a longer one head and tail are kept.
    pub max_result: usize,
    /// At most so many messages from before the run are sent to a model, and all of the run's own; `None` sends all of the thread.
    pub history: Option<usize>,
    /// How long to wait before a model call is tried again. How often is said by the run's [`Limits`](ac_engine::Limits).
    pub retry: RetryPolicy,
}

impl Default for RuntimeSettings {
    /// 15 s, 2 s, 2 s, 10 calls (SPEC T-31), 4 child runs, 128 KiB of a result, the whole thread.
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            grace: Duration::from_secs(2),
            poll: Duration::from_secs(2),
            parallel: 10,
            children: 4,
            max_result: 128 << 10,
            history: None,
            retry: RetryPolicy::default(),
        }
    }
}
