//! The machine as a diagram: places, and the moves between them.
//!
//! The code of the steps stands for itself; this table is what the documentation draws and what the tests measure their coverage by. A
//! move that the machine makes and the table does not name fails a test, and so does one that no test makes.

use std::fmt;

use ac_core::SuspendKind;

use crate::{Answer, Input, Phase, RunSnapshot, Slot, SlotStatus};

/// Where a run or one of its calls is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The run: the next dispatch asks the model.
    Ready,
    /// The run: the model is asked.
    Sampling,
    /// The run: calls are worked on.
    Tools,
    /// The run: its last word is judged.
    Judging,
    /// The run: over, with something left in the outbox.
    Finished,
    /// The run: over.
    Closed,
    /// A call: may it run?
    AwaitingApproval,
    /// A call: decided, not started.
    Queued,
    /// A call: going on.
    Running,
    /// A call: asks.
    Question,
    /// A call: a plan to be decided.
    Plan,
    /// A call: answered, not started again.
    Answered,
    /// A call: going on after an answer.
    Resuming,
    /// A call: goes on as a run of its own.
    Child,
    /// A call: its process died.
    InDoubt,
    /// A call: has its result.
    Done,
}

impl Place {
    /// Where the run is.
    pub fn of_run(run: &RunSnapshot) -> Self {
        match &run.phase {
            Phase::Ready => Self::Ready,
            Phase::Sampling => Self::Sampling,
            Phase::Tools { .. } => Self::Tools,
            Phase::Judging { .. } => Self::Judging,
            Phase::Finished { .. } if run.is_closed() => Self::Closed,
            Phase::Finished { .. } => Self::Finished,
        }
    }

