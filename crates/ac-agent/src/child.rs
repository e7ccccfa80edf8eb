//! Child runs: what one is, and what its end means to the run that waits for it.

use ac_core::{Message, MessageId, ModelId, RunId, ThreadId, Timestamp, Usage};
use ac_engine::{Outcome, Phase, Posture, Profile, RunSnapshot, ToolResult};
use ac_storage::{
    domain::MessageQuery,
    record::{MessageCursor, StoredMessage},
};
use ac_tools::subagent;
use futures::{FutureExt, future::BoxFuture};
use serde::{Deserialize, Serialize};

use crate::{RunError, RunErrorKind, shared::Shared};

/// What a run that serves a call of another run is. Kept in its profile, so that every process that moves the run knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChildProfile {
    /// Its type.
    pub agent_type: String,
    /// What people call it.
    pub name: String,
    /// What it was told.
    pub task: String,
    /// It works on a copy of its parent's thread.
    #[serde(default)]
    pub forked: bool,
    /// How many runs are above it.
    pub depth: u32,
    /// When it was started.
    pub since: Timestamp,
    /// The run at the top.
    pub root: RunId,
    /// The thread of the run at the top: the one that people see.
    pub root_thread: ThreadId,
    /// The subagent type whose tools it has; those of its mode, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_of: Option<String>,
}

impl ChildProfile {
    /// Where the profile keeps it.
    const KEY: &'static str = "child";

    /// A child of `parent`. Its depth, its root and the tools that it has follow from the parent.
    pub fn below(parent: &RunSnapshot, agent_type: impl Into<String>, task: impl Into<String>, since: Timestamp) -> Self {
        let above = Self::of(&parent.profile);
        let agent_type = agent_type.into();
        Self {
            name: agent_type.clone(),
            agent_type,
            task: task.into(),
            forked: false,
            depth: above.as_ref().map_or(0, |above| above.depth) + 1,
            since,
            root: above.as_ref().map_or_else(|| parent.run.clone(), |above| above.root.clone()),
            root_thread: above.as_ref().map_or_else(|| parent.thread.clone(), |above| above.root_thread.clone()),
            tools_of: above.and_then(|above| above.tools_of),
        }
    }

    /// What a profile says; `None` for a run that serves no other.
    pub fn of(profile: &Profile) -> Option<Self> {
        Self::deserialize(profile.host.get(Self::KEY)?).ok()
    }

    /// Puts it into a profile.
    pub fn keep_in(&self, profile: &mut Profile) {
        if let Ok(value) = serde_json::to_value(self) {
            profile.host.insert(Self::KEY.into(), value);
        }
    }

    /// The id of the message that says the task: the first one that is the run's own.
    pub fn task_message(run: &RunId) -> MessageId {
        format!("{run}/task").into()
    }
}

/// How a child run ended, for its parent.
pub(crate) struct ChildEnd {
    pub(crate) child: Option<ChildProfile>,
    pub(crate) model: ModelId,
    /// The result of the call.
    pub(crate) result: ToolResult,
    /// What it used.
    pub(crate) usage: Option<Usage>,
    /// What is told about it.
    pub(crate) said: String,
    pub(crate) is_error: bool,
    pub(crate) duration_ms: u64,
}

/// What is stored of a child run.
pub(crate) enum Child {
    /// It is over.
    Over(Box<ChildEnd>),
    /// It goes on, or waits for people.
    Open(Posture),
    /// It was never started.
    Missing,
}

/// How many messages are read at once.
const PAGE: usize = 64;

impl Shared {
    /// Looks a child run up. The record is read, so that a lost notification costs a poll and never a result.
    pub(crate) async fn child(&self, run: &RunId) -> Result<Child, RunError> {
        let (_, snapshot, _) = match self.read(run).await {
            Ok(found) => found,
            Err(error) if error.kind() == RunErrorKind::NotFound => return Ok(Child::Missing),
            Err(error) => return Err(error),
        };
        let Phase::Finished { outcome, at } = &snapshot.phase else { return Ok(Child::Open(self.posture(&snapshot).await?)) };
        let said = self.said(&snapshot).await?;
        let child = ChildProfile::of(&snapshot.profile);
        let name = child.as_ref().map_or_else(|| snapshot.profile.agent.as_str(), |child| &child.name);
        let (output, told, is_error) = match outcome {
            Outcome::Complete => (subagent::completed(&said), said, false),
            Outcome::Aborted => {
                let output = subagent::aborted(&said);
                let told = output.value.get("content").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
                (output, told, false)
            }
            Outcome::Error { error } => (subagent::failed(name, &error.message, &said), error.message.clone(), true),
        };
        let since = child.as_ref().map_or(*at, |child| child.since);
        Ok(Child::Over(Box::new(ChildEnd {
            child,
            model: snapshot.profile.model.clone(),
            result: ToolResult { output, is_error: false },
            usage: self
                .storage
                .runs()
                .head(&snapshot.thread)
                .await?
                .map(|head| head.value.usage)
                .filter(|usage| *usage != Usage::default()),
            said: told,
            is_error,
            duration_ms: u64::try_from(at.millis_since(since)).unwrap_or(0),
        })))
    }

    /// What a run waits for, its children included.
    pub(crate) fn posture<'a>(&'a self, snapshot: &'a RunSnapshot) -> BoxFuture<'a, Result<Posture, RunError>> {
        async move {
            let mut known = std::collections::HashMap::new();
            // Asked only where it matters: for a run that has something to do itself it does not.
            if snapshot.posture() == Posture::Moving && snapshot.posture_with(|_| Posture::Parked) != Posture::Moving {
                for (_, child) in snapshot.children() {
                    known.insert(child.clone(), self.posture_of(child).await?);
                }
            }
            Ok(snapshot.posture_with(|child| known.get(child).copied().unwrap_or(Posture::Moving)))
        }
        .boxed()
    }

    async fn posture_of(&self, run: &RunId) -> Result<Posture, RunError> {
        if let Some(handle) = self.live().get(run).cloned() {
            return Ok(handle.status().posture);
        }
        match self.read(run).await {
            Ok((_, snapshot, _)) => self.posture(&snapshot).await,
            // Its parent has to say so.
            Err(error) if error.kind() == RunErrorKind::NotFound => Ok(Posture::Moving),
            Err(error) => Err(error),
        }
    }

    /// Everything that a child run wrote, in order (SPEC U-13), with a line between what stands in different steps: the last word of one is
    /// not the first of the next. What its thread held before does not count.
    async fn said(&self, snapshot: &RunSnapshot) -> Result<String, RunError> {
        let mut texts = vec![];
        let task = ChildProfile::task_message(&snapshot.run);
        let own = |message: &Message| message.meta.run.as_ref() == Some(&snapshot.run);
        let mut query = MessageQuery { newest_first: true, limit: PAGE, ..MessageQuery::default() };
        'pages: loop {
            let page = self.storage.messages().page(&snapshot.thread, &query).await?;
            for StoredMessage { message, .. } in page.items {
                if message.id == task {
                    break 'pages;
                }
                if own(&message) {
                    texts.extend(Some(message.text()).filter(|text| !text.is_empty()));
                }
            }
            match page.next.and_then(|next| next.parse().ok()) {
                Some(position) => query.after = Some(MessageCursor::Position(position)),
                None => break,
            }
        }
        texts.reverse();
        Ok(texts.join("\n\n"))
    }
}
