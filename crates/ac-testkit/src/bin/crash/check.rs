//! The checker: a process that saw none of the work.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
    sync::Arc,
};

use ac_controller::Answer;
use ac_core::{Part, Role, ThreadId, ToolCallPart, ToolCallState, event::PendingKind, id::child_run};
use ac_storage::{
    Kv, KvStorage, Storage,
    domain::{MessageQuery, OpenRuns, ThreadQuery},
};
use ac_testkit::pairing;
use serde_json::Value;

use crate::{
    Failure,
    desk::{self, Folder},
    journal::{How, Journal, Line},
    tools::{self, Deed},
};

/// Prints what is wrong. Says whether nothing is.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn check(dir: &Path) -> Result<bool, Failure> {
    let folder = Folder::new(dir);
    let store = Arc::new(desk::open(&folder, false).await?);
    let wrong = whole(&store, &folder).await?;
    store.close().await?;
    wrong.iter().for_each(|what| println!("{what}"));
    Ok(wrong.is_empty())
}

/// What is wrong with a store and with what is known of its making.
pub(crate) async fn whole<K: Kv>(store: &Arc<KvStorage<K>>, folder: &Folder) -> Result<BTreeSet<String>, Failure> {
    let mut check = Check { journal: Journal::read(&folder.acknowledged())?, ..Check::default() };
    check.complaints();
    check.store(store, folder).await?;
    check.messages();
    check.requests(&lines(&folder.requests())?);
    check.answers();
    check.deeds(&lines(&folder.deeds())?);
    Ok(check.wrong.into_iter().collect())
}

pub(crate) fn lines<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>, io::Error> {
    let text = if path.exists() { fs::read_to_string(path)? } else { String::new() };
    // A kill may cut the last line of a log, before the effect counts as done.
    let whole = text.rfind('\n').map_or("", |end| text.get(..end).unwrap_or_default());
    whole.lines().map(|line| serde_json::from_str(line).map_err(io::Error::other)).collect()
}

#[derive(Default)]
struct Check {
    journal: Journal,
    wrong: Vec<String>,
    /// What people said: text, thread, position. In the order of threads and positions.
    said: Vec<(String, ThreadId, u64)>,
    /// Runs on copies of threads. They are deleted when nobody needs them any more.
    forks: BTreeSet<String>,
    /// Stored calls by run and call.
    calls: BTreeMap<(String, String), ToolCallPart>,
}

impl Check {
    fn find(&mut self, what: impl Into<String>) {
        self.wrong.push(what.into());
    }

    fn complaints(&mut self) {
        for line in &self.journal.lines {
            if let Line::Complaint { text } = line {
                self.wrong.push(text.clone());
            }
        }
    }

    /// Everything closed, nothing waits, every history complete.
    async fn store<K: Kv>(&mut self, store: &Arc<KvStorage<K>>, folder: &Folder) -> Result<(), Failure> {
        for problem in store.verify().await?.problems {
            self.find(format!("the store is unsound at {}: {}", problem.key, problem.what));
        }
        for header in store.runs().open(&OpenRuns::default()).await?.items {
            self.find(format!("run {} is still {:?}", header.run, header.stage));
        }
        let query = ThreadQuery { hidden: true, ..ThreadQuery::default() };
        let mut threads: Vec<ThreadId> = store.threads().list(&query).await?.items.into_iter().map(|row| row.info.id).collect();
        while let Some(thread) = threads.pop() {
            self.thread(store, &thread, &mut threads).await?;
        }
        self.deletions(store).await?;
        // The address of the model leads nowhere: the checker asks nothing.
        let controller = desk::controller(store.clone(), tools::all(folder.deeds(), false), "http://127.0.0.1:9", desk::LEASE)?;
        for pending in controller.pending().await? {
            self.find(format!("{} is still pending", pending.id));
        }
        let sessions = store.sessions().list(controller.id(), None, 0).await?.items;
        for id in sessions {
            let session = controller.create_session(id.key.clone()).await?;
            for item in session.queue().await? {
                self.find(format!("message {} is still queued", item.id));
            }
            let (grants, job) = (session.grants().len(), id.key.resource.as_str());
            if grants != usize::from(self.journal.granted(job)) {
                self.find(format!("{job} has {grants} grants at the end"));
            }
        }
        controller.shutdown().await;
        Ok(())
    }

    /// What was deleted is gone, for good; a copy has what it was made of.
    async fn deletions<K: Kv>(&mut self, store: &KvStorage<K>) -> Result<(), Failure> {
        let mut wrong = vec![];
        for line in &self.journal.lines {
            match line {
                Line::Deleted { thread } => {
                    let thread = thread.as_str().into();
                    let messages = store.messages().page(&thread, &MessageQuery::default()).await?.items.len();
                    let buried = store.runs().head(&thread).await?.is_some_and(|head| head.value.deleted);
                    if store.threads().get(&thread).await?.is_some() || messages > 0 || !buried {
                        wrong.push(format!("thread {thread} was deleted, and something of it is there"));
                    }
                }
                Line::Cloned { from, to, messages } => {
                    let page = store.messages().page(&to.as_str().into(), &MessageQuery::default()).await?.items.len();
                    let deleted = self.journal.deleting().any(|(_, thread, _)| thread == to);
                    if !deleted && (page < *messages || *messages == 0) {
                        wrong.push(format!("the copy {to} of {from} had {messages} messages and has {page}"));
                    }
                }
                _ => {}
            }
        }
        self.wrong.append(&mut wrong);
        Ok(())
    }

