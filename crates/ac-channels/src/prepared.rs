//! Which sessions the host has prepared in this process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use ac_controller::{AgentController, Session};
use ac_core::SessionKey;
use tokio::sync::OnceCell;

use crate::hooks::{About, ChannelHooks};

/// Sessions that the host has prepared, or is about to.
#[derive(Default)]
pub(crate) struct Prepared(Mutex<HashMap<SessionKey, One>>);

struct One {
    session: Session,
    done: Arc<OnceCell<()>>,
}

impl Prepared {
    /// Has the host prepare a session: once for each session in each process. Whoever comes meanwhile waits for it (SPEC N-12).
    pub(crate) async fn prepare(&self, controller: &AgentController, hooks: &dyn ChannelHooks, session: &Session, about: &About<'_>) {
        let prepare = async {
            if let Err(error) = hooks.on_session_start(session, about).await {
                tracing::warn!(%error, "the host did not prepare a session");
            }
        };
        self.of(controller, session).get_or_init(|| prepare).await;
    }

    fn of(&self, controller: &AgentController, session: &Session) -> Arc<OnceCell<()>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(session.key()) {
            Some(one) if one.session == *session => one.done.clone(),
            // One that was deleted and made again is another one.
            _ => {
                // Looked through whenever it has doubled, so that deleted sessions are not held for ever.
                if known.len().is_power_of_two() {
                    known.retain(|key, one| controller.session(key).as_ref() == Some(&one.session));
                }
                let done = Arc::<OnceCell<()>>::default();
                known.insert(session.key().clone(), One { session: session.clone(), done: done.clone() });
                done
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ac_controller::{AgentConfig, Mode};
    use ac_core::{ModelError, ModelErrorKind, ModelId, ModelProvider};
    use ac_storage::MemoryStorage;

    use super::*;

    #[tokio::test]
    async fn a_session_is_prepared_once_and_one_that_was_deleted_is_not_held_for_ever() {
        let none = |_: &ModelId| Err::<Arc<dyn ModelProvider>, _>(ModelError::new(ModelErrorKind::BadRequest, "no model"));
        let controller = AgentController::builder()
            .storage(Arc::new(MemoryStorage::new()))
            .models(none)
            .agent(AgentConfig::new("a"))
            .mode(Mode::new("chat").model("x/y"))
            .build()
            .unwrap();
        let prepared = Prepared::default();
        let kept = controller.create_session("kept").await.unwrap();
        let first = prepared.of(&controller, &kept);
        for n in 0..100 {
            let session = controller.create_session(format!("gone-{n}").as_str()).await.unwrap();
            prepared.of(&controller, &session);
            controller.delete_session(session.key()).await.unwrap();
        }
        assert!(prepared.0.lock().unwrap().len() <= 4, "{}", prepared.0.lock().unwrap().len());
        assert!(Arc::ptr_eq(&first, &prepared.of(&controller, &kept)));
    }
}
