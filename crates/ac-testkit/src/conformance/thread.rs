//! Rules for threads.

use ac_storage::{
    RunParent, RunStage, Storage,
    StorageErrorKind::{Conflict, Deleted, Exists, NotFound},
    domain::{MessageQuery, OpenRuns, ThreadQuery},
};
use serde_json::json;

use super::{
    Verdict, Violation,
    fixture::{at, commit, create, ensure, ensure_eq, fails, head_version, record, texts, thread, user, whole_run},
};

fn of(resource: &str) -> ThreadQuery {
    ThreadQuery { resource: Some(resource.into()), ..ThreadQuery::default() }
}

async fn listed(store: &dyn Storage, query: &ThreadQuery) -> Result<Vec<String>, Violation> {
    Ok(store.threads().list(query).await?.items.iter().map(|thread| thread.info.id.to_string()).collect())
}

/// A created thread is there as it was given, with a head.
pub async fn a_new_thread_reads_back(store: &dyn Storage) -> Verdict {
    let mut new = thread("t", "resource", 7);
    new.info.title = "title".into();
    new.info.metadata.insert("a".into(), json!({"b": [1, null]}));
    new.parent = Some(RunParent { run: "p".into(), call: "call".into() });
    new.hidden = true;
    ensure_eq!(store.threads().get(&"t".into()).await?, None, "a thread before it was created");
    store.threads().create(&new).await?;
    let stored = store.threads().get(&"t".into()).await?;
    ensure_eq!(stored.map(|stored| stored.value), Some(new), "the thread");
    let head = super::fixture::head(store, "t").await?.value;
    ensure_eq!((head.active_run, head.next_position, head.deleted), (None, 0, false), "the head of a new thread");
    Ok(())
}

/// A thread id belongs to who created it first.
pub async fn a_thread_id_is_taken_once(store: &dyn Storage) -> Verdict {
    store.threads().create(&thread("t", "one", 1)).await?;
    fails(Exists, "a second thread of the same id", store.threads().create(&thread("t", "two", 2)).await)?;
    let owner = store.threads().get(&"t".into()).await?.map(|stored| stored.value.info.resource);
    ensure_eq!(owner, Some("one".into()), "the owner after somebody else tried");
    ensure_eq!(listed(store, &of("two")).await?, Vec::<String>::new(), "threads of who tried");
    Ok(())
}

/// An update is a compare-and-set on the row's version.
pub async fn a_thread_is_updated_on_its_version_only(store: &dyn Storage) -> Verdict {
    let mut row = thread("t", "resource", 1);
    fails(NotFound, "an update of a thread that is not there", store.threads().update(&row, 1).await)?;
    store.threads().create(&row).await?;
    let version = store.threads().get(&"t".into()).await?.map_or(0, |stored| stored.version);
    row.info.title = "first".into();
    store.threads().update(&row, version).await?;
    row.info.title = "second".into();
    fails(Conflict, "an update on an old version", store.threads().update(&row, version).await)?;
    let stored = store.threads().get(&"t".into()).await?;
    ensure_eq!(stored.as_ref().map(|stored| stored.value.info.title.as_str()), Some("first"), "the title");
    ensure!(stored.is_some_and(|stored| stored.version != version), "an update leaves the version as it was");
    Ok(())
}

/// `updated_at` is the later of row and head.
pub async fn a_thread_shows_when_it_was_last_written_to(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    whole_run(store, "r", "t", &[]).await?;
    let shown = store.threads().get(&"t".into()).await?;
    ensure_eq!(shown.as_ref().map(|stored| stored.value.info.updated_at), Some(at(1002)), "after a run");
    let Some(mut stored) = shown else { return Ok(()) };
    stored.value.info.updated_at = at(2000);
    store.threads().update(&stored.value, stored.version).await?;
    let shown = store.threads().get(&"t".into()).await?;
    ensure_eq!(shown.map(|stored| stored.value.info.updated_at), Some(at(2000)), "after an update");
    Ok(())
}

/// A listing goes from the thread that was last written to to the one that rested longest.
pub async fn threads_are_listed_newest_first(store: &dyn Storage) -> Verdict {
    for (id, millis) in [("a", 3), ("b", 1), ("c", 2)] {
        store.threads().create(&thread(id, "resource", millis)).await?;
    }
    for query in [of("resource"), ThreadQuery::default()] {
        ensure_eq!(listed(store, &query).await?, ["a", "c", "b"], "by creation");
    }
    whole_run(store, "r", "b", &[]).await?;
    for query in [of("resource"), ThreadQuery::default()] {
        ensure_eq!(listed(store, &query).await?, ["b", "a", "c"], "after a run on b");
    }
    let Some(mut stored) = store.threads().get(&"c".into()).await? else { return Err(Violation::new("thread c is gone")) };
    stored.value.info.updated_at = at(5000);
    store.threads().update(&stored.value, stored.version).await?;
    for query in [of("resource"), ThreadQuery::default()] {
        let page = store.threads().list(&query).await?.items;
        let found: Vec<_> = page.iter().map(|thread| (thread.info.id.as_str(), thread.info.updated_at)).collect();
        ensure_eq!(found, [("c", at(5000)), ("b", at(1002)), ("a", at(3))], "after an update of c");
    }
    Ok(())
}

