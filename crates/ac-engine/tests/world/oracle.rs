//! What must be true, whatever happened.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ac_core::{FinishReason, Message, MessageId, PendingId, Role, RunId, ThreadId, ToolCallState, ToolEffect};
use ac_engine::{
    Answer, Input, Phase, Refusal, RunSnapshot, Slot, SlotStatus,
    transitions::{Place, moves, trigger},
};
use serde_json::Value;

use crate::{
    script::{STEP_TOKENS, stage},
    told::{Told, well_formed},
    world::{THREAD, World},
};

/// A person's answer that was acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) run: RunId,
    pub(crate) pending: PendingId,
    pub(crate) answer: Answer,
    pub(crate) input: Input,
    /// The wait was an approval.
    pub(crate) approval: bool,
}

type Moves = BTreeSet<(Place, &'static str, Place)>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) bad: Vec<String>,
    /// How often each stage of each call ran, and how often a person let it run again.
    ran: BTreeMap<String, u32>,
    pub(crate) again: BTreeMap<String, u32>,
    pub(crate) run_early: BTreeSet<String>,
    pub(crate) resumed: Vec<(String, Value)>,
    pub(crate) told: Vec<(Vec<Told>, bool)>,
    /// Acknowledged, in order.
    pub(crate) messages: Vec<MessageId>,
    pub(crate) follow_ups: Vec<MessageId>,
    /// Acknowledged, in no order that anybody knows.
    pub(crate) notes: Vec<MessageId>,
    pub(crate) withdrawn: Vec<MessageId>,
    pub(crate) given: Vec<Given>,
    pub(crate) applied: BTreeMap<String, u32>,
    posted: BTreeSet<String>,
    truth: BTreeMap<(ThreadId, MessageId), Arc<Message>>,
    positions: BTreeMap<(ThreadId, MessageId), u64>,
    requests: BTreeMap<(ThreadId, MessageId), Vec<MessageId>>,
    pub(crate) mode: String,
    pub(crate) moves: Moves,
    pub(crate) pairs: BTreeSet<(Place, &'static str, bool, bool)>,
    pub(crate) samples: u64,
    pub(crate) doubts: u64,
    pub(crate) commits: u64,
}

/// A stage of a call: what may run once.
pub(crate) fn key(run: &RunSnapshot, slot: &Slot) -> String {
    format!("{}/{}/{}@{}", run.run, run.step, slot.call, stage(slot))
}

fn in_doubt(run: &RunSnapshot) -> usize {
    run.slots().iter().filter(|slot| matches!(slot.status, SlotStatus::InDoubt { .. })).count()
}

impl World {
    pub(crate) fn bad(&mut self, what: impl Into<String>) {
        if self.log.bad.len() < 5 {
            self.log.bad.push(what.into());
        }
    }

    /// The machine's step, with what every step must keep.
    pub(crate) fn step(&mut self, run: &mut RunSnapshot, input: Input) -> Result<Vec<ac_engine::Effect>, Refusal> {
        let before = run.clone();
        let trigger = trigger(&input);
        let outcome = self.mutant.step(run, self.now, input);
        let cancel = before.cancel.is_some();
        self.log.pairs.insert((Place::of_run(&before), trigger, cancel, outcome.is_ok()));
        self.log.pairs.extend(before.slots().iter().map(|slot| (Place::of_slot(slot), trigger, cancel, outcome.is_ok())));
        match &outcome {
            Err(_) if *run != before => self.bad(format!("{trigger} was refused and changed the run")),
            Ok(effects) if *run == before && !effects.is_empty() => self.bad(format!("{trigger} changed nothing and has effects")),
            Ok(effects) => {
                let acts =
                    |effect: &ac_engine::Effect| matches!(effect, ac_engine::Effect::Sample { .. } | ac_engine::Effect::RunTool { .. });
                if trigger != "Dispatch" && effects.iter().any(acts) {
                    self.bad(format!("{trigger} acts"));
                }
                self.log.moves.extend(moves(&before, trigger, run));
            }
            Err(_) => {}
        }
        outcome
    }

    pub(crate) fn note_commit(&mut self, before: Option<&RunSnapshot>, run: &RunSnapshot, put: &[Arc<Message>]) {
        self.log.commits += 1;
        for message in put {
            self.log.truth.insert((run.thread.clone(), message.id.clone()), message.clone());
            let at = (run.thread.clone(), message.id.clone());
            let position = self.store.messages[&at].0;
            if *self.log.positions.entry(at).or_insert(position) != position {
                self.bad(format!("{} moved", message.id));
            }
        }
        for item in &run.outbox {
            self.log.posted.insert(format!("{}#{}", run.run, item.n));
        }
        if in_doubt(run) > before.map_or(0, in_doubt) {
            self.log.doubts += 1;
            if !self.disturbed {
                self.bad("in doubt, and nobody crashed or was taken over");
            }
        }
        if run.thread.as_str() == THREAD && before.is_some_and(|before| before.profile.mode != run.profile.mode) {
            self.log.mode = run.profile.mode.to_string();
        }
        let open = self.store.rows.values().filter(|row| row.run.thread == run.thread && !row.run.is_finished()).count();
        if open > 1 {
            self.bad(format!("{open} open runs on one thread"));
        }
    }

    /// A message that was put while no run was open.
    pub(crate) fn note_outside(&mut self, message: Arc<Message>) {
        self.log.truth.insert((THREAD.into(), message.id.clone()), message);
    }

    pub(crate) fn log_run(&mut self, key: String, slot: &Slot) {
        let times = self.log.ran.entry(key.clone()).or_default();
        *times += 1;
        let times = *times;
        let allowed = 1 + self.log.again.get(&key).copied().unwrap_or(0);
        if slot.effect == ToolEffect::Mutating && times > allowed {
            self.bad(format!("{key} ran {times} times, {allowed} allowed"));
        }
    }

    /// A child never acts after the parent's call was settled.
    pub(crate) fn check_parent(&mut self, run: &RunSnapshot) {
        let Some((parent, call)) = &run.parent else { return };
        let waits = |slot: &Slot| slot.call == *call && matches!(slot.status, SlotStatus::Child { .. });
        if !self.store.run(parent).slots().iter().any(waits) {
            self.bad(format!("{} acts after its parent's call was settled", run.run));
        }
    }

    /// Every request is a legal one: no open call, and not a last word of the model's own.
    pub(crate) fn check_request(&mut self, run: &RunSnapshot, step: u32) {
        self.log.samples += 1;
        if !run.outbox.is_empty() {
            self.bad(format!("{} samples before its outbox was applied", run.run));
        }
        let history = self.store.thread(&run.thread);
        for message in &history {
            if message.tool_calls().any(|call| !call.state.is_settled()) {
                self.bad(format!("a request with an open call in {}", message.id));
            }
        }
        let said = |message: &Arc<Message>| {
            message.role == Role::Assistant && message.tool_calls().next().is_none() && message.meta.finish != Some(FinishReason::Pause)
        };
        if history.last().is_none_or(said) {
            self.bad(format!("{} step {step}: the request ends with an answer", run.run));
        }
        let ids = history.iter().map(|message| message.id.clone()).collect();
        self.log.requests.insert((run.thread.clone(), ac_core::id::step_message(&run.run, step)), ids);
    }

    pub(crate) fn verdict(&mut self) -> Vec<String> {
        let mut bad = std::mem::take(&mut self.log.bad);
        self.judge_history(&mut bad);
        self.judge_answers(&mut bad);
        for posted in &self.log.posted {
            let times = self.log.applied.get(posted).copied().unwrap_or(0);
            if times != 1 {
                bad.push(format!("outbox item {posted} took effect {times} times"));
            }
        }
        bad.extend(self.store.rows.values().filter(|row| !row.run.outbox.is_empty()).map(|row| format!("outbox left in {}", row.run.run)));
        for (told, ended) in &self.log.told {
            if let Err(wrong) = well_formed(told, *ended) {
                bad.push(format!("{wrong} in {told:?}"));
            }
        }
        bad
    }

    fn judge_history(&self, bad: &mut Vec<String>) {
        let ids: Vec<MessageId> = self.store.thread(&THREAD.into()).iter().map(|message| message.id.clone()).collect();
        for (what, acknowledged) in [("message", &self.log.messages), ("follow-up", &self.log.follow_ups)] {
            let places: Vec<_> = acknowledged.iter().map(|id| ids.iter().position(|stored| stored == id)).collect();
            if places.iter().any(Option::is_none) {
                bad.push(format!("{what} lost: {acknowledged:?} in {ids:?}"));
            }
            if places.windows(2).any(|pair| pair[0] >= pair[1]) {
                bad.push(format!("{what} out of order: {acknowledged:?} in {ids:?}"));
            }
        }
        bad.extend(self.log.notes.iter().filter(|id| !ids.contains(id)).map(|id| format!("note {id} lost")));
        bad.extend(self.log.withdrawn.iter().filter(|id| ids.contains(id)).map(|id| format!("{id} was taken back and is in the history")));
        let mut sampled: BTreeMap<&ThreadId, u64> = BTreeMap::new();
        for ((thread, id), (_, message)) in &self.store.messages {
            bad.extend(message.tool_calls().filter(|call| !call.state.is_settled()).map(|call| format!("{} left open in {id}", call.id)));
            if self.log.truth.get(&(thread.clone(), id.clone())) != Some(message) {
                bad.push(format!("stored {id} is not what a run committed"));
            }
            *sampled.entry(thread).or_default() += u64::from(message.meta.finish.is_some());
        }
        for ((thread, id), seen) in &self.log.requests {
            let all: Vec<MessageId> = self.store.thread(thread).iter().map(|message| message.id.clone()).collect();
            if let Some(at) = all.iter().position(|stored| stored == id)
                && all[..at] != seen[..]
            {
                bad.push(format!("{id} answers {seen:?} and stands in {all:?}"));
            }
        }
        // A step's tokens are counted once, a child's once more on its parent's thread.
        for (thread, head) in &self.store.heads {
            let children = self
                .store
                .rows
                .values()
                .filter(|row| row.run.parent.as_ref().is_some_and(|(parent, _)| self.store.run(parent).thread == *thread));
            let own = sampled.get(thread).copied().unwrap_or(0) * STEP_TOKENS;
            let expected = own + children.map(|row| self.store.heads[&row.run.thread].tokens).sum::<u64>();
            if head.tokens != expected {
                bad.push(format!("{} tokens on {thread}, {expected} were used", head.tokens));
            }
        }
    }

    /// An answer reaches its tool, and what was declined never ran.
    fn judge_answers(&self, bad: &mut Vec<String>) {
        for Given { run, pending, answer, approval, .. } in &self.log.given {
            let thread = &self.store.run(run).thread;
            let message = ac_core::id::step_message(run, pending.step);
            let stored = self.store.messages.get(&(thread.clone(), message));
            let Some(call) = stored.and_then(|(_, message)| message.tool_calls().find(|call| call.id == pending.call)) else {
                bad.push(format!("nothing stored for {pending}"));
                continue;
            };
            let stage = |n: usize| format!("{run}/{}/{}@{n}", pending.step, pending.call);
            let wrong = match (answer, &call.state) {
                (Answer::Decline { reason }, ToolCallState::OutputDenied { reason: stored }) => {
                    reason.as_ref() != Some(stored) || (*approval && self.log.ran.contains_key(&stage(0)))
                }
                (Answer::RecordFailed, ToolCallState::Result { is_error: true, .. }) => false,
                (Answer::Decline { .. } | Answer::RecordFailed, _) => true,
                (Answer::Reply { value }, ToolCallState::Result { output, is_error: false }) => {
                    let told = output.value.get("ok").is_none_or(|all| all.as_array().is_some_and(|all| all.contains(value)));
                    let mine = stage(0);
                    let plan = output.value == "decided";
                    let resumed = |(key, given): &(String, Value)| key.starts_with(mine.trim_end_matches('0')) && given == value;
                    !told || !(plan || self.log.resumed.iter().any(resumed))
                }
                (Answer::Approve { .. } | Answer::Reply { .. }, ToolCallState::OutputDenied { reason }) => {
                    // A later question of the same call may have been declined; a yes that became a no is wrong.
                    let later = |other: &Given| other.run == *run && other.pending.call == pending.call && other.pending.n > pending.n;
                    let no = ["no", "policy", "interrupted_by_user_message"].contains(&reason.as_str());
                    no && !self.log.given.iter().any(later)
                }
                _ => false,
            };
            if wrong {
                bad.push(format!("{answer:?} to {pending}, and the call is {:?}", call.state));
            }
        }
    }

    /// Whether everything is over.
    pub(crate) fn at_rest(&self) -> bool {
        self.store.session.queue.is_empty()
            && self.drivers.iter().all(|driver| driver.pending.is_empty() && driver.tasks.is_empty())
            && self.store.rows.values().all(|row| row.run.is_closed())
    }

    pub(crate) fn whats_left(&self) -> String {
        let open = self.store.rows.values().filter(|row| !row.run.is_closed()).map(|row| {
            let slots: Vec<_> = row.run.slots().iter().map(|slot| format!("{}: {:?}", slot.call, slot.status)).collect();
            let phase = if matches!(row.run.phase, Phase::Tools { .. }) { "tools".into() } else { format!("{:?}", row.run.phase) };
            format!("{} {phase} {slots:?} outbox {:?} cancel {:?}", row.run.run, row.run.outbox, row.run.cancel)
        });
        format!("queue {:?}, open {:?}", self.store.session.queue.len(), open.collect::<Vec<_>>())
    }
}
