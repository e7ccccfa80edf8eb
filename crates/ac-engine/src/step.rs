mod abort;
mod answer;
mod dispatch;
mod judge;
mod message;
mod recover;
mod sample;
mod tool;

use std::sync::Arc;

use ac_core::{ErrorInfo, Message, Part, PendingId, Role, Timestamp, ToolCallId, ToolCallState, ToolOutput, Usage, event::EndReason};

use crate::{Effect, Input, Moment, Outbox, OutboxAction, Outcome, Phase, Refusal, RunSnapshot, Slot, SlotStatus, wording};

impl RunSnapshot {
    /// Takes an input and says what follows from it.
    ///
    /// An input that changes nothing (the same answer again, a second abort, a dispatch with nothing to start) is `Ok` with no effects and
    /// leaves the snapshot equal to what it was.
    ///
    /// # Errors
    /// [`Refusal`] when the input does not fit the state. The snapshot is then untouched.
    pub fn step(&mut self, at: Timestamp, input: Input) -> Result<Vec<Effect>, Refusal> {
        let mut turn = Turn { at, effects: vec![] };
        match input {
            Input::Dispatch => self.dispatch(&mut turn),
            Input::Sampled { attempt, parts, calls, finish } => self.sampled(&mut turn, attempt, parts, calls, &finish)?,
            Input::SampleFailed { attempt, error, retry, partial } => self.sample_failed(&mut turn, attempt, error, retry, partial)?,
            Input::SampleStopped { attempt, partial } => self.sample_stopped(&mut turn, attempt, partial)?,
            Input::ToolDone { call, attempt, result } => self.tool_done(&mut turn, &call, attempt, result)?,
            Input::ToolSuspended { call, attempt, suspend } => self.tool_suspended(&mut turn, &call, attempt, suspend)?,
            Input::ToolDelegated { call, attempt, child } => self.tool_delegated(&mut turn, &call, attempt, child)?,
            Input::ToolInterrupted { call, attempt } => self.tool_interrupted(&mut turn, &call, attempt)?,
            Input::ChildFinished { call, result, usage } => self.child_finished(&mut turn, &call, result, usage)?,
            Input::Judged { step, go_on, message, verdict, usage } => self.judged(&mut turn, step, go_on, message, verdict, usage)?,
            Input::Answer { pending, answer, plan, request_context } => {
                self.answered(&mut turn, &pending, answer, plan, request_context)?;
            }
            Input::Message { message, decline } => self.message_came(&mut turn, message, decline)?,
            Input::Interrupt { at } => self.interrupted(&mut turn, at)?,
            Input::Withdraw { message } => self.withdraw(&mut turn, &message)?,
            Input::Abort { go_on } => self.abort(&mut turn, go_on),
            Input::CancelCall { call } => self.cancel_call(&mut turn, &call)?,
            Input::Recover { epoch } => self.recover(&mut turn, epoch)?,
            Input::Applied { upto } => self.applied(upto)?,
        }
        self.keep_time(at);
        Ok(turn.effects)
    }

    fn applied(&mut self, upto: u64) -> Result<(), Refusal> {
        if upto >= self.next_outbox {
            return Err(Refusal::Stale);
        }
        self.outbox.retain(|item| item.n > upto);
        Ok(())
    }

    /// Puts something into the outbox (`R1b`).
    pub(crate) fn post(&mut self, action: OutboxAction) {
        self.outbox.push(Outbox { n: self.next_outbox, action });
        self.next_outbox += 1;
    }

    fn slots_mut(&mut self) -> &mut [Slot] {
        match &mut self.phase {
            Phase::Tools { slots } => slots,
            _ => &mut [],
        }
    }

    fn slot_mut(&mut self, at: usize) -> Option<&mut Slot> {
        self.slots_mut().get_mut(at)
    }

    fn slot_of(&self, call: &ToolCallId) -> Option<(usize, &Slot)> {
        self.slots().iter().enumerate().find(|(_, slot)| slot.call == *call)
    }

