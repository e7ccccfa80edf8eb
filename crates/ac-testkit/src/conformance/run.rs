//! Rules for listing and pruning runs.

use ac_core::{RunId, SessionKey};
use ac_storage::{RunParent, RunPosture, RunStage, SessionId, Storage, domain::OpenRuns};

use super::{
    Verdict, Violation,
    fixture::{at, commit, create, ensure, ensure_eq, record, whole_run},
};

async fn open(store: &dyn Storage) -> Result<Vec<RunId>, Violation> {
    Ok(store.runs().open(&OpenRuns::default()).await?.items.into_iter().map(|header| header.run).collect())
}

/// A run is listed from its start to its close, with its latest header.
pub async fn open_runs_are_listed_until_they_are_closed(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    ensure_eq!(open(store).await?, Vec::new(), "before any run");
    let mut version = None;
    for (n, stage, posture) in
        [(1, RunStage::Open, RunPosture::Moving), (2, RunStage::Open, RunPosture::Parked), (3, RunStage::Finished, RunPosture::Finished)]
    {
        let mut row = record("r", "t", stage, n)?;
        row.header.posture = posture;
        version = Some(commit(store, version, &row, &[]).await?);
        ensure_eq!(store.runs().open(&OpenRuns::default()).await?.items, [row.header], "after commit {n}");
    }
    commit(store, version, &record("r", "t", RunStage::Closed, 4)?, &[]).await?;
    ensure_eq!(open(store).await?, Vec::new(), "after the close");
    commit(store, Some(4), &record("r", "t", RunStage::Closed, 5)?, &[]).await?;
    ensure_eq!(open(store).await?, Vec::new(), "after a commit of the closed run");
    Ok(())
}

/// Pages cut the listing into pieces that fit together.
pub async fn open_run_pages_show_every_run_once(store: &dyn Storage) -> Verdict {
    for n in 0..9 {
        let (run, thread) = (format!("r{n}"), format!("t{n}"));
        create(store, &thread).await?;
        match n % 3 {
            0 => whole_run(store, &run, &thread, &[]).await?,
            _ => commit(store, None, &record(&run, &thread, RunStage::Open, 1)?, &[]).await.map(drop)?,
        }
    }
    let all = open(store).await?;
    ensure_eq!(all.len(), 6, "open runs");
    for limit in [1, 2, 4, 6, 7] {
        let mut query = OpenRuns { limit, ..OpenRuns::default() };
        let mut found: Vec<RunId> = Vec::new();
        loop {
            let page = store.runs().open(&query).await?;
            ensure!(page.items.len() <= limit, "a page of {limit} has {} runs", page.items.len());
            found.extend(page.items.into_iter().map(|header| header.run));
            query.after = page.next;
            if query.after.is_none() || found.len() > all.len() {
                break;
            }
        }
        ensure_eq!(found, all, "pages of {limit}");
    }
    Ok(())
}

/// By thread there is at most one.
pub async fn the_open_run_of_a_thread_is_found(store: &dyn Storage) -> Verdict {
    for n in 0..3 {
        create(store, &format!("t{n}")).await?;
    }
    commit(store, None, &record("r0", "t0", RunStage::Open, 1)?, &[]).await?;
    commit(store, None, &record("r1", "t1", RunStage::Open, 1)?, &[]).await?;
    whole_run(store, "r2", "t2", &[]).await?;
    for (thread, expected) in [("t0", vec!["r0"]), ("t1", vec!["r1"]), ("t2", vec![]), ("other", vec![])] {
        let page = store.runs().open(&OpenRuns { thread: Some(thread.into()), ..OpenRuns::default() }).await?;
        let found: Vec<_> = page.items.iter().map(|header| header.run.as_str()).collect();
        ensure_eq!(found, expected, "of {thread}");
        ensure_eq!(page.next, None, "the next page of {thread}");
    }
    Ok(())
}

