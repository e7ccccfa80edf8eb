//! Identifiers. Each is a newtype over a shared string: cheap to clone, impossible to mix up.
//!
//! Root ids (threads, runs, messages of people) come from an injected [`Ids`](crate::Ids). Ids of things inside a run are derived from
//! it, so that writing the same thing twice is harmless and transcripts are stable.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps a string as it is; any text is a legal id.
            pub fn new(id: impl Into<Arc<str>>) -> Self {
                Self(id.into())
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.into())
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self(id.into())
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )*};
}

ids! {
    /// An [`AgentController`](https://docs.rs/agent-controller) within a host.
    ControllerId;
    /// Who a session and its threads belong to: a user, a tenant, a chat conversation.
    ResourceId;
    /// A stored conversation.
    ThreadId;
    /// A stored message.
    MessageId;
    /// One run of an agent: from one prompt to rest.
    RunId;
    /// A request of the model to act. The provider's own id when that is new in the thread, else suffixed (`call_0~2`).
    ToolCallId;
    /// A named operating profile (`plan`, `build`).
    ModeId;
    /// A model, `provider/name`.
    ModelId;
    /// A process that may own runs. Random per process, so that a lease names one life.
    OwnerId;
    /// An agent.
    AgentId;
    /// One activation of a session in one process. Random, so that an event number from another life is recognised.
    EpochId;
}

/// What a session is identified by: the same key gives the same session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SessionKey {
    /// The owner of the session's threads.
    pub resource: ResourceId,
    /// Separates sessions of one resource (a browser tab, a work tree). Threads stay shared by the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Arc<str>>,
}

impl SessionKey {
    /// The session of a resource that needs no scopes.
    pub fn new(resource: impl Into<ResourceId>) -> Self {
        Self { resource: resource.into(), scope: None }
    }

    /// The same resource in another scope.
    pub fn scoped(resource: impl Into<ResourceId>, scope: impl Into<Arc<str>>) -> Self {
        Self { resource: resource.into(), scope: Some(scope.into()) }
    }
}

/// The session of a resource that needs no scopes.
impl From<ResourceId> for SessionKey {
    fn from(resource: ResourceId) -> Self {
        Self { resource, scope: None }
    }
}

/// The session of a resource that needs no scopes.
impl From<&str> for SessionKey {
    fn from(resource: &str) -> Self {
        Self::new(resource)
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            Some(scope) => write!(f, "{}::{scope}", self.resource),
            None => fmt::Display::fmt(&self.resource, f),
        }
    }
}

/// Names one wait of one tool call (`R6`): an approval, a question, a plan, a call in doubt.
///
/// `n` counts the waits of the call, so a button that was made for an approval can never decide a later doubt about the same call. The
/// text form is `run/step/call#n`; `/`, `#` and `%` inside the call id are percent-encoded there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PendingId {
    /// The run that waits.
    pub run: RunId,
    /// The step of the run.
    pub step: u32,
    /// The call of the step.
    pub call: ToolCallId,
    /// Which wait of the call, from 1.
    pub n: u32,
}

impl fmt::Display for PendingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}#{}", self.run, self.step, escape(self.call.as_str()), self.n)
    }
}

/// A text that is no [`PendingId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a pending id; expected RUN/STEP/CALL#N")]
pub struct ParsePendingIdError;

impl FromStr for PendingId {
    type Err = ParsePendingIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (rest, n) = text.rsplit_once('#').ok_or(ParsePendingIdError)?;
        let (rest, call) = rest.rsplit_once('/').ok_or(ParsePendingIdError)?;
        let (run, step) = rest.rsplit_once('/').ok_or(ParsePendingIdError)?;
        Ok(Self {
            run: run.into(),
            step: step.parse().map_err(|_| ParsePendingIdError)?,
            call: unescape(call).into(),
            n: n.parse().map_err(|_| ParsePendingIdError)?,
        })
    }
}

impl Serialize for PendingId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PendingId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The id of the child run that a call of a run starts. Derived, so that starting it twice is one row.
pub fn child_run(parent: &RunId, step: u32, call: &ToolCallId) -> RunId {
    format!("{parent}~{step}.{}", escape(call.as_str())).into()
}

/// Whether a run is `root`, or a child run of it at any depth.
pub fn is_within(run: &RunId, root: &RunId) -> bool {
    run.as_str().strip_prefix(root.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('~'))
}

/// The id of the one assistant message of a step; the same through retries, suspension, abort and restart.
pub fn step_message(run: &RunId, step: u32) -> MessageId {
    format!("{run}/{step}").into()
}

fn escape(text: &str) -> String {
    text.replace('%', "%25").replace('/', "%2F").replace('#', "%23")
}

fn unescape(text: &str) -> String {
    text.replace("%2F", "/").replace("%23", "#").replace("%25", "%")
}

#[cfg(test)]
mod tests;
