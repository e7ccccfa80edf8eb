use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ac_core::CancelToken;
use futures::future::BoxFuture;

use crate::{AgentController, ControllerError, controller::Shared};

/// How long the end of a handler may take.
const PATIENCE: Duration = Duration::from_secs(5);

type Tick = Arc<dyn Fn() -> BoxFuture<'static, Result<(), ControllerError>> + Send + Sync>;
type Shutdown = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// Something that a controller does again and again while it runs (SPEC C-20).
///
/// ```
/// use std::time::Duration;
///
/// use ac_controller::{AgentController, Interval};
///
/// # async fn run(controller: &AgentController) {
/// let tidy = Interval::new("tidy", Duration::from_secs(3600), || async { Ok(()) }).delayed();
/// controller.register_interval(tidy).await;
/// # }
/// ```
#[derive(Clone)]
#[must_use]
pub struct Interval {
    id: String,
    every: Duration,
    immediate: bool,
    tick: Tick,
    shutdown: Option<Shutdown>,
}

impl Interval {
    /// Does `tick` every so often, at first at once. One tick at a time: what takes longer than the interval is not started again meanwhile.
    /// What fails is logged.
    pub fn new<F>(id: impl Into<String>, every: Duration, tick: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), ControllerError>> + Send + 'static,
    {
        let tick: Tick = Arc::new(move || Box::pin(tick()));
        Self { id: id.into(), every: every.max(Duration::from_millis(1)), immediate: true, tick, shutdown: None }
    }

    /// Waits before the first time, too.
    pub fn delayed(mut self) -> Self {
        self.immediate = false;
        self
    }

    /// Done when the handler is removed or replaced, and when the controller is shut down; for at most five seconds.
    pub fn on_shutdown<F>(mut self, shutdown: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.shutdown = Some(Arc::new(move || Box::pin(shutdown())));
        self
    }
}

impl std::fmt::Debug for Interval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interval").field("id", &self.id).field("every", &self.every).finish_non_exhaustive()
    }
}

/// The handlers of a controller.
#[derive(Default)]
pub(crate) struct Intervals(Mutex<State>);

#[derive(Default)]
struct State {
    started: bool,
    handlers: HashMap<String, (Interval, Option<CancelToken>)>,
}

impl AgentController {
    /// Adds a handler, in place of the one of the same id. It begins with [`init`](Self::init), or at once after that.
    pub async fn register_interval(&self, interval: Interval) {
        let shared = self.shared();
        let replaced = shared.put_interval(interval);
        end(replaced).await;
    }

    /// Takes a handler away; says whether it was there.
    pub async fn remove_interval(&self, id: &str) -> bool {
        let removed = self.shared().intervals.0.lock().unwrap_or_else(PoisonError::into_inner).handlers.remove(id);
        let existed = removed.is_some();
        end(removed).await;
        existed
    }
}

impl Shared {
    pub(crate) fn put_interval(&self, interval: Interval) -> Option<(Interval, Option<CancelToken>)> {
        let mut state = self.intervals.0.lock().unwrap_or_else(PoisonError::into_inner);
        let running = (state.started && !self.is_closed()).then(|| self.start_interval(&interval));
        state.handlers.insert(interval.id.clone(), (interval, running))
    }

    /// Starts what was added before.
    pub(crate) fn start_intervals(&self) {
        let mut state = self.intervals.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.started = true;
        for (interval, running) in state.handlers.values_mut().filter(|(_, running)| running.is_none()) {
            *running = Some(self.start_interval(interval));
        }
    }

    /// Ends all of them.
    pub(crate) async fn stop_intervals(&self) {
        let handlers = {
            let mut state = self.intervals.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.started = false;
            std::mem::take(&mut state.handlers)
        };
        futures::future::join_all(handlers.into_values().map(|handler| end(Some(handler)))).await;
    }

    fn start_interval(&self, interval: &Interval) -> CancelToken {
        let stop = self.stop.child();
        let Interval { id, every, immediate, tick, .. } = interval.clone();
        let stopped = stop.clone();
        self.tasks.spawn(async move {
            let mut first = immediate;
            loop {
                let wait = if std::mem::take(&mut first) { Duration::ZERO } else { every };
                tokio::select! {
                    () = stopped.cancelled() => return,
                    () = tokio::time::sleep(wait) => {}
                }
                tokio::select! {
                    () = stopped.cancelled() => return,
                    done = tick() => if let Err(error) = done {
                        tracing::warn!(interval = id, code = error.code(), "a handler failed: {error}");
                    }
                }
            }
        });
        stop
    }
}

async fn end(handler: Option<(Interval, Option<CancelToken>)>) {
    let Some((interval, running)) = handler else { return };
    let Some(running) = running else { return };
    running.cancel();
    if let Some(shutdown) = &interval.shutdown
        && tokio::time::timeout(PATIENCE, shutdown()).await.is_err()
    {
        tracing::warn!(interval = interval.id, "the end of a handler takes too long and is waited for no longer");
    }
}
