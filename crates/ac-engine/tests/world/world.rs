//! The world: people in front of two drivers on one store.

use ac_core::{Message, Part, PendingId, Role, RunId, Timestamp, ToolOutput, event::PendingKind, permission::GrantTarget};
use ac_engine::{Answer, Effect, Input, PlanReply, Profile, Refusal, RunSnapshot, Slot, SlotStatus};
use serde_json::json;

use crate::{
    driver::{Driver, Fed},
    mutant::Mutant,
    oracle::{Given, Log, key},
    script::{Action, Step},
    store::Store,
};

pub(crate) const THREAD: &str = "t";

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) drivers: [Driver; 2],
    pub(crate) script: Vec<Step>,
    pub(crate) mutant: Mutant,
    pub(crate) log: Log,
    pub(crate) now: Timestamp,
    pub(crate) lives: u64,
    pub(crate) commits: u64,
    /// Somebody crashed or was taken over.
    pub(crate) disturbed: bool,
    /// What happens to the outcome of the next commit.
    pub(crate) unknown: Option<u8>,
}

pub(crate) fn profile(mode: &str) -> Profile {
    let mut profile = Profile::new("agent", mode, "mock/one");
    profile.limits.steps = 5;
    // Half of the runs are judged before they end.
    profile.judged = mode == "build";
    profile
}

/// An open wait of any run.
struct Open {
    run: RunId,
    id: PendingId,
    kind: PendingKind,
    slot: Slot,
}

impl World {
    fn new(script: Vec<Step>, mutant: Mutant) -> Self {
        let driver = |life| Driver { life, ..Driver::default() };
        let mut world = Self {
            store: Store::default(),
            drivers: [driver(1), driver(2)],
            script,
            mutant,
            log: Log::default(),
            now: Timestamp::from_millis(0),
            lives: 2,
            commits: 0,
            disturbed: false,
            unknown: None,
        };
        world.store.session.mode = "mode0".into();
        world.log.mode = "mode0".into();
        world
    }

    /// Plays the actions, then drives fairly until everything is over. In calm nothing crashes and nobody is taken over.
    pub(crate) fn play(script: Vec<Step>, actions: Vec<Action>, mutant: Mutant, calm: bool) -> Self {
        let mut world = Self::new(script, mutant);
        world.message(0, "u100", true);
        for action in actions {
            world.now = world.now.plus_millis(1);
            match action {
                Action::Tick(d, which, flight) => world.tick(d, which, flight),
                Action::Drive(d) => world.drive(d, 6),
                Action::Poll(d, which) => world.poll(d, which),
                Action::Steal(..) | Action::Crash(_) if calm => {}
                Action::Steal(d, which) => world.steal(d, which),
                Action::Crash(d) => world.crash(d),
                Action::Message(d, n) => world.message(d, &format!("u{n}"), true),
                Action::Note(d, n) => world.message(d, &format!("u{n}"), false),
                Action::FollowUp(n) => world.follow_up(&format!("f{n}")),
                Action::Answer(d, which, value) => world.answer(d, which, value, false),
                Action::AnswerLost(d, which, value) => {
                    world.answer(d, which, value, true);
                    if !calm {
                        world.crash(d);
                    }
                }
                Action::Stale(d, which, other) => world.stale(d, which, other),
                Action::Withdraw(d, which) => world.withdraw(d, which),
                Action::Cancel(d, which) => world.cancel(d, which),
                Action::Abort(d, go_on) => world.abort(d, go_on),
                Action::Mode(n) => world.set_mode(&format!("mode{n}")),
                Action::Unknown(how) => world.unknown = Some(how),
            }
        }
        world.unknown = None;
        world.finish_fairly();
        world
    }

    fn drive(&mut self, d: usize, times: usize) {
        for flight in 0..times {
            for which in 0..self.drivers[d].tasks.len() {
                self.tick(d, which, flight);
            }
            if self.drivers[d].tasks.iter().all(|task| task.ops.is_empty() && task.flights.is_empty()) {
                break;
            }
        }
    }

