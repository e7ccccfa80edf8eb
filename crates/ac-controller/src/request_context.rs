//! The JSON that comes with a request, for tools to read.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Bound,
    sync::{Arc, Mutex, PoisonError},
};

use ac_core::{MessageId, RunId, ThreadId, id::is_within};
use serde_json::{Map, Value};

/// Keys that only the runtime and whoever authenticates callers may set; from a caller they are dropped (WIRE 1.1). So is everything that
/// begins with [`RESERVED_PREFIX`].
const RESERVED: [&str; 1] = ["organizationId"];

/// What reserved keys begin with.
const RESERVED_PREFIX: &str = "mastra__";

/// Whether a caller may not set this key of a request context.
pub fn is_reserved_context_key(key: &str) -> bool {
    key.starts_with(RESERVED_PREFIX) || RESERVED.contains(&key)
}

/// Keys that are never stored, and their values for the runs and messages of this process that have some.
#[derive(Default)]
pub(crate) struct Transient {
    keys: HashSet<String>,
    values: Mutex<Values>,
}

/// What is not stored.
type Apart = Arc<Map<String, Value>>;

#[derive(Default)]
struct Values {
    /// Of runs. Ids of child runs begin with that of their parent.
    runs: BTreeMap<String, Apart>,
    /// Of messages that no run has yet. Their ids are their thread's alone.
    messages: HashMap<(ThreadId, MessageId), Apart>,
}

impl Transient {
    pub(crate) fn new(keys: HashSet<String>) -> Self {
        Self { keys, values: Mutex::default() }
    }

    /// What of a request context is stored, and what is not. Reserved keys are dropped.
    pub(crate) fn part(&self, context: Map<String, Value>) -> (Map<String, Value>, Apart) {
        let (transient, stored): (Map<_, _>, Map<_, _>) =
            context.into_iter().filter(|(key, _)| !is_reserved_context_key(key)).partition(|(key, _)| self.keys.contains(key));
        (stored, Arc::new(transient))
    }

