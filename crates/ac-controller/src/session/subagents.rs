//! Which models subagents use, as a person selected them (SPEC M-15).

use ac_core::{EventBody, ModelId, ThreadId};
use serde_json::{Map, Value};

use super::Session;
use crate::{ControllerError, ControllerErrorKind, feed::About};

/// The thread setting that holds the selection for all types; that of one type ends with its id.
const KEY: &str = "subagentModelId";

impl Session {
    /// The model that a person selected for a type of subagent on the bound thread: the one for the type, else the one for all. `None`
    /// where nobody did, so that the type's own model counts, else the parent's.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn subagent_model(&self, agent_type: Option<&str>) -> Result<Option<ModelId>, ControllerError> {
        match self.thread_id() {
            Some(thread) => self.selected_on(&thread, agent_type).await,
            None => Ok(None),
        }
    }

    /// Selects the model of a type of subagent, or of all types, for the bound thread; `None` takes the selection back. It is kept with the
    /// thread's settings, so it is there again when the thread is, and a new thread begins with it. Subagents at work keep theirs.
    ///
    /// # Errors
    /// [`SubagentNotFound`](ControllerErrorKind::SubagentNotFound), [`ThreadNotFound`](ControllerErrorKind::ThreadNotFound) where the
    /// session is bound to no thread, or when the store does not answer.
    pub async fn set_subagent_model(&self, model: Option<ModelId>, agent_type: Option<&str>) -> Result<(), ControllerError> {
        if let Some(unknown) = agent_type.filter(|id| self.shared().config.subagents.get(id).is_none()) {
            let message = format!("there is no subagent type `{unknown}`; see `AgentController::subagents`");
            return Err(ControllerError::new(ControllerErrorKind::SubagentNotFound, message));
        }
        let model = model.filter(|model| !model.as_str().is_empty());
        let _turn = self.turn().await?;
        self.set_thread_setting(None, &key(agent_type), model.as_ref().map(|model| model.as_str().into())).await?;
        // No model is the empty name, as everywhere on the wire (SPEC M-7).
        let model = model.unwrap_or_else(|| "".into());
        self.tell(About::default(), EventBody::SubagentModelChanged { model, agent_type: agent_type.map(str::to_owned) });
        Ok(())
    }

    /// What is selected on a thread, as the store has it now: another process may have selected it.
    pub(crate) async fn selected_on(&self, thread: &ThreadId, agent_type: Option<&str>) -> Result<Option<ModelId>, ControllerError> {
        let Some(row) = self.shared().storage.threads().get(thread).await? else { return Ok(None) };
        let settings = &row.value.info.metadata;
        let of = |key: String| settings.get(&key).and_then(Value::as_str).filter(|model| !model.is_empty()).map(ModelId::from);
        Ok(agent_type.and_then(|id| of(key(Some(id)))).or_else(|| of(key(None))))
    }

    /// What a new thread takes over from the bound one.
    pub(crate) async fn subagent_selection(&self) -> Result<Map<String, Value>, ControllerError> {
        let Some(thread) = self.thread_id().filter(|_| !self.shared().config.subagents.all().is_empty()) else { return Ok(Map::new()) };
        let row = self.shared().storage.threads().get(&thread).await?;
        let settings = row.map(|row| row.value.info.metadata).unwrap_or_default();
        Ok(settings.into_iter().filter(|(name, _)| name.starts_with(KEY)).collect())
    }
}

fn key(agent_type: Option<&str>) -> String {
    match agent_type {
        Some(id) => format!("{KEY}_{id}"),
        None => KEY.to_owned(),
    }
}