/// Pages cut a listing into pieces that fit together.
pub async fn thread_pages_show_every_thread_once(store: &dyn Storage) -> Verdict {
    for n in 0..7_i64 {
        // Some of the same moment.
        store.threads().create(&thread(&format!("t{n}"), "resource", n / 2)).await?;
    }
    for query in [of("resource"), ThreadQuery::default()] {
        let all = listed(store, &query).await?;
        ensure_eq!(all.len(), 7, "threads without pages");
        for limit in [1, 2, 3, 7, 8] {
            let mut query = ThreadQuery { limit, ..query.clone() };
            let mut found = Vec::new();
            loop {
                let page = store.threads().list(&query).await?;
                ensure!(page.items.len() <= limit, "a page of {limit} has {} threads", page.items.len());
                found.extend(page.items.iter().map(|thread| thread.info.id.to_string()));
                query.after = page.next;
                if query.after.is_none() || found.len() > all.len() {
                    break;
                }
            }
            ensure_eq!(found, all, "pages of {limit}");
        }
    }
    Ok(())
}

/// A listing is of one resource, and of the threads whose metadata hold all that was asked for.
pub async fn threads_are_listed_by_resource_and_metadata(store: &dyn Storage) -> Verdict {
    for (id, resource, color) in [("a", "one", "red"), ("b", "one", "blue"), ("c", "two", "red")] {
        let mut row = thread(id, resource, 1);
        row.info.metadata.insert("color".into(), json!(color));
        row.info.metadata.insert("size".into(), json!(1));
        store.threads().create(&row).await?;
    }
    let red = |query: ThreadQuery| ThreadQuery { metadata: [("color".to_owned(), json!("red"))].into_iter().collect(), ..query };
    ensure_eq!(listed(store, &of("one")).await?, ["a", "b"], "of a resource");
    ensure_eq!(listed(store, &red(of("one"))).await?, ["a"], "red ones of a resource");
    ensure_eq!(listed(store, &red(ThreadQuery::default())).await?, ["a", "c"], "red ones of all");
    let mut both = red(of("one"));
    both.metadata.insert("size".into(), json!(2));
    ensure_eq!(listed(store, &both).await?, Vec::<String>::new(), "of which only one value fits");
    ensure_eq!(listed(store, &of("on")).await?, Vec::<String>::new(), "of a resource whose name is the beginning of another's");
    Ok(())
}

/// Hidden threads are left out unless asked for; threads of child runs always.
pub async fn hidden_threads_are_listed_when_asked_for_and_child_threads_never(store: &dyn Storage) -> Verdict {
    let (mut hidden, mut child) = (thread("hidden", "resource", 1), thread("child", "resource", 1));
    hidden.hidden = true;
    child.parent = Some(RunParent { run: "r".into(), call: "call".into() });
    create(store, "t").await?;
    store.threads().create(&hidden).await?;
    store.threads().create(&child).await?;
    for query in [of("resource"), ThreadQuery::default()] {
        ensure_eq!(listed(store, &query).await?, ["t"], "without being asked");
        ensure_eq!(listed(store, &ThreadQuery { hidden: true, ..query }).await?, ["hidden", "t"], "when asked");
    }
    Ok(())
}

/// Messages, closed runs, state and the threads of the runs' children go with a thread.
pub async fn a_deleted_thread_is_gone_with_all_that_is_its_own(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    whole_run(store, "r", "t", &[user("m", "hello")]).await?;
    store.state().put(&"t".into(), "tasks", None, &json!([1])).await?;
    for (id, run, parent) in [("child", "rc", "r"), ("grandchild", "rg", "rc")] {
        let mut row = thread(id, "resource", 1);
        row.parent = Some(RunParent { run: parent.into(), call: "call".into() });
        store.threads().create(&row).await?;
        whole_run(store, run, id, &[user("m", "hello")]).await?;
    }
    store.threads().delete(&"t".into()).await?;
    for id in ["t", "child", "grandchild"] {
        ensure_eq!(store.threads().get(&id.into()).await?, None, "thread {id}");
        ensure_eq!(texts(store, &id.into()).await?, Vec::<String>::new(), "messages of {id}");
        ensure_eq!(store.messages().get(&id.into(), &"m".into()).await?, None, "a message of {id}");
    }
    for run in ["r", "rc", "rg"] {
        ensure_eq!(store.runs().load(&run.into()).await?, None, "run {run}");
    }
    ensure_eq!(store.state().get(&"t".into(), "tasks").await?, None, "its state");
    ensure_eq!(listed(store, &of("resource")).await?, Vec::<String>::new(), "the list");
    ensure_eq!(listed(store, &ThreadQuery::default()).await?, Vec::<String>::new(), "the list of all");
    ensure_eq!(store.runs().prune(at(i64::MAX)).await?, 0, "closed runs left to prune");
    Ok(())
}

