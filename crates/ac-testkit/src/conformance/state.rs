//! Rules for state of threads.

use ac_storage::{
    Storage,
    StorageErrorKind::{Conflict, NotFound},
};
use serde_json::json;

use super::{
    Verdict,
    fixture::{create, ensure, ensure_eq, fails, head},
};

/// Writing is a compare-and-set on the version, and does not touch the thread's head.
pub async fn state_is_written_on_its_version_only(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    let before = head(store, "t").await?;
    let state = store.state();
    ensure_eq!(state.get(&"t".into(), "tasks").await?, None, "before it was written");
    fails(Conflict, "a version that never was", state.put(&"t".into(), "tasks", Some(1), &json!(0)).await)?;
    let first = state.put(&"t".into(), "tasks", None, &json!({"a": null})).await?;
    fails(Conflict, "a second first value", state.put(&"t".into(), "tasks", None, &json!(2)).await)?;
    let second = state.put(&"t".into(), "tasks", Some(first), &json!([1.5])).await?;
    ensure!(first != second, "version {first} came twice");
    fails(Conflict, "an old version", state.put(&"t".into(), "tasks", Some(first), &json!(4)).await)?;
    let stored = state.get(&"t".into(), "tasks").await?;
    ensure_eq!(stored.map(|stored| (stored.version, stored.value)), Some((second, json!([1.5]))), "the value");
    ensure_eq!(head(store, "t").await?, before, "the head");
    Ok(())
}

/// Same names on other threads, and other names on the same one, are values of their own.
pub async fn state_belongs_to_its_thread_and_name(store: &dyn Storage) -> Verdict {
    let places = [("t", "a"), ("t", "b"), ("t", ""), ("t", "a/b"), ("ta", ""), ("t\0", "a")];
    for thread in ["t", "ta", "t\0"] {
        create(store, thread).await?;
    }
    for (n, (thread, name)) in places.into_iter().enumerate() {
        store.state().put(&thread.into(), name, None, &json!(n)).await?;
    }
    for (n, (thread, name)) in places.into_iter().enumerate() {
        let stored = store.state().get(&thread.into(), name).await?;
        ensure_eq!(stored.map(|stored| stored.value), Some(json!(n)), "{name:?} of {thread:?}");
    }
    Ok(())
}

/// State that no deletion would reach is not kept.
pub async fn state_needs_its_thread(store: &dyn Storage) -> Verdict {
    fails(NotFound, "state without thread", store.state().put(&"t".into(), "tasks", None, &json!(1)).await)?;
    create(store, "t").await?;
    ensure_eq!(store.state().get(&"t".into(), "tasks").await?, None, "after the thread was created");
    Ok(())
}
