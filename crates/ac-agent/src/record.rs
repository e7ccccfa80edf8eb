//! A run between the engine's form and the store's.

use ac_core::{ControllerId, ResourceId, SessionKey, Timestamp};
use ac_engine::{Posture, RunSnapshot};
use ac_storage::{CommitMark, RunHeader, RunParent, RunPosture, RunRecord, RunStage};
use serde_json::value::to_raw_value;

use crate::{RunError, RunErrorKind};

/// Where a run comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOrigin {
    /// The controller.
    pub controller: ControllerId,
    /// The session.
    pub session: SessionKey,
    /// Whose thread it works on.
    pub resource: ResourceId,
}

impl RunOrigin {
    /// What the header of a stored run says.
    pub fn of(header: &RunHeader) -> Self {
        Self { controller: header.controller.clone(), session: header.session.clone(), resource: header.session.resource.clone() }
    }
}

/// The row of a snapshot.
pub(crate) fn record(snapshot: &RunSnapshot, origin: &RunOrigin, mark: CommitMark, at: Timestamp) -> Result<RunRecord, RunError> {
    let header = RunHeader {
        run: snapshot.run.clone(),
        controller: origin.controller.clone(),
        session: origin.session.clone(),
        thread: snapshot.thread.clone(),
        parent: snapshot.parent.as_ref().map(|(run, call)| RunParent { run: run.clone(), call: call.clone() }),
        stage: match (snapshot.is_closed(), snapshot.is_finished()) {
            (true, _) => RunStage::Closed,
            (false, true) => RunStage::Finished,
            (false, false) => RunStage::Open,
        },
        posture: match snapshot.posture() {
            Posture::Moving => RunPosture::Moving,
            Posture::Approval => RunPosture::Approval,
            Posture::Parked => RunPosture::Parked,
            Posture::Finished => RunPosture::Finished,
        },
        pending: snapshot.waits().into_iter().map(|wait| wait.id).collect(),
        epoch: snapshot.epoch,
        mark,
        at,
    };
    let body = to_raw_value(snapshot)
        .map_err(|error| RunError::new(RunErrorKind::Corrupt, "the state of the run cannot be written as JSON").with_source(error))?;
    Ok(RunRecord { header, body })
}

/// The snapshot in a row.
pub(crate) fn snapshot(record: &RunRecord) -> Result<RunSnapshot, RunError> {
    serde_json::from_str(record.body.get()).map_err(|error| {
        let message = format!("run {} is stored in a form that this version cannot read; nothing was changed", record.header.run);
        RunError::new(RunErrorKind::Corrupt, message).with_source(error)
    })
}