/// The tombstone keeps late writers from re-creating anything. Deleting twice is fine.
pub async fn a_deleted_thread_stays_deleted(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    whole_run(store, "r", "t", &[]).await?;
    let version = head_version(store, "t").await?;
    store.threads().delete(&"t".into()).await?;
    store.threads().delete(&"t".into()).await?;
    store.threads().delete(&"never there".into()).await?;
    fails(Deleted, "creating it again", store.threads().create(&thread("t", "resource", 1)).await)?;
    fails(Deleted, "a message", store.messages().put(&"t".into(), &user("m", "late"), version).await)?;
    fails(Deleted, "state", store.state().put(&"t".into(), "tasks", None, &json!(1)).await)?;
    for (run, expect, stage) in [("r", Some(2), RunStage::Closed), ("r2", None, RunStage::Open)] {
        let record = record(run, "t", stage, 3)?;
        let late = ac_storage::Commit { expect, record: &record, put: &[user("m", "late")], usage: None };
        fails(Deleted, "a late commit", store.runs().commit(late).await)?;
    }
    let head = store.runs().head(&"t".into()).await?;
    ensure!(head.is_some_and(|head| head.value.deleted), "the head is no tombstone");
    ensure_eq!(texts(store, &"t".into()).await?, Vec::<String>::new(), "messages");
    ensure_eq!(store.runs().open(&OpenRuns::default()).await?.items, Vec::new(), "open runs");
    Ok(())
}

/// A thread whose run is open or finished, but not closed, is not deleted.
pub async fn a_thread_with_a_run_is_not_deleted(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    let mut version = commit(store, None, &record("r", "t", RunStage::Open, 1)?, &[user("m", "hello")]).await?;
    for stage in [RunStage::Finished, RunStage::Closed] {
        fails(Conflict, "deleting under a run", store.threads().delete(&"t".into()).await)?;
        ensure_eq!(texts(store, &"t".into()).await?, ["hello"], "messages after the attempt");
        version = commit(store, Some(version), &record("r", "t", stage, version + 1)?, &[]).await?;
    }
    store.threads().delete(&"t".into()).await?;
    ensure_eq!(store.threads().get(&"t".into()).await?, None, "the thread");
    Ok(())
}

/// Nothing of another thread goes, however alike the ids are.
pub async fn deleting_a_thread_leaves_the_others_alone(store: &dyn Storage) -> Verdict {
    for (n, id) in ["t", "t2", "t/2", "t\0", "T"].into_iter().enumerate() {
        create(store, id).await?;
        whole_run(store, &format!("r{n}"), id, &[user("m", id)]).await?;
        store.state().put(&id.into(), "tasks", None, &json!(id)).await?;
    }
    store.threads().delete(&"t".into()).await?;
    for (n, id) in ["t2", "t/2", "t\0", "T"].into_iter().enumerate() {
        ensure!(store.threads().get(&id.into()).await?.is_some(), "thread {id:?} is gone");
        ensure_eq!(texts(store, &id.into()).await?, [id], "messages of {id:?}");
        ensure!(store.runs().load(&format!("r{}", n + 1).into()).await?.is_some(), "the run of {id:?} is gone");
        ensure!(store.state().get(&id.into(), "tasks").await?.is_some(), "the state of {id:?} is gone");
    }
    Ok(())
}

/// Ids are texts, not names of files or parts of keys.
pub async fn ids_may_be_any_text(store: &dyn Storage) -> Verdict {
    let ids = ["", "/", "a", "a/b", "a\0", "a\0b", "\0", "..", "%", "'\"\\", "é\u{1F600}", " a", "A", "~1.call%2F1"];
    for (n, id) in ids.into_iter().enumerate() {
        store.threads().create(&thread(id, id, 1)).await?;
        whole_run(store, id, id, &[user(id, &n.to_string()), user(&format!("{id}2"), "second")]).await?;
        store.state().put(&id.into(), id, None, &json!(n)).await?;
    }
    for (n, id) in ids.into_iter().enumerate() {
        ensure_eq!(texts(store, &id.into()).await?, [n.to_string().as_str(), "second"], "messages of {id:?}");
        ensure_eq!(listed(store, &of(id)).await?, [id], "threads of {id:?}");
        let message = store.messages().get(&id.into(), &id.into()).await?;
        ensure_eq!(message.map(|stored| stored.message.text()), Some(n.to_string()), "message {id:?}");
        let run = store.runs().load(&id.into()).await?;
        ensure_eq!(run.map(|stored| stored.value.header.thread), Some(id.into()), "run {id:?}");
        let state = store.state().get(&id.into(), id).await?;
        ensure_eq!(state.map(|stored| stored.value), Some(json!(n)), "state {id:?}");
        let page = store.messages().page(&id.into(), &MessageQuery { limit: 1, ..MessageQuery::default() }).await?;
        ensure_eq!(page.next.as_deref(), Some("0"), "the next page of {id:?}");
    }
    Ok(())
}
