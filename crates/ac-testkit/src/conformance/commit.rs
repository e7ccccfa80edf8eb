//! Rules for the one atomic step of a run (`R1`).

use ac_core::{Message, Part, Role, Usage};
use ac_storage::{
    Commit, CommitOutcome, RunStage, Storage,
    StorageErrorKind::{Conflict, Exists, NotFound},
};

use super::{
    Verdict,
    fixture::{
        assistant, at, commit, conflict, create, ensure, ensure_eq, fails, head, head_version, raw, record, texts, thread, user, whole_run,
    },
};

/// A start sets the head's active run.
pub async fn a_start_takes_the_thread(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    let before = head_version(store, "t").await?;
    let version = commit(store, None, &record("r", "t", RunStage::Open, 1)?, &[user("m", "hello")]).await?;
    let head = head(store, "t").await?;
    ensure_eq!(head.value.active_run, Some("r".into()), "who holds the thread");
    ensure_eq!(head.value.updated_at, at(1001), "when the thread was written to");
    ensure!(head.version != before, "the head has its old version");
    ensure_eq!(store.runs().load(&"r".into()).await?.map(|stored| stored.version), Some(version), "the version of the record");
    Ok(())
}

/// A thread with an open or finished run takes no other.
pub async fn a_thread_has_one_run_at_a_time(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    let mut version = commit(store, None, &record("r", "t", RunStage::Open, 1)?, &[]).await?;
    for stage in [RunStage::Finished, RunStage::Closed] {
        conflict(store, None, &record("r2", "t", RunStage::Open, 1)?, &[user("m", "second")]).await?;
        ensure_eq!(store.runs().load(&"r2".into()).await?, None, "the record of the second run");
        version = commit(store, Some(version), &record("r", "t", stage, version + 1)?, &[]).await?;
    }
    commit(store, None, &record("r2", "t", RunStage::Open, 1)?, &[user("m", "second")]).await?;
    ensure_eq!(texts(store, &"t".into()).await?, ["second"], "messages");
    Ok(())
}

/// A run id is used once, also after its run was closed.
pub async fn a_run_starts_once(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    create(store, "other").await?;
    let version = commit(store, None, &record("r", "t", RunStage::Open, 1)?, &[]).await?;
    conflict(store, None, &record("r", "t", RunStage::Open, 1)?, &[]).await?;
    conflict(store, None, &record("r", "other", RunStage::Open, 1)?, &[]).await?;
    commit(store, Some(version), &record("r", "t", RunStage::Closed, 2)?, &[]).await?;
    conflict(store, None, &record("r", "t", RunStage::Open, 3)?, &[]).await?;
    ensure_eq!(head(store, "other").await?.value.active_run, None, "who holds the other thread");
    Ok(())
}

/// A commit is a compare-and-set on the record's version (`R2`).
pub async fn a_commit_is_made_on_the_version_of_the_record_only(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    conflict(store, Some(1), &record("r", "t", RunStage::Open, 1)?, &[]).await?;
    let mut versions = vec![commit(store, None, &record("r", "t", RunStage::Open, 1)?, &[]).await?];
    for n in 2..5 {
        let stage = if n == 4 { RunStage::Closed } else { RunStage::Open };
        let last = versions.last().copied().unwrap_or_default();
        let next = commit(store, Some(last), &record("r", "t", stage, n)?, &[]).await?;
        ensure!(!versions.contains(&next), "version {next} came twice");
        for old in &versions {
            conflict(store, Some(*old), &record("r", "t", stage, 9)?, &[]).await?;
        }
        versions.push(next);
    }
    let stored = store.runs().load(&"r".into()).await?;
    ensure_eq!(stored.map(|stored| stored.value.header.mark.n), Some(4), "the last commit");
    Ok(())
}

/// Record, head and messages are one.
pub async fn a_commit_that_conflicts_writes_nothing(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    whole_run(store, "r", "t", &[user("m", "hello")]).await?;
    let (before, run) = (head(store, "t").await?, store.runs().load(&"r".into()).await?);
    let usage = Usage::new(1, 1);
    for expect in [None, Some(1), Some(9)] {
        let record = record("r", "t", RunStage::Open, 9)?;
        let put = [user("m2", "not to be seen"), assistant("a", "nor this")];
        let outcome = store.runs().commit(Commit { expect, record: &record, put: &put, usage: Some(&usage) }).await?;
        ensure_eq!(outcome, CommitOutcome::Conflict, "a commit on {expect:?}");
    }
    ensure_eq!(texts(store, &"t".into()).await?, ["hello"], "messages");
    ensure_eq!(head(store, "t").await?, before, "the head");
    ensure_eq!(store.runs().load(&"r".into()).await?, run, "the record");
    Ok(())
}

