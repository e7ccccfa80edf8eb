//! Follows the list of a scenario.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ac_controller::{Delivery, Session};
use ac_core::wire;
use futures::StreamExt;
use serde_json::Value;
use tokio::{sync::watch, task::JoinHandle};

use super::{
    Recording, Scenario, ScenarioError,
    act::{self, Trouble},
    file::{Act, Action, Verb, WaitFor},
    finish,
    log::Log,
    stage::{Cast, Stage},
};

/// How long a `waitFor` and a `waitBg` take at most.
const WAIT: Duration = Duration::from_secs(8);
/// How long an action takes at most.
const ACT: Duration = Duration::from_secs(10);
/// How long actions in the background may still take at the end.
const LAST: Duration = Duration::from_secs(4);
/// For events that come after everything else.
const REST: Duration = Duration::from_millis(300);
/// For what runs in the background to begin.
const BEGIN: Duration = Duration::from_millis(2);
/// For events that were told to be written down.
const CATCH_UP: Duration = Duration::from_secs(2);

/// The host of a scenario, shared with what it does in the background.
pub(super) struct Host {
    pub(super) log: Log,
    pub(super) cast: Mutex<Arc<Cast>>,
    pub(super) vars: Mutex<BTreeMap<String, Value>>,
    sessions: Mutex<Vec<(String, Arc<Listener>)>>,
}

/// A session and what is written down of it.
pub(super) struct Listener {
    pub(super) session: Session,
    /// The controller that it belongs to.
    pub(super) cast: Arc<Cast>,
    seen: watch::Receiver<u64>,
}

/// Plays a scenario.
///
/// # Errors
/// When it cannot be set up. What goes wrong while it is played is in the recording.
pub async fn run(scenario: &Scenario) -> Result<Recording, ScenarioError> {
    let mut stage = Stage::open(scenario).await?;
    let cast = Arc::new(stage.controller(&scenario.controller)?);
    let host =
        Arc::new(Host { log: Log::new(scenario.display), cast: Mutex::new(cast), vars: Mutex::default(), sessions: Mutex::default() });
    if let Err(error) = host.cast().controller.init().await {
        host.log.driver_error(format!("init: {error}"));
    }
    let mut background: Vec<JoinHandle<()>> = vec![];
    for (at, action) in scenario.actions.iter().enumerate() {
        host.log.reach(at + 1);
        match action {
            Action::Sleep(millis) => tokio::time::sleep(Duration::from_millis(*millis)).await,
            Action::WaitFor(wait) => host.wait_for(wait).await,
            Action::WaitBackground { timeout } => {
                if !ended(&mut background, timeout.map_or(WAIT, Duration::from_millis)).await {
                    host.log.driver_error(format!("place {}: what runs in the background did not end in time", at + 1));
                }
            }
            Action::Do(act) if act.verb == Verb::Recreate => {
                host.announce(act);
                match host.recreate(&mut stage, scenario).await {
                    Ok(()) => host.log.result(&act.name, Some("recreated".into())),
                    Err(error) => host.log.threw(&act.name, "scenario.recreate", &error.to_string()),
                }
            }
            Action::Do(act) => host.perform(act, &mut background).await,
        }
    }
    if !ended(&mut background, LAST).await {
        host.log.note("some background actions never settled");
    }
    tokio::time::sleep(REST).await;
    let recording = finish::recording(scenario, &host, &stage).await;
    for task in background {
        task.abort();
    }
    host.cast().controller.shutdown().await;
    stage.close().await;
    Ok(recording)
}

/// Waits for tasks; says whether all ended. Those that did are gone from the list.
async fn ended(tasks: &mut Vec<JoinHandle<()>>, patience: Duration) -> bool {
    let all = async {
        for task in tasks.iter_mut() {
            let _ = task.await;
        }
    };
    let in_time = tokio::time::timeout(patience, all).await.is_ok();
    if in_time {
        tasks.clear();
    } else {
        tasks.retain(|task| !task.is_finished());
    }
    in_time
}

