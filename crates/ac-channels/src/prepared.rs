//! Which sessions the host has prepared in this process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use ac_controller::Session;
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
    pub(crate) async fn prepare(&self, hooks: &dyn ChannelHooks, session: &Session, about: &About<'_>) {
        let prepare = async {
            if let Err(error) = hooks.on_session_start(session, about).await {
                tracing::warn!(%error, "the host did not prepare a session");
            }
        };
        self.of(session).get_or_init(|| prepare).await;
    }

    fn of(&self, session: &Session) -> Arc<OnceCell<()>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(session.key()) {
            Some(one) if one.session == *session => one.done.clone(),
            // One that was deleted and made again is another one.
            _ => {
                let done = Arc::<OnceCell<()>>::default();
                known.insert(session.key().clone(), One { session: session.clone(), done: done.clone() });
                done
            }
        }
    }
}