/// The thread is free when the outbox is empty, not before.
pub async fn a_finished_run_keeps_the_thread_and_a_closed_one_lets_go(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    let version = commit(store, None, &record("r", "t", RunStage::Open, 1)?, &[]).await?;
    let version = commit(store, Some(version), &record("r", "t", RunStage::Finished, 2)?, &[]).await?;
    ensure_eq!(head(store, "t").await?.value.active_run, Some("r".into()), "who holds the thread after the end");
    commit(store, Some(version), &record("r", "t", RunStage::Closed, 3)?, &[]).await?;
    ensure_eq!(head(store, "t").await?.value.active_run, None, "who holds the thread after the close");
    create(store, "u").await?;
    let version = commit(store, None, &record("r2", "u", RunStage::Open, 1)?, &[]).await?;
    commit(store, Some(version), &record("r2", "u", RunStage::Closed, 2)?, &[]).await?;
    ensure_eq!(head(store, "u").await?.value.active_run, None, "who holds the thread after an end with an empty outbox");
    Ok(())
}

/// A closed run's record may still change (answers that come late); the thread belongs to others then.
pub async fn a_closed_run_never_touches_the_head_again(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    whole_run(store, "r", "t", &[user("m", "hello")]).await?;
    commit(store, None, &record("r2", "t", RunStage::Open, 1)?, &[]).await?;
    let before = head(store, "t").await?;
    let version = commit(store, Some(2), &record("r", "t", RunStage::Closed, 3)?, &[]).await?;
    ensure_eq!(head(store, "t").await?, before, "the head after a commit of a closed run");
    for (stage, put) in [(RunStage::Closed, vec![user("late", "late")]), (RunStage::Open, vec![]), (RunStage::Finished, vec![])] {
        let record = record("r", "t", stage, 4)?;
        let late = Commit { expect: Some(version), record: &record, put: &put, usage: None };
        fails(Conflict, "a closed run that wants its thread back", store.runs().commit(late).await)?;
    }
    ensure_eq!(head(store, "t").await?, before, "the head after attempts of a closed run");
    ensure_eq!(texts(store, &"t".into()).await?, ["hello"], "messages");
    Ok(())
}

/// The open step's message is put again and again; its position is that of the first put.
pub async fn a_message_of_a_model_is_replaced_where_it_stands(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    let mut version = commit(store, None, &record("r", "t", RunStage::Open, 1)?, &[user("m", "hello"), assistant("r/1", "a")]).await?;
    for (n, put) in [(2, vec![assistant("r/1", "ab"), user("m2", "more")]), (3, vec![assistant("r/1", "abc"), assistant("r/2", "x")])] {
        version = commit(store, Some(version), &record("r", "t", RunStage::Open, n)?, &put).await?;
    }
    ensure_eq!(texts(store, &"t".into()).await?, ["hello", "abc", "more", "x"], "messages");
    ensure_eq!(head(store, "t").await?.value.next_position, 4, "the next position");
    let twice = [assistant("r/3", "first"), user("m3", "between"), assistant("r/3", "last"), user("m3", "between")];
    commit(store, Some(version), &record("r", "t", RunStage::Open, 4)?, &twice).await?;
    ensure_eq!(texts(store, &"t".into()).await?, ["hello", "abc", "more", "x", "last", "between"], "after one commit with an id twice");
    Ok(())
}

/// What a person or the host wrote is never rewritten.
pub async fn any_other_message_is_insert_only(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    let signal = |text: &str| std::sync::Arc::new(Message::new("s", Role::Signal, vec![Part::text(text)], at(5)));
    let version =
        commit(store, None, &record("r", "t", RunStage::Open, 1)?, &[user("m", "hello"), signal("note"), assistant("a", "a")]).await?;
    let before = head(store, "t").await?;
    for message in [user("m", "else"), signal("else"), assistant("m", "hello"), user("a", "a")] {
        let record = record("r", "t", RunStage::Open, 2)?;
        let put = [user("new", "not to be seen"), message];
        let rewrite = Commit { expect: Some(version), record: &record, put: &put, usage: None };
        fails(Exists, "a rewritten message", store.runs().commit(rewrite).await)?;
    }
    ensure_eq!(texts(store, &"t".into()).await?, ["hello", "note", "a"], "messages");
    ensure_eq!(head(store, "t").await?, before, "the head");
    commit(store, Some(version), &record("r", "t", RunStage::Open, 2)?, &[user("m", "hello")]).await?;
    ensure_eq!(texts(store, &"t".into()).await?, ["hello", "note", "a"], "messages after the same one came again");
    Ok(())
}

/// A step's usage is added in the commit that stores it.
pub async fn usage_adds_up(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    let mut expect = None;
    for n in 1..=3 {
        let mut usage = Usage::new(10 * n, n);
        usage.reasoning = (n == 2).then_some(7);
        let record = record("r", "t", RunStage::Open, n)?;
        let commit = Commit { expect, record: &record, put: &[], usage: Some(&usage) };
        let outcome = store.runs().commit(commit.clone()).await?;
        let CommitOutcome::Committed { version } = outcome else {
            return Err(super::Violation::new(format!("a commit was answered {outcome:?}")));
        };
        ensure_eq!(store.runs().commit(commit).await?, CommitOutcome::Conflict, "the same commit again");
        expect = Some(version);
    }
    let usage = head(store, "t").await?.value.usage;
    ensure_eq!((usage.input, usage.output, usage.total, usage.reasoning), (60, 6, 66, Some(7)), "usage of the thread");
    Ok(())
}

