//! What a run has to happen outside of it, once (`R1b`).

use ac_agent::RunError;
use ac_core::{
    EventBody, Grant, ModeId, ModelId,
    event::ModelScope,
    permission::{GrantTarget, GrantWidth},
};
use ac_engine::{Outbox, OutboxAction, RunSnapshot};

use super::{
    Session,
    record::{Change, SessionRecord},
};
use crate::{ControllerError, feed::About};

/// What an item changed, for the events.
enum Applied {
    Nothing,
    Mode { from: ModeId, to: ModeId, shown: bool },
    Queue,
}

impl Session {
    /// Applies an item, unless that was done before. The mark and the effect are one write.
    pub(crate) async fn apply_item(&self, snapshot: &RunSnapshot, item: &Outbox) -> Result<(), ControllerError> {
        let default = &self.shared().config.default_mode;
        self.write(
            |record| {
                if record.is_applied(&snapshot.run, item.n) {
                    return Ok(Change::Nothing(Applied::Nothing));
                }
                let applied = match &item.action {
                    OutboxAction::SetMode { mode, at, .. } => record.set_mode_of_plan(snapshot, mode, *at, default),
                    OutboxAction::Grant { target, at, call } => {
                        record.grant(target, format!("{}/{call}", snapshot.run), *at);
                        Applied::Nothing
                    }
                    OutboxAction::RemoveQueued { id } => {
                        record.queue.retain(|item| !item.is(&snapshot.thread, id));
                        Applied::Queue
                    }
                    // Started and aborted by the run's own rows, which are written at most once.
                    OutboxAction::StartChild { .. } | OutboxAction::AbortChild { .. } | OutboxAction::InterruptChild { .. } => {
                        Applied::Nothing
                    }
                };
                record.mark_applied(&snapshot.run, item.n);
                Ok(Change::Write(applied))
            },
            |applied| self.tell_applied(snapshot, applied),
        )
        .await
        .map(drop)
    }

    fn tell_applied(&self, snapshot: &RunSnapshot, applied: &Applied) {
        match applied {
            Applied::Mode { from, to, shown: true } => {
                let about = About { run: Some(snapshot.run.clone()), thread: Some(snapshot.thread.clone()) };
                self.tell(about.clone(), EventBody::ModeChanged { mode: to.clone(), previous: from.clone() });
                if let Some(model) = self.model_for(to) {
                    self.tell_model(about, model, None, None);
                }
            }
            Applied::Queue => self.show_queue(&snapshot.thread, true),
            Applied::Mode { .. } | Applied::Nothing => {}
        }
    }

    pub(crate) fn tell_model(&self, about: About, model: ModelId, scope: Option<ModelScope>, mode: Option<ModeId>) {
        self.tell(about, EventBody::ModelChanged { model, scope, mode });
    }

    /// A session write by a command comes after what the open run has still to write (`R1b`).
    pub(crate) async fn settle_outbox(&self) -> Result<(), ControllerError> {
        let Some(thread) = self.thread_id() else { return Ok(()) };
        let Some(run) = self.active_run(&thread).await? else { return Ok(()) };
        let Some((header, snapshot)) = self.shared().runtime.load(&run).await? else { return Ok(()) };
        if header.session == *self.key() && header.controller == self.shared().config.id {
            for item in &snapshot.outbox {
                self.apply_item(&snapshot, item).await?;
            }
        }
        Ok(())
    }
}

impl SessionRecord {
    /// Moves to the mode of an approved plan, unless a person changed the mode after the decision. On a thread that the session left it
    /// is that thread's mode which changes.
    fn set_mode_of_plan(&mut self, snapshot: &RunSnapshot, to: &ModeId, at: ac_core::Timestamp, default: &ModeId) -> Applied {
        if self.thread.as_ref() != Some(&snapshot.thread) {
            let mode = Some(to.clone()).filter(|mode| mode != default);
            self.choose(&snapshot.thread, |choice| choice.mode = mode);
            return Applied::Nothing;
        }
        if self.mode_at > at || self.mode == *to {
            return Applied::Nothing;
        }
        let from = std::mem::replace(&mut self.mode, to.clone());
        self.mode_at = at;
        Applied::Mode { from, to: to.clone(), shown: true }
    }

    /// Remembers a yes, once.
    pub(crate) fn grant(&mut self, target: &GrantTarget, id: String, at: ac_core::Timestamp) -> bool {
        if self.grants.iter().any(|grant| grant.target == *target) {
            return false;
        }
        self.grants.push(Grant { id, target: target.clone(), width: GrantWidth::Session, at });
        true
    }
}

impl From<ControllerError> for RunError {
    fn from(error: ControllerError) -> Self {
        use crate::ControllerErrorKind as K;
        let kind = match error.kind() {
            K::Storage(kind) => ac_agent::RunErrorKind::Storage(kind),
            K::Run(kind) => kind,
            K::Closed | K::SessionDeleted => ac_agent::RunErrorKind::Closed,
            K::Contended => ac_agent::RunErrorKind::Storage(ac_storage::StorageErrorKind::Conflict),
            K::NewerSchema => ac_agent::RunErrorKind::Corrupt,
            _ => ac_agent::RunErrorKind::InvalidAnswer,
        };
        Self::new(kind, error.to_string()).with_source(error)
    }
}
