use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;

use crate::{AgentController, ControllerError, Session, controller::Shared};

/// How long a blocking listener may keep a session from being handed out. One that takes longer is left to itself.
const PATIENCE: Duration = Duration::from_secs(30);

type Listen = Arc<dyn Fn(Session) -> BoxFuture<'static, Result<(), ControllerError>> + Send + Sync>;

/// Names a listener, to [take it away](AgentController::remove_listener) again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerId(u64);

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    CreatedBlocking,
    Created,
    Deleted,
}

struct Listener {
    id: ListenerId,
    when: When,
    listen: Listen,
}

/// Who is told of sessions.
#[derive(Default)]
pub(crate) struct Listeners {
    next: AtomicU64,
    all: Mutex<Vec<Listener>>,
}

impl Listeners {
    fn add(&self, when: When, listen: Listen) -> ListenerId {
        let id = ListenerId(self.next.fetch_add(1, Ordering::Relaxed));
        self.all.lock().unwrap_or_else(PoisonError::into_inner).push(Listener { id, when, listen });
        id
    }

    fn remove(&self, id: ListenerId) -> bool {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.len();
        all.retain(|listener| listener.id != id);
        all.len() < before
    }

    fn of(&self, when: When) -> Vec<Listen> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|listener| listener.when == when).map(|listener| listener.listen.clone()).collect()
    }
}

impl AgentController {
    /// Is told of each session that comes into being in this process, once, after it is bound to its thread (SPEC C-31). What it does takes
    /// its own time; its failure is logged.
    pub fn on_session_created<F>(&self, listen: impl Fn(Session) -> F + Send + Sync + 'static) -> ListenerId
    where
        F: Future<Output = Result<(), ControllerError>> + Send + 'static,
    {
        self.shared().listeners.add(When::Created, boxed(listen))
    }

    /// As [`on_session_created`](Self::on_session_created), and nobody gets the session before it is done; after 30 seconds it is waited for
    /// no longer. Must not ask for the same session.
    pub fn on_session_created_blocking<F>(&self, listen: impl Fn(Session) -> F + Send + Sync + 'static) -> ListenerId
    where
        F: Future<Output = Result<(), ControllerError>> + Send + 'static,
    {
        self.shared().listeners.add(When::CreatedBlocking, boxed(listen))
    }

    /// Is told of each session that was deleted in this process (SPEC C-36). What it does takes its own time; its failure is logged.
    pub fn on_session_deleted<F>(&self, listen: impl Fn(Session) -> F + Send + Sync + 'static) -> ListenerId
    where
        F: Future<Output = Result<(), ControllerError>> + Send + 'static,
    {
        self.shared().listeners.add(When::Deleted, boxed(listen))
    }

    /// Takes a listener away; says whether it was there.
    pub fn remove_listener(&self, id: ListenerId) -> bool {
        self.shared().listeners.remove(id)
    }
}

fn boxed<F>(listen: impl Fn(Session) -> F + Send + Sync + 'static) -> Listen
where
    F: Future<Output = Result<(), ControllerError>> + Send + 'static,
{
    Arc::new(move |session| Box::pin(listen(session)))
}

impl Shared {
    /// Tells of a new session: first those who are waited for, in order, then the others.
    pub(crate) async fn tell_created(&self, session: &Session) {
        for listen in self.listeners.of(When::CreatedBlocking) {
            // A task of its own: one that panics, or takes for ever, is its own problem.
            let task = self.tasks.spawn(listen(session.clone()));
            match tokio::time::timeout(PATIENCE, task).await {
                Ok(Ok(done)) => log(done),
                Ok(Err(_)) => tracing::warn!("a listener for new sessions panicked"),
                Err(_) => tracing::warn!("a listener for new sessions takes too long and is waited for no longer"),
            }
        }
        self.tell_soon(When::Created, session);
    }

    /// Tells of a session that is gone.
    pub(crate) fn tell_deleted(&self, session: &Session) {
        self.tell_soon(When::Deleted, session);
    }

    fn tell_soon(&self, when: When, session: &Session) {
        for listen in self.listeners.of(when) {
            let (heard, stop) = (listen(session.clone()), self.stop.clone());
            self.tasks.spawn(async move {
                tokio::select! {
                    done = heard => log(done),
                    () = stop.cancelled() => {}
                }
            });
        }
    }
}

fn log(done: Result<(), ControllerError>) {
    if let Err(error) = done {
        tracing::warn!(code = error.code(), "a listener failed: {error}");
    }
}