    /// Writes results and ends the step when they were the last ones.
    fn settle(&mut self, turn: &mut Turn, results: Vec<Settled>) {
        self.write_results(turn, results);
        if matches!(self.phase, Phase::Tools { .. }) && self.slots().iter().all(|slot| slot.status == SlotStatus::Done) {
            self.boundary(turn, false);
        }
    }

    /// Writes results into the step's message: one copy of it at most, and one `Put`, however many results.
    fn write_results(&mut self, turn: &mut Turn, results: Vec<Settled>) {
        let mut told = Vec::with_capacity(results.len());
        if let Some(message) = self.message.as_mut().filter(|_| !results.is_empty()) {
            let message = Arc::make_mut(message);
            // The n-th slot is the n-th call of the message.
            let calls: Vec<usize> =
                message.parts.iter().enumerate().filter(|(_, part)| matches!(part, Part::ToolCall(_))).map(|(index, _)| index).collect();
            for Settled { slot, state, wait } in results {
                let Some(&part) = calls.get(slot) else { continue };
                if let Some(Part::ToolCall(call)) = message.parts.get_mut(part) {
                    call.state = state;
                    told.push((call.id.clone(), part, slot, wait));
                }
            }
        }
        for (_, _, slot, _) in &told {
            if let Some(slot) = self.slot_mut(*slot) {
                slot.status = SlotStatus::Done;
            }
        }
        if let Some(message) = self.message.clone().filter(|_| !told.is_empty()) {
            turn.put(message.clone());
            for (call, part, _, wait) in told {
                if let Some((pending, cancelled)) = wait {
                    turn.tell(Moment::Resolved { pending, cancelled });
                }
                turn.tell(Moment::MessageChanged { message: message.clone(), parts: vec![part] });
                turn.tell(Moment::CallEnded(call));
            }
        }
    }

    /// The end of a step: the run goes on, goes on with what is queued, or ends (`R8`).
    fn boundary(&mut self, turn: &mut Turn, last: bool) {
        self.fold_time(turn.at);
        if self.message.is_some() || self.failures > 0 || self.phase != Phase::Ready {
            turn.tell(Moment::MessageDone(self.message_id()));
        }
        if self.cancel.is_some() && self.message.is_none() && self.calls > 0 {
            self.mark_stopped(turn);
        }
        match self.cancel {
            Some(cancel) if cancel.go_on && self.person_waits() => {
                self.cancel = None;
                turn.tell(Moment::SegmentEnd { reason: EndReason::Aborted, finish: self.finish, error: None });
            }
            Some(_) => return self.end(turn, Outcome::Aborted),
            None if last && !self.queued.iter().any(|message| message.prompts()) => {
                // The last word of a child is its parent's to judge.
                if !self.profile.judged || self.parent.is_some() {
                    return self.end(turn, Outcome::Complete);
                }
                self.phase = Phase::Judging { asked: false };
                return;
            }
            None => {}
        }
        self.next_step();
    }

    fn next_step(&mut self) {
        self.phase = Phase::Ready;
        self.step = self.step.saturating_add(1);
        if let Some(message) = self.message.take() {
            self.budget.asked_for(message.tool_calls());
        }
        self.failures = 0;
        self.forget_answers();
    }

    /// Results that nothing follows would look to the model like a job to go on with.
    fn mark_stopped(&self, turn: &mut Turn) {
        let id = format!("{}/stopped", self.message_id());
        let mut mark = Message::new(id, Role::Signal, vec![Part::text(wording::STOPPED)], turn.at);
        mark.meta.run = Some(self.run.clone());
        let mark = Arc::new(mark);
        turn.put(mark.clone());
        turn.tell(Moment::Delivered(mark));
    }