impl Host {
    pub(super) fn cast(&self) -> Arc<Cast> {
        Arc::clone(&self.cast.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn vars(&self) -> MutexGuard<'_, BTreeMap<String, Value>> {
        self.vars.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sessions by label, in the order in which they were made.
    pub(super) fn sessions(&self) -> MutexGuard<'_, Vec<(String, Arc<Listener>)>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn session(&self, label: &str) -> Option<Arc<Listener>> {
        self.sessions().iter().rev().find(|(known, _)| known == label).map(|(_, listener)| Arc::clone(listener))
    }

    fn announce(&self, act: &Act) {
        self.log.action(&act.name, act.args.as_ref().map(|args| self.filled(args)).as_ref(), act.session.as_deref());
    }

    /// Arguments with the values that earlier actions kept.
    pub(super) fn filled(&self, args: &Value) -> Value {
        match args {
            Value::String(text) => match text.strip_prefix('$').and_then(|name| self.vars().get(name).cloned()) {
                Some(value) => value,
                None => args.clone(),
            },
            Value::Array(items) => items.iter().map(|item| self.filled(item)).collect(),
            Value::Object(fields) => fields.iter().map(|(key, field)| (key.clone(), self.filled(field))).collect(),
            _ => args.clone(),
        }
    }

    async fn wait_for(&self, wait: &WaitFor) {
        let patience = wait.timeout.map_or(WAIT, Duration::from_millis);
        if !self.log.wait(wait, patience).await {
            self.log.driver_error(format!("`{}` did not come in time", wait.kind));
        }
    }

    async fn perform(self: &Arc<Self>, act: &Act, background: &mut Vec<JoinHandle<()>>) {
        self.announce(act);
        let (host, asked) = (Arc::clone(self), act.clone());
        let mut task = tokio::spawn(async move { host.do_one(&asked).await });
        if act.background {
            // It begins before the next action does.
            tokio::time::sleep(BEGIN).await;
            background.push(task);
            return;
        }
        let patience = act.timeout.map_or(ACT, Duration::from_millis);
        if tokio::time::timeout(patience, &mut task).await.is_err() {
            self.log.driver_error(format!("`{}` did not end in time", act.name));
            background.push(task);
        }
    }

    async fn do_one(self: &Arc<Self>, act: &Act) {
        let outcome = act::act(self, act).await;
        self.catch_up().await;
        match outcome {
            Ok(result) => {
                if let (Some(var), Some(result)) = (&act.var, &result) {
                    self.vars().insert(var.clone(), result.clone());
                }
                self.log.result(&act.name, result);
            }
            Err(Trouble::Refused { code, message }) => self.log.threw(&act.name, &code, &message),
            Err(Trouble::Driver(why)) => {
                self.log.driver_error(format!("`{}`: {why}", act.name));
                self.log.threw(&act.name, "scenario.driver", &why);
            }
        }
    }

    /// Waits until everything that was told is written down.
    async fn catch_up(&self) {
        let listeners: Vec<_> = self.sessions().iter().map(|(_, listener)| Arc::clone(listener)).collect();
        for listener in listeners {
            let mut probe = listener.session.subscribe();
            let mut seen = listener.seen.clone();
            let _ = tokio::time::timeout(CATCH_UP, async {
                match probe.next().await {
                    Some(Delivery::State(now)) => drop(seen.wait_for(|seen| *seen >= now.cursor.seq).await),
                    // The session is over; so is what is told of it, once its listener is gone.
                    _ => while seen.changed().await.is_ok() {},
                }
            })
            .await;
        }
    }

    /// Takes a session in. Answers the label that it had before, if it had one.
    pub(super) fn take_in(self: &Arc<Self>, label: &str, session: Session) -> Option<String> {
        let cast = self.cast();
        let known = self.sessions().iter().find(|(_, known)| known.session == session).cloned();
        if let Some((first, listener)) = known {
            self.sessions().push((label.to_owned(), listener));
            return Some(first);
        }
        cast.people.join(&session);
        let mut events = session.subscribe();
        let (told, seen) = watch::channel(0);
        let (host, name) = (Arc::downgrade(self), label.to_owned());
        tokio::spawn(async move {
            while let Some(delivery) = events.next().await {
                let seq = match delivery {
                    Delivery::State(now) => now.cursor.seq,
                    Delivery::Event(event) => {
                        let Some(host) = host.upgrade() else { return };
                        host.log.event(&name, wire::body(&event));
                        event.seq
                    }
                };
                told.send_replace(seq);
            }
        });
        self.sessions().push((label.to_owned(), Arc::new(Listener { session, cast, seen })));
        None
    }

    async fn recreate(&self, stage: &mut Stage, scenario: &Scenario) -> Result<(), ScenarioError> {
        self.catch_up().await;
        self.cast().controller.shutdown().await;
        self.catch_up().await;
        stage.reopen().await?;
        let cast = Arc::new(stage.controller(scenario.controller2.as_ref().unwrap_or(&scenario.controller))?);
        if let Err(error) = cast.controller.init().await {
            self.log.driver_error(format!("init: {error}"));
        }
        *self.cast.lock().unwrap_or_else(PoisonError::into_inner) = cast;
        Ok(())
    }
}