    /// Keeps what a message has apart until its run has it. Whoever calls this knows that the message is new: one that is known keeps what
    /// it came with.
    pub(crate) fn keep(&self, thread: &ThreadId, message: &MessageId, apart: Apart) -> Kept<'_> {
        let key = (!apart.is_empty()).then(|| (thread.clone(), message.clone()));
        if let Some(key) = &key {
            self.values().messages.insert(key.clone(), apart);
        }
        Kept(self, key)
    }

    /// A message that waited is gone.
    pub(crate) fn forget_message(&self, thread: &ThreadId, message: &MessageId) {
        self.values().messages.remove(&(thread.clone(), message.clone()));
    }

    /// A thread is gone, and with it what waited there.
    pub(crate) fn forget_thread(&self, thread: &ThreadId) {
        self.values().messages.retain(|(of, _), _| of != thread);
    }

    /// What was a message's is now the run's that begins with it.
    pub(crate) fn begin(&self, thread: &ThreadId, message: &MessageId, run: &RunId) {
        let mut values = self.values();
        if let Some(apart) = values.messages.remove(&(thread.clone(), message.clone())) {
            values.runs.insert(run.to_string(), apart);
        }
    }

    /// The run did not begin: what it had is the message's again.
    pub(crate) fn give_back(&self, thread: &ThreadId, message: &MessageId, run: &RunId) {
        let mut values = self.values();
        if let Some(apart) = values.runs.remove(run.as_str()) {
            values.messages.insert((thread.clone(), message.clone()), apart);
        }
    }

    /// Keeps what a run has apart, in place of what it had before; that.
    pub(crate) fn replace(&self, run: &RunId, apart: Apart) -> Apart {
        let mut values = self.values();
        let before = if apart.is_empty() { values.runs.remove(run.as_str()) } else { values.runs.insert(run.to_string(), apart) };
        before.unwrap_or_default()
    }

    /// A child run has what its parent has.
    pub(crate) fn share(&self, parent: &RunId, child: &RunId) {
        let mut values = self.values();
        if let Some(apart) = values.runs.get(parent.as_str()).cloned() {
            values.runs.insert(child.to_string(), apart);
        }
    }

    /// The run is over: nobody needs what it has any more, nor what its child runs have of it.
    pub(crate) fn forget(&self, run: &RunId) {
        let mut values = self.values();
        let alike = values.runs.range::<str, _>((Bound::Included(run.as_str()), Bound::Unbounded)).map(|(id, _)| id);
        let gone: Vec<String> =
            alike.take_while(|id| id.starts_with(run.as_str())).filter(|id| is_within(&id.as_str().into(), run)).cloned().collect();
        for id in gone {
            values.runs.remove(&id);
        }
    }

    /// What is stored of a run's context, with what is not.
    pub(crate) fn join(&self, run: &RunId, stored: &Map<String, Value>) -> Map<String, Value> {
        let mut whole = stored.clone();
        if let Some(apart) = self.values().runs.get(run.as_str()) {
            whole.extend(apart.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        whole
    }

    fn values(&self) -> std::sync::MutexGuard<'_, Values> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a message has until it is taken. Forgotten when this is dropped: by then its run has it, or the message was refused.
pub(crate) struct Kept<'a>(&'a Transient, Option<(ThreadId, MessageId)>);

impl Kept<'_> {
    /// The message waits: what it has is kept on.
    pub(crate) fn on(mut self) {
        self.1 = None;
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.1.take() {
            self.0.values().messages.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn what_is_transient_is_kept_apart_and_what_is_reserved_is_dropped() {
        let transient = Transient::new(HashSet::from(["token".to_owned()]));
        let given = map(json!({ "token": "secret", "locale": "de", "mastra__userRoles": ["admin"], "organizationId": "other" }));
        let (stored, apart) = transient.part(given);
        assert_eq!(stored, map(json!({ "locale": "de" })));
        let (thread, message, run) = (ThreadId::from("t"), MessageId::from("r1"), RunId::from("r1"));
        let kept = transient.keep(&thread, &message, apart);
        assert_eq!(transient.join(&run, &stored), stored, "a message may be named as a run is");
        transient.begin(&thread, &message, &run);
        drop(kept);
        let (child, other) = (RunId::from("r1~1.c1"), RunId::from("r10"));
        transient.share(&run, &child);
        transient.share(&run, &other);
        assert_eq!(transient.join(&run, &stored), map(json!({ "locale": "de", "token": "secret" })));
        assert_eq!(transient.join(&child, &stored).len(), 2);
        transient.forget(&run);
        assert_eq!((transient.join(&run, &stored), transient.join(&child, &stored)), (stored.clone(), stored.clone()));
        assert_eq!(transient.join(&other, &stored).len(), 2, "another run");
        assert!(!format!("{:?}", json!(stored)).contains("secret"));
    }

    #[test]
    fn what_a_message_has_goes_with_it() {
        let transient = Transient::new(HashSet::from(["token".to_owned()]));
        let apart = |token: &str| transient.part(map(json!({ "token": token }))).1;
        let (thread, message, run) = (ThreadId::from("t"), MessageId::from("m"), RunId::from("r"));
        transient.keep(&thread, &message, apart("one")).on();
        drop(transient.keep(&"u".into(), &message, apart("two")));
        transient.begin(&thread, &message, &run);
        assert_eq!(transient.join(&run, &Map::new()), map(json!({ "token": "one" })), "ids are a thread's alone");
        transient.give_back(&thread, &message, &run);
        assert_eq!(transient.join(&run, &Map::new()), Map::new());
        transient.forget_message(&thread, &message);
        transient.begin(&thread, &message, &run);
        assert_eq!(transient.join(&run, &Map::new()), Map::new());
    }
}
