//! The JSON that comes with a request, for tools to read.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Bound,
    sync::{Arc, Mutex, PoisonError},
};

use ac_core::{MessageId, RunId, id::is_within};
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
    values: Mutex<BTreeMap<String, Arc<Map<String, Value>>>>,
}

impl Transient {
    pub(crate) fn new(keys: HashSet<String>) -> Self {
        Self { keys, values: Mutex::default() }
    }

    /// What of a request context is stored. Reserved keys are dropped; what is transient is kept in memory under `owner`, the id of the
    /// message or the run it is for.
    pub(crate) fn split(&self, owner: &str, context: Map<String, Value>) -> Map<String, Value> {
        let (stored, transient) = self.part(context);
        self.replace(owner, transient);
        stored
    }

    /// What of a request context is stored, and what is not.
    pub(crate) fn part(&self, context: Map<String, Value>) -> (Map<String, Value>, Arc<Map<String, Value>>) {
        let (transient, stored): (Map<_, _>, Map<_, _>) =
            context.into_iter().filter(|(key, _)| !is_reserved_context_key(key)).partition(|(key, _)| self.keys.contains(key));
        (stored, Arc::new(transient))
    }

    /// Keeps what is not stored, in place of what was kept before; that.
    pub(crate) fn replace(&self, owner: &str, transient: Arc<Map<String, Value>>) -> Arc<Map<String, Value>> {
        let mut values = self.values();
        let before = if transient.is_empty() { values.remove(owner) } else { values.insert(owner.to_owned(), transient) };
        before.unwrap_or_default()
    }

    /// What belongs to one is now another's: a message's its run's.
    pub(crate) fn pass_on(&self, from: &str, to: &str) {
        let mut values = self.values();
        if let Some(value) = values.remove(from) {
            values.insert(to.to_owned(), value);
        }
    }

    /// A child run has what its parent has.
    pub(crate) fn share(&self, from: &str, to: &str) {
        let mut values = self.values();
        if let Some(value) = values.get(from).cloned() {
            values.insert(to.to_owned(), value);
        }
    }

    /// Nobody needs it any more: what is a run's, and what its child runs have of it.
    pub(crate) fn forget(&self, owner: &str) {
        let mut values = self.values();
        let root = RunId::from(owner);
        // Ids of child runs begin with that of their parent.
        let alike = values.range::<str, _>((Bound::Included(owner), Bound::Unbounded)).map(|(id, _)| id);
        let gone: Vec<String> =
            alike.take_while(|id| id.starts_with(owner)).filter(|id| is_within(&id.as_str().into(), &root)).cloned().collect();
        for id in gone {
            values.remove(&id);
        }
    }

    /// Forgets what a message has when it is dropped: by then its run has it, or the message was refused.
    pub(crate) fn keep(&self, message: &MessageId) -> Kept<'_> {
        Kept(self, message.to_string())
    }

    /// What is stored, with what is not.
    pub(crate) fn join(&self, owner: &str, stored: &Map<String, Value>) -> Map<String, Value> {
        let mut whole = stored.clone();
        if let Some(value) = self.values().get(owner) {
            whole.extend(value.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        whole
    }

    fn values(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Map<String, Value>>>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a message has until it is taken.
pub(crate) struct Kept<'a>(&'a Transient, String);

impl Kept<'_> {
    /// The message waits: what it has is kept on.
    pub(crate) fn on(mut self) {
        self.1.clear();
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        if !self.1.is_empty() {
            self.0.forget(&self.1);
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
        let stored = transient.split("m1", given);
        assert_eq!(stored, map(json!({ "locale": "de" })));
        assert_eq!(transient.join("r1", &stored), stored);
        transient.pass_on("m1", "r1");
        let (child, other) = ("r1~1.c1", "r10");
        transient.share("r1", child);
        transient.share("r1", other);
        assert_eq!(transient.join("r1", &stored), map(json!({ "locale": "de", "token": "secret" })));
        assert_eq!(transient.join(child, &stored).len(), 2);
        transient.forget("r1");
        assert_eq!((transient.join("r1", &stored), transient.join(child, &stored)), (stored.clone(), stored.clone()));
        assert_eq!(transient.join(other, &stored).len(), 2, "another run");
        assert!(!format!("{:?}", json!(stored)).contains("secret"));
    }
}