/// No run without a thread.
pub async fn a_commit_needs_its_thread(store: &dyn Storage) -> Verdict {
    let record = record("r", "t", RunStage::Open, 1)?;
    let commit = Commit { expect: None, record: &record, put: &[user("m", "hello")], usage: None };
    fails(NotFound, "a commit without thread", store.runs().commit(commit).await)?;
    ensure_eq!(store.runs().load(&"r".into()).await?, None, "the record");
    ensure_eq!(store.runs().head(&"t".into()).await?, None, "the head");
    Ok(())
}

/// Of steps made on the same version at the same time one is stored (`R2`).
pub async fn of_many_commits_on_one_version_one_is_made(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    let mut expect = None;
    for round in 1..=5 {
        let attempts = (0..16_u64).map(async |n| {
            let record = record("r", "t", RunStage::Open, 100 * round + n)?;
            let put = [assistant("r/1", &n.to_string()), user(&format!("m{round}-{n}"), "m")];
            Ok::<_, super::Violation>((n, store.runs().commit(Commit { expect, record: &record, put: &put, usage: None }).await?))
        });
        let mut made = Vec::new();
        for outcome in futures::future::join_all(attempts).await {
            match outcome? {
                (n, CommitOutcome::Committed { version }) => made.push((n, version)),
                (_, CommitOutcome::Conflict) => {}
                (_, CommitOutcome::Unknown) => return Err(super::Violation::new("a commit was answered Unknown")),
            }
        }
        let [(n, version)] = made[..] else {
            return Err(super::Violation::new(format!("{} of 16 commits on one version were made", made.len())));
        };
        let stored = store.runs().load(&"r".into()).await?;
        ensure_eq!(stored.map(|stored| stored.value.header.mark.n), Some(100 * round + n), "whose record is stored");
        ensure_eq!(texts(store, &"t".into()).await?.first(), Some(&n.to_string()), "whose message is stored");
        ensure_eq!(head(store, "t").await?.value.next_position, 1 + round, "the next position");
        expect = Some(version);
    }
    Ok(())
}

/// The body belongs to the engine: the store does not read it, so it cannot change it.
pub async fn a_record_is_kept_as_it_is(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    let mut new = record("r", "t", RunStage::Open, 1)?;
    new.body = raw(r#"{ "b" : 1.0, "a": [ ], "n": 12345678901234567890, "b": "\u0000" }"#)?;
    new.header.parent = Some(ac_storage::RunParent { run: "p".into(), call: "c".into() });
    new.header.pending = vec!["r/1/call#1".parse().map_err(|_| super::Violation::new("no pending id"))?];
    new.header.epoch = u64::MAX;
    commit(store, None, &new, &[]).await?;
    ensure_eq!(store.runs().load(&"r".into()).await?.map(|stored| stored.value), Some(new), "the record");
    ensure_eq!(store.runs().load(&"other".into()).await?, None, "a run that is not there");
    Ok(())
}

/// However a store keeps what message and record have in common: both read back to the byte, and a copy outlives the thread it is of.
pub async fn a_large_text_reads_back_in_message_and_record(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    let text = "0123456789\"\\\u{e9}\u{1F980}".repeat(8_000);
    let literal = serde_json::Value::from(text.as_str()).to_string();
    let mut row = record("r", "t", RunStage::Open, 1)?;
    for (n, more) in [(1, ""), (2, " and more")] {
        row = record("r", "t", RunStage::Open, n)?;
        row.body = raw(&format!(r#"{{ "n": {n}, "message": {literal}, "own": "{}", "again":{literal} }}"#, "o".repeat(100_000)))?;
        let message = assistant("m", &text);
        let mut changed = (*message).clone();
        changed.parts.push(Part::text(more));
        commit(store, (n == 2).then_some(1), &row, &[changed.into()]).await?;
        ensure_eq!(store.runs().load(&"r".into()).await?.map(|stored| stored.value == row), Some(true), "record {n} reads back");
        ensure_eq!(texts(store, &"t".into()).await?, [format!("{text}{more}")], "the message after commit {n}");
    }
    // A commit that puts no message has the text all the same.
    row.header.mark.n = 3;
    commit(store, Some(2), &row, &[]).await?;
    ensure_eq!(store.runs().load(&"r".into()).await?.map(|stored| stored.value == row), Some(true), "the record without its message");
    commit(store, Some(3), &record("r", "t", RunStage::Closed, 4)?, &[]).await?;
    store.messages().copy(&"t".into(), &thread("copy", "resource", 1), None).await?;
    store.threads().delete(&"t".into()).await?;
    ensure_eq!(texts(store, &"copy".into()).await?, [format!("{text} and more")], "the copy after the original is gone");
    Ok(())
}
