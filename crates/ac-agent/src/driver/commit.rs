//! Inputs, commits and the fence.

use std::sync::Arc;

use ac_core::{Message, event::EndReason};
use ac_engine::{Effect, Input, Moment, OutboxAction, Phase, Resolution, RunSnapshot, SlotStatus};
use ac_storage::Lease;

use super::{Driver, Go};
use crate::{RunError, RunErrorKind, commit::Mark, record};

impl Driver {
    /// Gives an input to the machine, dispatches, commits, starts what follows and tells (`R1`, `R2`).
    ///
    /// On a conflict within the epoch the input is stepped again on what is stored. Another epoch means that another process took the run
    /// over: nothing new is started and nothing is written.
    pub(super) async fn feed(&mut self, input: Option<Input>) -> Result<Go, RunError> {
        Ok(self.feed_input(input).await?.0)
    }

    /// Does [`Driver::feed`]; says also whether the input moved anything, and that is stored. What somebody else stored meanwhile may have
    /// made it a repetition.
    pub(super) async fn feed_input(&mut self, input: Option<Input>) -> Result<(Go, bool), RunError> {
        loop {
            let at = self.shared.clock.now();
            let mut next = self.snapshot.clone();
            let mut effects = vec![];
            if let Some(input) = &input {
                match next.step(at, input.clone()) {
                    Ok(more) => effects.extend(more),
                    Err(refusal) => {
                        // The refusal may rest on a stale copy.
                        let seen = self.version;
                        if self.sync().await? == Go::End {
                            return Ok((Go::End, false));
                        }
                        if self.version != seen {
                            continue;
                        }
                        return Err(refusal.into());
                    }
                }
            }
            let moved = next != self.snapshot;
            self.pass_unjudged(at, &mut next, &mut effects).await?;
            if next.outbox.is_empty() && !self.parking && self.backoff.is_none() && self.may_dispatch(&next) && self.turnstile.pass() {
                effects.extend(next.step(at, Input::Dispatch)?);
            }
            if effects.is_empty() && next == self.snapshot {
                return Ok((Go::On, false));
            }
            let acts = effects.iter().any(|effect| matches!(effect, Effect::Sample { .. } | Effect::RunTool { .. } | Effect::Judge { .. }));
            if acts && !self.hold(next.epoch).await? {
                return Ok((self.lost().await, false));
            }
            match self.shared.commit(&self.origin, Some(self.version), &next, &effects, Mark::Own).await? {
                Some(version) => {
                    self.version = version;
                    let before = std::mem::replace(&mut self.snapshot, next);
                    return Ok((self.react(&before, effects).await, moved));
                }
                None => {
                    if self.sync().await? == Go::End {
                        return Ok((Go::End, false));
                    }
                }
            }
        }
    }

    /// Calls beyond the limit of parallel calls wait until others have ended.
    fn may_dispatch(&self, next: &RunSnapshot) -> bool {
        let starting = |status: &SlotStatus| matches!(status, SlotStatus::Queued | SlotStatus::Resuming { started: false, .. });
        let waiting = next.slots().iter().filter(|slot| starting(&slot.status)).count();
        self.working.is_empty() || waiting + self.working.len() <= self.shared.settings.parallel
    }

    /// Starts what a committed step asks for, then tells what it says.
    pub(super) async fn react(&mut self, before: &RunSnapshot, effects: Vec<Effect>) -> Go {
        let mut moments = vec![];
        let mut go = Go::On;
        for effect in effects {
            match effect {
                Effect::Put(message) => {
                    if let Some(history) = &mut self.history {
                        history.put(message);
                    }
                }
                Effect::AddUsage(_) => {}
                Effect::Sample { attempt, .. } => {
                    if let Err(error) = self.start_sample(attempt).await {
                        go = self.trouble(&error).await;
                    }
                }
                Effect::RunTool { call, attempt } => self.start_tool(&call, attempt),
                Effect::Judge { step } => self.start_judge(step),
                Effect::StopJudge => self.judging = None,
                Effect::StopSample { attempt } => self.stop_sample(attempt),
                Effect::StopTool { call } => self.stop_tool(&call),
                Effect::Tell(moment) => moments.push(moment),
            }
        }
        if let Err(error) = self.apply_outbox().await {
            // It is tried again before anything else is started.
            tracing::debug!(run = %self.snapshot.run, code = error.code(), "the outbox waits: {error}");
        }
        self.tell_progress();
        for moment in moments {
            self.teller.moment(moment, &self.snapshot, before);
        }
        go
    }

    /// Has done outside what the committed step wants done there (`R1b`). It happens before the step is told, so that `mode_changed`
    /// comes before the segment that an approved plan opens (SPEC E-48), and a follow-up leaves the queue before its run begins.
    pub(super) async fn apply_outbox(&mut self) -> Result<(), RunError> {
        for item in self.snapshot.outbox.clone() {
            if item.n > self.applied {
                match (self.host.apply(&self.snapshot, &item).await, &item.action) {
                    (Err(error), OutboxAction::StartChild { run, .. }) if error.kind() == RunErrorKind::ChildRefused => {
                        self.refused.insert(run.clone(), error.to_string());
                    }
                    (applied, _) => applied?,
                }
                self.applied = item.n;
            }
        }
        Ok(())
    }