/// Those of a session, and of no other: not of one with the same resource, nor of one of another controller.
pub async fn the_open_runs_of_a_session_are_found(store: &dyn Storage) -> Verdict {
    let session = |controller: &str, key: &SessionKey| SessionId { controller: controller.into(), key: key.clone() };
    let (whole, tab) = (SessionKey::new("resource"), SessionKey::scoped("resource", "tab"));
    for (n, (controller, key)) in
        [("one", &whole), ("one", &tab), ("two", &whole), ("one", &whole), ("one", &whole)].into_iter().enumerate()
    {
        let (run, thread) = (format!("r{n}"), format!("t{n}"));
        create(store, &thread).await?;
        for (n, stage, expect) in [(1, RunStage::Open, None), (2, RunStage::Closed, Some(1))] {
            let mut row = record(&run, &thread, stage, n)?;
            (row.header.controller, row.header.session) = (controller.into(), key.clone());
            if stage == RunStage::Open || run == "r4" {
                commit(store, expect, &row, &[]).await?;
            }
        }
    }
    for (of, expected) in [
        (session("one", &whole), vec!["r0", "r3"]),
        (session("one", &tab), vec!["r1"]),
        (session("two", &whole), vec!["r2"]),
        (session("two", &tab), vec![]),
    ] {
        for limit in [0, 1, 2] {
            let mut query = OpenRuns { session: Some(of.clone()), limit, ..OpenRuns::default() };
            let mut found = Vec::new();
            loop {
                let page = store.runs().open(&query).await?;
                ensure!(limit == 0 || page.items.len() <= limit, "a page of {limit} has {} runs", page.items.len());
                found.extend(page.items.into_iter().map(|header| header.run.to_string()));
                query.after = page.next;
                if query.after.is_none() || found.len() > 5 {
                    break;
                }
            }
            ensure_eq!(found, expected, "of {of:?} in pages of {limit}");
        }
    }
    Ok(())
}

/// Runs that are open, and runs that ended lately, stay.
pub async fn only_old_closed_runs_are_pruned(store: &dyn Storage) -> Verdict {
    for (run, thread) in [("open", "t0"), ("finished", "t1"), ("closed", "t2")] {
        create(store, thread).await?;
        commit(store, None, &record(run, thread, RunStage::Open, 1)?, &[]).await?;
    }
    commit(store, Some(1), &record("finished", "t1", RunStage::Finished, 2)?, &[]).await?;
    commit(store, Some(1), &record("closed", "t2", RunStage::Closed, 2)?, &[]).await?;
    // A commit after the close does not make the run younger: what counts is when it ended.
    commit(store, Some(2), &record("closed", "t2", RunStage::Closed, 50)?, &[]).await?;
    ensure_eq!(store.runs().prune(at(1002)).await?, 0, "runs that ended before they ended");
    ensure!(store.runs().load(&"closed".into()).await?.is_some(), "a run that ended at the moment was pruned");
    ensure_eq!(store.runs().prune(at(1003)).await?, 1, "runs that ended before");
    ensure_eq!(store.runs().load(&"closed".into()).await?, None, "the pruned run");
    ensure_eq!(store.runs().prune(at(i64::MAX)).await?, 0, "runs left to prune");
    for run in ["open", "finished"] {
        ensure!(store.runs().load(&run.into()).await?.is_some(), "the {run} run was pruned");
    }
    store.threads().delete(&"t2".into()).await?;
    Ok(())
}

/// The parent reads the result of its child from the child's record.
pub async fn no_run_is_pruned_before_its_parent_is_closed(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    create(store, "child thread").await?;
    commit(store, None, &record("parent", "t", RunStage::Open, 1)?, &[]).await?;
    for (n, stage, expect) in [(1, RunStage::Open, None), (2, RunStage::Closed, Some(1))] {
        let mut row = record("child", "child thread", stage, n)?;
        row.header.parent = Some(RunParent { run: "parent".into(), call: "call".into() });
        commit(store, expect, &row, &[]).await?;
    }
    ensure_eq!(store.runs().prune(at(5000)).await?, 0, "runs while the parent is open");
    ensure!(store.runs().load(&"child".into()).await?.is_some(), "the child was pruned before its parent was closed");
    commit(store, Some(1), &record("parent", "t", RunStage::Closed, 2)?, &[]).await?;
    ensure_eq!(store.runs().prune(at(5000)).await?, 2, "runs after the parent is closed");
    Ok(())
}