    async fn thread<K: Kv>(&mut self, store: &KvStorage<K>, thread: &ThreadId, more: &mut Vec<ThreadId>) -> Result<(), Failure> {
        if let Some(run) = store.runs().head(thread).await?.and_then(|head| head.value.active_run) {
            self.find(format!("thread {thread} is still held by run {run}"));
        }
        let mut ids = BTreeSet::new();
        for stored in store.messages().page(thread, &MessageQuery::default()).await?.items {
            let message = &stored.message;
            // The thread of a child begins with what it was copied from, if it was.
            if thread.as_str().contains('~') && !message.id.as_str().starts_with(&format!("{thread}/")) {
                continue;
            }
            if !ids.insert(message.id.clone()) {
                self.find(format!("message {} is stored twice", message.id));
            }
            if message.role == Role::User {
                self.said.push((message.text(), thread.clone(), stored.position));
            }
            for call in message.tool_calls() {
                if !call.state.is_settled() {
                    self.find(format!("call {} of message {} has no result", call.id, message.id));
                }
                let Some((run, step)) = message.id.as_str().rsplit_once('/') else {
                    self.find(format!("message {} has calls and belongs to no step", message.id));
                    continue;
                };
                self.calls.insert((run.to_owned(), call.id.to_string()), call.clone());
                if ["delegate", "subagent"].contains(&call.name.as_str())
                    && let Ok(step) = step.parse()
                {
                    let child = child_run(&run.into(), step, &call.id);
                    if call.args.get("agentType").and_then(Value::as_str) == Some("fork") {
                        self.forks.insert(child.to_string());
                    }
                    more.push(child.as_str().into());
                }
            }
            if message.parts.iter().any(|part| matches!(part, Part::Unknown(_))) {
                self.find(format!("message {} has a part that nobody knows", message.id));
            }
        }
        Ok(())
    }

    /// None lost, none doubled, in order.
    fn messages(&mut self) {
        let mut count: BTreeMap<&str, usize> = BTreeMap::new();
        // What a child run is told is told to each child.
        for (text, ..) in self.said.iter().filter(|(text, ..)| text.starts_with('[')) {
            *count.entry(text).or_default() += 1;
        }
        let mut wrong: Vec<String> =
            count.iter().filter(|(_, n)| **n > 1).map(|(text, n)| format!("message {text} is stored {n} times")).collect();
        let mut last: BTreeMap<(&str, bool), (&ThreadId, u64, &str)> = BTreeMap::new();
        for line in &self.journal.lines {
            let Line::Said { job, how, text, thread, .. } = line else { continue };
            if !self.kept(thread) {
                continue;
            }
            let Some((_, thread, position)) = self.said.iter().find(|(said, ..)| said == text) else {
                wrong.push(format!("message {text} was acknowledged and is lost"));
                continue;
            };
            if let Some((before, at, other)) = last.insert((job, *how == How::FollowUp), (thread, *position, text))
                && (before != thread || at > *position)
            {
                wrong.push(format!("message {text} was said after {other} and stands before it"));
            }
        }
        self.wrong.append(&mut wrong);
    }

    /// Whether what was said on a thread is there at the end: nobody tried to delete it, or it was copied before.
    fn kept(&self, thread: &str) -> bool {
        let copied = || self.journal.lines.iter().any(|line| matches!(line, Line::Cloned { from, .. } if from == thread));
        !self.journal.deleting().any(|(_, deleted, _)| deleted == thread) || copied()
    }

    /// Whether a run went with its thread.
    fn went(&self, run: &str) -> bool {
        let said_there = |line: &Line| matches!(line, Line::Said { run: Some(said), thread, .. } if said == run && !self.kept(thread));
        self.journal.deleting().any(|(_, _, runs)| runs.iter().any(|of| of == run)) || self.journal.lines.iter().any(said_there)
    }

    /// Every request a legal history that holds no message twice; the last one of each job holds all that was acknowledged.
    fn requests(&mut self, requests: &[Value]) {
        let mut all: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for line in &self.journal.lines {
            if let Line::Said { job, text, thread, .. } = line
                && self.kept(thread)
            {
                all.entry(job.clone()).or_default().push(text);
            }
        }
        let mut wrong = vec![];
        let texts: Vec<String> = requests.iter().map(said_in).collect();
        for (at, (request, text)) in requests.iter().zip(&texts).enumerate() {
            wrong.extend(pairing::chat(request).into_iter().map(|what| format!("request {at}: {what}")));
            for said in all.values().flatten() {
                if text.matches(said).count() > 1 {
                    wrong.push(format!("request {at} holds message {said} twice"));
                }
            }
        }
        for (job, said) in &all {
            let Some(last) = texts.iter().rfind(|text| text.contains(&format!("[{job} "))) else {
                wrong.push(format!("{job}: no request holds a message of it"));
                continue;
            };
            wrong
                .extend(said.iter().filter(|said| !last.contains(**said)).map(|said| format!("message {said} is not in the last request")));
        }
        self.wrong.append(&mut wrong);
    }

