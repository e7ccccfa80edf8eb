use std::collections::HashSet;

use ac_agent::{Accepted, in_doubt_payload};
use ac_core::{
    PendingId, ResourceId, RunId, SessionKey, ThreadId, Timestamp, ToolCallId, ToolCategory,
    event::PendingKind,
    permission::{GrantTarget, Policy, Reason},
};
use ac_engine::{Answer, RunSnapshot, SlotStatus};
use ac_storage::{RunHeader, SessionId, domain::OpenRuns};
use serde_json::{Map, Value};

use super::Session;
use crate::{AgentController, ControllerError, ControllerErrorKind, controller::Shared};

/// Something that waits for a person (`R6`). Read from the store, so it is the same before and after a restart.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Pending {
    /// Names the wait; what an answer refers to.
    pub id: PendingId,
    /// What it is.
    pub kind: PendingKind,
    /// The tool, by its exposed name.
    pub tool: String,
    /// What kind of thing it does, as the run has it: what a grant for the category is a grant for.
    pub category: ToolCategory,
    /// Its arguments: exactly what will run.
    pub args: Value,
    /// What the tool shows; `null` for an approval.
    pub payload: Value,
    /// JSON Schema of the answer, where the wait takes a value.
    pub answer_schema: Option<Value>,
    /// Since when it waits.
    pub since: Timestamp,
    /// The call.
    pub call: ToolCallId,
    /// The run that waits.
    pub run: RunId,
    /// The thread of that run.
    pub thread: ThreadId,
    /// The session that started the run.
    pub session: SessionKey,
    /// The call of the parent run, where a subagent asks.
    pub parent_call: Option<ToolCallId>,
}

impl Pending {
    /// The open waits of a run, oldest first.
    pub(crate) fn of_run(header: &RunHeader, snapshot: &RunSnapshot) -> Vec<Self> {
        let mut open: Vec<Self> = snapshot
            .waits()
            .into_iter()
            .map(|wait| {
                let args = snapshot.call_part(&wait.slot.call).map_or(Value::Null, |call| call.args.clone());
                let (payload, schema) = match &wait.slot.status {
                    SlotStatus::Suspended { suspend, .. } => {
                        (suspend.payload.clone(), suspend.answer_schema.clone().or_else(|| wait.slot.answer_schema.clone()))
                    }
                    SlotStatus::InDoubt { .. } => (in_doubt_payload(), None),
                    _ => (Value::Null, None),
                };
                Self {
                    id: wait.id.clone(),
                    kind: wait.kind,
                    tool: wait.slot.tool.clone(),
                    category: wait.slot.category,
                    args,
                    payload,
                    answer_schema: schema,
                    since: wait.since,
                    call: wait.slot.call.clone(),
                    run: snapshot.run.clone(),
                    thread: snapshot.thread.clone(),
                    session: header.session.clone(),
                    parent_call: snapshot.parent.as_ref().map(|(_, call)| call.clone()),
                }
            })
            .collect();
        open.sort_by(|a, b| (a.since, &a.id).cmp(&(b.since, &b.id)));
        open
    }
}

/// How many open runs are read at once.
const PAGE: usize = 256;

impl Shared {
    /// Everything that waits for a person, in one session or in all of this controller, oldest first.
    pub(crate) async fn pending(&self, session: Option<&SessionKey>) -> Result<Vec<Pending>, ControllerError> {
        let runs = self.open_runs(session).await?;
        let mut open: Vec<_> = runs.iter().flat_map(|(header, snapshot)| Pending::of_run(header, snapshot)).collect();
        open.sort_by(|a, b| (a.since, &a.id).cmp(&(b.since, &b.id)));
        Ok(open)
    }

