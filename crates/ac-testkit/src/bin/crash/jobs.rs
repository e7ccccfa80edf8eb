//! The jobs: what a person does, and what the model answers.

use std::time::Duration;

use ac_testkit::{
    Turn,
    server::turn::{Match, Repeat},
};
use serde_json::{Value, json};

/// A job of one session.
pub(crate) struct Job {
    pub(crate) name: &'static str,
    pub(crate) steps: &'static [Step],
    /// What the model calls, stage by stage; after the last one it only talks.
    stages: &'static [Stage],
}

/// What the model calls at once: tool and milliseconds of work.
type Stage = &'static [(&'static str, u64)];

/// What a person does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Switches the mode.
    Mode(&'static str),
    /// Sends a message.
    Say,
    /// Injects a message.
    Inject,
    /// Queues a message for a run of its own.
    FollowUp,
    /// Stops, and goes on with a message.
    Steer,
    /// Stops.
    Abort,
    /// Takes all session-wide grants back.
    Revoke,
    /// Copies the thread, and goes on in the copy.
    Fork,
    /// Deletes every thread but the one that is bound.
    DeleteOthers,
    /// Deletes the thread that is bound, with the run that moves or waits on it.
    Delete,
    /// Waits so many milliseconds.
    Pause(u64),
    /// Answers whatever comes until nothing moves and nothing waits.
    Rest,
}

use Step::{Abort, Delete, DeleteOthers, FollowUp, Fork, Inject, Mode, Pause, Rest, Revoke, Say, Steer};

/// All of them. The last message of each shows whether its history is a legal request.
pub(crate) const JOBS: [Job; 12] = [
    Job { name: "parallel", steps: &[Say, Rest, Say, Rest], stages: &[&[("look", 4), ("post", 6), ("post", 2), ("keep", 0)]] },
    Job {
        name: "approvals",
        steps: &[Say, Rest, Say, Rest],
        stages: &[&[("write", 3), ("write", 0), ("look", 0), ("save", 2)], &[("write", 2)]],
    },
    Job {
        name: "questions",
        steps: &[Say, Rest, Say, Rest],
        stages: &[&[("ask_user", 0), ("confirm", 3), ("post", 2)], &[("confirm", 0)]],
    },
    Job { name: "plans", steps: &[Mode("plan"), Say, Rest, Say, Rest], stages: &[&[("submit_plan", 0), ("look", 2)], &[("write", 2)]] },
    Job {
        name: "words",
        steps: &[Say, Pause(6), Inject, FollowUp, FollowUp, Pause(4), Say, Rest, Say, Rest],
        stages: &[&[("post", 25)], &[("look", 5), ("post", 3)]],
    },
    Job {
        name: "aborts",
        steps: &[Say, Pause(20), Abort, Say, Pause(15), FollowUp, Steer, Rest, Say, Rest],
        stages: &[&[("post", 40), ("write", 0)], &[("post", 20), ("ask_user", 0)], &[("post", 1)]],
    },
    // Each approval of it comes with a grant for the tool.
    Job {
        name: GRANTS,
        steps: &[Say, Rest, Revoke, Say, Rest],
        stages: &[&[("write", 2), ("write", 0)], &[("write", 1)], &[("ask_user", 0), ("write", 0)]],
    },
    Job { name: "copies", steps: &[Say, Rest, Fork, Say, Rest, DeleteOthers, Say, Rest], stages: &[&[("post", 1), ("ask_user", 0)]] },
    Job { name: "moving", steps: &[Say, Pause(25), Delete, Say, Rest, Say, Rest], stages: &[&[("look", 2), ("post", 30)]] },
    Job { name: "parked", steps: &[Say, Pause(40), Delete, Say, Rest, Say, Rest], stages: &[&[("write", 1), ("ask_user", 0)]] },
    Job { name: "children", steps: &[Say, Rest, Say, Rest], stages: &[&[("delegate", 0), ("post", 2)], &[("look", 0)]] },
    Job { name: "subagents", steps: &[Say, Rest, Say, Rest], stages: &[&[("subagent", HELPER), ("post", 2)], &[("subagent", FORK)]] },
];