    /// What was answered counts.
    fn answers(&mut self) {
        let mut wrong = vec![];
        let mut given: BTreeMap<String, &Answer> = BTreeMap::new();
        for line in &self.journal.lines {
            let Line::Answered { job, id, kind, tool, answer } = line else { continue };
            if given.insert(id.to_string(), answer).is_some_and(|before| before != answer) {
                wrong.push(format!("{id}: two different answers were acknowledged"));
            }
            if self.went(id.run.as_str()) {
                continue;
            }
            let Some(call) = self.calls.get(&(id.run.to_string(), id.call.to_string())) else {
                wrong.push(format!("{id} was answered, and its call is lost"));
                continue;
            };
            let denied = matches!(call.state, ToolCallState::OutputDenied { .. });
            let aborted = self.journal.aborted(job);
            let text = serde_json::to_string(&call.state).unwrap_or_default();
            match answer {
                Answer::Decline { .. } if !denied => wrong.push(format!("{id} was declined, and has a result: {text}")),
                Answer::Approve { .. } if !call.approved => wrong.push(format!("{id} was approved, and the call does not say so")),
                Answer::Approve { .. } if denied && !aborted => wrong.push(format!("{id} was approved, and denied: {text}")),
                Answer::Reply { value } if *kind == PendingKind::Question && !aborted && !self.doubted(call) => {
                    let told = value.as_str().unwrap_or_default();
                    if !text.contains(told) {
                        wrong.push(format!("{id}: `{told}` did not reach {tool}: {text}"));
                    }
                }
                Answer::Reply { value } if *kind == PendingKind::Plan && !aborted => {
                    let approved = value.get("action").and_then(Value::as_str) == Some("approved");
                    if approved != text.contains("Plan approved") {
                        wrong.push(format!("{id}: the decision {value} became {text}"));
                    }
                }
                Answer::RecordFailed if !matches!(call.state, ToolCallState::Result { is_error: true, .. }) => {
                    wrong.push(format!("{id} was recorded as failed, and is not: {text}"));
                }
                _ => {}
            }
        }
        self.wrong.append(&mut wrong);
    }

    /// Whether a person was asked what to do about a call in doubt, and may have had it recorded as failed.
    fn doubted(&self, call: &ToolCallPart) -> bool {
        self.journal.lines.iter().any(|line| matches!(line, Line::Answering { id, answer: Answer::RecordFailed } if id.call == call.id))
    }

    /// What tools did: at most once where that matters, nothing that was not asked for, and nothing claimed that was not done.
    fn deeds(&mut self, deeds: &[Deed]) {
        let mut wrong = vec![];
        let mut count: BTreeMap<(String, String), usize> = BTreeMap::new();
        for deed in deeds {
            *count.entry((deed.run.clone(), deed.call.clone())).or_default() += 1;
        }
        let mut again: BTreeMap<(String, String), BTreeSet<u32>> = BTreeMap::new();
        let mut declined = BTreeSet::new();
        for line in &self.journal.lines {
            match line {
                // One whose acknowledgement was lost may have counted.
                Line::Answering { id, answer: Answer::RunAgain } => {
                    again.entry((id.run.to_string(), id.call.to_string())).or_default().insert(id.n);
                }
                Line::Answered { id, answer: Answer::Decline { .. }, .. } => {
                    declined.insert((id.run.to_string(), id.call.to_string()));
                }
                _ => {}
            }
        }
        for (key, n) in &count {
            let (run, call) = key;
            if self.went(run) {
                continue;
            }
            if !self.calls.contains_key(key) && !self.forks.contains(run) {
                wrong.push(format!("call {call} of {run} acted, and is in no history"));
                continue;
            }
            let tool = deeds.iter().find(|deed| deed.run == *run && deed.call == *call).map_or("", |deed| &deed.tool);
            let allowed = 1 + again.get(key).map_or(0, BTreeSet::len);
            if tools::is_mutating(tool) && *n > allowed {
                wrong.push(format!("{tool} {call} of {run} acted {n} times, {allowed} allowed"));
            }
            if declined.contains(key) {
                wrong.push(format!("{tool} {call} of {run} was declined, and acted"));
            }
        }
        for (key, part) in &self.calls {
            let claims = matches!(part.state, ToolCallState::Result { is_error: false, .. });
            if claims && tools::leaves_deeds(&part.name) && !count.contains_key(key) {
                wrong.push(format!("{} {} of {} claims to have acted, and did not", part.name, key.1, key.0));
            }
        }
        self.wrong.append(&mut wrong);
    }
}

/// What people say in a request.
fn said_in(request: &Value) -> String {
    let messages = request.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let said = messages.iter().filter(|message| message.get("role").and_then(Value::as_str) == Some("user"));
    said.map(ToString::to_string).collect()
}