    /// Everything that waits for a person in the sessions of a resource, oldest first. Of other runs the headers are read.
    pub(crate) async fn pending_of(&self, resource: &ResourceId) -> Result<Vec<Pending>, ControllerError> {
        let mut open = vec![];
        for header in self.open_headers(None).await? {
            if header.session.resource == *resource
                && !header.pending.is_empty()
                && let Some((header, snapshot)) = self.runtime.load(&header.run).await?
            {
                open.extend(Pending::of_run(&header, &snapshot));
            }
        }
        open.sort_by(|a, b| (a.since, &a.id).cmp(&(b.since, &b.id)));
        Ok(open)
    }

    /// Everything that waits for a person on a thread, whichever session started it, oldest first.
    pub(crate) async fn pending_on(&self, thread: &ThreadId) -> Result<Vec<Pending>, ControllerError> {
        let query = OpenRuns { thread: Some(thread.clone()), ..OpenRuns::default() };
        let mut open = vec![];
        for header in self.storage.runs().open(&query).await?.items {
            if header.controller == self.config.id
                && !header.pending.is_empty()
                && let Some((header, snapshot)) = self.runtime.load(&header.run).await?
            {
                open.extend(Pending::of_run(&header, &snapshot));
            }
        }
        Ok(open)
    }

    /// The runs that wait for a person, of one session or of all of this controller. Those of one session cost as much as it has open
    /// runs, whatever others have.
    async fn open_runs(&self, session: Option<&SessionKey>) -> Result<Vec<(RunHeader, RunSnapshot)>, ControllerError> {
        let mut runs = vec![];
        for header in self.open_headers(session).await? {
            if !header.pending.is_empty() {
                // It may have closed since it was listed.
                runs.extend(self.runtime.load(&header.run).await?);
            }
        }
        Ok(runs)
    }

    /// The open runs of one session or of all of this controller.
    async fn open_headers(&self, session: Option<&SessionKey>) -> Result<Vec<RunHeader>, ControllerError> {
        let mut headers = vec![];
        let session = session.map(|key| SessionId { controller: self.config.id.clone(), key: key.clone() });
        let mut query = OpenRuns { session, limit: PAGE, ..OpenRuns::default() };
        loop {
            let page = self.storage.runs().open(&query).await?;
            headers.extend(page.items.into_iter().filter(|header| header.controller == self.config.id));
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(headers),
            }
        }
    }
}

impl AgentController {
    /// Everything that waits for a person in any session of this controller, oldest first.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn pending(&self) -> Result<Vec<Pending>, ControllerError> {
        self.shared().pending(None).await
    }

    /// The ids of all that. Of each run the header is read alone: for whoever only wants to know whether something waits still.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn pending_ids(&self) -> Result<HashSet<PendingId>, ControllerError> {
        Ok(self.shared().open_headers(None).await?.into_iter().flat_map(|header| header.pending).collect())
    }

    /// Answers a wait of any session of this controller: see [`Session::answer`].
    ///
    /// # Errors
    /// As [`Session::answer`].
    pub async fn answer(&self, id: &PendingId, answer: Answer) -> Result<Accepted, ControllerError> {
        let shared = self.shared();
        let (header, _) = shared.runtime.load(&id.run).await?.ok_or_else(|| ControllerError::not_pending(id))?;
        if header.controller != shared.config.id {
            return Err(ControllerError::not_pending(id));
        }
        shared.session(&header.session).answer(id, answer).await
    }
}