    fn finish_fairly(&mut self) {
        let rounds = if self.mutant == Mutant::None { 3000 } else { 600 };
        for round in 0..rounds {
            self.now = self.now.plus_millis(1);
            for d in 0..2 {
                self.poll(d, round);
                self.drive(d, 12);
            }
            let idle = |driver: &Driver| driver.tasks.iter().all(|task| task.ops.is_empty() && task.flights.is_empty());
            let idle = self.drivers.iter().all(idle);
            if idle && self.at_rest() {
                break;
            }
            if idle && round % 2 == 1 {
                for _ in 0..self.open().len() {
                    self.answer(round / 2 % 2, 0, u8::try_from(1 + round % 3).unwrap(), false);
                }
            }
            if round == rounds - 1 {
                let left = self.whats_left();
                self.bad(format!("stuck: {left}"));
            }
        }
        for d in 0..2 {
            for task in std::mem::take(&mut self.drivers[d].tasks) {
                self.end_task(task, true);
            }
        }
    }

    pub(crate) fn script_of(&self, run: &RunId, step: u32, attempt: u32, life: u64) -> Step {
        let sum = run.as_str().bytes().map(u64::from).sum::<u64>() + u64::from(step) * 3 + u64::from(attempt) * 5 + life;
        let mut script = self.script[usize::try_from(sum % self.script.len() as u64).unwrap()].clone();
        if step % 4 == 3 {
            script.calls.clear();
        }
        script
    }

    // ---- how an input reaches a run ------------------------------------------------------------------------------------------------

    /// Anybody may commit an input: on the stored snapshot, with the epoch unchanged, acting on nothing (`R2`).
    pub(crate) fn external(&mut self, run: &RunId, input: Input) -> Result<Vec<Effect>, Refusal> {
        let Some(row) = self.store.rows.get(run).cloned() else { return Err(Refusal::NotPending) };
        let mut snap = row.run.clone();
        let mut effects = self.step(&mut snap, input)?;
        if self.mutant == Mutant::ForeignAnswerRuns {
            effects.extend(self.step(&mut snap, Input::Dispatch)?);
        }
        let mark = if self.mutant == Mutant::ForeignMark { self.next_mark(0) } else { row.mark };
        if snap != row.run && self.commit(Some(row.version), Some(&row.run), &snap, mark, &effects).is_err() {
            self.bad("a foreign commit was refused");
        }
        Ok(effects)
    }

    /// By the owner where it is here, by a foreign commit where the owner lives elsewhere, by taking over where there is none.
    fn input(&mut self, d: usize, run: &RunId, input: Input) -> Fed {
        if let Some(at) = self.drivers[d].tasks.iter().position(|task| task.run == *run) {
            let mut task = self.drivers[d].tasks.remove(at);
            match self.feed(&mut task, Some(input.clone())) {
                Fed::Lost => self.end_task(task, true),
                fed => {
                    self.drivers[d].tasks.insert(at, task);
                    return fed;
                }
            }
        }
        let row = match self.mutant {
            Mutant::RowsForMessages => matches!(input, Input::Message { .. } | Input::Abort { .. }),
            Mutant::RowsForAnswers => matches!(input, Input::Answer { .. }),
            _ => false,
        };
        let held = self.holder(run).is_some();
        if row && held {
            self.store.inbox.entry(run.clone()).or_default().push(input);
            return Fed::Ok;
        }
        if held || self.store.run(run).is_closed() {
            return match self.external(run, input) {
                Ok(_) => Fed::Ok,
                Err(refusal) => Fed::Refused(refusal),
            };
        }
        self.take_over(d, run, Some(input))
    }

    /// Applies the outbox of a run in the owner's place (`R1b`).
    fn help(&mut self, run: &RunId) {
        let items = self.store.run(run).outbox.clone();
        for item in &items {
            self.apply(run, item);
        }
        if let Some(last) = items.last() {
            let _ = self.external(run, Input::Applied { upto: last.n });
        }
    }

    /// Somebody's note, right after a commit whose outcome is not known yet.
    pub(crate) fn foreign_note(&mut self, run: &RunId) {
        let note = note(&format!("x{}", self.commits));
        let id = note.id.clone();
        let main = self.store.run(run).thread.as_str() == THREAD;
        if self.external(run, Input::Message { message: note, decline: false }).is_ok() && main {
            self.log.notes.push(id);
        }
    }

    // ---- people --------------------------------------------------------------------------------------------------------------------

