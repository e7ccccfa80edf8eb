//! What waits for a person, and how it is named on the command line.

use std::collections::{BTreeMap, BTreeSet};

use agent_controller::{
    controller::Pending,
    core::{PendingId, RunId, ThreadId, ToolCallId, event::PendingKind, id::step_message},
    engine::{Answer, Resolution, RunSnapshot},
    storage::domain::MessageQuery,
};
use serde_json::{Value, json};

use crate::{
    app::{self, App},
    exit::Failure,
    reply,
};

/// A row of `acode pending`.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    /// What it is.
    pub(crate) pending: Pending,
    /// How it is named.
    pub(crate) id: String,
}

impl Wait {
    /// The row.
    pub(crate) fn row(&self) -> Value {
        let open = &self.pending;
        json!({
            "id": self.id,
            "kind": open.kind.as_str(),
            "tool": open.tool,
            "args": open.args,
            "payload": open.payload,
            "run": open.run,
            "thread": open.thread,
            "since": open.since.to_string(),
        })
    }
}

/// Where a call id was used.
type Owners = BTreeMap<ToolCallId, BTreeMap<RunId, Option<u32>>>;

impl App {
    /// What waits, oldest first; of one conversation, where one is named. Each is named by its run, which costs nothing to know.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn open(&self, thread: Option<&ThreadId>) -> Result<Vec<Wait>, Failure> {
        let open = self.controller.pending().await?.into_iter().filter(|open| thread.is_none_or(|thread| open.thread == *thread));
        // The name of a call means its approval; a doubt about the same call has a name of its own, so that a repeated approval never runs
        // it again.
        let name = |open: &Pending| match open.kind {
            PendingKind::InDoubt if open.id.n > 1 => open.id.to_string(),
            _ => format!("{}/{}", open.run, open.call),
        };
        Ok(open.map(|open| Wait { id: name(&open), pending: open }).collect())
    }

    /// As [`App::open`], named as people name it: by the call alone where no other call of the store has that name.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn waits(&self, thread: Option<&ThreadId>) -> Result<Vec<Wait>, Failure> {
        let mut open = self.open(thread).await?;
        if open.is_empty() {
            return Ok(open);
        }
        let owners = self.owners(&open.iter().map(|wait| wait.pending.call.clone()).collect()).await?;
        for wait in &mut open {
            let alone = owners.get(&wait.pending.call).is_none_or(|runs| runs.keys().all(|run| *run == wait.pending.run));
            let doubt = wait.pending.kind == PendingKind::InDoubt && wait.pending.id.n > 1;
            if alone && !doubt {
                wait.id = wait.pending.call.to_string();
            }
        }
        Ok(open)
    }

    /// The runs in which each of these calls was made, over the whole store, with the step.
    async fn owners(&self, calls: &BTreeSet<ToolCallId>) -> Result<Owners, Failure> {
        let mut owners = Owners::new();
        let failed = |error: agent_controller::storage::StorageError| Failure::failed(error.code(), error.to_string());
        for info in app::threads(self.storage()).await? {
            let mut query = MessageQuery { limit: 500, ..MessageQuery::default() };
            loop {
                let page = self.storage().messages().page(&info.id, &query).await.map_err(failed)?;
                for stored in &page.items {
                    let Some(run) = &stored.message.meta.run else { continue };
                    let step = stored.message.id.as_str().rsplit_once('/').and_then(|(_, step)| step.parse().ok());
                    for call in stored.message.tool_calls().filter(|call| calls.contains(&call.id)) {
                        owners.entry(call.id.clone()).or_default().insert(run.clone(), step);
                    }
                }
                match (page.next, page.items.last()) {
                    (Some(_), Some(last)) => {
                        query.after = Some(agent_controller::storage::record::MessageCursor::Position(last.position));
                    }
                    _ => break,
                }
            }
        }
        Ok(owners)
    }

    /// What an ID means: a wait that is open, or one that was answered before (so that the same answer again is recognised).
    ///
    /// # Errors
    /// When it means nothing, or several things.
    pub(crate) async fn find(&self, id: &str, wants: Wants) -> Result<Found, Failure> {
        let waits = self.open(None).await?;
        if let Ok(exact) = id.parse::<PendingId>() {
            let open = waits.into_iter().find(|wait| wait.pending.id == exact);
            return match (open, self.answer_of(&exact).await?) {
                (Some(wait), _) => Ok(Found::Open(Box::new(Wait { id: id.to_owned(), ..wait }))),
                (None, Some(settled)) => Ok(Found::Settled(settled)),
                (None, None) => Err(not_pending(id)),
            };
        }
        let call = ToolCallId::from(id);
        let owners = self.owners(&BTreeSet::from([call.clone()])).await?;
        let runs = owners.get(&call).cloned().unwrap_or_default();
        if runs.len() > 1 {
            let candidates: Vec<_> = runs.keys().map(|run| format!("{run}/{call}")).collect();
            let message = format!("several calls are named `{id}`; say which: {}", candidates.join(", "));
            return Err(Failure { code: "answer.ambiguous".into(), ..Failure::usage(message) });
        }
        let named = |wait: &Wait| wait.pending.call == call || format!("{}/{}", wait.pending.run, wait.pending.call) == id;
        let Some(wait) = waits.into_iter().find(named) else {
            return self.settled(id, runs, wants).await;
        };
        // A doubt comes after an approval of the same call: the call's name alone still means that.
        if wait.pending.kind == PendingKind::InDoubt
            && let Some(earlier) = self.answered(&wait.pending.run, &wait.pending.call, wants).await?
        {
            return Ok(Found::Settled(earlier));
        }
        // It is spoken of by the name that the person used.
        Ok(Found::Open(Box::new(Wait { id: id.to_owned(), ..wait })))
    }

    /// A call that waits no more.
    async fn settled(&self, id: &str, mut runs: BTreeMap<RunId, Option<u32>>, wants: Wants) -> Result<Found, Failure> {
        let mut call = ToolCallId::from(id);
        if runs.is_empty()
            && let Some((run, name)) = id.split_once('/')
        {
            call = name.into();
            runs = BTreeMap::from([(run.into(), None)]);
        }
        for run in runs.keys() {
            if let Some(answered) = self.answered(run, &call, wants).await? {
                return Ok(Found::Settled(answered));
            }
            let snapshot = self.snapshot(run).await?;
            if snapshot.is_some_and(|snapshot| snapshot.answers.keys().any(|id| id.call == call)) {
                let message = format!("`{id}` was decided already, in another way");
                return Err(Failure::failed("answer.already_resolved", message));
            }
        }
        Err(not_pending(id))
    }

    /// The first wait of a call that was answered in the wanted way.
    async fn answered(&self, run: &RunId, call: &ToolCallId, wants: Wants) -> Result<Option<Settled>, Failure> {
        let Some(snapshot) = self.snapshot(run).await? else { return Ok(None) };
        let fits = |resolution: &Resolution| match (resolution, wants) {
            (
                Resolution::Answered(Answer::Approve { .. } | Answer::Decline { .. } | Answer::RunAgain | Answer::RecordFailed),
                Wants::Decision,
            ) => true,
            (Resolution::Answered(Answer::Reply { .. }), Wants::Value) => true,
            (Resolution::Answered(_), _) => false,
            _ => true,
        };
        let found = snapshot.answers.iter().find(|(id, resolution)| id.call == *call && fits(resolution));
        match found {
            Some((id, _)) => self.answer_of(&id.clone()).await,
            None => Ok(None),
        }
    }

    /// How a wait ended, and what had been asked.
    async fn answer_of(&self, id: &PendingId) -> Result<Option<Settled>, Failure> {
        let Some(snapshot) = self.snapshot(&id.run).await? else { return Ok(None) };
        let Some(resolution) = snapshot.answers.get(id).cloned() else { return Ok(None) };
        let message = step_message(&id.run, id.step);
        let stored = self.storage().messages().get(&snapshot.thread, &message).await;
        let stored = stored.map_err(|error| Failure::failed(error.code(), error.to_string()))?;
        let call = stored.as_ref().and_then(|stored| stored.message.tool_calls().find(|call| call.id == id.call));
        let (tool, args) = call.map_or_else(|| (String::new(), Value::Null), |call| (call.name.clone(), call.args.clone()));
        Ok(Some(Settled { id: id.clone(), resolution, tool, args }))
    }

    /// A run as it is stored.
    pub(crate) async fn snapshot(&self, run: &RunId) -> Result<Option<RunSnapshot>, Failure> {
        let stored = self.storage().runs().load(run).await.map_err(|error| Failure::failed(error.code(), error.to_string()))?;
        Ok(stored.and_then(|stored| serde_json::from_str(stored.value.body.get()).ok()))
    }
}