/// For `subagent` the number names the type.
const HELPER: u64 = 0;
const FORK: u64 = 1;

/// What a helper is told to be, and no other request says.
pub(crate) const HELPS: &str = "You help.";
/// What only a fork is told.
const FORKED: &str = "working on a copy of the conversation";
/// The job whose approvals come with a grant.
pub(crate) const GRANTS: &str = "grants";

/// The job of a name.
pub(crate) fn job(name: &str) -> Option<&'static Job> {
    JOBS.iter().find(|job| job.name == name)
}

/// A message: unlike any other of any life.
pub(crate) fn text(job: &str, step: usize, life: u32) -> String {
    format!("[{job} {step} {life}]")
}

/// What a child run is told.
pub(crate) const TASK: &str = "(a task)";

impl Job {
    /// What the model answers in this job's threads. The call ids in a request show how far the history is, so the model needs no memory
    /// and a request that is made again is answered as before.
    pub(crate) fn turns(&self) -> Vec<Turn> {
        let mut turns: Vec<Turn> = vec![];
        if self.stages.iter().flat_map(|stage| stage.iter()).any(|(tool, _)| *tool == "subagent") {
            // Before those of the parent, whose history a fork shares.
            turns.extend(child("kid-0-", HELPS, &[("post", 3), ("write", 1)]));
            turns.extend(child("kid-1-", FORKED, &[("post", 1), ("write", 2)]));
        }
        for (at, stage) in self.stages.iter().enumerate() {
            let mark = |stage: usize| format!("{}-{stage}-", self.name);
            let contains = if at == 0 { format!("[{} ", self.name) } else { mark(at - 1) };
            let calls = stage.iter().enumerate().map(|(n, (tool, wait))| (format!("{}{n}", mark(at)), *tool, *wait));
            turns.push(calling(calls, Match { contains: Some(contains), not_contains: Some(mark(at)), ..Match::default() }));
        }
        turns.push(talking(Match { contains: Some(format!("[{} ", self.name)), ..Match::default() }));
        if self.stages.iter().any(|stage| stage.iter().any(|(tool, _)| *tool == "delegate")) {
            turns.extend(child("kid-0-", TASK, &[("post", 3), ("write", 1)]));
        }
        turns
    }
}

/// What the model answers a child run that is told `told`: first it calls, then it only talks.
fn child(mark: &str, told: &str, calls: &[(&'static str, u64)]) -> [Turn; 2] {
    let when = || Match { contains: Some(told.to_owned()), ..Match::default() };
    let calls = calls.iter().enumerate().map(|(n, (tool, wait))| (format!("{mark}{n}"), *tool, *wait));
    [calling(calls, Match { not_contains: Some(mark.to_owned()), ..when() }), talking(when())]
}

fn calling(calls: impl Iterator<Item = (String, &'static str, u64)>, when: Match) -> Turn {
    let mut turn = Turn { repeat: Repeat::Forever(true), ..Turn::default() }.when(when);
    for (id, tool, wait) in calls {
        turn = turn.then_tool(id, tool, args(tool, wait));
    }
    turn
}

fn talking(when: Match) -> Turn {
    Turn { repeat: Repeat::Forever(true), ..Turn::chunks(["That ", "is ", "done."]) }.when(when).slowly(Duration::from_millis(1))
}

fn args(tool: &str, wait: u64) -> Value {
    match tool {
        "ask_user" => json!({ "question": "Which colour?" }),
        "subagent" => json!({ "agentType": if wait == FORK { "fork" } else { "helper" }, "task": "(some help)" }),
        "submit_plan" => json!({ "path": "plan.md" }),
        _ => json!({ "wait": wait }),
    }
}
