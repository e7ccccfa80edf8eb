//! Who moves a run: taking over, polling, dying, starting; and what a run wants done outside.

use ac_core::{Message, RunId};
use ac_engine::{Input, Outbox, OutboxAction, Phase, RunSnapshot, Slot, SlotStatus, StartRun};

use crate::{
    driver::{Driver, Fed},
    mutant::Mutant,
    world::{THREAD, World, profile},
};

impl World {
    /// Does what an outbox item says, once: the session keeps how far it applied each run in the same write.
    pub(crate) fn apply(&mut self, run: &RunId, item: &Outbox) {
        let id = format!("{run}#{}", item.n);
        if matches!(item.action, OutboxAction::SetMode { .. } | OutboxAction::Grant { .. } | OutboxAction::RemoveQueued { .. }) {
            let applied = self.store.session.applied.entry(run.clone()).or_default();
            if *applied >= item.n && self.mutant != Mutant::OutboxAppliedTwice {
                return;
            }
            *applied = item.n.max(*applied);
        }
        let count = self.log.applied.entry(id).or_default();
        match &item.action {
            OutboxAction::SetMode { mode, .. } => {
                *count += 1;
                self.store.session.mode = mode.to_string();
            }
            OutboxAction::Grant { target, .. } => {
                *count += 1;
                self.store.session.grants.insert(target.to_string());
            }
            OutboxAction::RemoveQueued { id } => {
                *count += 1;
                self.store.session.queue.retain(|message| message.id != *id);
            }
            // Created by compare-and-set on absence.
            OutboxAction::StartChild { run: child, call, .. } => {
                *count = 1;
                if !self.store.rows.contains_key(child) {
                    let prompt = Message::user(format!("{child}:prompt"), "do", self.now);
                    let start = StartRun {
                        run: child.clone(),
                        thread: child.as_str().into(),
                        parent: Some((run.clone(), call.clone())),
                        profile: profile(&self.store.session.mode),
                        messages: vec![prompt],
                        from_queue: false,
                    };
                    let snap = RunSnapshot::start(start, self.now);
                    let mark = self.next_mark(0);
                    if self.commit(None, None, &snap, mark, &[]).is_err() {
                        self.bad("the start of a child was refused");
                    }
                }
            }
            OutboxAction::InterruptChild { run: child, at } => {
                *count = 1;
                let _ = self.external(&child.clone(), Input::Interrupt { at: *at });
            }
            OutboxAction::AbortChild { run: child } => {
                *count = 1;
                if !self.store.rows.contains_key(child) {
                    self.bad("a child was aborted before it was started");
                }
                let _ = self.external(&child.clone(), Input::Abort { go_on: false });
            }
        }
    }

    /// Recovery is a commit of its own: it may end the run, and then the input that caused it is refused but the run still closed (`R5`).
    pub(crate) fn take_over(&mut self, d: usize, run: &RunId, input: Option<Input>) -> Fed {
        let row = self.store.rows[run].clone();
        // What a process reads is what another one wrote: text.
        let mut snap: RunSnapshot = serde_json::from_str(&serde_json::to_string(&row.run).unwrap()).unwrap();
        assert_eq!(snap, row.run, "a stored run is read as it was written");
        if self.mutant == Mutant::OutboxDroppedOnTakeOver {
            snap.outbox.clear();
        }
        let recover = Input::Recover { epoch: snap.epoch + 1 };
        let effects = self.step(&mut snap, recover).unwrap();
        let mark = self.next_mark(self.drivers[d].life);
        let Ok(version) = self.commit(Some(row.version), Some(&row.run), &snap, mark, &effects) else {
            self.bad("a take-over was refused");
            return Fed::Lost;
        };
        let mut task = self.new_task(d, snap, version, effects);
        let fed = if input.is_some() { self.feed(&mut task, input) } else { Fed::Ok };
        if fed == Fed::Lost {
            self.end_task(task, true);
        } else {
            self.drivers[d].tasks.push(task);
        }
        fed
    }

    fn movable(&self, run: &RunSnapshot) -> bool {
        let moves = |slot: &Slot| matches!(slot.status, SlotStatus::Queued | SlotStatus::Running | SlotStatus::Resuming { .. });
        !run.is_closed()
            && (!run.outbox.is_empty()
                || matches!(run.phase, Phase::Ready | Phase::Sampling | Phase::Judging { .. })
                || run.slots().iter().any(moves)
                || self.child_news(run).is_some())
            || self.store.inbox.get(&run.run).is_some_and(|rows| !rows.is_empty())
    }

    fn candidates(&self, d: usize, held: bool) -> Vec<RunId> {
        let mine = |run: &RunId| self.drivers[d].tasks.iter().any(|task| task.run == *run);
        self.store
            .rows
            .values()
            .map(|row| &row.run)
            .filter(|run| self.movable(run) && (held || self.holder(&run.run).is_none()) && !mine(&run.run))
            .map(|run| run.run.clone())
            .collect()
    }

    /// The backstop: open runs that can move and that nobody holds; then the follow-up queue.
    pub(crate) fn poll(&mut self, d: usize, which: usize) {
        let runs = self.candidates(d, false);
        if !runs.is_empty() {
            self.take_over(d, &runs[which % runs.len()].clone(), None);
        }
        for message in std::mem::take(&mut self.drivers[d].pending) {
            if !self.start(d, message.clone(), false) {
                self.drivers[d].pending.push(message);
            }
        }
        if self.store.active(&THREAD.into()).is_none()
            && let Some(message) = self.store.session.queue.front().cloned()
        {
            if self.mutant == Mutant::QueueItemRemovedFirst {
                self.store.session.queue.pop_front();
                self.drivers[d].pending.push(message);
            } else {
                self.start(d, message, true);
            }
        }
    }

    /// Takes a run from a living owner.
    pub(crate) fn steal(&mut self, d: usize, which: usize) {
        let runs = self.candidates(d, true);
        if !runs.is_empty() {
            self.disturbed = true;
            self.take_over(d, &runs[which % runs.len()].clone(), None);
        }
    }

    pub(crate) fn crash(&mut self, d: usize) {
        self.disturbed = true;
        self.lives += 1;
        let dead = std::mem::replace(&mut self.drivers[d], Driver { life: self.lives, ..Driver::default() });
        self.log.told.extend(dead.tasks.into_iter().map(|task| (task.told, false)));
    }

    pub(crate) fn start(&mut self, d: usize, message: Message, from_queue: bool) -> bool {
        let n = self.store.rows.values().filter(|row| row.run.thread.as_str() == THREAD).count();
        let stale = self.store.session.mode != self.log.mode;
        let start = StartRun {
            run: format!("r{n}").into(),
            thread: THREAD.into(),
            parent: None,
            profile: profile(&self.store.session.mode),
            messages: vec![message],
            from_queue,
        };
        let mut snap = RunSnapshot::start(start, self.now);
        let effects = self.step(&mut snap, Input::Dispatch).unwrap();
        let mark = self.next_mark(self.drivers[d].life);
        let Ok(version) = self.commit(None, None, &snap, mark, &effects) else { return false };
        if stale {
            self.bad(format!("r{n} started in a mode that was left"));
        }
        let task = self.new_task(d, snap, version, effects);
        self.drivers[d].tasks.push(task);
        true
    }
}
