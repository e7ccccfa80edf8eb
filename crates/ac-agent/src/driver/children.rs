//! The runs that calls of this run wait for, and the turn of a run that serves another.

use std::sync::Arc;

use ac_core::{EventBody, RunId, ToolCallId};
use ac_engine::{Input, OutboxAction, Posture, Refusal, ToolResult};
use ac_tools::subagent;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Driver, Go};
use crate::{
    RunError, RunErrorKind,
    child::{Child, ChildEnd},
    upward,
};

/// At most so many children of one run move at once; the others wait here for their turn. One that waits for a person gives up its place.
#[derive(Default)]
pub(crate) struct Turnstile {
    places: Option<Arc<Semaphore>>,
    place: Option<OwnedSemaphorePermit>,
    waits: bool,
}

impl Turnstile {
    pub(crate) fn new(places: Option<Arc<Semaphore>>) -> Self {
        Self { places, ..Self::default() }
    }

    /// Whether the run may move.
    pub(crate) fn pass(&mut self) -> bool {
        if self.place.is_none()
            && let Some(places) = &self.places
        {
            self.place = places.clone().try_acquire_owned().ok();
            self.waits = self.place.is_none();
        }
        !self.waits
    }

    pub(crate) fn take(&mut self, place: OwnedSemaphorePermit) {
        self.place = Some(place);
        self.waits = false;
    }

    pub(crate) fn leave(&mut self) {
        self.place = None;
        self.waits = false;
    }

    /// What it waits at.
    pub(crate) fn waits_at(&self) -> Option<Arc<Semaphore>> {
        self.places.clone().filter(|_| self.waits)
    }
}

/// Waits for a place.
pub(super) async fn place(places: Option<Arc<Semaphore>>) -> OwnedSemaphorePermit {
    if let Some(places) = places
        && let Ok(place) = places.acquire_owned().await
    {
        return place;
    }
    std::future::pending().await
}

impl Driver {
    pub(super) fn has_children(&self) -> bool {
        self.snapshot.children().next().is_some()
    }

    /// What the run waits for, its children included: a run whose children wait for people waits for people.
    pub(super) fn posture(&self) -> Posture {
        self.snapshot.posture_with(|child| {
            let live = self.shared.live().get(child).map(|handle| handle.status().posture);
            live.or_else(|| self.resting.get(child).copied()).unwrap_or(Posture::Moving)
        })
    }

    /// Takes the results of children that are over. One that this process moves is over when its driver said so: what it tells comes first.
    /// One that rests is looked at again only `anew`.
    pub(super) async fn look_at_children(&mut self, anew: bool) -> Result<Go, RunError> {
        let children: Vec<(ToolCallId, RunId)> = self.snapshot.children().map(|(call, run)| (call.clone(), run.clone())).collect();
        for (call, run) in children {
            let live = self.shared.live().get(&run).map(|handle| handle.status());
            match live {
                Some(status) if status.outcome.is_none() && !status.ended => {
                    self.resting.remove(&run);
                    continue;
                }
                None if !anew && self.resting.contains_key(&run) => continue,
                _ => {}
            }
            let input = match self.shared.child(&run).await? {
                Child::Open(posture) => {
                    self.resting.insert(run, posture);
                    continue;
                }
                Child::Over(end) => self.child_over(call, *end),
                Child::Missing if self.starts(&run) => continue,
                Child::Missing => self.child_missing(call, &run),
            };
            match self.feed(Some(input)).await {
                Err(error) if error.kind() != RunErrorKind::Refused(Refusal::Stale) => return Err(error),
                Ok(Go::End) => return Ok(Go::End),
                _ => {}
            }
        }
        Ok(Go::On)
    }

    /// Tells the end of a child, and makes the result of the call of it.
    fn child_over(&mut self, call: ToolCallId, end: ChildEnd) -> Input {
        self.tell_progress();
        let ChildEnd { child, model, result, usage, said, is_error, duration_ms } = end;
        if let Some(child) = child {
            self.teller.tell(upward::start(call.clone(), &child, model));
            let agent_type = child.agent_type;
            self.teller.tell(EventBody::SubagentEnd { call: call.clone(), agent_type, result: said, is_error, duration_ms });
        }
        Input::ChildFinished { call, result, usage }
    }

    /// A child that was asked for and is not there was refused, or deleted.
    fn child_missing(&mut self, call: ToolCallId, run: &RunId) -> Input {
        let reason = self.refused.remove(run).unwrap_or_else(|| "it was not started".to_owned());
        let asked = self.snapshot.call_part(&call).and_then(|part| part.args.get("agentType")?.as_str().map(str::to_owned));
        let output = subagent::failed(asked.as_deref().unwrap_or("subagent"), &reason, "");
        Input::ChildFinished { call, result: ToolResult { output, is_error: false }, usage: None }
    }

    fn starts(&self, child: &RunId) -> bool {
        self.snapshot.outbox.iter().any(|item| matches!(&item.action, OutboxAction::StartChild { run, .. } if run == child))
    }

    /// Says to the run above that something changed here.
    pub(super) fn poke_parent(&self) {
        if let Some((parent, _)) = &self.snapshot.parent
            && let Some(handle) = self.shared.live().get(parent)
        {
            handle.progress().poke();
        }
    }
}