    fn message(&mut self, d: usize, id: &str, person: bool) {
        let thread = THREAD.into();
        let message = if person { Message::user(id, id, self.now) } else { note(id) };
        let known = |world: &Self| world.log.withdrawn.contains(&message.id) || world.store.has(&thread, &message.id);
        for _ in 0..4 {
            if known(self) || (self.mutant == Mutant::RowsForMessages && self.log.messages.contains(&message.id)) {
                return;
            }
            let active = self.store.active(&thread);
            let outside = !person && (active.is_none() || self.mutant == Mutant::MessageOutsideRun);
            if outside {
                let message = std::sync::Arc::new(message);
                self.store.put(&thread, &message);
                self.note_outside(message);
                return;
            }
            let accepted = match active {
                Some(run) if self.store.run(&run).is_finished() => {
                    self.help(&run);
                    continue;
                }
                Some(run) => {
                    let accepted = self.input(d, &run, Input::Message { message: message.clone(), decline: person }) == Fed::Ok;
                    if accepted && person {
                        self.decline_below(d, &run);
                    }
                    accepted
                }
                None => self.start(d, message.clone(), false),
            };
            if accepted {
                if !self.log.messages.contains(&message.id) {
                    self.log.messages.push(message.id);
                }
                return;
            }
        }
        self.bad(format!("message {id} was not accepted"));
    }

    /// A person's message declines what is open in the whole run tree (`R7`).
    fn decline_below(&mut self, d: usize, parent: &RunId) {
        let below =
            |open: &Open| open.kind == PendingKind::Approval && open.run != *parent && open.run.as_str().starts_with(&format!("{parent}~"));
        for open in self.open().into_iter().filter(below) {
            let answer = Answer::Decline { reason: Some("interrupted_by_user_message".into()) };
            self.give(d, &open, answer, None);
        }
    }

    fn follow_up(&mut self, id: &str) {
        let message = Message::user(id, id, self.now);
        if self.log.follow_ups.contains(&message.id) || self.log.withdrawn.contains(&message.id) {
            return;
        }
        self.log.follow_ups.push(message.id.clone());
        self.store.session.queue.push_back(message);
    }

    fn abort(&mut self, d: usize, go_on: bool) {
        let Some(run) = self.store.active(&THREAD.into()) else { return };
        if self.mutant == Mutant::AbortChildFirst {
            for slot in self.store.run(&run).slots().to_vec() {
                if let SlotStatus::Child { run: child } = slot.status {
                    let _ = self.external(&child, Input::Abort { go_on: false });
                }
            }
        }
        let fed = self.input(d, &run, Input::Abort { go_on });
        if matches!(fed, Fed::Refused(_)) {
            self.bad(format!("an abort was refused: {fed:?}"));
        }
    }

    fn set_mode(&mut self, mode: &str) {
        if let Some(run) = self.store.active(&THREAD.into()) {
            self.help(&run);
        }
        self.store.session.mode = mode.into();
        self.log.mode = mode.into();
    }

    fn withdraw(&mut self, d: usize, which: usize) {
        let Some(run) = self.store.active(&THREAD.into()) else { return };
        let queued = self.store.run(&run).queued.clone();
        if queued.is_empty() {
            return;
        }
        let id = queued[which % queued.len()].id.clone();
        if self.input(d, &run, Input::Withdraw { message: id.clone() }) == Fed::Ok {
            self.log.messages.retain(|message| *message != id);
            self.log.notes.retain(|message| *message != id);
            self.log.follow_ups.retain(|message| *message != id);
            self.log.withdrawn.push(id);
        }
    }

    fn cancel(&mut self, d: usize, which: usize) {
        let live = |run: &RunSnapshot| -> Vec<(RunId, Slot)> {
            run.slots().iter().filter(|slot| slot.status != SlotStatus::Done).map(|slot| (run.run.clone(), slot.clone())).collect()
        };
        let calls: Vec<_> = self.store.rows.values().flat_map(|row| live(&row.run)).collect();
        if let Some((run, slot)) = calls.get(which % calls.len().max(1)) {
            self.input(d, run, Input::CancelCall { call: slot.call.clone() });
        }
    }

    fn open(&self) -> Vec<Open> {
        let of = |run: &RunSnapshot| -> Vec<Open> {
            run.waits()
                .into_iter()
                .map(|wait| Open { run: run.run.clone(), id: wait.id, kind: wait.kind, slot: wait.slot.clone() })
                .collect()
        };
        self.store.rows.values().flat_map(|row| of(&row.run)).collect()
    }

