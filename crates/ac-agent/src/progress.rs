//! Progress of tools on its way to whoever listens: never waits, never grows without bound.

use std::sync::{Mutex, PoisonError};

use ac_core::{
    EventBody, ToolCallId,
    tool::{ProgressSink, ToolProgress},
};
use tokio::sync::Notify;

/// Progress that was reported and not told yet. Output of one command is joined while it waits; what does not fit any more is left out
/// and said so. The full output is the tool's business, not the view's.
#[derive(Debug, Default)]
pub(crate) struct ProgressBuffer {
    waiting: Mutex<Waiting>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    items: Vec<(ToolCallId, ToolProgress)>,
    bytes: usize,
    dropped: usize,
}

impl ProgressBuffer {
    /// Bytes of command output that may wait.
    const BYTES: usize = 256 * 1024;
    /// Other reports that may wait.
    const ITEMS: usize = 1024;
    /// So many reports that words of a child are joined.
    const CROWD: usize = 64;

    /// Waits until there is something.
    pub(crate) async fn ready(&self) {
        self.notify.notified().await;
    }

    /// An event that belongs to no call.
    pub(crate) fn event(&self, body: EventBody) {
        self.report(&ToolCallId::from(""), ToolProgress::Event(Box::new(body)));
    }

    /// Wakes whoever waits, so that it looks around.
    pub(crate) fn poke(&self) {
        self.notify.notify_one();
    }

    /// Takes what a child run tells. Nothing of it is left out; its words are joined when many wait.
    pub(crate) fn relay(&self, body: EventBody) {
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let call = match &body {
                EventBody::SubagentTextDelta { call, .. } => call.clone(),
                _ => ToolCallId::from(""),
            };
            let crowded = waiting.items.len() >= Self::CROWD;
            match (body, waiting.items.last_mut()) {
                (EventBody::SubagentTextDelta { delta, .. }, Some((last, ToolProgress::Event(open)))) if crowded && *last == call => {
                    if let EventBody::SubagentTextDelta { delta: open, .. } = open.as_mut() {
                        open.push_str(&delta);
                    }
                }
                (body, _) => waiting.items.push((call, ToolProgress::Event(Box::new(body)))),
            }
        }
        self.notify.notify_one();
    }

    /// Takes what waits, as events.
    pub(crate) fn take(&self) -> Vec<EventBody> {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        let mut events: Vec<_> = waiting.items.into_iter().map(|(call, progress)| event(call, progress)).collect();
        if waiting.dropped > 0 {
            events.push(EventBody::Info { message: format!("{} bytes of command output were not shown", waiting.dropped) });
        }
        events
    }
}

impl ProgressSink for ProgressBuffer {
    fn report(&self, call: &ToolCallId, progress: ToolProgress) {
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if let ToolProgress::Shell { text, stderr } = progress {
                if waiting.bytes + text.len() > Self::BYTES {
                    waiting.dropped += text.len();
                } else {
                    waiting.bytes += text.len();
                    match waiting.items.last_mut() {
                        Some((last, ToolProgress::Shell { text: open, stderr: same })) if last == call && *same == stderr => {
                            open.push_str(&text);
                        }
                        _ => waiting.items.push((call.clone(), ToolProgress::Shell { text, stderr })),
                    }
                }
            } else if waiting.items.len() < Self::ITEMS || matches!(progress, ToolProgress::Exit { .. }) {
                waiting.items.push((call.clone(), progress));
            }
        }
        self.notify.notify_one();
    }
}

fn event(call: ToolCallId, progress: ToolProgress) -> EventBody {
    match progress {
        ToolProgress::Update(partial) => EventBody::ToolUpdate { call, partial },
        ToolProgress::Shell { text, stderr } => EventBody::ShellOutput { call, output: text, stderr },
        ToolProgress::Exit { code } => EventBody::CommandExit { call, exit_code: code },
        ToolProgress::Event(body) => *body,
        other => EventBody::ToolUpdate { call, partial: serde_json::Value::String(format!("{other:?}")) },
    }
}