impl Session {
    /// Everything that waits for a person in this session, on whatever thread, oldest first: approvals, questions, plans, calls in doubt.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn pending(&self) -> Result<Vec<Pending>, ControllerError> {
        self.check_alive()?;
        self.shared().pending(Some(self.key())).await
    }

    /// Answers a wait (`R6`). The answer is stored when this returns; what follows from it comes as events.
    ///
    /// The same answer again is fine and says so. A grant that comes with an approval also answers what waits for the same permission.
    ///
    /// # Errors
    /// [`NotPending`](ControllerErrorKind::NotPending), [`AlreadyResolved`](ControllerErrorKind::AlreadyResolved),
    /// [`InvalidAnswer`](ControllerErrorKind::InvalidAnswer), [`Aborting`](ControllerErrorKind::Aborting).
    pub async fn answer(&self, id: &PendingId, answer: Answer) -> Result<Accepted, ControllerError> {
        self.answer_with(id, answer, None).await
    }

    /// As [`Session::answer`]; the context replaces the one that the run was started with, for everything that follows.
    ///
    /// # Errors
    /// As [`Session::answer`].
    pub async fn answer_with(
        &self,
        id: &PendingId,
        answer: Answer,
        request_context: Option<Map<String, Value>>,
    ) -> Result<Accepted, ControllerError> {
        self.check_alive()?;
        let (header, _) = self.shared().runtime.load(&id.run).await?.ok_or_else(|| ControllerError::not_pending(id))?;
        if header.session != *self.key() || header.controller != self.shared().config.id {
            return Err(ControllerError::not_pending(id));
        }
        // What follows from the answer is decided by the session's rules: they must be known.
        self.refresh().await?;
        let transient = &self.shared().transient;
        let (request_context, replaced) = match request_context {
            Some(context) => {
                let (stored, kept_apart) = transient.part(context);
                (Some(stored), Some(transient.replace(&id.run, kept_apart)))
            }
            None => (None, None),
        };
        let grant = match &answer {
            Answer::Approve { grant } => grant.clone(),
            _ => None,
        };
        let accepted = match self.shared().runtime.answer(self.host(), id, answer, request_context).await {
            Ok(accepted) => accepted,
            Err(error) => {
                // An answer that is refused changes nothing.
                if let Some(before) = replaced {
                    transient.replace(&id.run, before);
                }
                return Err(error.into());
            }
        };
        if let Some(target) = grant {
            self.extend_grant(&target, Some(id)).await?;
        }
        Ok(accepted)
    }

    /// Answers what waits for a permission that was just granted: a person who says "always" does not mean "but not this one".
    pub(crate) async fn extend_grant(&self, target: &GrantTarget, except: Option<&PendingId>) -> Result<(), ControllerError> {
        let rules = self.all_rules();
        let runs = self.shared().open_runs(Some(self.key())).await?;
        let granted: Vec<PendingId> = runs
            .iter()
            .flat_map(|(_, snapshot)| snapshot.waits())
            .filter(|wait| wait.kind == PendingKind::Approval && Some(&wait.id) != except)
            .filter(|wait| match target {
                GrantTarget::Tool(tool) => wait.slot.tool == *tool,
                GrantTarget::Category(category) => wait.slot.category == *category,
            })
            // A rule that names the tool, or calls like this one, is stronger than a grant.
            .filter(|wait| !matches!(wait.slot.decision.reason, Reason::CallRule | Reason::CallUnclear))
            .filter(|wait| !matches!(rules.tools.get(&wait.slot.tool), Some(Policy::Ask | Policy::Deny)))
            .map(|wait| wait.id)
            .collect();
        for id in granted {
            match self.shared().runtime.answer(self.host(), &id, Answer::Approve { grant: None }, None).await {
                // Somebody was faster: that is their decision.
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ac_agent::RunErrorKind::Refused(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Allows a call, once (alias of [`Session::answer`]).
    ///
    /// # Errors
    /// As [`Session::answer`].
    pub async fn approve(&self, id: &PendingId) -> Result<Accepted, ControllerError> {
        self.answer(id, Answer::Approve { grant: None }).await
    }

    /// Refuses a call; the model is told the reason (alias of [`Session::answer`]).
    ///
    /// # Errors
    /// As [`Session::answer`].
    pub async fn decline(&self, id: &PendingId, reason: Option<String>) -> Result<Accepted, ControllerError> {
        self.answer(id, Answer::Decline { reason }).await
    }

    /// The open runs that this session started, on whatever thread.
    pub(crate) async fn open_headers(&self) -> Result<Vec<RunHeader>, ControllerError> {
        self.shared().open_headers(Some(self.key())).await
    }

    /// The reference's way to decide: without an id the one open approval is meant; with one, that call's. Never an in-doubt call.
    ///
    /// # Errors
    /// [`Ambiguous`](ControllerErrorKind::Ambiguous) when several fit; otherwise as [`Session::answer`].
    pub async fn respond_to_tool_approval(
        &self,
        decision: ApprovalDecision,
        call: Option<&ToolCallId>,
    ) -> Result<Accepted, ControllerError> {
        let id = self.pick(call, |kind| kind == PendingKind::Approval, RunSnapshot::alias_approval).await?;
        let grant = match decision {
            ApprovalDecision::Decline { reason } => return self.decline(&id, reason).await,
            ApprovalDecision::Approve => None,
            ApprovalDecision::AlwaysAllowTool => Some(GrantTarget::Tool(self.subject_of(&id).await?.0)),
            ApprovalDecision::AlwaysAllowCategory => Some(GrantTarget::Category(self.subject_of(&id).await?.1)),
        };
        self.answer(&id, Answer::Approve { grant }).await
    }

    /// The reference's way to answer a question or decide a plan: without an id the one open suspension is meant.
    ///
    /// # Errors
    /// As [`Session::respond_to_tool_approval`].
    pub async fn respond_to_tool_suspension(&self, answer: Value, call: Option<&ToolCallId>) -> Result<Accepted, ControllerError> {
        let person = |kind| matches!(kind, PendingKind::Question | PendingKind::Plan);
        let id = self.pick(call, person, RunSnapshot::alias_suspension).await?;
        self.answer(&id, Answer::Reply { value: answer }).await
    }

    /// The wait that an answer without a full id means: of a call, the one that `alias` names; else the one open wait that fits.
    async fn pick(
        &self,
        call: Option<&ToolCallId>,
        fits: impl Fn(PendingKind) -> bool,
        alias: impl Fn(&RunSnapshot, &ToolCallId) -> Option<PendingId>,
    ) -> Result<PendingId, ControllerError> {
        self.check_alive()?;
        let mut found = vec![];
        for (header, snapshot) in self.shared().open_runs(Some(self.key())).await? {
            match call {
                Some(call) => found.extend(alias(&snapshot, call)),
                None => found.extend(Pending::of_run(&header, &snapshot).into_iter().filter(|open| fits(open.kind)).map(|open| open.id)),
            }
        }
        match (found.pop(), found.as_slice()) {
            (None, _) => Err(ControllerError::not_pending(call.map_or("(no id)", ToolCallId::as_str))),
            (Some(only), []) => Ok(only),
            (Some(last), rest) => {
                let ids: Vec<String> = rest.iter().chain([&last]).map(ToString::to_string).collect();
                Err(ControllerError::new(ControllerErrorKind::Ambiguous, format!("several calls wait; name one of: {}", ids.join(", "))))
            }
        }
    }

    /// Tool and category of the call that an open wait is about.
    async fn subject_of(&self, id: &PendingId) -> Result<(String, ToolCategory), ControllerError> {
        let loaded = self.shared().runtime.load(&id.run).await?;
        loaded
            .iter()
            .flat_map(|(_, snapshot)| snapshot.slots())
            .find(|slot| slot.call == id.call)
            .map(|slot| (slot.tool.clone(), slot.category))
            .ok_or_else(|| ControllerError::not_pending(id))
    }
}

/// A decision about a call, in the reference's words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApprovalDecision {
    /// This call.
    Approve,
    /// Not this call.
    Decline {
        /// What the model is told.
        reason: Option<String>,
    },
    /// This call and later ones of the same tool.
    AlwaysAllowTool,
    /// This call and later ones of the same category.
    AlwaysAllowCategory,
}
