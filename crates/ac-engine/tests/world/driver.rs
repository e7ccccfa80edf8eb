//! Two drivers with leases and epochs. Each does one operation at a time, so that everything can happen between any two.

use std::{collections::VecDeque, sync::Arc};

use ac_core::{Message, MessageId, RunId, ToolCallId, Usage, event::EndReason};
use ac_engine::{Effect, Input, Moment, Outbox, Phase, Posture, Refusal, RunSnapshot, Slot, SlotStatus, ToolResult};
use serde_json::json;

use crate::{
    mutant::Mutant,
    oracle::key,
    script::{model_report, tool_report},
    store::{Commit, Mark, Refused},
    told::{Told, tell},
    world::World,
};

/// What a task does next.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Commit(Input),
    Act(Effect),
    Apply(Outbox),
    Tell(Moment),
}

/// What a driver has going on.
#[derive(Clone, Debug)]
pub(crate) enum Flight {
    Sample { step: u32, attempt: u32, shown: bool },
    Tool { call: ToolCallId, attempt: u32, stop: bool },
}

/// A run in the hands of a driver.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) run: RunId,
    pub(crate) life: u64,
    pub(crate) epoch: u64,
    pub(crate) version: u64,
    pub(crate) snap: RunSnapshot,
    pub(crate) ops: VecDeque<Op>,
    pub(crate) flights: Vec<Flight>,
    outbox_seen: u64,
    /// At this version there was nothing to dispatch.
    rested: u64,
    pub(crate) segment: bool,
    pub(crate) open: Option<MessageId>,
    pub(crate) told: Vec<Told>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Driver {
    pub(crate) life: u64,
    pub(crate) tasks: Vec<Task>,
    /// Only for the fault that removes a queue item before its run is there.
    pub(crate) pending: Vec<Message>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fed {
    Ok,
    Refused(Refusal),
    /// The fence is lost: the task ends.
    Lost,
}

impl World {
    // ---- commits -------------------------------------------------------------------------------------------------------------------

    pub(crate) fn next_mark(&mut self, life: u64) -> Mark {
        self.commits += 1;
        Mark { life, n: self.commits }
    }

    pub(crate) fn commit(
        &mut self,
        expect: Option<u64>,
        before: Option<&RunSnapshot>,
        run: &RunSnapshot,
        mark: Mark,
        effects: &[Effect],
    ) -> Result<u64, Refused> {
        let put: Vec<Arc<Message>> =
            effects.iter().filter_map(|effect| if let Effect::Put(message) = effect { Some(message.clone()) } else { None }).collect();
        let tokens = effects.iter().map(|effect| if let Effect::AddUsage(usage) = effect { usage.total } else { 0 }).sum();
        if self.mutant == Mutant::PutOutsideCommit {
            put.iter().for_each(|message| self.store.put(&run.thread, message));
        }
        let commit = Commit {
            expect,
            mark,
            run,
            put: &put,
            tokens,
            closed: self.mutant.closed(),
            replace_people: self.mutant == Mutant::PutOutsideCommit,
        };
        let version = self.store.commit(&commit)?;
        self.note_commit(before, run, &put);
        Ok(version)
    }

    /// The owner's input and, in the same commit, whatever can be started. Rebases on foreign commits of the same epoch, stops on another.
    pub(crate) fn feed(&mut self, task: &mut Task, input: Option<Input>) -> Fed {
        if self.holder(&task.run).is_none() {
            self.take_lease(task); // a parked owner takes the lease again before it dispatches
        }
        for _ in 0..20 {
            let mut run = task.snap.clone();
            let mut effects = vec![];
            if let Some(input) = &input {
                match self.step(&mut run, input.clone()) {
                    Ok(more) => effects.extend(more),
                    // The refusal may rest on an old copy.
                    Err(refusal) if self.store.rows[&task.run].version == task.version => return Fed::Refused(refusal),
                    Err(_) if self.sync(task) => continue,
                    Err(_) => return Fed::Lost,
                }
            }
            effects.extend(self.step(&mut run, Input::Dispatch).unwrap());
            if run == task.snap {
                self.enqueue(task, effects);
                return Fed::Ok;
            }
            let mark = self.next_mark(task.life);
            let lost = std::mem::take(&mut self.unknown);
            if lost == Some(0) {
                // Not written, and the driver cannot know: it reads back and finds nothing of its own.
                if self.sync(task) { continue } else { return Fed::Lost }
            }
            match self.commit(Some(task.version), Some(&task.snap.clone()), &run, mark, &effects) {
                Ok(_) if lost.is_some() && self.mutant == Mutant::UnknownIsConflict => {
                    if !self.sync(task) {
                        return Fed::Lost;
                    }
                }
                Ok(version) => {
                    if lost == Some(2) {
                        // Written, the answer lost, and somebody else wrote on top of it before the driver reads back.
                        self.foreign_note(&task.run.clone());
                    }
                    // A foreign commit leaves the owner's mark as it was, so the owner finds it even below such a commit.
                    if lost.is_some() && self.store.rows[&task.run].mark != mark {
                        if self.sync(task) { continue } else { return Fed::Lost }
                    }
                    task.version = version;
                    task.snap = run;
                    self.enqueue(task, effects);
                    return Fed::Ok;
                }
                Err(Refused::Exists) => {
                    self.bad("a queued message was in the history already");
                    return Fed::Lost;
                }
                Err(Refused::Conflict) => {
                    if self.mutant == Mutant::ConflictMeansStop || !self.sync(task) {
                        return Fed::Lost;
                    }
                }
            }
        }
        self.bad("a commit never came through");
        Fed::Lost
    }

    /// Takes the stored state; false when the fence is lost. Only the owner tells, so foreign inputs become events here.
    pub(crate) fn sync(&mut self, task: &mut Task) -> bool {
        let row = &self.store.rows[&task.run];
        if row.run.epoch != task.epoch {
            return false;
        }
        if row.version == task.version {
            return true;
        }
        let row = row.clone();
        for id in row.run.answers.keys().filter(|id| !task.snap.answers.contains_key(id)) {
            task.ops.push_back(Op::Tell(Moment::Resolved { pending: id.clone(), cancelled: None }));
        }
        if row.run.cancel.is_some() && task.snap.cancel.is_none() {
            if row.run.phase == Phase::Sampling {
                task.ops.push_back(Op::Act(Effect::StopSample { attempt: row.run.attempt }));
            }
            for slot in row.run.slots() {
                task.ops.push_back(Op::Act(Effect::StopTool { call: slot.call.clone() }));
            }
        }
        for slot in row.run.slots().iter().filter(|slot| slot.cancelled) {
            task.ops.push_back(Op::Act(Effect::StopTool { call: slot.call.clone() }));
        }
        if row.run.is_finished() && !task.snap.is_finished() {
            task.ops.push_back(Op::Tell(Moment::SegmentEnd { reason: EndReason::Aborted, finish: None, error: None }));
        }
        task.snap = row.run;
        task.version = row.version;
        true
    }

    fn enqueue(&mut self, task: &mut Task, effects: Vec<Effect>) {
        let new: Vec<Outbox> = task.snap.outbox.iter().filter(|item| item.n > task.outbox_seen).cloned().collect();
        if let Some(last) = new.last().map(|item| item.n) {
            task.ops.extend(new.into_iter().map(Op::Apply));
            task.outbox_seen = last;
            task.ops.push_back(Op::Commit(Input::Applied { upto: last }));
        }
        let (told, acting): (Vec<_>, Vec<_>) = effects
            .into_iter()
            .filter(|effect| !matches!(effect, Effect::Put(_) | Effect::AddUsage(_)))
            .partition(|effect| matches!(effect, Effect::Tell(_)));
        task.ops.extend(acting.into_iter().map(Op::Act));
        task.ops
            .extend(told.into_iter().filter_map(|effect| if let Effect::Tell(moment) = effect { Some(Op::Tell(moment)) } else { None }));
    }

    pub(crate) fn new_task(&mut self, d: usize, snap: RunSnapshot, version: u64, effects: Vec<Effect>) -> Task {
        let life = self.drivers[d].life;
        let mut task = Task {
            run: snap.run.clone(),
            life,
            epoch: snap.epoch,
            version,
            snap,
            ops: VecDeque::new(),
            flights: vec![],
            outbox_seen: 0,
            rested: 0,
            segment: false,
            open: None,
            told: vec![],
        };
        self.take_lease(&task);
        self.enqueue(&mut task, effects);
        task
    }

    pub(crate) fn end_task(&mut self, mut task: Task, graceful: bool) {
        self.release(&task);
        if graceful && task.segment {
            tell(&mut task, Moment::SegmentEnd { reason: EndReason::Suspended, finish: None, error: None });
        }
        self.log.told.push((task.told, graceful));
    }

    // ---- leases --------------------------------------------------------------------------------------------------------------------

    /// Who holds a run. A lease of an older epoch is void, so a fenced owner cannot block it (`R3`).
    pub(crate) fn holder(&self, run: &RunId) -> Option<usize> {
        let (life, epoch) = self.store.leases.get(run)?;
        if self.store.run(run).epoch != *epoch {
            return None;
        }
        self.drivers.iter().position(|driver| driver.life == *life)
    }

    fn take_lease(&mut self, task: &Task) {
        self.store.leases.insert(task.run.clone(), (task.life, task.epoch));
    }

    fn release(&mut self, task: &Task) {
        if self.store.leases.get(&task.run) == Some(&(task.life, task.epoch)) {
            self.store.leases.remove(&task.run);
        }
    }

    // ---- the next operation --------------------------------------------------------------------------------------------------------

    pub(crate) fn tick(&mut self, d: usize, which: usize, flight: usize) {
        if self.drivers[d].tasks.is_empty() {
            return;
        }
        let at = which % self.drivers[d].tasks.len();
        let mut task = self.drivers[d].tasks.remove(at);
        let fed = match task.ops.pop_front() {
            Some(op) => {
                if self.holder(&task.run).is_none() {
                    self.take_lease(&task);
                }
                match op {
                    Op::Commit(input) => self.feed(&mut task, Some(input)),
                    Op::Apply(_) if self.store.run(&task.run).epoch != task.epoch => Fed::Lost,
                    Op::Apply(item) => {
                        self.apply(&task.run.clone(), &item);
                        Fed::Ok
                    }
                    Op::Tell(moment) => {
                        tell(&mut task, moment);
                        Fed::Ok
                    }
                    Op::Act(effect) => self.act(&mut task, effect),
                }
            }
            None if !task.flights.is_empty() => {
                self.read_rows(&mut task);
                let landed = task.flights.remove(flight % task.flights.len());
                let report = self.land(&task, &landed);
                task.ops.push_back(Op::Commit(report));
                Fed::Ok
            }
            None => self.idle(&mut task),
        };
        if fed == Fed::Lost || (fed == Fed::Ok && task.snap.is_closed() && task.ops.is_empty() && task.flights.is_empty()) {
            return self.end_task(task, true);
        }
        let at = at.min(self.drivers[d].tasks.len());
        self.drivers[d].tasks.insert(at, task);
    }

    fn idle(&mut self, task: &mut Task) -> Fed {
        if task.snap.posture() == Posture::Parked && task.segment {
            tell(task, Moment::SegmentEnd { reason: EndReason::Suspended, finish: None, error: None });
        }
        if !self.sync(task) {
            return Fed::Lost;
        }
        self.read_rows(task);
        if let Some(input) = self.child_news(&task.snap) {
            task.ops.push_back(Op::Commit(input));
        } else if task.rested != task.version {
            if self.feed(task, None) == Fed::Lost {
                return Fed::Lost;
            }
            task.rested = task.version;
        }
        if task.ops.is_empty() && task.flights.is_empty() {
            self.release(task);
        }
        Fed::Ok
    }

    /// Only for readings that put inputs into rows: read at each boundary and when idle.
    fn read_rows(&mut self, task: &mut Task) {
        if let Some(rows) = self.store.inbox.remove(&task.run) {
            task.ops.extend(rows.into_iter().map(Op::Commit));
        }
    }

    pub(crate) fn child_news(&self, run: &RunSnapshot) -> Option<Input> {
        run.slots().iter().find_map(|slot| {
            let SlotStatus::Child { run } = &slot.status else { return None };
            let child = &self.store.rows.get(run)?.run;
            child.is_finished().then(|| Input::ChildFinished {
                call: slot.call.clone(),
                result: ToolResult { output: ac_core::ToolOutput::text("child done"), is_error: false },
                usage: Some(Usage::new(self.store.heads[&child.thread].tokens, 0)),
            })
        })
    }

    /// Starts an effect. The check of the epoch stands for a lease that has margin left.
    fn act(&mut self, task: &mut Task, effect: Effect) -> Fed {
        let run = self.store.run(&task.run).clone();
        if run.epoch != task.epoch {
            return Fed::Lost;
        }
        if matches!(effect, Effect::Sample { .. } | Effect::RunTool { .. }) {
            self.check_parent(&run);
        }
        match effect {
            Effect::Sample { step, attempt } => {
                if run.cancel.is_some() {
                    task.ops.push_back(Op::Commit(Input::SampleStopped { attempt, partial: vec![] }));
                    return Fed::Ok;
                }
                self.check_request(&run, step);
                let shown = self.script_of(&task.run, step, attempt, task.life).shows;
                if shown {
                    let id = ac_core::id::step_message(&task.run, step);
                    task.ops.push_back(Op::Tell(Moment::MessageChanged { message: Arc::new(shell(id)), parts: vec![0] }));
                }
                task.flights.push(Flight::Sample { step, attempt, shown });
            }
            Effect::RunTool { call, attempt } => {
                let mine = |slot: &&Slot| slot.call == call && slot.attempt == attempt && going(slot);
                let Some(slot) = run.slots().iter().find(mine).cloned() else { return Fed::Ok };
                if run.cancel.is_some() || slot.cancelled {
                    task.ops.push_back(Op::Commit(Input::ToolInterrupted { call, attempt }));
                    return Fed::Ok;
                }
                self.note_execution(&run, &slot);
                task.flights.push(Flight::Tool { call, attempt, stop: false });
            }
            Effect::StopSample { attempt } => {
                let mine = |flight: &Flight| matches!(flight, Flight::Sample { attempt: a, .. } if *a == attempt);
                if let Some(at) = task.flights.iter().position(mine)
                    && let Flight::Sample { shown, .. } = task.flights.remove(at)
                {
                    let partial = if shown { vec![ac_core::Part::text("cut")] } else { vec![] };
                    task.ops.push_back(Op::Commit(Input::SampleStopped { attempt, partial }));
                }
            }
            Effect::StopTool { call: stopped } => {
                for flight in &mut task.flights {
                    if let Flight::Tool { call, stop, .. } = flight
                        && *call == stopped
                    {
                        *stop = true;
                    }
                }
            }
            // The verdict on the first answer is that it is not enough.
            Effect::Judge { step } => {
                let id = format!("{}/verdict/{step}", task.run);
                let message = ac_core::Message::new(id, ac_core::Role::Signal, vec![ac_core::Part::text("verdict")], self.now);
                task.ops.push_back(Op::Commit(Input::Judged {
                    step,
                    go_on: step == 0,
                    message: Some(Box::new(message)),
                    verdict: None,
                    usage: None,
                }));
            }
            Effect::StopJudge => task.ops.retain(|op| !matches!(op, Op::Commit(Input::Judged { .. }))),
            Effect::Put(_) | Effect::AddUsage(_) | Effect::Tell(_) => {}
        }
        Fed::Ok
    }

    fn land(&self, task: &Task, flight: &Flight) -> Input {
        match flight {
            Flight::Sample { step, attempt, .. } => {
                let script = self.script_of(&task.run, *step, *attempt, task.life);
                model_report(&script, &task.run, *step, *attempt, task.life, |call| self.store.session.grants.contains(call))
            }
            Flight::Tool { call, attempt, stop } => match task.snap.slots().iter().find(|slot| slot.call == *call) {
                Some(slot) => tool_report(slot, *stop),
                None => Input::ToolInterrupted { call: call.clone(), attempt: *attempt },
            },
        }
    }

    fn note_execution(&mut self, run: &RunSnapshot, slot: &Slot) {
        let key = key(run, slot);
        if let SlotStatus::Resuming { resume, .. } = &slot.status {
            self.log.resumed.push((key.clone(), resume.answer.clone()));
        }
        if self.log.run_early.remove(&key) {
            return;
        }
        self.log_run(key, slot);
    }
}

fn going(slot: &Slot) -> bool {
    matches!(slot.status, SlotStatus::Running | SlotStatus::Resuming { started: true, .. })
}

fn shell(id: MessageId) -> Message {
    let mut message = Message::new(id, ac_core::Role::Assistant, vec![ac_core::Part::text("cut")], ac_core::Timestamp::default());
    message.meta.host.insert("live".into(), json!(true));
    message
}
