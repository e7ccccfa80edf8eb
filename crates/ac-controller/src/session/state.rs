use std::sync::Arc;

use ac_core::EventBody;
use serde_json::{Map, Value};

use super::{Session, record::Change};
use crate::{ControllerError, feed::About};

/// What an update function makes of the state (SPEC A-6).
#[derive(Debug)]
pub struct StateUpdate<T> {
    /// The keys that change; `null` is a value like any other.
    pub set: Map<String, Value>,
    /// Events that follow the change.
    pub events: Vec<EventBody>,
    /// What the caller gets.
    pub result: T,
}

impl Session {
    /// The host's state of the session. A shared snapshot.
    pub fn state(&self) -> Arc<Map<String, Value>> {
        self.view().state
    }

    /// Sets keys of the state (SPEC A-3). Updates come one after the other.
    ///
    /// # Errors
    /// When the state survives restarts and the store does not answer.
    pub async fn set_state(&self, set: Map<String, Value>) -> Result<(), ControllerError> {
        self.update_state(|_| Ok(StateUpdate { set, events: vec![], result: () })).await
    }

    /// Changes the state by what it is now. Nothing else changes it in between.
    ///
    /// # Errors
    /// What `update` returns; then nothing changed.
    pub async fn update_state<T>(
        &self,
        update: impl FnOnce(&Map<String, Value>) -> Result<StateUpdate<T>, ControllerError>,
    ) -> Result<T, ControllerError> {
        let _turn = self.turn().await?;
        let mut state = self.view().state;
        let StateUpdate { set, events, result } = update(&state)?;
        if !set.is_empty() {
            let changed: Vec<String> = set.keys().cloned().collect();
            Arc::make_mut(&mut state).extend(set);
            if self.shared().config.persist_state {
                let mut kept = state.as_ref().clone();
                // Never survives: a recovered run asks again.
                kept.remove("yolo");
                // The record has them.
                kept.remove(super::permissions::RULES_KEY);
                self.write(
                    |record| {
                        record.state = Some(kept.clone());
                        Ok(Change::Write(()))
                    },
                    |()| {},
                )
                .await?;
            }
            self.inner().change_view(|view| view.state = state.clone());
            self.tell(About::default(), EventBody::StateChanged { state, changed });
        }
        for event in events {
            self.tell(About::default(), event);
        }
        Ok(result)
    }
}
