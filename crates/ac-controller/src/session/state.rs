use std::sync::Arc;

use ac_core::{EventBody, PermissionRules, ToolError, ToolErrorKind, tool::SessionState};
use async_trait::async_trait;
use serde_json::{Map, Value};

use super::{Session, permissions::RULES_KEY, record::Change};
use crate::{ControllerError, ControllerErrorKind, feed::About};

/// Keys that change what a session may do. Only the host sets them, and callers whom it gives that right.
const PROTECTED: [&str; 2] = [YOLO, RULES_KEY];

/// Runs everything that is not denied without asking.
const YOLO: &str = "yolo";

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

/// Whether a key of the state may be set by the host alone, and by callers to whom it gives that right.
pub fn is_protected_state_key(key: &str) -> bool {
    PROTECTED.contains(&key)
}

impl Session {
    /// The host's state of the session. A shared snapshot.
    pub fn state(&self) -> Arc<Map<String, Value>> {
        self.view().state
    }

    /// Sets keys of the state, as the host (SPEC A-3): all of them, or none where the state would not fit its schema. Updates come one
    /// after the other. `permissionRules`, an object of `categories` and `tools`, replaces the rules of the session.
    ///
    /// # Errors
    /// [`InvalidState`](ControllerErrorKind::InvalidState); when the state survives restarts and the store does not answer. Nothing changed
    /// then.
    pub async fn set_state(&self, set: Map<String, Value>) -> Result<(), ControllerError> {
        self.update_state(|_| Ok(StateUpdate { set, events: vec![], result: () })).await
    }

    /// As [`Session::set_state`], for whoever has no right to change what the session may do: a tool, a channel, a caller without it.
    ///
    /// # Errors
    /// [`ProtectedState`](ControllerErrorKind::ProtectedState) when a key is [protected](is_protected_state_key); nothing changed then.
    pub async fn set_unprotected_state(&self, set: Map<String, Value>) -> Result<(), ControllerError> {
        if let Some(key) = set.keys().find(|key| is_protected_state_key(key)) {
            let message = format!("`{key}` is set by the host, or by somebody whom it gave the right to");
            return Err(ControllerError::new(ControllerErrorKind::ProtectedState, message));
        }
        self.set_state(set).await
    }

    /// Changes the state by what it is now, as the host. Nothing else changes it in between.
    ///
    /// # Errors
    /// What `update` returns, and as [`Session::set_state`]; then nothing changed.
    pub async fn update_state<T>(
        &self,
        update: impl FnOnce(&Map<String, Value>) -> Result<StateUpdate<T>, ControllerError>,
    ) -> Result<T, ControllerError> {
        let _turn = self.turn().await?;
        let before = self.view().state;
        let StateUpdate { set, events, result } = update(&before)?;
        if !set.is_empty() {
            self.apply_state(before, set).await?;
        }
        for event in events {
            self.tell(About::default(), event);
        }
        Ok(result)
    }

    async fn apply_state(&self, before: Arc<Map<String, Value>>, set: Map<String, Value>) -> Result<(), ControllerError> {
        let changed: Vec<String> = set.keys().cloned().collect();
        let rules = set.get(RULES_KEY).map(read_rules).transpose()?;
        let mut next = before.as_ref().clone();
        next.extend(set);
        let config = &self.shared().config;
        if let Some(schema) = &config.state_schema {
            // The rules only show in the state; what they are is no matter of its schema.
            let shown = next.remove(RULES_KEY);
            next = schema.check(next)?;
            next.extend(shown.map(|rules| (RULES_KEY.to_owned(), rules)));
        }
        if config.persist_state || rules.is_some() {
            let mut kept = next.clone();
            // The first never survives, so that a recovered run asks again; the second is the record's own.
            PROTECTED.iter().for_each(|key| drop(kept.remove(*key)));
            self.write(
                |record| {
                    if config.persist_state {
                        record.state = Some(kept.clone());
                    }
                    if let Some(rules) = &rules {
                        record.rules = rules.clone();
                    }
                    Ok(Change::Write(()))
                },
                |()| {},
            )
            .await?;
        }
        let state = Arc::new(next);
        self.inner().change_view(|view| view.state = state.clone());
        self.tell(About::default(), EventBody::StateChanged { state, changed });
        Ok(())
    }

    /// The state, lent to tools.
    pub(crate) fn lent_state(&self) -> Arc<dyn SessionState> {
        Arc::new(Lent(self.clone()))
    }
}

fn read_rules(value: &Value) -> Result<PermissionRules, ControllerError> {
    serde_json::from_value(value.clone()).map_err(|error| {
        let message = "Invalid state update: `permissionRules` must be an object of `categories` and `tools`, each with allow, ask or deny";
        ControllerError::new(ControllerErrorKind::InvalidState, message).with_source(error)
    })
}

/// The state of a session in the hands of its tools: everything but what decides what they may do.
struct Lent(Session);

#[async_trait]
impl SessionState for Lent {
    fn get(&self) -> Arc<Map<String, Value>> {
        self.0.state()
    }

    async fn set(&self, set: Map<String, Value>) -> Result<Arc<Map<String, Value>>, ToolError> {
        self.0.set_unprotected_state(set).await.map_err(|error| {
            let kind = match error.kind() {
                ControllerErrorKind::ProtectedState => ToolErrorKind::Denied,
                _ => ToolErrorKind::Failed,
            };
            ToolError::new(kind, error.to_string()).with_source(error)
        })?;
        Ok(self.0.state())
    }
}
