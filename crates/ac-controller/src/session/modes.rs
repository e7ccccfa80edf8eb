use std::sync::Arc;

use ac_core::{EventBody, ModeId, ModelId, ThreadId, event::ModelScope};

use super::{
    Session,
    handle::View,
    record::{Change, SessionRecord},
};
use crate::{ControllerError, ControllerErrorKind, Mode, feed::About};

/// The mode that a session is in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModeView {
    /// Its id.
    pub id: ModeId,
    /// What people call it.
    pub name: String,
}

/// Which model, for which mode, for how long.
#[derive(Clone, Debug)]
#[must_use]
pub struct ModelChoice {
    model: ModelId,
    mode: Option<ModeId>,
    scope: ModelScope,
}

impl ModelChoice {
    /// For the present mode, remembered with the bound thread.
    pub fn new(model: impl Into<ModelId>) -> Self {
        Self { model: model.into(), mode: None, scope: ModelScope::Thread }
    }

    /// For another mode.
    pub fn mode(mut self, mode: impl Into<ModeId>) -> Self {
        self.mode = Some(mode.into());
        self
    }

    /// For this life of the session, on whatever thread; never written.
    pub fn global(mut self) -> Self {
        self.scope = ModelScope::Global;
        self
    }
}

impl<M: Into<ModelId>> From<M> for ModelChoice {
    fn from(model: M) -> Self {
        Self::new(model)
    }
}

impl Session {
    /// The mode of the session.
    pub fn mode(&self) -> ModeId {
        let mode = self.view().record.mode.clone();
        // A mode that is no longer configured is none that a run could start in.
        if self.shared().config.mode(&mode).is_some() { mode } else { self.shared().config.default_mode.clone() }
    }

    /// The configured mode that the session is in.
    ///
    /// # Errors
    /// [`ModeNotFound`](ControllerErrorKind::ModeNotFound), which cannot happen to a session of this controller.
    pub fn resolve_mode(&self) -> Result<Mode, ControllerError> {
        Ok(self.shared().mode(&self.mode())?.mode.clone())
    }

    /// The mode, for showing.
    pub fn mode_view(&self) -> ModeView {
        let id = self.mode();
        let name = self.shared().config.mode(&id).map_or_else(|| id.to_string(), |prepared| prepared.mode.name.clone());
        ModeView { id, name }
    }

    /// Moves the session to a mode (SPEC M-2). A run that is under way keeps its own to its end. The mode is remembered with the thread.
    ///
    /// # Errors
    /// [`ModeNotFound`](ControllerErrorKind::ModeNotFound); nothing changed then.
    pub async fn switch_mode(&self, mode: impl Into<ModeId>) -> Result<(), ControllerError> {
        let mode = mode.into();
        self.shared().mode(&mode)?;
        let _turn = self.turn().await?;
        self.settle_outbox().await?;
        let default = &self.shared().config.default_mode;
        let now = self.shared().clock.now();
        self.write(
            |record| {
                let previous = std::mem::replace(&mut record.mode, mode.clone());
                record.mode_at = now;
                record.remember_mode(default);
                Ok(Change::Write(previous))
            },
            |previous| {
                self.tell(About::default(), EventBody::ModeChanged { mode: mode.clone(), previous: previous.clone() });
                if let Some(model) = self.model_for(&mode) {
                    self.tell_model(About::default(), model, None, None);
                }
            },
        )
        .await
        .map(drop)
    }

    /// The model that the next run uses: the one chosen for the mode on this thread, else the mode's own, else the controller's.
    pub fn model(&self) -> Option<ModelId> {
        self.model_for(&self.mode())
    }

    /// The model that a run in this mode would use.
    pub fn model_for(&self, mode: &ModeId) -> Option<ModelId> {
        let view = self.view();
        let thread = view.record.thread.clone();
        self.model_on(&view, thread.as_ref(), mode)
    }

    pub(crate) fn model_on(&self, view: &View, thread: Option<&ThreadId>, mode: &ModeId) -> Option<ModelId> {
        view.models
            .get(mode)
            .or_else(|| view.record.chosen_model(thread, mode))
            .or_else(|| self.shared().config.mode(mode)?.mode.model.as_ref())
            .or(self.shared().config.default_model.as_ref())
            .cloned()
    }

    /// Chooses a model (SPEC M-8). A run that is under way keeps its own.
    ///
    /// # Errors
    /// [`ModeNotFound`](ControllerErrorKind::ModeNotFound), or when the store does not answer.
    pub async fn switch_model(&self, choice: impl Into<ModelChoice>) -> Result<(), ControllerError> {
        let ModelChoice { model, mode, scope } = choice.into();
        if model.as_str().is_empty() {
            return Err(ControllerError::new(ControllerErrorKind::NoModel, "a model needs a name, `provider/name`"));
        }
        let mode = mode.unwrap_or_else(|| self.mode());
        self.shared().mode(&mode)?;
        let _turn = self.turn().await?;
        self.settle_outbox().await?;
        let thread = self.thread_id();
        let tell = || self.tell_model(About::default(), model.clone(), Some(scope), Some(mode.clone()));
        match thread {
            Some(thread) if scope == ModelScope::Thread => {
                self.write(
                    |record| {
                        record.choose(&thread, |choice| {
                            choice.models.insert(mode.clone(), model.clone());
                        });
                        Ok(Change::Write(()))
                    },
                    |()| {
                        // What was chosen last counts.
                        self.inner().change_view(|view| {
                            Arc::make_mut(&mut view.models).remove(&mode);
                        });
                        tell();
                    },
                )
                .await
            }
            _ => {
                self.inner().change_view(|view| {
                    Arc::make_mut(&mut view.models).insert(mode.clone(), model.clone());
                });
                tell();
                Ok(())
            }
        }
    }
}

impl SessionRecord {
    /// A new thread begins as the person has it now.
    pub(crate) fn carry_over(&mut self, to: &ThreadId, default: &ModeId) {
        let models = self.thread.as_ref().and_then(|from| self.choice(from)).map(|choice| choice.models.clone()).unwrap_or_default();
        let mode = Some(self.mode.clone()).filter(|mode| mode != default);
        self.remember_mode(default);
        self.choose(to, |choice| {
            choice.models = models;
            choice.mode = mode;
        });
        self.thread = Some(to.clone());
    }
}