fn not_pending(id: &str) -> Failure {
    let message = format!("nothing waits under `{id}`; acode pending lists what does");
    Failure { code: "answer.not_pending".into(), ..Failure::usage(message) }
}

/// What kind of answer is to be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// Yes or no to a call.
    Decision,
    /// A value: an answer to a question, a decision on a plan.
    Value,
}

/// What an ID means.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// It waits.
    Open(Box<Wait>),
    /// It does not wait any more.
    Settled(Settled),
}

/// A wait that is over.
#[derive(Clone, Debug)]
pub(crate) struct Settled {
    /// Its name.
    pub(crate) id: PendingId,
    resolution: Resolution,
    tool: String,
    args: Value,
}

impl Settled {
    /// The stored answer if it says the same as this one, else this one. What came with an answer (a grant, the text of a plan) is not
    /// part of what a person says.
    pub(crate) fn again(&self, answer: Answer) -> Answer {
        let Resolution::Answered(stored) = &self.resolution else { return answer };
        let same = match (stored, &answer) {
            (Answer::Approve { .. } | Answer::RunAgain, Answer::Approve { .. })
            | (Answer::Decline { .. } | Answer::RecordFailed, Answer::Decline { .. }) => true,
            (Answer::Reply { value: stored }, Answer::Reply { value }) if self.tool == "submit_plan" => {
                stored.get("action") == value.get("action") && stored.get("feedback") == value.get("feedback")
            }
            _ => false,
        };
        if same { stored.clone() } else { answer }
    }

    /// The value that these words make.
    pub(crate) fn value(&self, values: &[String]) -> Value {
        // What `ask_user` shows are its own arguments.
        reply::answer(&self.tool, &self.args, values).unwrap_or_else(|_| json!(values))
    }
}