    /// Takes what is stored, if somebody else committed; [`Go::End`] when the fence is lost.
    pub(super) async fn sync(&mut self) -> Result<Go, RunError> {
        let stored = self.shared.load_row(&self.snapshot.run).await?;
        let Some(stored) = stored else {
            return Ok(self.lost().await);
        };
        if stored.version == self.version {
            return Ok(Go::On);
        }
        if stored.value.header.epoch != self.snapshot.epoch {
            return Ok(self.lost().await);
        }
        let next = record::snapshot(&stored.value)?;
        self.version = stored.version;
        // What others put into the thread is read again when it is needed.
        self.history = None;
        let before = std::mem::replace(&mut self.snapshot, next);
        self.follow(&before);
        Ok(Go::On)
    }

    /// Tells and does what follows from inputs that others committed: the owner alone tells.
    fn follow(&mut self, before: &RunSnapshot) {
        let now = self.snapshot.clone();
        for (pending, resolution) in now.answers.iter().filter(|(pending, _)| !before.answers.contains_key(*pending)) {
            let cancelled = match resolution {
                Resolution::Answered(_) => None,
                Resolution::Closed | Resolution::ClosedInDoubt => Some("Aborted by the user".to_owned()),
                Resolution::Interrupted => Some("interrupted_by_user_message".to_owned()),
            };
            self.teller.moment(Moment::Resolved { pending: pending.clone(), cancelled }, &now, before);
        }
        if let Some(message) = now.message.clone().filter(|message| before.message.as_ref() != Some(message)) {
            self.follow_message(message, &now, before);
        }
        if now.queued != before.queued {
            self.teller.moment(Moment::QueueChanged, &now, before);
        }
        if !matches!(now.phase, Phase::Judging { .. }) {
            self.judging = None;
        }
        if now.cancel.is_some() && before.cancel.is_none() {
            self.stop_sample(now.attempt);
            let running: Vec<_> = self.working.keys().cloned().collect();
            running.iter().for_each(|call| self.stop_tool(call));
        }
        now.slots().iter().filter(|slot| slot.cancelled).for_each(|slot| self.stop_tool(&slot.call));
        if let (Some(outcome), false) = (now.outcome(), before.is_finished()) {
            let (reason, error) = crate::teller::end_of(outcome);
            self.teller.moment(Moment::SegmentEnd { reason, finish: now.finish, error }, &now, before);
        }
    }

    fn follow_message(&mut self, message: Arc<Message>, now: &RunSnapshot, before: &RunSnapshot) {
        let was_settled = |id| {
            let mut calls = before.message.iter().flat_map(|old| old.tool_calls());
            calls.any(|call| call.id == id && call.state.is_settled())
        };
        let settled: Vec<_> = message
            .tool_calls()
            .filter(|call| call.state.is_settled() && !was_settled(call.id.clone()))
            .map(|call| call.id.clone())
            .collect();
        let parts = (0..message.parts.len()).collect();
        self.teller.moment(Moment::MessageChanged { message, parts }, now, before);
        for call in settled {
            self.teller.moment(Moment::CallEnded(call), now, before);
        }
    }

    /// Makes sure of a lease that outlives the grace period.
    async fn hold(&mut self, epoch: u64) -> Result<bool, RunError> {
        let now = self.shared.clock.now();
        let grace = i64::try_from(self.shared.settings.grace.as_millis()).unwrap_or(i64::MAX);
        if self.lease.as_ref().is_some_and(|lease| lease.epoch == epoch && lease.expires.millis_since(now) > grace) {
            return Ok(true);
        }
        self.take_lease(epoch).await
    }

    async fn take_lease(&mut self, epoch: u64) -> Result<bool, RunError> {
        let lease = self.shared.take_lease(&self.snapshot.run, epoch).await?;
        self.lease = lease;
        self.renew_at = tokio::time::Instant::now() + self.shared.settings.lease / 3;
        Ok(self.lease.is_some())
    }

    /// Keeps the lease while something is in flight.
    pub(super) async fn renew(&mut self) -> Result<Go, RunError> {
        if self.lease.is_none() || self.take_lease(self.snapshot.epoch).await? {
            return Ok(Go::On);
        }
        Ok(self.lost().await)
    }

    /// Ends the segment of a run that waits for an answer (SPEC S-11).
    pub(super) fn suspend(&mut self) {
        if self.posture() == ac_engine::Posture::Parked {
            self.tell_progress();
            self.teller.end_segment(EndReason::Suspended, None, None);
        }
    }

    /// Gives the lease back. The commit that closed a run did so.
    pub(super) async fn release(&mut self) {
        let Some(Lease { owner, epoch, .. }) = self.lease.take().filter(|_| !self.snapshot.is_closed()) else { return };
        if let Err(error) = self.shared.storage.runs().release_lease(&self.snapshot.run, &owner, epoch).await {
            tracing::debug!(run = %self.snapshot.run, "the lease was not given back and expires by itself: {error}");
        }
    }

    /// Another process has the run. Stops cleanly: nothing is written, everything in flight is dropped.
    pub(super) async fn lost(&mut self) -> Go {
        self.lease = None;
        self.stop_work().await;
        self.teller.end_segment(EndReason::Suspended, None, None);
        Go::End
    }
}