    /// The end of the run. What is left in `queued` goes into the history, for the next run to answer.
    fn end(&mut self, turn: &mut Turn, outcome: Outcome) {
        self.deliver(turn);
        let (reason, error) = match &outcome {
            Outcome::Complete => (EndReason::Complete, None),
            Outcome::Aborted => (EndReason::Aborted, None),
            Outcome::Error { error } => (EndReason::Error, Some(error.clone())),
        };
        self.phase = Phase::Finished { outcome, at: turn.at };
        self.message = None;
        self.cancel = None;
        turn.tell(Moment::SegmentEnd { reason, finish: self.finish, error });
    }

    fn fail(&mut self, turn: &mut Turn, error: ErrorInfo) {
        self.end(turn, Outcome::Error { error });
    }

    /// Puts what is queued into the history, in order. A person's message starts the budget anew; returns whether there was one.
    fn deliver(&mut self, turn: &mut Turn) -> bool {
        let person = self.queued.iter().any(|message| message.role == Role::User);
        if person {
            self.budget = crate::Budget::default();
            self.working_since = self.working_since.map(|_| turn.at);
        }
        let seen = self.queued.len() > self.prompt;
        for message in std::mem::take(&mut self.queued) {
            turn.put(message.clone());
            turn.tell(Moment::Delivered(message));
        }
        self.prompt = 0;
        if seen {
            turn.tell(Moment::QueueChanged);
        }
        person
    }

    /// Whether a person wrote something since the run started that the model has not seen.
    fn person_waits(&self) -> bool {
        self.queued.iter().skip(self.prompt).any(|message| message.role == Role::User)
    }

    /// Adds tokens to the thread's and to the run's budget.
    fn spend(&mut self, turn: &mut Turn, usage: Usage) {
        let tokens = usage.input.saturating_add(usage.output);
        self.budget.tokens = self.budget.tokens.saturating_add(if tokens == 0 { usage.total } else { tokens });
        turn.effects.push(Effect::AddUsage(usage.clone()));
        turn.tell(Moment::Usage(usage));
    }

    /// Counts the time since the run began to work.
    fn fold_time(&mut self, at: Timestamp) {
        if let Some(since) = self.working_since {
            self.budget.millis = self.budget.millis.saturating_add(u64::try_from(at.millis_since(since)).unwrap_or(0));
            self.working_since = Some(at);
        }
    }

    /// Starts or stops the clock of the time budget. It runs while the owner has something to do: not while only people or child runs,
    /// which have limits of their own and may wait for people themselves, have.
    fn keep_time(&mut self, at: Timestamp) {
        let works = match &self.phase {
            Phase::Ready | Phase::Sampling | Phase::Judging { .. } => true,
            Phase::Tools { slots } => slots.iter().any(|slot| slot.status.works()),
            Phase::Finished { .. } => false,
        };
        match (works, self.working_since) {
            (true, None) => self.working_since = Some(at),
            (false, Some(_)) => {
                self.fold_time(at);
                self.working_since = None;
            }
            _ => {}
        }
    }
}

/// What one input leads to.
struct Turn {
    at: Timestamp,
    effects: Vec<Effect>,
}

impl Turn {
    /// Stores a message with this commit; a message is stored once per commit, as it is last.
    fn put(&mut self, message: Arc<Message>) {
        let same = |effect: &&mut Effect| matches!(effect, Effect::Put(put) if put.id == message.id);
        match self.effects.iter_mut().find(same) {
            Some(put) => *put = Effect::Put(message),
            None => self.effects.push(Effect::Put(message)),
        }
    }

    fn tell(&mut self, moment: Moment) {
        self.effects.push(Effect::Tell(moment));
    }
}

/// A call that gets its result.
struct Settled {
    slot: usize,
    state: ToolCallState,
    /// The wait that ends with it, and why, if nobody answered it.
    wait: Option<(PendingId, Option<String>)>,
}

fn denied(reason: impl Into<String>) -> ToolCallState {
    ToolCallState::OutputDenied { reason: reason.into() }
}

fn failed(text: &str) -> ToolCallState {
    ToolCallState::Result { output: ToolOutput::text(text), is_error: true }
}
