//! Makes events of the moments of a run: opens and closes segments, announces and ends messages.

use std::{collections::HashSet, sync::Arc};

use ac_core::{
    Clock, ErrorInfo, EventBody, Message, MessageId, Part, ToolCallId, ToolCallState, Usage,
    event::{EndReason, MessageUpdate, PendingKind, QueueItem, QueueKind, Retry},
    message::{ReasoningPart, TextPart},
};
use ac_engine::{Moment, Outcome, RunSnapshot};

use crate::{RunHost, RunRef, upward::Upward};

/// What was told of a run so far. One per driver.
pub(crate) struct Teller {
    host: Arc<dyn RunHost>,
    run: RunRef,
    parent_call: Option<ToolCallId>,
    /// Set for a child run: what it does is told to those who listen to its parent.
    upward: Option<Upward>,
    /// The subagents that were told of in the open segment.
    introduced: HashSet<ToolCallId>,
    segment: bool,
    /// The message that is announced and not ended.
    announced: Option<MessageId>,
    /// The parts that were shown of it while they streamed, by the provider's index.
    shown: Vec<Shown>,
    /// The message of the open step, and the step.
    open: Option<(u32, MessageId)>,
    /// The message that the moments being told are about.
    message: Option<Arc<Message>>,
    /// What waited for the run when that was last told.
    queued: Arc<[QueueItem]>,
    /// Tokens of the thread.
    total: Usage,
    /// Tokens of the open step, which are told after the results of its calls (SPEC E-24). They are stored long before.
    spent: Vec<Usage>,
    /// The wait before the retry that is told next.
    pub(crate) retry_delay_ms: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Shown {
    index: u32,
    kind: ShownKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ShownKind {
    Text,
    Reasoning,
}

impl Teller {
    pub(crate) fn new(
        host: Arc<dyn RunHost>,
        run: RunRef,
        parent_call: Option<ToolCallId>,
        upward: Option<Upward>,
        total: Usage,
        message: Option<Arc<Message>>,
    ) -> Self {
        let (shown, queued, spent, introduced) = (vec![], Arc::default(), vec![], HashSet::new());
        Self {
            host,
            run,
            parent_call,
            upward,
            introduced,
            segment: false,
            announced: None,
            shown,
            open: None,
            message,
            queued,
            total,
            spent,
            retry_delay_ms: 0,
        }
    }

    /// Whether a segment is open.
    pub(crate) fn in_segment(&self) -> bool {
        self.segment
    }

    /// Tells something that is no moment of the machine (progress, deltas).
    pub(crate) fn tell(&mut self, body: EventBody) {
        if !self.segment {
            self.segment = true;
            self.introduced.clear();
            self.out(EventBody::AgentStart);
        }
        // A subagent that goes on after a wait was told of already, unless that was in another segment.
        if let EventBody::SubagentStart { call, .. } = &body
            && !self.introduced.insert(call.clone())
        {
            return;
        }
        self.out(body);
    }

    fn out(&self, body: EventBody) {
        match &self.upward {
            None => self.host.tell(&self.run, body),
            Some(upward) => {
                let named = |call: &ToolCallId| self.named(call).map(|(tool, _)| tool);
                if let Some(body) = upward.translate(body, named) {
                    upward.tell(self.host.as_ref(), &self.run, body);
                }
            }
        }
    }

    /// Tells a moment. `now` is the snapshot after the step that it came from, `before` the one before it.
    pub(crate) fn moment(&mut self, moment: Moment, now: &RunSnapshot, before: &RunSnapshot) {
        match moment {
            Moment::Delivered(message) => {
                self.end_message();
                let id = message.id.clone();
                self.tell(EventBody::MessageStart { message });
                self.tell(EventBody::MessageEnd { id });
            }
            Moment::MessageChanged { message, parts } => self.message_changed(message, &parts),
            Moment::MessageRestarted { id, error, attempt, of } => {
                let retry = Some(Retry { attempt, of, delay_ms: self.retry_delay_ms });
                self.tell(EventBody::Error { error, retry });
                if self.announced.as_ref() == Some(&id) {
                    self.shown.clear();
                    let empty =
                        Message::new(id, ac_core::Role::Assistant, vec![], self.message.as_ref().map_or_else(Default::default, |m| m.at));
                    self.tell(EventBody::MessageStart { message: Arc::new(empty) });
                }
            }
            Moment::MessageDone(id) => {
                self.tell_spent();
                if self.announced.as_ref() == Some(&id) {
                    self.end_message();
                }
            }
            Moment::CallSeen(call) => self.call_seen(call),
            Moment::ApprovalRequired(pending) => {
                let (call, parent_call) = (pending.call.clone(), self.parent_call.clone());
                if let Some((tool, args)) = self.named(&call) {
                    self.tell(EventBody::ToolApprovalRequired { pending, call, tool, args, parent_call });
                }
            }
            Moment::Suspended(pending) => self.suspended(pending, now),
            Moment::Resolved { pending, cancelled } => {
                let call = pending.call.clone();
                let was_suspended = before.waits().iter().any(|wait| wait.id == pending && wait.kind != PendingKind::Approval);
                self.tell(EventBody::PendingResolved { pending, call: call.clone() });
                if let (Some(reason), true) = (cancelled, was_suspended) {
                    let tool = before.call_part(&call).map(|part| part.name.clone()).unwrap_or_default();
                    self.tell(EventBody::ToolSuspensionCancelled { call, tool, reason });
                }
            }
            Moment::CallEnded(call) => self.call_ended(call),
            Moment::Judged(payload) => self.tell(EventBody::GoalEvaluation { payload }),
            Moment::Usage(usage) => self.spent.push(usage),
            Moment::QueueChanged => self.queue_changed(now),
            Moment::SegmentEnd { reason, finish, error } => self.end_segment(reason, finish, error),
        }
    }

    /// Ends the open segment, if there is one.
    pub(crate) fn end_segment(&mut self, reason: EndReason, finish: Option<ac_core::FinishReason>, error: Option<ac_core::ErrorInfo>) {
        // An abort of a parked run tells a segment of its own; a suspension that nobody saw begin tells nothing.
        if !self.segment && reason == EndReason::Suspended {
            return;
        }
        self.tell_spent();
        if let (EndReason::Error, Some(error)) = (reason, &error) {
            self.tell(EventBody::Error { error: error.clone(), retry: None });
        }
        self.end_message();
        self.tell(EventBody::AgentEnd { reason, finish, error });
        self.segment = false;
        self.message = None;
    }

    fn tell_spent(&mut self) {
        for usage in std::mem::take(&mut self.spent) {
            self.total.add(&usage);
            let total = self.total.clone();
            self.tell(EventBody::UsageUpdate { usage, total });
        }
    }

    /// Visible text of the open step arrives.
    pub(crate) fn text(&mut self, snapshot: &RunSnapshot, clock: &dyn Clock, index: u32, text: String) {
        let id = self.open_message(snapshot);
        self.show(&id, snapshot, clock, Shown { index, kind: ShownKind::Text });
        self.tell(EventBody::MessageUpdate { id, update: MessageUpdate::TextDelta(text) });
    }

    /// Thinking of the open step arrives.
    pub(crate) fn reasoning(&mut self, snapshot: &RunSnapshot, clock: &dyn Clock, index: u32, text: String) {
        let id = self.open_message(snapshot);
        let at_index = self.show(&id, snapshot, clock, Shown { index, kind: ShownKind::Reasoning });
        let update = MessageUpdate::ReasoningDelta { index: at_index, delta: text };
        self.tell(EventBody::MessageUpdate { id, update });
    }

    /// The id of the open step's message: made once for a step, not for each piece of it.
    fn open_message(&mut self, snapshot: &RunSnapshot) -> MessageId {
        match &self.open {
            Some((step, id)) if *step == snapshot.step => id.clone(),
            _ => self.open.insert((snapshot.step, snapshot.message_id())).1.clone(),
        }
    }

    /// Makes sure that the part is announced; answers where it stands in the message.
    fn show(&mut self, id: &MessageId, snapshot: &RunSnapshot, clock: &dyn Clock, part: Shown) -> usize {
        let known = self.announced.as_ref() == Some(id);
        if let (true, Some(place)) = (known, self.shown.iter().position(|shown| shown.index == part.index)) {
            return place;
        }
        let empty = match part.kind {
            ShownKind::Text => Part::Text(TextPart::default()),
            ShownKind::Reasoning => Part::Reasoning(ReasoningPart::default()),
        };
        if known {
            self.shown.push(part);
            let index = self.shown.len() - 1;
            let update = MessageUpdate::Part { index, part: Box::new(empty) };
            self.tell(EventBody::MessageUpdate { id: id.clone(), update });
            return index;
        }
        self.end_message();
        let mut message = Message::new(id.clone(), ac_core::Role::Assistant, vec![empty], clock.now());
        message.meta.run = Some(snapshot.run.clone());
        self.announced = Some(id.clone());
        self.shown = vec![part];
        self.tell(EventBody::MessageStart { message: Arc::new(message) });
        0
    }

    /// A message that was delivered in the commit that took it never waited.
    fn queue_changed(&mut self, now: &RunSnapshot) {
        let items = queue(now);
        if items != self.queued {
            self.queued = items.clone();
            self.out(EventBody::QueueChanged { items });
        }
    }

    fn message_changed(&mut self, message: Arc<Message>, parts: &[usize]) {
        // What streamed stands in the order in which it came; where the whole answer has another order, it is announced anew.
        let as_shown = self.announced.as_ref() == Some(&message.id) && self.matches_shown(&message);
        self.message = Some(message.clone());
        if !as_shown {
            if self.announced.as_ref() != Some(&message.id) {
                self.end_message();
            }
            self.announced = Some(message.id.clone());
            self.shown = message.parts.iter().enumerate().filter_map(|(at, part)| shown(at, part)).collect();
            self.tell(EventBody::MessageStart { message });
            return;
        }
        for &index in parts {
            match message.parts.get(index) {
                None | Some(Part::Text(_) | Part::Reasoning(_)) => {}
                Some(part) => {
                    let update = MessageUpdate::Part { index, part: Box::new(part.clone()) };
                    self.tell(EventBody::MessageUpdate { id: message.id.clone(), update });
                }
            }
        }
    }

    fn matches_shown(&self, message: &Message) -> bool {
        let mut streamed = message.parts.iter().filter_map(|part| match part {
            Part::Text(_) => Some(ShownKind::Text),
            Part::Reasoning(_) => Some(ShownKind::Reasoning),
            _ => None,
        });
        let leads = message.parts.iter().take(self.shown.len()).all(|part| matches!(part, Part::Text(_) | Part::Reasoning(_)));
        leads && self.shown.iter().all(|shown| streamed.next() == Some(shown.kind)) && streamed.next().is_none()
    }

    fn named(&self, call: &ToolCallId) -> Option<(String, serde_json::Value)> {
        let part = self.message.as_ref()?.tool_calls().find(|part| part.id == *call)?;
        Some((part.name.clone(), part.args.clone()))
    }

    fn call_seen(&mut self, call: ToolCallId) {
        if let Some((tool, args)) = self.named(&call) {
            self.tell(EventBody::ToolStart { call, tool, args });
        }
    }

    fn suspended(&mut self, pending: ac_core::PendingId, now: &RunSnapshot) {
        use ac_engine::SlotStatus;
        let waits = now.waits();
        let Some(wait) = waits.iter().find(|wait| wait.id == pending) else { return };
        let (payload, schema) = match &wait.slot.status {
            SlotStatus::Suspended { suspend, .. } => {
                (suspend.payload.clone(), suspend.answer_schema.clone().or_else(|| wait.slot.answer_schema.clone()))
            }
            _ => (in_doubt_payload(), None),
        };
        let call = pending.call.clone();
        let args = now.call_part(&call).map(|part| part.args.clone()).unwrap_or_default();
        let body = EventBody::ToolSuspended {
            pending,
            kind: wait.kind,
            call,
            tool: wait.slot.tool.clone(),
            args,
            payload,
            answer_schema: schema,
            parent_call: self.parent_call.clone(),
        };
        self.tell(body);
    }

    fn call_ended(&mut self, call: ToolCallId) {
        let Some(state) =
            self.message.as_ref().and_then(|message| message.tool_calls().find(|part| part.id == call).map(|part| part.state.clone()))
        else {
            return;
        };
        let body = match state {
            ToolCallState::Result { output, is_error } => {
                EventBody::ToolEnd { call, result: output.value, is_error, denied: false, changed: output.changed }
            }
            ToolCallState::OutputDenied { reason } => {
                EventBody::ToolEnd { call, result: serde_json::Value::String(reason), is_error: false, denied: true, changed: vec![] }
            }
            _ => return,
        };
        self.tell(body);
    }

    fn end_message(&mut self) {
        self.shown.clear();
        if let Some(id) = self.announced.take() {
            self.tell(EventBody::MessageEnd { id });
        }
    }
}

/// What a person is told about a call in doubt.
pub fn in_doubt_payload() -> serde_json::Value {
    serde_json::json!({
        "message": "This call was running when its process stopped. It may have done its work, in part or whole, and may still be running. \
                    Run it again, or record it as failed."
    })
}

/// What waits for the open run.
pub(crate) fn queue(snapshot: &RunSnapshot) -> Arc<[QueueItem]> {
    snapshot
        .queued
        .iter()
        .map(|message| QueueItem {
            id: message.id.clone(),
            kind: QueueKind::Message,
            thread: snapshot.thread.clone(),
            text: message.text().chars().take(200).collect(),
        })
        .collect()
}

fn shown(at: usize, part: &Part) -> Option<Shown> {
    let index = u32::try_from(at).ok()?;
    match part {
        Part::Text(_) => Some(Shown { index, kind: ShownKind::Text }),
        Part::Reasoning(_) => Some(Shown { index, kind: ShownKind::Reasoning }),
        _ => None,
    }
}

/// How the last segment of a run ends.
pub(crate) fn end_of(outcome: &Outcome) -> (EndReason, Option<ErrorInfo>) {
    match outcome {
        Outcome::Complete => (EndReason::Complete, None),
        Outcome::Aborted => (EndReason::Aborted, None),
        Outcome::Error { error } => (EndReason::Error, Some(error.clone())),
    }
}