    fn answer(&mut self, d: usize, which: usize, value: u8, lost: bool) {
        let open = self.open();
        if open.is_empty() {
            return;
        }
        let open = &open[which % open.len()];
        let row = self.store.inbox.get(&open.run).into_iter().flatten();
        if row.into_iter().any(|input| matches!(input, Input::Answer { pending, .. } if *pending == open.id))
            && !self.drivers[d].tasks.iter().any(|task| task.run == open.run)
        {
            return; // the id of a row is that of the wait
        }
        let decline = |reason: &str| Answer::Decline { reason: Some(reason.into()) };
        let answer = match (open.kind, value % 4) {
            (PendingKind::Approval, 0) => decline("no"),
            (PendingKind::Approval, n) => Answer::Approve { grant: (n == 3).then(|| GrantTarget::Tool(open.slot.tool.clone())) },
            (PendingKind::Question, 0) => decline("skip"),
            (PendingKind::Question | PendingKind::Plan, _) => Answer::Reply { value: json!(value) },
            (PendingKind::InDoubt, 0 | 1) => Answer::RecordFailed,
            (PendingKind::InDoubt, _) => Answer::RunAgain,
        };
        let plan = (open.kind == PendingKind::Plan).then(|| {
            let go = !value.is_multiple_of(4);
            let target = profile(&format!("mode{}+", self.store.run(&open.run).profile.mode));
            PlanReply { output: ToolOutput::text("decided"), is_error: false, profile: go.then(|| Box::new(target)) }
        });
        if self.mutant == Mutant::ResumeBeforeCommit
            && let (SlotStatus::Suspended { suspend, since: _ }, Answer::Reply { value }, PendingKind::Question) =
                (&open.slot.status, &answer, open.kind)
        {
            let resume = ac_engine::ResumeData { state: suspend.state.clone(), payload: suspend.payload.clone(), answer: value.clone() };
            let mut early = open.slot.clone();
            early.status = SlotStatus::Resuming { resume, started: true };
            let key = key(self.store.run(&open.run), &early);
            self.log_run(key.clone(), &early);
            if lost {
                return;
            }
            self.log.run_early.insert(key);
        }
        self.give(d, open, answer, plan);
    }

    fn give(&mut self, d: usize, open: &Open, answer: Answer, plan: Option<PlanReply>) {
        if answer == Answer::RunAgain {
            *self.log.again.entry(key(self.store.run(&open.run), &open.slot)).or_default() += 1;
        }
        let input = Input::Answer { pending: open.id.clone(), answer: answer.clone(), plan, request_context: None };
        match self.input(d, &open.run, input.clone()) {
            Fed::Ok => {
                let approval = open.kind == PendingKind::Approval;
                self.log.given.push(Given { run: open.run.clone(), pending: open.id.clone(), answer, input, approval });
            }
            fed => self.bad(format!("{answer:?} to {} was refused: {fed:?}", open.id)),
        }
    }

    /// The same answer again is fine, another one is refused; neither moves anything (`R6`).
    fn stale(&mut self, _d: usize, which: usize, other: bool) {
        if self.log.given.is_empty() {
            return;
        }
        let given = self.log.given[which % self.log.given.len()].clone();
        let call = &given.pending.call;
        if self.mutant == Mutant::BareCallId && matches!(given.answer, Answer::Approve { .. }) {
            let doubt = |open: &Open| open.run == given.run && open.id.call == *call && open.kind == PendingKind::InDoubt;
            if let Some(open) = self.open().into_iter().find(doubt) {
                let input = Input::Answer { pending: open.id, answer: Answer::RunAgain, plan: None, request_context: None };
                let _ = self.external(&open.run, input);
                return;
            }
        }
        let run = self.store.run(&given.run).clone();
        if given.approval && (run.alias(call) != Some(given.pending.clone()) || run.alias_approval(call) != run.alias(call)) {
            self.bad(format!("{call} means {:?} and not its approval", run.alias(call)));
        }
        let (input, expected) = match (other, given.input) {
            (false, input) => (input, Ok(())),
            (true, Input::Answer { pending, .. }) => {
                let answer = Answer::Reply { value: json!(99) };
                (Input::Answer { pending, answer, plan: None, request_context: None }, Err(Refusal::AlreadyResolved))
            }
            (true, _) => return,
        };
        let got = self.external(&given.run, input).map(|_| ());
        if got != expected || *self.store.run(&given.run) != run {
            self.bad(format!("a stale answer to {}: {got:?}, expected {expected:?}", given.pending));
        }
    }
}

fn note(id: &str) -> Message {
    Message::new(id, Role::Signal, vec![Part::text("note")], Timestamp::from_millis(0))
}