    /// Where a call is.
    pub fn of_slot(slot: &Slot) -> Self {
        match &slot.status {
            SlotStatus::AwaitingApproval { .. } => Self::AwaitingApproval,
            SlotStatus::Queued => Self::Queued,
            SlotStatus::Running => Self::Running,
            SlotStatus::Suspended { suspend, .. } if suspend.kind == SuspendKind::Plan => Self::Plan,
            SlotStatus::Suspended { .. } => Self::Question,
            SlotStatus::Resuming { started: false, .. } => Self::Answered,
            SlotStatus::Resuming { started: true, .. } => Self::Resuming,
            SlotStatus::Child { .. } => Self::Child,
            SlotStatus::InDoubt { .. } => Self::InDoubt,
            SlotStatus::Done => Self::Done,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The name of an input in the table; an answer goes by what it says.
pub fn trigger(input: &Input) -> &'static str {
    match input {
        Input::Dispatch => "Dispatch",
        Input::Sampled { .. } => "Sampled",
        Input::SampleFailed { .. } => "SampleFailed",
        Input::SampleStopped { .. } => "SampleStopped",
        Input::ToolDone { .. } => "ToolDone",
        Input::ToolSuspended { .. } => "ToolSuspended",
        Input::ToolDelegated { .. } => "ToolDelegated",
        Input::ToolInterrupted { .. } => "ToolInterrupted",
        Input::ChildFinished { .. } => "ChildFinished",
        Input::Judged { .. } => "Judged",
        Input::Answer { answer, .. } => match answer {
            Answer::Approve { .. } => "Approve",
            Answer::Decline { .. } => "Decline",
            Answer::Reply { .. } => "Reply",
            Answer::RunAgain => "RunAgain",
            Answer::RecordFailed => "RecordFailed",
        },
        Input::Message { decline: true, .. } => "Message",
        Input::Message { decline: false, .. } => "Inject",
        Input::Interrupt { .. } => "Interrupt",
        Input::Withdraw { .. } => "Withdraw",
        Input::Abort { .. } => "Abort",
        Input::CancelCall { .. } => "CancelCall",
        Input::Recover { .. } => "Recover",
        Input::Applied { .. } => "Applied",
    }
}

/// Every move of the machine, once.
pub const TRANSITIONS: &[(Place, &str, Place)] = {
    use Place::*;
    &[
        (Ready, "Abort", Ready),
        (Ready, "Abort", Finished),
        (Ready, "Abort", Closed),
        (Ready, "Dispatch", Sampling),
        (Ready, "Dispatch", Closed),
        (Sampling, "Recover", Ready),
        (Sampling, "Recover", Closed),
        (Sampling, "SampleFailed", Ready),
        (Sampling, "SampleFailed", Closed),
        (Sampling, "SampleStopped", Ready),
        (Sampling, "SampleStopped", Closed),
        (Sampling, "Sampled", Ready),
        (Sampling, "Sampled", Tools),
        (Sampling, "Sampled", Judging),
        (Sampling, "Sampled", Closed),
        (Sampling, "Sampled", AwaitingApproval),
        (Sampling, "Sampled", Queued),
        (Sampling, "Sampled", Done),
        (Tools, "Abort", Ready),
        (Tools, "Abort", Finished),
        (Tools, "Abort", Closed),
        (Tools, "CancelCall", Ready),
        (Tools, "ChildFinished", Ready),
        (Tools, "ChildFinished", Finished),
        (Tools, "ChildFinished", Closed),
        (Tools, "Decline", Ready),
        (Tools, "Interrupt", Ready),
        (Tools, "Message", Ready),
        (Tools, "RecordFailed", Ready),
        (Tools, "Recover", Ready),
        (Tools, "Recover", Finished),
        (Tools, "Recover", Closed),
        (Tools, "Reply", Ready),
        (Tools, "ToolDelegated", Ready),
        (Tools, "ToolDelegated", Finished),
        (Tools, "ToolDelegated", Closed),
        (Tools, "ToolDone", Ready),
        (Tools, "ToolDone", Finished),
        (Tools, "ToolDone", Closed),
        (Tools, "ToolInterrupted", Ready),
        (Tools, "ToolInterrupted", Finished),
        (Tools, "ToolInterrupted", Closed),
        (Tools, "ToolSuspended", Ready),
        (Tools, "ToolSuspended", Finished),
        (Tools, "ToolSuspended", Closed),
        (Judging, "Abort", Closed),
        (Judging, "Inject", Ready),
        (Judging, "Judged", Ready),
        (Judging, "Judged", Closed),
        (Judging, "Message", Ready),
        (Finished, "Applied", Closed),
        (AwaitingApproval, "Abort", Done),
        (AwaitingApproval, "Approve", Queued),
        (AwaitingApproval, "CancelCall", Done),
        (AwaitingApproval, "Decline", Done),
        (AwaitingApproval, "Interrupt", Done),
        (AwaitingApproval, "Message", Done),
        (Queued, "Abort", Done),
        (Queued, "CancelCall", Done),
        (Queued, "Dispatch", Running),
        (Running, "Recover", Queued),
        (Running, "Recover", InDoubt),
        (Running, "Recover", Done),
        (Running, "ToolDelegated", Child),
        (Running, "ToolDelegated", Done),
        (Running, "ToolDone", Done),
        (Running, "ToolInterrupted", Done),
        (Running, "ToolSuspended", Question),
        (Running, "ToolSuspended", Plan),
        (Running, "ToolSuspended", Done),
        (Question, "Abort", Done),
        (Question, "CancelCall", Done),
        (Question, "Decline", Done),
        (Question, "Reply", Answered),
        (Plan, "Abort", Done),
        (Plan, "CancelCall", Done),
        (Plan, "Decline", Done),
        (Plan, "Reply", Done),
        (Answered, "Abort", Done),
        (Answered, "CancelCall", Done),
        (Answered, "Dispatch", Resuming),
        (Resuming, "Recover", Answered),
        (Resuming, "Recover", InDoubt),
        (Resuming, "Recover", Done),
        (Resuming, "ToolDelegated", Child),
        (Resuming, "ToolDelegated", Done),
        (Resuming, "ToolDone", Done),
        (Resuming, "ToolInterrupted", Done),
        (Resuming, "ToolSuspended", Question),
        (Resuming, "ToolSuspended", Plan),
        (Resuming, "ToolSuspended", Done),
        (Child, "ChildFinished", Done),
        (InDoubt, "Abort", Done),
        (InDoubt, "CancelCall", Done),
        (InDoubt, "RecordFailed", Done),
        (InDoubt, "RunAgain", Queued),
        (InDoubt, "RunAgain", Answered),
    ]
};

/// The moves that an input made: of the run, also from a step to the next, and of each call of a step that stayed open.
pub fn moves(before: &RunSnapshot, on: &'static str, after: &RunSnapshot) -> Vec<(Place, &'static str, Place)> {
    let mut made = vec![];
    let (was, is) = (Place::of_run(before), Place::of_run(after));
    if was != is || before.step != after.step {
        made.push((was, on, is));
    }
    if before.step == after.step {
        let both = before.slots().iter().zip(after.slots());
        made.extend(both.map(|(was, is)| (Place::of_slot(was), on, Place::of_slot(is))).filter(|(was, _, is)| was != is));
        if before.slots().is_empty() {
            made.extend(after.slots().iter().map(|slot| (was, on, Place::of_slot(slot))));
        }
    }
    made
}

/// The machine as two Mermaid state diagrams in Markdown: the run, and a call of its open step.
pub fn diagram() -> String {
    let run = [Place::Ready, Place::Sampling, Place::Tools, Place::Judging, Place::Finished, Place::Closed];
    let mut text = String::from("```mermaid\nstateDiagram-v2\n    [*] --> Ready: start\n");
    draw(&mut text, |from, to| run.contains(&from) && run.contains(&to), Place::to_string);
    text.push_str("    Closed --> [*]\n```\n\n```mermaid\nstateDiagram-v2\n");
    let born = |place: &Place| if *place == Place::Sampling { "[*]".to_owned() } else { place.to_string() };
    draw(&mut text, |_, to| !run.contains(&to), born);
    text.push_str("    Done --> [*]\n```\n");
    text
}

/// One arrow for each pair of places, with everything that leads from the one to the other.
fn draw(text: &mut String, wanted: impl Fn(Place, Place) -> bool, name: impl Fn(&Place) -> String) {
    let mut arrows: std::collections::BTreeMap<(Place, Place), Vec<&str>> = std::collections::BTreeMap::new();
    for (from, on, to) in TRANSITIONS.iter().filter(|(from, _, to)| wanted(*from, *to)) {
        arrows.entry((*from, *to)).or_default().push(on);
    }
    for ((from, to), on) in arrows {
        text.push_str(&format!("    {} --> {}: {}\n", name(&from), name(&to), on.join(" / ")));
    }
}
